"""Measures of a posterior over graphs, where the truth or the exact posterior is known.

Draws are `graphs` (s, d, d) with `weights` (s,) that sum to 1 (None: all the same);
probabilities are (d, d) matrices over ordered pairs, whose diagonal is never looked at.
The functions of probabilities judge any pair relation: hand them edge probabilities and the
true graph, or ancestor probabilities and its ancestors.

Entries whose truth is `unknown` are never scored; None: all are known.

No function returns NaN. Where a textbook formula divides by zero the value is the one a
constant forecast deserves, and the docstring says which.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.stats import rankdata

from bayesdag import graphs as graph_facts
from bayesdag.errors import InputError

Truth = Shaped[np.ndarray, "d d"]
Sample = Shaped[np.ndarray, "s d d"]
SampleWeights = Float[np.ndarray, " s"] | None
Probabilities = Float[np.ndarray, "d d"]
Unknown = Bool[np.ndarray, "d d"] | None

BAND = (0.05, 0.95)  # outside it a forecast claims to know, and calibration says little
LOG_SCORE_FLOOR = 1e-3  # a tenth of what the protocol's 100 draws can resolve
# Sums of weights that are equal on paper differ in their last bits: they must still tie.
_DECIMALS = 12
_ROUNDING = 1e-6


class Calibration(NamedTuple):
    """Mean gap between forecast and frequency, and how many pairs it rests on."""

    error: float
    num_pairs: int


class Reliability(NamedTuple):
    """One entry for each bin that holds a pair: what was forecast, and what was true.

    `low` and `high` are Wilson's 95 % interval for the observed fraction. It treats pairs as
    independent, which pairs of one graph are not quite.
    """

    lower: Float[np.ndarray, " bins"]
    upper: Float[np.ndarray, " bins"]
    counts: Int[np.ndarray, " bins"]
    forecast: Float[np.ndarray, " bins"]
    observed: Float[np.ndarray, " bins"]
    low: Float[np.ndarray, " bins"]
    high: Float[np.ndarray, " bins"]


def summary(
    graphs: Sample,
    truth: Truth,
    weights: SampleWeights = None,
    marginals: dict[str, Probabilities] | None = None,
    unknown: Unknown = None,
) -> dict[str, float]:
    """One row of a table: every measure of draws against a true graph.

    Exact `marginals` ("edge", "ancestor") replace the frequencies of the draws where they
    are given, also in the expected SHD and edge count, which are linear in them.
    """
    given = marginals or {}
    reached, true_reached = graph_facts.ancestors(graphs), graph_facts.ancestors(truth)
    edge = given["edge"] if "edge" in given else frequencies(graphs, weights)
    ancestor = given["ancestor"] if "ancestor" in given else frequencies(reached, weights)
    unreached = unknown_ancestors(truth, unknown)
    seen, true = without_unknown(edge, unknown), without_unknown(truth, unknown)
    return {
        "expected_shd": shd_of_marginals(seen, true),
        "expected_cpdag_shd": expected_cpdag_shd(graphs, truth, weights, unknown),
        "expected_num_edges": float(seen.sum()),
        "num_true_edges": float(np.count_nonzero(true)),
        "edge_f1": expected_f1(without_unknown(graphs, unknown), true, weights),
        **judge(edge, truth, unknown),
        "ancestor_f1": expected_f1(
            without_unknown(reached, unreached), without_unknown(true_reached, unreached), weights
        ),
        **{f"ancestor_{k}": v for k, v in judge(ancestor, true_reached, unreached).items()},
    }


def judge(probabilities: Probabilities, truth: Truth, unknown: Unknown = None) -> dict[str, float]:
    """Every measure of probabilities alone."""
    calibration = calibration_error(probabilities, truth, unknown)
    return {
        "auroc": auroc(probabilities, truth, unknown),
        "auprc": auprc(probabilities, truth, unknown),
        "brier": brier(probabilities, truth, unknown),
        "brier_skill": brier_skill(probabilities, truth, unknown),
        "log_score": log_score(probabilities, truth, unknown),
        "calibration_error": calibration.error,
        "calibration_count": float(calibration.num_pairs),
    }


def without_unknown(
    matrices: Shaped[np.ndarray, "*batch d d"], unknown: Unknown
) -> Shaped[np.ndarray, "*batch d d"]:
    """Zero where nothing may be scored: applied to draws and truth alike, they agree there."""
    return matrices if unknown is None else np.where(unknown, matrices.dtype.type(0), matrices)


def unknown_ancestors(truth: Truth, unknown: Unknown) -> Unknown:
    """Pairs of which it depends on unknown entries whether there is a path."""
    if unknown is None:
        return None
    fewest, most = (truth != 0) & ~unknown, (truth != 0) | unknown
    return graph_facts.ancestors(fewest) != graph_facts.ancestors(most)


def base_rate(truth: Truth, unknown: Unknown = None) -> float:
    """Fraction of true edges among the known entries; the best constant forecast."""
    return _mean(pairs(np.zeros(truth.shape), truth, unknown)[1])


def frequencies(graphs: Sample, weights: SampleWeights = None) -> Probabilities:
    """Weighted fraction of the draws in which each entry is set."""
    # A matrix product would copy all draws to float64 first: 8 bytes for each of theirs.
    fractions = np.einsum("s,sij->ij", _checked(weights, len(graphs)), graphs, dtype=np.float64)
    return np.minimum(fractions, 1.0)


def shd(graphs: Shaped[np.ndarray, "*batch d d"], truth: Truth) -> Int[np.ndarray, "*batch"]:
    """Number of unordered pairs that differ: none, i → j, j → i, or i — j (both entries set).

    An edge too many, too few or reversed costs 1 each, so it serves DAGs and CPDAGs alike.
    """
    differs = graphs.astype(bool) != truth.astype(bool)
    both = np.count_nonzero(differs & np.swapaxes(differs, -1, -2), axis=(-2, -1))
    return np.asarray(np.count_nonzero(differs, axis=(-2, -1)) - both // 2)


def f1(graphs: Shaped[np.ndarray, "*batch d d"], truth: Truth) -> Float[np.ndarray, "*batch"]:
    """F1 of the directed edges: a reversal is one false and one missed. Both empty: 1."""
    hits = np.count_nonzero(graphs.astype(bool) & truth.astype(bool), axis=(-2, -1))
    edges = np.count_nonzero(graphs, axis=(-2, -1)) + np.count_nonzero(truth)
    return np.where(edges == 0, 1.0, 2.0 * hits / np.maximum(edges, 1))


def expected_shd(graphs: Sample, truth: Truth, weights: SampleWeights = None) -> float:
    """Posterior mean of the structural Hamming distance; a reversal counts 1."""
    return float(_checked(weights, len(graphs)) @ shd(graphs, truth))


def shd_of_marginals(edge: Probabilities, truth: Truth) -> float:
    """Expected SHD from edge probabilities alone, which determine it for acyclic graphs.

    A pair is never joined both ways in a DAG, so the chance that it is wrong is
    linear in them: 1 − p_ij at a true edge i → j, and p_ij + p_ji where there is none.
    """
    edge, present = _without_diagonal(edge), truth.astype(bool)
    return float((1.0 - edge)[present].sum() + edge[~(present | present.T)].sum())


def expected_f1(graphs: Sample, truth: Truth, weights: SampleWeights = None) -> float:
    """Posterior mean of the F1 of each draw (not the F1 of the mean graph)."""
    return float(_checked(weights, len(graphs)) @ f1(graphs, truth))


def expected_num_edges(graphs: Sample, weights: SampleWeights = None) -> float:
    """Posterior mean of the number of edges."""
    return float(_checked(weights, len(graphs)) @ np.count_nonzero(graphs, axis=(1, 2)))


def expected_cpdag_shd(
    graphs: Sample, truth: Truth, weights: SampleWeights = None, unknown: Unknown = None
) -> float:
    """Posterior mean of the distance between equivalence classes (their CPDAGs).

    Every unordered pair is none, →, ← or — and costs 1 where the two differ; pairs with an
    unknown entry are left out.
    """
    distinct, index = graph_facts.unique_graphs(graphs)
    pairs = None if unknown is None else unknown | unknown.T
    found, true = (without_unknown(graph_facts.cpdag(g), pairs) for g in (distinct, truth))
    distances = shd(found, true)
    return float(_checked(weights, len(graphs)) @ distances[index])


def negative_log_likelihood(
    log_likelihoods: Float[np.ndarray, "s n"], weights: SampleWeights = None
) -> float:
    """Mean over rows of −log Σ_s w_s p(x_n | draw s): the log is inside the mean over rows.

    +inf when some row is impossible under every draw.
    """
    weights = _checked(weights, len(log_likelihoods))
    used = weights > 0
    terms = log_likelihoods[used] + np.log(weights[used])[:, None]
    return -float(np.logaddexp.reduce(terms, axis=0).mean())


def mmd(
    graphs: Sample,
    others: Shaped[np.ndarray, "t d d"],
    weights: SampleWeights = None,
    other_weights: Float[np.ndarray, " t"] | None = None,
) -> float:
    """Maximum mean discrepancy of two weighted sets under the kernel 1 − Hamming/d²."""
    return mmd_of_marginals(frequencies(graphs, weights), frequencies(others, other_weights))


def mmd_of_marginals(edge: Probabilities, other: Probabilities) -> float:
    """The same MMD from edge probabilities: √2 ‖P − Q‖_F / d.

    The Hamming kernel is linear in the edges, so the discrepancy sees nothing but the
    marginals: two posteriors with equal marginals are at distance 0.
    """
    return float(np.sqrt(2.0) * np.linalg.norm(edge - other) / len(edge))


def total_variation(
    graphs: Sample,
    others: Shaped[np.ndarray, "t d d"],
    weights: SampleWeights = None,
    other_weights: Float[np.ndarray, " t"] | None = None,
) -> float:
    """Half the L1 distance of two distributions over graphs, between 0 and 1.

    For an exact posterior hand in all DAGs with their probabilities. Few draws from a
    broad posterior are far from it by chance alone: compare with exact draws as many.
    """
    masses = np.concatenate([_checked(weights, len(graphs)), -_checked(other_weights, len(others))])
    _, index = graph_facts.unique_graphs(np.concatenate([graphs != 0, others != 0]))
    return float(min(1.0, 0.5 * np.abs(np.bincount(index, weights=masses)).sum()))


def auroc(probabilities: Probabilities, truth: Truth, unknown: Unknown = None) -> float:
    """Chance that a true pair has a higher probability than a false one; ties count ½.

    0.5 when all pairs are true or none is.
    """
    forecast, true = pairs(probabilities, truth, unknown)
    num_true, num_false = int(true.sum()), int((~true).sum())
    if num_true == 0 or num_false == 0:
        return 0.5
    excess = rankdata(forecast)[true].sum() - num_true * (num_true + 1) / 2
    return float(excess / (num_true * num_false))


def auprc(probabilities: Probabilities, truth: Truth, unknown: Unknown = None) -> float:
    """Average precision: the precision at each threshold, weighted by the recall it adds.

    Pairs of equal probability enter together, so a constant forecast scores the fraction of
    true pairs. When none is true that fraction, 0, is the value for every forecast.
    """
    forecast, true = pairs(probabilities, truth, unknown)
    if not true.any():
        return 0.0
    _, group = np.unique(-forecast, return_inverse=True)
    hits = np.bincount(group, weights=true)
    precision = np.cumsum(hits) / np.cumsum(np.bincount(group))
    return float(min(1.0, (precision * hits).sum() / true.sum()))


def brier(probabilities: Probabilities, truth: Truth, unknown: Unknown = None) -> float:
    """Mean squared difference between probability and fact; 0 without any pair (d = 1)."""
    forecast, true = pairs(probabilities, truth, unknown)
    return _mean((forecast - true) ** 2)


def brier_skill(probabilities: Probabilities, truth: Truth, unknown: Unknown = None) -> float:
    """1 − Brier / Brier of the fraction of true pairs: 1 perfect, 0 no better than it.

    When all pairs are true or none is, that fraction is itself perfect and nothing can beat
    it: the value is then minus the Brier score.
    """
    score = brier(probabilities, truth, unknown)
    fraction = _mean(pairs(probabilities, truth, unknown)[1])
    reference = fraction * (1.0 - fraction)
    return 1.0 - score / reference if reference > 0 else -score


def log_score(
    probabilities: Probabilities,
    truth: Truth,
    unknown: Unknown = None,
    floor: float = LOG_SCORE_FLOOR,
) -> float:
    """Mean log probability given to the facts, in nats; 0 is perfect (and d = 1).

    Probabilities are first clipped to [floor, 1 − floor]: a finite sample cannot justify
    a zero, and one such zero would make every other pair irrelevant.
    """
    forecast, true = pairs(probabilities, truth, unknown)
    clipped = np.clip(forecast, floor, 1.0 - floor)
    return _mean(np.where(true, np.log(clipped), np.log1p(-clipped)))


def calibration_error(
    probabilities: Probabilities, truth: Truth, unknown: Unknown = None
) -> Calibration:
    """Mean |forecast − fraction of true pairs| over nine bins of pairs with .05 < p < .95.

    Each bin of width .1 counts by its number of pairs. Surer pairs are left out: over all
    of them the empty graph would look calibrated. No pair in the band: error 0, count 0.
    With few pairs the error is large by chance; read it together with the count.
    """
    forecast, true = pairs(probabilities, truth, unknown)
    inside = (forecast > BAND[0]) & (forecast < BAND[1])
    count = int(inside.sum())
    gaps = np.bincount(
        _bins(forecast[inside], BAND[0], 0.1), weights=forecast[inside] - true[inside]
    )
    return Calibration(float(np.abs(gaps).sum() / max(count, 1)), count)


def reliability(
    probabilities: Probabilities, truth: Truth, num_bins: int = 10, unknown: Unknown = None
) -> Reliability:
    """Forecast and observed fraction in equal bins of [0, 1], with Wilson intervals.

    Bins without a pair are left out; the last bin includes 1.
    """
    forecast, true = pairs(probabilities, truth, unknown)
    bins = np.minimum(_bins(forecast, 0.0, 1.0 / num_bins), num_bins - 1)
    counts = np.bincount(bins, minlength=num_bins)
    kept = np.flatnonzero(counts)
    counts = counts[kept]
    hits = np.bincount(bins, weights=true, minlength=num_bins)[kept]
    total = np.bincount(bins, weights=forecast, minlength=num_bins)[kept]
    low, high = wilson_interval(hits, counts)
    return Reliability(
        kept / num_bins, (kept + 1) / num_bins, counts, total / counts, hits / counts, low, high
    )


def wilson_interval(
    hits: Shaped[np.ndarray, "*shape"], counts: Shaped[np.ndarray, "*shape"], z: float = 1.959964
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    """Wilson's interval for a fraction; honest at 0 and 1, where the usual one has no width."""
    fraction = hits / counts
    centre = fraction + z**2 / (2 * counts)
    half = z * np.sqrt(fraction * (1 - fraction) / counts + z**2 / (4 * counts**2))
    scale = 1 + z**2 / counts
    return np.clip((centre - half) / scale, 0.0, 1.0), np.clip((centre + half) / scale, 0.0, 1.0)


