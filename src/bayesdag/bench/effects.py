"""Effects of interventions that a posterior states, beside the true ones."""

from collections.abc import Callable, Iterator

import numpy as np

from bayesdag.bench.suite import Measures
from bayesdag.datasets import Benchmark
from bayesdag.graphs import ancestors
from bayesdag.posterior import Posterior

NUM_ROWS = 20_000  # individuals whose mean difference is the true effect
_SEED = 31  # of the pairs and of the individuals
Pair = tuple[int, int]


def judge_effects(posterior: Posterior, source: Benchmark, num: int) -> Measures:
    """Errors and coverage of the effects of `num` pairs, half of them without a causal path.

    The cause goes from one standard deviation below its mean to one above; errors and widths are
    in standard deviations of the outcome.
    """

    def stated(cause: int, outcome: int) -> tuple[float, float, float]:
        found = posterior.effect(*(source.train.names[node] for node in (cause, outcome)))
        return found.mean, *found.hdi()

    return judge_stated(stated, source, num)


def judge_stated(
    stated: Callable[[int, int], tuple[float, float, float]], source: Benchmark, num: int
) -> Measures:
    """The same of effects that something else states: their means and the ends of intervals."""
    errors, widths, inside = [], [], 0
    chosen = list(_pairs(source.graph, num))
    for cause, outcome in chosen:
        mean, low, high = stated(cause, outcome)
        unit = float(source.train.values[:, outcome].std())
        truth = _true_effect(source, cause, outcome)
        errors.append(abs(mean - truth) / unit)
        widths.append((high - low) / unit)
        inside += low <= truth <= high
    return {
        "effect_error": float(np.mean(errors)),
        "effect_width": float(np.mean(widths)),
        "effect_coverage": [len(chosen), int(inside)],
    }


def _pairs(graph: np.ndarray, num: int) -> Iterator[Pair]:
    """Pairs with a path and pairs without, in turn, as long as there are any of the kind."""
    rng, causes = np.random.default_rng(_SEED), ancestors(graph)
    apart = ~causes & ~np.eye(len(graph), dtype=bool)
    kinds = [rng.permutation(np.argwhere(which)).tolist() for which in (causes, apart)]
    order = [pair for pairs in zip(*kinds, strict=False) for pair in pairs]
    rest = [pair for pairs in kinds for pair in pairs if pair not in order]
    for cause, outcome in (order + rest)[:num]:
        yield int(cause), int(outcome)


def _true_effect(source: Benchmark, cause: int, outcome: int) -> float:
    """Mean difference of the same individuals under the two settings of the cause."""
    column = source.train.values[:, cause]
    low, high = (float(column.mean() + sign * column.std()) for sign in (-1, 1))
    means = [
        source.sample(NUM_ROWS, _SEED, {cause: value}).values[:, outcome] for value in (low, high)
    ]
    return float((means[1] - means[0]).mean())
