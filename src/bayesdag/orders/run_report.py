"""Report of a run for the provenance: searches, tables, and what they leave out."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from bayesdag.orders import pipeline
from bayesdag.orders.candidates import Outside
from bayesdag.orders.local_scores import FamilyScores
from bayesdag.orders.pipeline import Region, Sampled
from bayesdag.orders.prior import Components
from bayesdag.orders.search import Found

# Nats by which the ends of two searches, or a chain and the best graph, may differ.
MATTERS = 10.0
NUM_NAMED = 5  # edges that are named


def search_report(
    scores: FamilyScores, prior: Components, region: Region, log_joint: Float[np.ndarray, " s"]
) -> dict[str, Any]:
    """Best log scores of all stages, and how many families were scored.

    Those of the tables alone where scores cost little: a resumed search asks for fewer, and
    ends in the same bytes.
    """
    tabulated = sum(table.scores.size for table in region.node_tables)
    return {
        "stages": [*region.history, {"stage": "draws", "best": float(log_joint.max())}],
        "found": [pipeline.log_score(scores, prior, result.graph) for result in region.found],
        "num_scores": tabulated if scores.stable else scores.num_computed,
    }


class Disagreement(NamedTuple):
    """Disagreement of independent searches, and whether the chains have overcome it.

    Attributes:
        log_scores: of the graphs in which they ended, in the order of the searches.
        gap: nats between the best and the worst.
        edges: of one of the graphs and not of the best.
        missed: of the best graph and not of all others.
        stuck: chains that never came near the best log joint of the others.
    """

    log_scores: tuple[float, ...]
    gap: float
    edges: tuple[str, ...]
    missed: tuple[str, ...]
    stuck: tuple[int, ...]

    @property
    def words(self) -> str:
        """The disagreement in words, where it matters; otherwise empty."""
        if self.gap <= MATTERS and not self.stuck:
            return ""
        several = (
            "two searches" if len(self.log_scores) == 2 else f"{len(self.log_scores)} searches"
        )
        differ = _named((*self.missed, *self.edges))
        text = f"{several} from different starts ended {self.gap:.1f} nats apart"
        text += f"; they disagree about {differ}" if differ else ""
        if self.stuck:
            chains = ", ".join(str(chain) for chain in self.stuck)
            return (
                f"{text}. Chain {chains} never came within {MATTERS:g} nats of the best draw of "
                "the others: do not trust what the chains disagree about; raise num_warmup, "
                "num_samples and max_rounds, or fit with other seeds and compare"
            )
        return (
            f"{text}. All chains reached the better result, but a search that fails from one "
            "start may fail from both: fit with another seed and compare"
        )


def disagreement(
    scores: FamilyScores,
    prior: Components,
    independent: tuple[Found, ...],
    log_joint: Float[np.ndarray, "chain draw"],
) -> Disagreement | None:
    """Disagreement of independent searches; None for one search, or many perturbed ones."""
    if len(independent) < 2:
        return None
    graphs = np.stack([result.graph != 0 for result in independent])
    values = [pipeline.log_score(scores, prior, graph) for graph in graphs]
    best, reached = graphs[int(np.argmax(values))], log_joint.max(axis=1)
    return Disagreement(
        log_scores=tuple(values),
        gap=max(values) - min(values),
        edges=_arrows(scores.knowledge.names, graphs.any(axis=0) & ~best),
        missed=_arrows(scores.knowledge.names, best & ~graphs.all(axis=0)),
        stuck=tuple(np.flatnonzero(reached < reached.max() - MATTERS).tolist()),
    )


def as_data(found: Disagreement | None) -> dict[str, Any]:
    """The disagreement as plain data, for the provenance; empty where there is none to speak of."""
    if found is None:
        return {}
    data = {name: list(v) if isinstance(v, tuple) else v for name, v in found._asdict().items()}
    return {"disagreement": data | {"words": found.words}}


def _arrows(names: tuple[str, ...], graph: np.ndarray) -> tuple[str, ...]:
    return tuple(f"{names[i]} → {names[j]}" for i, j in np.argwhere(graph).tolist())


def _named(arrows: tuple[str, ...]) -> str:
    """The first few, and how many more."""
    more = f" and {len(arrows) - NUM_NAMED} more" if len(arrows) > NUM_NAMED else ""
    return ", ".join(arrows[:NUM_NAMED]) + more


def table_report(
    names: tuple[str, ...], region: Region, drawn: Sampled, missing: Outside
) -> dict[str, Any]:
    """Contents of the score tables, and what they may have lost."""
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
    """Notes about the score tables, in words."""
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