def clustered_interval(
    hits: Shaped[np.ndarray, " k"], counts: Shaped[np.ndarray, " k"]
) -> tuple[float, float]:
    """Wilson's 95 % interval of a fraction that is pooled over k data sets.

    Pairs of one data set are right or wrong together, so the pairs count for fewer
    independent ones: as many as explain how much the data sets differ (the design effect of a
    ratio estimate), and never for more than there are. Where all are right, or none, nothing
    shows how they hang together, and the interval is too narrow. No pair at all: 0 to 1.
    """
    total, groups = float(counts.sum()), int(np.count_nonzero(counts))
    if not total:
        return 0.0, 1.0
    fraction = float(hits.sum()) / total
    binomial, effect = fraction * (1 - fraction) / total, 1.0
    if groups > 1 and binomial > 0:
        between = ((hits - fraction * counts) ** 2).sum() / total**2 * groups / (groups - 1)
        effect = max(1.0, float(between / binomial))
    low, high = wilson_interval(np.array([fraction * total / effect]), np.array([total / effect]))
    return float(low[0]), float(high[0])


def pairs(
    probabilities: Probabilities, truth: Truth, unknown: Unknown = None
) -> tuple[Float[np.ndarray, " pairs"], Bool[np.ndarray, " pairs"]]:
    """Forecast and fact of every ordered pair that may be scored."""
    scored = ~np.eye(len(truth), dtype=bool)
    scored = scored if unknown is None else scored & ~unknown
    forecast = np.round(probabilities[scored], _DECIMALS)
    # Exact marginals may miss 0 and 1 by rounding. Written so that NaN is bad, too.
    bad = ~((forecast >= -_ROUNDING) & (forecast <= 1 + _ROUNDING))
    if bad.any():
        raise InputError(
            f"{int(bad.sum())} of {bad.size} probabilities are not between 0 and 1, the first "
            f"is {forecast[bad][0]}; hand in probabilities, not log odds or counts"
        )
    return np.clip(forecast, 0.0, 1.0), truth.astype(bool)[scored]


def _without_diagonal(matrix: Probabilities) -> Probabilities:
    return np.where(np.eye(len(matrix), dtype=bool), 0.0, matrix)


def _bins(values: Float[np.ndarray, " m"], start: float, width: float) -> Int[np.ndarray, " m"]:
    # Rounded before the floor: .15 lies in the bin that begins at .15.
    return np.floor(np.round((values - start) / width, 9)).astype(int)


def _mean(values: Shaped[np.ndarray, " m"]) -> float:
    return float(values.mean()) if values.size else 0.0


def _checked(weights: SampleWeights, num_draws: int) -> Float[np.ndarray, " s"]:
    if weights is None:
        return np.full(num_draws, 1.0 / num_draws)
    if not (np.all(weights >= 0) and abs(weights.sum() - 1.0) < _ROUNDING):
        raise InputError(
            f"weights must be positive and sum to 1, these sum to {weights.sum()}; "
            "divide them by their sum"
        )
    return weights
