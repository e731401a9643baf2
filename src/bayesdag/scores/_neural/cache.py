"""What is remembered of a family once its networks are trained.

A network without one of its parents, or with one more, is a good start for that set: sets
that are compared with one another then do not differ by the luck of their training.
"""

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int32

from bayesdag.scores._neural.crossfit import Families, Given, Scored
from bayesdag.scores._neural.network import Network, NoiseFits

Address = tuple[int, int]  # a node, and its parents as the bits of a number
Kinds = tuple[int, ...]  # of noise, as `NoiseFits` numbers them
# Evidence that a further parent may add before nobody doubts it: below, the smaller set is
# trained again from the larger one's network.
DOUBTFUL = 40.0
WORTH_A_REPAIR = 2.0


class Trained(NamedTuple):
    """One family: the fields of `Scored` without the leading dimension, and its inputs."""

    members: Int32[np.ndarray, " k"]
    used: Float[np.ndarray, " k"]
    log_evidence: Float[np.ndarray, "4"]
    predicted: Float[np.ndarray, "4"]
    could_add: Float[np.ndarray, " d"]
    networks: Network
    log_posterior: Float[np.ndarray, " f"]
    log_marginal: Float[np.ndarray, "f 4"]
    noise: NoiseFits
    centre: Float[np.ndarray, " f"]
    spread: Float[np.ndarray, " f"]
    last: Float[np.ndarray, "f q q"]
    whitening: Float[np.ndarray, "f k k"]


def log_evidence(families: Sequence[Trained], kinds: Kinds) -> Float[np.ndarray, " m"]:
    """Of each family, with noise of any of these kinds, equally probable beforehand."""
    values = np.array([family.log_evidence[list(kinds)] for family in families], dtype=float)
    return np.logaddexp.reduce(values.reshape(-1, len(kinds)), axis=1) - log(len(kinds))


def entries(group: Families, scored: Scored) -> list[Trained]:
    """The families of a batch, one by one."""
    members, used = np.asarray(group.members), np.asarray(group.used)
    result = []
    for row in range(len(members)):
        own = jax.tree.map(lambda leaf, r=row: leaf[r], scored)
        result.append(Trained(members[row], used[row], *own))
    return result


def relatives(known: dict[Address, Trained], address: Address, d: int) -> list[Trained | None]:
    """The best trained sets with one parent less, and with one more."""
    node, parents = address
    best: list[Trained | None] = [None, None]
    for j in range(d):
        found = known.get((node, parents ^ 1 << j))
        larger = 0 if parents >> j & 1 else 1
        if found is not None and _better(found, best[larger]):
            best[larger] = found
    return best


def handed_on(
    group: Families, starts: list[list[Trained | None]], num_folds: int, width: int
) -> Given:
    """The networks of relatives, as functions of each family's own inputs."""
    members, used = np.asarray(group.members), np.asarray(group.used)
    num, k = members.shape
    slots = max(len(some) for some in starts)
    first = np.zeros((num, num_folds, slots, k, width), dtype=np.float32)
    bias = np.zeros((num, num_folds, slots, width), dtype=np.float32)
    second = np.zeros((num, num_folds, slots, width + k + 1), dtype=np.float32)
    known = np.zeros((num, slots), dtype=bool)
    for row, some in enumerate(starts):
        for slot, relative in enumerate(some):
            if relative is None:
                continue
            known[row, slot] = True
            here, there = _shared(members[row], used[row], relative)
            network = relative.networks
            first[row, :, slot, here] = np.swapaxes(network.first[:, there], 0, 1)
            bias[row, :, slot] = network.bias
            second[row, :, slot, :width] = network.second[:, :width]
            second[row, :, slot, -1] = network.second[:, -1]
            linear = np.swapaxes(network.second[:, width + there], 0, 1)
            second[row, :, slot, width + here] = linear
    return Given(Network(first, bias, second), known)


def in_doubt(
    known: dict[Address, Trained], fresh: list[Address], d: int, kinds: Kinds
) -> dict[Address, None]:
    """Sets that a fresh one with one parent more beats by little: they may be badly trained."""
    pairs = [
        ((node, parents), smaller)
        for node, parents in fresh
        for j in range(d)
        if parents >> j & 1 and (smaller := (node, parents & ~(1 << j))) in known
    ]
    with_it, without = (log_evidence([known[pair[end]] for pair in pairs], kinds) for end in (0, 1))
    gains = zip(pairs, with_it - without, strict=True)
    return {smaller: None for (_, smaller), gain in gains if WORTH_A_REPAIR < gain < DOUBTFUL}


def _better(one: Trained, other: Trained | None) -> bool:
    return other is None or bool(one.log_posterior.sum() > other.log_posterior.sum())


def _shared(members: np.ndarray, used: np.ndarray, relative: Trained):
    """Places of the common parents here and there."""
    places = {int(v): p for p, v in enumerate(relative.members) if relative.used[p] > 0}
    pairs = [(p, places[int(v)]) for p, v in enumerate(members) if used[p] > 0 and int(v) in places]
    here, there = np.array(pairs, dtype=int).reshape(-1, 2).T
    return here, there
