"""The average of a posterior over noise models: each draws its part, all count the same."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bayesdag.errors import InputError
from bayesdag.types import NoiseAveraged, Score


class NoiseModel(NamedTuple):
    """One of the models: its score, how many draws of each chain are its own, and its name."""

    score: Any
    num_samples: int
    words: str


def noise_models(score: Score, num_samples: int) -> list[NoiseModel]:
    """The noise models of a score, with equal numbers of draws; one for most scores."""
    if not isinstance(score, NoiseAveraged):
        return [NoiseModel(score, num_samples, "")]
    scores = score.noise_hypotheses()
    edges = np.linspace(0, num_samples, len(scores) + 1).round().astype(int)
    if not np.diff(edges).all():
        raise InputError(
            f"num_samples is {num_samples}; {len(scores)} noise models share the draws of a "
            "chain, so it must be at least as many, or the score averaged over none of them "
            "(average_noise_models=False)"
        )
    pairs = zip(scores, np.diff(edges).tolist(), strict=True)
    return [NoiseModel(one, num, one.describe_noise()) for one, num in pairs]


def describe(models: Sequence[NoiseModel]) -> str:
    """Noise assumption of a score in words; empty where it has none."""
    words = "; ".join(model.words for model in models)
    return f"({words}; in equal shares)" if len(models) > 1 else words


def interleaved(parts: Sequence[np.ndarray], num_chains: int) -> np.ndarray:
    """Draws of all models, chain by chain, in turn: each stretch of a chain has its share.

    Functions of few parents are filled up to the size of those of many.
    """
    if len(parts) == 1:
        return np.asarray(parts[0])
    size = np.max([leaf.shape[1:] for leaf in parts], axis=0, initial=0)
    missing = [[(0, 0), *((0, gap) for gap in size - leaf.shape[1:])] for leaf in parts]
    filled = [np.pad(leaf, gap) for leaf, gap in zip(parts, missing, strict=True)]
    chains = [leaf.reshape(num_chains, -1, *leaf.shape[1:]) for leaf in filled]
    time = np.concatenate([np.arange(leaf.shape[1]) / leaf.shape[1] for leaf in chains])
    whole = np.concatenate(chains, axis=1)[:, np.argsort(time, kind="stable")]
    return whole.reshape(-1, *whole.shape[2:])
