"""What a run has searched, what its tables hold and leave out: for the provenance."""

from typing import Any

import numpy as np
from jaxtyping import Float

from bayesdag.orders import pipeline
from bayesdag.orders.candidates import Outside
from bayesdag.orders.local_scores import FamilyScores
from bayesdag.orders.pipeline import Region, Sampled
from bayesdag.orders.prior import Components


def search_report(
    scores: FamilyScores, prior: Components, region: Region, log_joint: Float[np.ndarray, " s"]
) -> dict[str, Any]:
    """Best log scores of all stages, and how many families were scored."""
    return {
        "stages": [*region.history, {"stage": "draws", "best": float(log_joint.max())}],
        "found": [pipeline.log_score(scores, prior, result.graph) for result in region.found],
        "num_scores": scores.num_computed,
    }


def table_report(
    names: tuple[str, ...], region: Region, drawn: Sampled, missing: Outside
) -> dict[str, Any]:
    """What the tables hold, and what they may have lost."""
    lists, outside = region.lists, 1 - drawn.inside.mean(axis=0)
    return {
        "candidates": {name: len(lists.inside(i)) for i, name in enumerate(names)},
        "core": {n: len(core) for n, core in zip(names, lists.core, strict=True) if core},
        "crowded": [n for n, full in zip(names, lists.crowded, strict=True) if full],
        "not_representable": {n: float(u) for n, u in zip(names, outside, strict=True) if u > 0},
        "missing_log_mass": float(missing.log_mass.sum()),
        "missing_edges": float(missing.probability.sum()),
    }


def edge_log_odds(region: Region, drawn: Sampled) -> list[dict[str, float]]:
    """Prior log odds of an edge under each component, and its fraction of the draws."""
    penalty = region.components.penalty
    share = np.bincount(drawn.component, minlength=len(penalty)) / len(drawn.component)
    if penalty.shape[1] < 2:
        return []
    odds = penalty[:, 1] - penalty[:, 0]
    return [
        {"log_odds": float(o), "share": float(s)} for o, s in zip(odds, share, strict=True) if s
    ]


def table_notes(
    names: tuple[str, ...], region: Region, drawn: Sampled, missing: Outside
) -> list[str]:
    """What a reader should know about the tables, in words."""
    notes = []
    expected = float(missing.probability.sum())
    if expected > 0:
        worst = int(np.argmax(missing.log_mass))
        notes.append(
            f"candidate lists leave out an estimated {expected:.2g} expected edges "
            f"({missing.log_mass.sum():.2g} nats of mass, most at {names[worst]})"
        )
    forced = [
        f"{names[j]} → {name}"
        for name, core in zip(names, region.lists.core, strict=True)
        for j in core
    ]
    if forced:
        notes.append(f"forced parents: included whenever earlier in the order: {', '.join(forced)}")
    for name, share in zip(names, 1 - drawn.inside.mean(axis=0), strict=True):
        if share > 0:
            notes.append(f"{share:.2%} of the drawn orders were outside {name}'s score table")
    return notes
