"""Orders sampled, edges and functions integrated out: the collapsed engine.

Given an order of the variables the parents of each are independent, and where a score knows
the evidence of a node with its parents, functions need no sampling either. What is left is
the order: chains look its log posterior up in tables, and draws of graphs and functions
given the order are exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Shaped

from bayesdag import posterior
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.model.priors.density import DensityGrid
from bayesdag.orders import order_counting, pipeline
from bayesdag.orders.candidates import Limits, Outside
from bayesdag.orders.local_scores import LocalScores, Screening
from bayesdag.orders.pipeline import Effort, Region, Sampled
from bayesdag.orders.prior import Components
from bayesdag.orders.search import Found
from bayesdag.posterior import Posterior
from bayesdag.runs import loop
from bayesdag.scores import in_words
from bayesdag.scores.bge import BGe
from bayesdag.scores.neural import NeuralScore
from bayesdag.sgmcmc.chains import on_cpu
from bayesdag.types import (
    Array,
    Duration,
    ExactDependence,
    Hedging,
    Key,
    Monitor,
    Params,
    Score,
    StructurePrior,
)

# Ladders a chain times variables: look-ups are cheap while few replicas share the cache.
_LADDERS_TIMES_VARIABLES = 320
# Entries of all tables together: twice as many take twice as long to score.
_TABLE_ENTRIES = 1 << 19
_TRIAL_DRAWS = 300
_BESIDE_CORE = 7
_BESIDE_CORE_IF_DEAR = 4
_MIN_ROWS = 10
# Typical times on two cores or on one H200, of `experiments/results/nonlinear.json`.
_SECONDS_A_VARIABLE = 0.8
_NEURAL_SECONDS_AT_TEN, _NEURAL_SECONDS_AT_TEN_ON_GPU = 240.0, 8.0


class _Part(NamedTuple):
    """Draws under one view of the score, and where they come from."""

    scores: LocalScores
    prior: Components
    place: Region
    drawn: Sampled
    missing: Outside
    params: Params
    change: Float[np.ndarray, " s"]
    weights: Float[np.ndarray, " s"]
    notes: list[str]


@dataclass(frozen=True)
class Collapsed:
    """Samples orders by table look-up; edges and functions are integrated out exactly.

    A search among all predecessors finds the region of the posterior, tables are built
    around it and widened until nothing is missing, and tempered chains of orders run over
    them. A chain of the result is an independent group of such ladders.

    Attributes:
        score: local evidence, and the functions behind it.
        prior: on the number of edges.
        order_modular: the prior counts a graph once for each of its orders, as random node
            potentials do. False: each graph once, by re-weighting the draws with the number
            of their orders; refused where too few draws would count.
        num_chains: independent groups of ladders.
        num_warmup: sweeps before the first draw; a sweep makes one move a variable.
        num_samples: draws a chain.
        thinning: sweeps between two draws of a ladder.
        num_ladders: ladders a chain, whose draws are put together; 0: by the number of
            variables.
        num_temperatures: replicas of a ladder; the first is the posterior itself.
        hottest: the highest temperature.
        num_starts: searches: two from afar, all further ones from the best result so far with
            some of its variables moved.
        max_candidates: possible parents of a node in the tables, at most; fewer where many
            variables share them.
        max_rounds: times that the tables may be widened.
    """

    supported_constraints = frozenset({"required", "forbidden", "beliefs"})
    supports_interventions = True
    exact_dependence = ExactDependence.AVERAGED
    PRESETS: ClassVar[dict[str, "Collapsed"]]

    score: Score = BGe()
    prior: StructurePrior = DensityGrid()
    order_modular: bool = True
    num_chains: int = 4
    num_warmup: int = 60
    num_samples: int = 500
    thinning: int = 2
    num_ladders: int = 0
    num_temperatures: int = 8
    hottest: float = 10.0
    num_starts: int = 14
    max_candidates: int = 14
    max_rounds: int = 4

    def __post_init__(self) -> None:
        counts = ("num_chains", "num_samples", "thinning", "num_temperatures", "num_starts")
        for name in (*counts, "max_candidates", "max_rounds"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.hottest < 1:
            raise InputError(f"hottest is {self.hottest:g}; a temperature below 1 is colder")

    def min_rows(self, d: int) -> int:
        """The evidence is exact for any number of rows; fewer than this say nothing."""
        del d
        return _MIN_ROWS

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """Of the search above all; the number of rows hardly matters."""
        del num_rows
        quick = min(1.0, self.num_starts * self.max_rounds / 10)
        if not isinstance(self.score, Screening):
            seconds = quick * _SECONDS_A_VARIABLE * num_variables
            return Duration(seconds, ("fewer columns", "preset 'quick'"))
        faster = ("fewer columns", "linear functions (method 'collapsed')")
        if on_cpu():
            seconds = quick * _NEURAL_SECONDS_AT_TEN * (num_variables / 10) ** 1.7
            return Duration(seconds, (*faster, "preset 'quick'", "a GPU"))
        seconds = quick * _NEURAL_SECONDS_AT_TEN_ON_GPU * (num_variables / 10) ** 1.45
        return Duration(seconds, (*faster, "preset 'quick'"), on_accelerator=True)

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """Joint draws of graphs and functions, under every view of the score alike."""
        stats = self.score.prepare(data)
        views = self._views()
        alone = monitor if len(views) == 1 else None  # the state of one is none of the whole's
        keys = [key] if len(views) == 1 else jax.random.split(key, len(views))
        parts: list[_Part] = []
        for own, view in zip(keys, views, strict=True):
            start = parts[0].place.found[0] if parts else None
            scores = LocalScores(view.score, stats, knowledge, monitor)
            parts.append(view._part(own, data, scores, alone, start))
        graphs = self._together([part.drawn.graphs for part in parts])
        first, prior = parts[0], parts[0].prior
        value = first.scores.of_graphs(graphs).sum(axis=1) + prior.log_prob(graphs)
        change = self._together([part.change for part in parts])
        weights = None if self.order_modular else self._together([part.weights for part in parts])
        told = _told(first, value)
        notes = max(parts, key=lambda part: part.missing.probability.sum()).notes
        return posterior.from_draws(
            self._fold(graphs),
            self.score.scm(data),
            jax.tree.map(
                lambda *leaves: self._fold(self._together(leaves)), *[p.params for p in parts]
            ),
            data,
            log_joint=self._fold(value + change),
            weights=None if weights is None else self._fold(weights),
            provenance={**self._words(data, stats), **told, "notes": notes},
        )

    def _views(self) -> "list[Collapsed]":
        """This method under every assumption of its score; each draws its share."""
        if not isinstance(self.score, Hedging):
            return [self]
        scores = self.score.views()
        share = np.diff(np.linspace(0, self.num_samples, len(scores) + 1).round().astype(int))
        if not share.all():
            raise InputError(
                f"num_samples is {self.num_samples}; {len(scores)} assumptions on the noise share "
                "the draws of a chain, so it must be at least as many, or the score not hedged"
            )
        pairs = zip(scores, share.tolist(), strict=True)
        return [replace(self, score=score, num_samples=num) for score, num in pairs]

    def _together(self, parts: Sequence[Any]) -> np.ndarray:
        """Draws of all views, chain by chain, in turn: each stretch of a chain has its share.

        Functions of few parents are filled up to the size of those of many.
        """
        if len(parts) == 1:
            return np.asarray(parts[0])
        size = np.max([leaf.shape[1:] for leaf in parts], axis=0, initial=0)
        missing = [[(0, 0), *((0, gap) for gap in size - leaf.shape[1:])] for leaf in parts]
        filled = [np.pad(leaf, gap) for leaf, gap in zip(parts, missing, strict=True)]
        chains = [leaf.reshape(self.num_chains, -1, *leaf.shape[1:]) for leaf in filled]
        time = np.concatenate([np.arange(leaf.shape[1]) / leaf.shape[1] for leaf in chains])
        whole = np.concatenate(chains, axis=1)[:, np.argsort(time, kind="stable")]
        return whole.reshape(-1, *whole.shape[2:])

    def _part(
        self,
        key: Key,
        data: Dataset,
        scores: LocalScores,
        monitor: Monitor | None,
        start: Found | None,
    ) -> "_Part":
        """Draws under one view, from a search of its own or from what another has found."""
        key_region, key_run, key_functions = jax.random.split(key, 3)
        prior = Components(*self.prior.components(data.num_variables))
        effort = self._effort(data.num_variables)
        place = pipeline.explore(key_region, scores, prior, effort, start)
        if not self.order_modular:
            order_counting.log_num_orders(place.found[0].graph)  # refuse now, not after the chains
        drawn = self._arranged(pipeline.run(key_run, place, effort, monitor))
        change = self._change_of_prior(drawn, prior)
        weights, notes = self._weights(drawn, change)
        params = self.score.draw(key_functions, scores.stats, drawn.graphs.astype(np.int8))
        missing = pipeline.outside(scores, place, drawn)
        notes = [*notes, *_notes(data.names, place, missing, 1 - drawn.representable.mean(0))]
        return _Part(scores, prior, place, drawn, missing, params, change, weights, notes)

    def log_score_of(
        self, data: Dataset, knowledge: Constraints, graph: Shaped[Array, "d d"]
    ) -> float:
        """Log posterior of a graph with one order of its own, order-modular.

        Beside the best of each stage (`provenance["search"]`; `bayesdag.log_scores` puts them
        together) it tells a shortfall of the search from one of the score.
        """
        recall = getattr(self.score, "recall", self.score.prepare)  # what is dear to compute
        score = self._views()[0].score
        scores = LocalScores(score, recall(data), knowledge)
        prior = Components(*self.prior.components(data.num_variables))
        return pipeline.log_score(scores, prior, graph)

    def _ladders(self, d: int) -> int:
        return self.num_ladders or max(2, _LADDERS_TIMES_VARIABLES // d)

    def _effort(self, d: int) -> Effort:
        ladders = min(self._ladders(d), self.num_samples)
        num_samples = ceil(self.num_samples / ladders)
        total = self.num_chains * ladders
        return Effort(
            num_starts=self.num_starts,
            max_rounds=self.max_rounds,
            limits=self._limits(d),
            num_ladders=total,
            num_rungs=self.num_temperatures,
            hottest=self.hottest,
            schedule=loop.Schedule(self.num_warmup, num_samples, self.thinning),
            num_trial=min(num_samples, ceil(_TRIAL_DRAWS / total)),
        )

    def _limits(self, d: int) -> Limits:
        plain = min(self.max_candidates, (_TABLE_ENTRIES // d).bit_length() - 1)
        dear = isinstance(self.score, Screening)
        return Limits(plain, min(plain, _BESIDE_CORE_IF_DEAR if dear else _BESIDE_CORE))

    def _arranged(self, drawn: Sampled) -> Sampled:
        """The first `num_samples` draws of every chain; ladders follow one another."""

        def first(leaf: np.ndarray) -> np.ndarray:
            chains = leaf.reshape(self.num_chains, -1, *leaf.shape[1:])[:, : self.num_samples]
            return chains.reshape(-1, *leaf.shape[1:])

        return drawn._replace(
            orders=first(drawn.orders),
            component=first(drawn.component),
            graphs=first(drawn.graphs),
            representable=first(drawn.representable),
        )

    def _fold(self, leaf: Any) -> np.ndarray:
        """Leading dimensions (chain, draw)."""
        leaf = np.asarray(leaf)
        return leaf.reshape(self.num_chains, -1, *leaf.shape[1:])

    def _change_of_prior(self, drawn: Sampled, prior: Components) -> Float[np.ndarray, " s"]:
        """Log ratio of the prior that is meant to the one that was sampled, orders aside."""
        if self.order_modular:
            return np.zeros(len(drawn.graphs))
        meant = Components(*self.prior.components(drawn.graphs.shape[1], order_modular=False))
        return meant.log_prob(drawn.graphs) - prior.log_prob(drawn.graphs)

    def _weights(
        self, drawn: Sampled, change: Float[np.ndarray, " s"]
    ) -> tuple[Float[np.ndarray, " s"], list[str]]:
        """Equal weights, or those that count each graph once."""
        if self.order_modular:
            return np.ones(len(drawn.graphs)), []
        weights, effective = order_counting.graph_modular_weights(drawn.graphs, change)
        note = (
            f"each graph counts once: draws are re-weighted by their number of orders, which "
            f"leaves {effective:.0f} effective draws of {len(weights)}"
        )
        return weights / weights.mean(), [note]

    def _words(self, data: Dataset, stats: Any) -> dict[str, Any]:
        scm, evidence = self.score.scm(data), in_words(self.score)
        views = self.score.views() if isinstance(self.score, Hedging) else ()
        assumed = "; ".join(view.assumed for view in views)
        assumed = f" ({assumed}; in equal shares)" if len(views) > 1 else f" {assumed}".rstrip()
        reading = "order-modular" if self.order_modular else "graph-modular"
        return {
            "model": f"{type(scm.mechanism).__name__} functions, {type(scm.noise).__name__} "
            f"noise{assumed}, integrated out ({evidence})",
            "prior": f"{reading}: {self.prior.describe()}",
            "temperature": 1 / self.score.power(stats)
            if isinstance(self.score, Screening)
            else 1.0,
        }


def _told(part: _Part, value: Float[np.ndarray, " s"]) -> dict[str, Any]:
    """What was searched, what the tables hold, and what they may have lost."""
    scores, prior, place, drawn, missing = part[:5]
    names = scores.knowledge.names
    stages = [*place.history, {"stage": "draws", "best": float(value.max())}]
    unrepresented = 1 - drawn.representable.mean(axis=0)
    return {
        "search": {
            "stages": stages,
            "found": [pipeline.log_score(scores, prior, result.graph) for result in place.found],
            "num_scores": scores.num_computed,
        },
        "tables": {
            "candidates": {n: len(place.lists.inside(i)) for i, n in enumerate(names)},
            "core": {n: len(c) for n, c in zip(names, place.lists.core, strict=True) if c},
            "crowded": [n for n, full in zip(names, place.lists.crowded, strict=True) if full],
            "not_representable": {
                n: float(u) for n, u in zip(names, unrepresented, strict=True) if u > 0
            },
            "missing_log_mass": float(missing.log_mass.sum()),
            "missing_edges": float(missing.probability.sum()),
        },
        "exchanges": [float(share) for share in drawn.exchanges],
        "edge_log_odds": _edge_log_odds(place, drawn),
    }


def _edge_log_odds(place: Region, drawn: Sampled) -> list[dict[str, float]]:
    """Prior log odds of an edge under each component, and the share of draws that had it."""
    penalty = place.components.penalty
    share = np.bincount(drawn.component, minlength=len(penalty)) / len(drawn.component)
    if penalty.shape[1] < 2:
        return []
    odds = penalty[:, 1] - penalty[:, 0]
    return [
        {"log_odds": float(o), "share": float(s)} for o, s in zip(odds, share, strict=True) if s
    ]


def _notes(names, place: Region, missing: Outside, unrepresented: np.ndarray) -> list[str]:
    """What a reader should know about the tables, in words."""
    notes = []
    expected = float(missing.probability.sum())
    if expected > 0:
        worst = int(np.argmax(missing.log_mass))
        notes.append(
            f"candidate lists leave out an estimated {expected:.2g} expected edges "
            f"({missing.log_mass.sum():.2g} nats of mass, most at {names[worst]})"
        )
    cored = [name for name, core in zip(names, place.lists.core, strict=True) if core]
    if cored:
        notes.append(f"some parents are taken whenever they precede: {', '.join(cored)}")
    for name, share in zip(names, unrepresented, strict=True):
        if share > 0:
            notes.append(f"{share:.2%} of the draws were not representable at {name}")
    return notes


Collapsed.PRESETS = {
    # For a first look, and for tests: few and short chains.
    "quick": Collapsed(num_chains=2, num_warmup=30, num_ladders=8, num_starts=2),
    # For functions that are not linear: learned, and dear, so the tables are small.
    "neural": Collapsed(score=NeuralScore(), num_starts=2, max_candidates=6, max_rounds=5),
}

build = Collapsed
