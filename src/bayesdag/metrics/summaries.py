"""Summaries: every measure of draws, or of probabilities, against a true graph."""

import numpy as np

from bayesdag import graphs as graph_facts
from bayesdag.metrics.arrays import Probabilities, Sample, SampleWeights, Truth, Unknown
from bayesdag.metrics.calibration import calibration_error
from bayesdag.metrics.draws import frequencies, unknown_ancestors, without_unknown
from bayesdag.metrics.forecasts import auprc, auroc, brier, brier_skill, log_score
from bayesdag.metrics.structure import expected_cpdag_shd, expected_f1, shd_of_marginals


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
