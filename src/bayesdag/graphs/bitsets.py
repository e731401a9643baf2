"""Sets of variables as integers: bit j of a mask stands for variable j.

Conversions between masks and rows of booleans, and sums over all subsets of a set.
"""

# numpy's stubs leave the types of arange and searchsorted unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float, Int, Int8, Shaped

Sets = Float[np.ndarray, "*batch sets"]
_LOWEST = np.finfo(float).min
_PIECE = 1 << 14  # numbers that are worked on at once: they and what is made of them fit a cache


def mask_of(present: Shaped[np.ndarray, " d"]) -> int:
    """The set of the variables marked in a row.

    >>> mask_of(np.array([True, False, True]))
    5
    """
    return int.from_bytes(np.packbits(present, bitorder="little").tobytes(), "little")


def masks_of(rows: Shaped[np.ndarray, "m d"]) -> list[int]:
    """The set marked in each row."""
    packed = np.packbits(rows, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def parent_masks(graphs: Shaped[np.ndarray, "*batch d d"]) -> Int[np.ndarray, "*batch d"]:
    """The parents of every node, for graphs of at most 62 nodes."""
    powers: np.ndarray = 1 << np.arange(graphs.shape[-1])
    return np.einsum("...ij,i->...j", graphs != 0, powers)


def row_of(mask: int, d: int) -> Bool[np.ndarray, " d"]:
    """Inverse of `mask_of` for d variables, of which there may be more than 64."""
    raw = np.frombuffer(mask.to_bytes((d + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(raw, count=d, bitorder="little").astype(bool)


def as_rows(sets: Int[np.ndarray, " num"], d: int) -> Int8[np.ndarray, "num d"]:
    """Each set of an array of masks as a row of d zeros and ones."""
    return (sets[:, None] >> np.arange(d) & 1).astype(np.int8)


def all_sets(d: int) -> Int[np.ndarray, " sets"]:
    """The masks of all 2^d sets."""
    return np.arange(2**d)


def set_sizes(d: int) -> Int[np.ndarray, " sets"]:
    """Number of members of each of the 2^d sets."""
    return np.bitwise_count(all_sets(d)).astype(np.int64)


def members(d: int) -> Bool[np.ndarray, "sets d"]:
    """`members(d)[S, j]` is True when j is in S, for all 2^d sets."""
    return as_rows(all_sets(d), d).astype(bool)


def members_of(mask: int) -> list[int]:
    """Members of one set, smallest first.

    >>> members_of(0b1010)
    [1, 3]
    """
    return [v for v in range(mask.bit_length()) if mask >> v & 1]


def subsets_of(mask: int) -> Int[np.ndarray, " subsets"]:
    """All subsets of one set; bit p of a position stands for its p-th smallest member.

    >>> subsets_of(0b1010).tolist()
    [0, 2, 8, 10]
    """
    found = np.zeros(1, dtype=np.int64)
    while mask:
        bit = mask & -mask
        found = np.concatenate([found, found | bit])
        mask ^= bit
    return found


def log_subset_sums(values: Sets) -> Sets:
    """log Σ_{S ⊆ U} exp(values[S]) for every U: the zeta transform, in log space.

    By logaddexp: scores differ by thousands of nats, and one common shift would underflow.
    """
    result = values.copy()
    for bit in range(values.shape[-1].bit_length() - 1):
        _sum_over_bit(result, bit)
    return result


def log_superset_sums(values: Sets) -> Sets:
    """log Σ_{S ⊇ U} exp(values[S]) for every U."""
    return log_subset_sums(values[..., ::-1])[..., ::-1]


def log_subset_sum_stages(values: Sets) -> Iterator[Sets]:
    """The subset sums after 0, 1, ... bits: at stage b the bits below b are summed over."""
    yield values
    for bit in range(values.shape[-1].bit_length() - 1):
        values = values.copy()
        _sum_over_bit(values, bit)
        yield values


def _sum_over_bit(values: Sets, bit: int) -> None:
    """Adds to each set with this bit the value of the set without it, in place."""
    width = 1 << bit
    for piece in values.reshape(-1, min(max(_PIECE, 2 * width), values.shape[-1])):
        # Runs of a few numbers are moved as one element each: numpy would go from run to run.
        runs = piece.view(np.dtype((np.void, piece.itemsize * width))).reshape(-1, 2)
        without, having = (runs[:, half].copy().view(piece.dtype) for half in (0, 1))
        runs[:, 1] = _log_add(without, having).view(runs.dtype)


def _log_add(one: Sets, other: Sets) -> Sets:
    """log(exp(one) + exp(other)); numpy's logaddexp goes from number to number, which is slower."""
    total, less = np.maximum(one, other), np.minimum(one, other)
    less -= np.maximum(total, _LOWEST)  # where both are -inf, so is their sum
    np.log1p(np.exp(less, out=less), out=less)
    total += less
    return total
