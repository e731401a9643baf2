"""Bootstrap samples of the rows, each kept once it is estimated.

Draw s depends on the key and on s alone, so that a longer run begins with the draws of a
shorter one and a run that was killed goes on with the first draw that is missing.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Int

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.random import fold_in, generator
from bayesdag.runs.packing import fingerprint
from bayesdag.types import Key, Recorder

Arrays = Mapping[str, np.ndarray]
# Draws the rows of a sample and, after them, whatever else the estimate needs.
Estimate = Callable[[np.random.Generator, Int[np.ndarray, " n"]], Arrays]


def estimates(
    key: Key,
    data: Dataset,
    knowledge: Constraints,
    num_samples: int,
    recorder: Recorder,
    estimate: Estimate,
) -> list[Arrays]:
    """What `estimate` returns for each of `num_samples` bootstrap samples."""
    if num_samples < 1:
        raise InputError(f"num_samples is {num_samples}; it must be 1 or more")
    given = fingerprint(key, data.scaled, data.observed, knowledge.required, knowledge.forbidden)
    found = []
    for number in range(num_samples):
        recorder.report(f"bootstrap sample {number + 1} of {num_samples}")
        rng = generator(fold_in(key, number))

        def compute(rng: np.random.Generator = rng) -> Arrays:
            rows = rng.integers(data.num_rows, size=data.num_rows)
            return estimate(rng, rows)

        found.append(recorder.recall(f"bootstrap {given} {number}", compute))
    return found


def stacked(found: list[Arrays], name: str) -> np.ndarray:
    """One array of all draws; where some left room for fewer parents, zeros fill it up."""
    leaves: list[Any] = [one[name] for one in found]
    widest = np.max([leaf.shape for leaf in leaves], axis=0)
    filled = np.zeros((len(leaves), *widest), dtype=leaves[0].dtype)
    for number, leaf in enumerate(leaves):
        filled[number][tuple(slice(size) for size in leaf.shape)] = leaf
    return filled
