"""Orders sampled, edges and functions integrated out: the collapsed engine.

Given an order of the variables the parents of each are independent, and where a score knows
the evidence of a node with its parents, functions need no sampling either. What is left is
the order: chains look its log posterior up in tables, and draws of graphs and functions
given the order are exact.
"""

from dataclasses import dataclass, replace
from math import ceil
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Shaped

from bayesdag import posterior
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods import _groups, _kinds, _sure_arrows
from bayesdag.methods._model_draws import Given, ModelDraws
from bayesdag.model.priors.density import DensityGrid
from bayesdag.orders import noise_averaging, order_counting, pipeline, run_report, strategies
from bayesdag.orders.candidates import Limits
from bayesdag.orders.noise_averaging import NoiseModel
from bayesdag.orders.pipeline import Effort, Sampled
from bayesdag.orders.prior import Components
from bayesdag.orders.search import Found
from bayesdag.orders.strategies import SearchStrategy
from bayesdag.posterior import Posterior, coarsening
from bayesdag.posterior.check_result import Check
from bayesdag.random import generator, split
from bayesdag.runs import loop
from bayesdag.runs.devices import on_cpu
from bayesdag.runs.recording import recorder_of
from bayesdag.runs.trees import map_leaves
from bayesdag.scores import in_words, notes_of
from bayesdag.scores.additive import Additive
from bayesdag.scores.bge import BGe
from bayesdag.scores.neural import NeuralScore
from bayesdag.types import (
    Array,
    Duration,
    ExactDependence,
    ExpensiveScore,
    Key,
    Monitor,
    PlainData,
    Recorder,
    Score,
    StructurePrior,
    WeighsFunctions,
    kinds_taken,
)

# Ladders per chain: with more, arrays outgrow the cache; with fewer, operations are too small.
_LADDERS = 8
# Entries of all tables together: twice as many take twice as long to score.
_TABLE_ENTRIES = 1 << 19
_GRAPHS_WEIGHED = 200  # draws over which probabilities of functions are averaged
_TRIAL_DRAWS = 300
_MIN_ROWS = 10
# Typical times on two cores or on one H200, of `experiments/results/nonlinear.json`.
# Without networks, `bayesdag fit` took 3.3 CPU seconds at 12 variables, 5.2 at 20, 7.5 at 50, 16.5
# at 100 and 43 at 200 on busy cores, of which quiet ones take three quarters. Start-up, checks and
# the file are in it. Sums of curves took 1.1 times as long at 20, 1.3 at 50.
_SECONDS_TO_START, _SECONDS_A_VARIABLE, _SECONDS_A_PAIR = 2.0, 0.065, 0.00046
_ADDITIVE_SLOWER = 1.3
# With networks on two cores 29 to 50 s at 10 variables and 5000 rows, two edges per node, of which
# 1000 rows take half (`benchmarks/commands.py`). Time grew like d to the power 1.4 from 10 to 20
# variables, and 1.2 from 5 to 100 with one edge per node; denser graphs take longer.
_NEURAL_SECONDS_AT_TEN, _NEURAL_SECONDS_AT_TEN_ON_GPU = 24.0, 8.0
_NEURAL_GROWTH, _NEURAL_GROWTH_ON_GPU = 1.4, 1.45
_TYPICAL_ROWS, _GROWTH_BY_ROWS = 1000, 0.4


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
        num_warmup: sweeps before the first draw; a sweep relocates every variable.
        num_samples: draws per chain.
        thinning: sweeps between two draws of a ladder.
        num_ladders: ladders per chain, whose draws are put together; 0: eight.
        num_temperatures: replicas of a ladder; the first is the posterior itself.
        hottest: the highest temperature.
        num_starts: searches: two from afar, all further ones from the best result so far with
            some of its variables moved.
        max_candidates: possible parents of a node in the tables, at most; fewer where many
            variables share them, and seven where a score is expensive.
        max_rounds: times that the tables may be widened.
        coarsened: whether evidence counts less where a check finds that the rows contradict the
            model or one another.
        unmarked_groups: whether half of the draws allow for groups of rows that nobody marked,
            where the rows suggest them.
    """

    supported_constraints = frozenset({"required", "forbidden", "beliefs", "environments"})
    supports_interventions = True
    exact_dependence = ExactDependence.AVERAGED
    PRESETS: ClassVar[dict[str, "Collapsed"]]

    score: Score = BGe()
    prior: StructurePrior = DensityGrid()
    order_modular: bool = True
    num_chains: int = 4
    num_warmup: int = 40
    num_samples: int = 500
    thinning: int = 1
    num_ladders: int = 0
    num_temperatures: int = 8
    hottest: float = 10.0
    num_starts: int = 14
    max_candidates: int = 14
    max_rounds: int = 4
    coarsened: bool = True
    unmarked_groups: bool = True

    def __post_init__(self) -> None:
        counts = ("num_chains", "num_samples", "thinning", "num_temperatures", "num_starts")
        for name in (*counts, "max_candidates", "max_rounds"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.hottest < 1:
            raise InputError(f"hottest is {self.hottest:g}; a temperature below 1 is colder")

    @property
    def takes_kinds(self) -> frozenset[str]:
        """All that a score has a model for; where a score was set, its own."""
        own = kinds_taken(self.score)
        return own | _kinds.kinds_of_scores() if self.score == BGe() else own

    def min_rows(self, d: int) -> int:
        """The evidence is exact for any number of rows; fewer than this say nothing."""
        del d
        return _MIN_ROWS

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """Of the search above all; rows matter where networks are trained on them by a CPU."""
        quick = min(1.0, self.num_starts * self.max_rounds / 10)
        if not isinstance(self.score, ExpensiveScore):
            slower = _ADDITIVE_SLOWER if isinstance(self.score, Additive) else 1.0
            each = _SECONDS_A_VARIABLE + _SECONDS_A_PAIR * num_variables
            seconds = _SECONDS_TO_START + quick * slower * each * num_variables
            return Duration(seconds, ("fewer columns", "preset 'quick'"))
        faster = ("fewer columns", "linear functions (method 'collapsed')")
        if on_cpu():
            rows = (self._rows_that_count(num_rows) / _TYPICAL_ROWS) ** _GROWTH_BY_ROWS
            seconds = quick * _NEURAL_SECONDS_AT_TEN * rows * (num_variables / 10) ** _NEURAL_GROWTH
            return Duration(seconds, (*faster, "preset 'quick'", "a GPU"))
        seconds = (
            quick * _NEURAL_SECONDS_AT_TEN_ON_GPU * (num_variables / 10) ** _NEURAL_GROWTH_ON_GPU
        )
        return Duration(seconds, (*faster, "preset 'quick'"), on_accelerator=True)

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """Joint draws of graphs and functions, averaged over the noise models of the score.

        Where the rows contradict the model, its evidence counts less: the draws are made again.
        Where they seem to come in groups that nobody marked, half of the draws allow for them.
        Where the usual score has no model for a column, one that has takes its place.
        """
        suited, notes = _kinds.with_score_for(self, data) if self.score == BGe() else (self, [])
        if suited is not self:
            result = suited(key, data, knowledge, monitor)
            return replace(result, provenance=_kinds.stated(result.provenance, suited, notes))
        recorder = recorder_of(monitor)
        stats = strategies.prepare(self.score, data, recorder)
        given = Given(data, knowledge, stats)
        parts = self._draw_all(key, given, recorder)
        whole = self._posterior(data, parts)
        coarsened = self._coarsened(key, given, parts, whole, recorder)
        return self._hedged(key, *(coarsened or (given, parts, whole)), recorder)

    def _rows_that_count(self, num_rows: int) -> int:
        """Rows of which the score computes its evidence."""
        return min(num_rows, getattr(self.score, "most_rows", num_rows))

    def _coarsened(
        self,
        key: Key,
        given: Given,
        parts: list[ModelDraws],
        whole: Posterior,
        recorder: Recorder,
    ) -> tuple[Given, list[ModelDraws], Posterior] | None:
        """Draws with evidence that counts less, where the rows contradict the model."""
        if not self.coarsened:
            return None

        def draw(power: float) -> list[ModelDraws]:
            scope = recorder.child(f"coarsened {power:.4g}")
            return self._draw_all(key, given._replace(power=power), scope, parts[0].found)

        def check(drawn: list[ModelDraws]) -> Check:
            return _sure_arrows.check(
                key, self.score, given.stats, self._posterior(given.data, drawn), given.data
            )

        first = whole.check(given.data)
        first = replace(first, num_rows=self._rows_that_count(first.num_rows))
        found = coarsening.coarsened(first, given.data, draw, check)
        if found is None:
            return None
        again, power, reason = found
        note = coarsening.in_words(reason, again[0].power)
        counted = {"repetition": reason.repetition}
        again = [
            part._replace(notes=[note, *part.notes], report={**part.report, **counted})
            for part in again
        ]
        return given._replace(power=power), again, self._posterior(given.data, again)

    def _hedged(
        self,
        key: Key,
        given: Given,
        parts: list[ModelDraws],
        whole: Posterior,
        recorder: Recorder,
    ) -> Posterior:
        """Every other draw allows for groups of rows that nobody marked, where rows suggest them.

        All of the evidence judges whether there are groups.
        """
        best = max(parts, key=lambda part: part.log_joint.max())
        graph = best.drawn.graphs[best.log_joint.argmax()].astype(np.int8)
        num_left = self.num_samples - sum(part.num_thinned for part in parts)
        found = None
        if self.unmarked_groups and num_left >= len(parts):
            in_full = given._replace(power=1.0)
            found = _groups.suggested(self.score, in_full, graph, recorder, generator(key))
        if found is None:
            return whole
        fewer = replace(self, num_samples=num_left)
        in_groups = found.given._replace(power=given.power)
        divided = fewer._draw_all(key, in_groups, found.recorder)
        kept = [part.thinned(self.num_chains) for part in parts]
        parts = [*kept, *(self._undivided(key, given, part) for part in divided)]
        parts = [part._replace(notes=[found.words, *part.notes]) for part in parts]
        whole = self._posterior(given.data, parts)
        return replace(whole, provenance={**whole.provenance, "groups": found.as_data()})

    def _undivided(self, key: Key, given: Given, part: ModelDraws) -> ModelDraws:
        """Graphs among the variables alone, and functions of all rows on them."""
        d, score = given.data.num_variables, part.model.score
        graphs = part.drawn.graphs[:, :d, :d]
        key_functions = split(key, 3)[2]
        params = score.draw(key_functions, given.stats, graphs.astype(np.int8))
        scores = self._strategy(score, given, recorder_of(None)).scores
        prior = self._components(given.knowledge.contexts)
        log_joint = scores.of_graphs(graphs).sum(axis=1) + prior.log_prob(graphs)
        drawn = part.drawn._replace(graphs=graphs)
        return part._replace(drawn=drawn, params=params, log_joint=log_joint)

    def _posterior(self, data: Dataset, parts: list[ModelDraws]) -> Posterior:
        """The draws of all noise models together."""
        params = map_leaves(lambda *leaves: self._joined(leaves), *[p.params for p in parts])
        weights = None if self.order_modular else self._joined([p.weights for p in parts])
        return posterior.from_draws(
            self._joined([part.drawn.graphs for part in parts]),
            self.score.scm(data),
            params,
            data,
            log_joint=self._joined([part.log_joint for part in parts]),
            weights=weights,
            provenance=self._words(data, parts),
        )

    def _draw_all(
        self,
        key: Key,
        given: Given,
        recorder: Recorder,
        known: tuple[Found, ...] = (),
    ) -> list[ModelDraws]:
        """Draws under each noise model; later ones start from what the first has found."""
        models = noise_averaging.noise_models(self.score, self.num_samples)
        keys = [key] if len(models) == 1 else split(key, len(models))
        parts: list[ModelDraws] = []
        for number, (own, model) in enumerate(zip(keys, models, strict=True), start=1):
            scope = recorder if len(models) == 1 else recorder.child(f"noise model {number}")
            method = replace(self, score=model.score, num_samples=model.num_samples)
            strategy = self._strategy(model.score, given, scope)
            start = parts[0].found if parts else known
            parts.append(method._draw(own, given.data, model, strategy, start))
        return parts

    @staticmethod
    def _strategy(score: Score, given: Given, recorder: Recorder) -> SearchStrategy:
        """How a score is searched, with as much of its evidence as counts."""
        return strategies.strategy_for(score, given.stats, given.knowledge, recorder, given.power)

    def _draw(
        self,
        key: Key,
        data: Dataset,
        model: NoiseModel,
        strategy: SearchStrategy,
        known: tuple[Found, ...],
    ) -> ModelDraws:
        """Draws under one noise model, from a search of its own or from `known` results."""
        key_region, key_run, key_functions = split(key, 3)
        effort, scores = self._effort(data.num_variables, strategy), strategy.scores
        contexts = scores.knowledge.contexts
        prior = self._components(contexts)
        region = pipeline.explore(key_region, strategy, prior, effort, known)
        if not self.order_modular:
            # Refuse now, not at the end.
            order_counting.log_num_orders(region.found[0].graph[np.ix_(~contexts, ~contexts)])
        drawn = self._arranged(pipeline.run(key_run, region, effort, strategy.recorder))
        change = self._change_of_prior(drawn, prior, contexts)
        weights, notes = self._weights(drawn, change, contexts)
        params = self.score.draw(key_functions, scores.stats, drawn.graphs.astype(np.int8))
        missing = pipeline.outside(scores, region, drawn)
        log_joint = scores.of_graphs(drawn.graphs).sum(axis=1) + prior.log_prob(drawn.graphs)
        by_chain = log_joint.reshape(self.num_chains, -1)
        disagreement = run_report.disagreement(scores, prior, region.independent, by_chain)
        searched = run_report.search_report(scores, prior, region, log_joint)
        report = {
            "search": searched | run_report.as_data(disagreement),
            "tables": run_report.table_report(data.names, region, drawn, missing),
            "exchanges": [float(rate) for rate in drawn.exchanges],
            "edge_log_odds": run_report.edge_log_odds(region, drawn),
            **self._function_weights(data, scores.stats, drawn),
        }
        return ModelDraws(
            model=model,
            drawn=drawn,
            params=params,
            log_joint=log_joint + change,
            weights=weights,
            found=_distinct((region.found[0], *region.independent)),
            report=report,
            notes=[
                *([disagreement.words] if disagreement and disagreement.words else []),
                *notes,
                *notes_of(self.score, scores.stats),
                *run_report.table_notes(data.names, region, drawn, missing),
            ],
            missing_edges=float(missing.probability.sum()),
            power=scores.power,
        )

    def _function_weights(self, data: Dataset, stats: Any, drawn: Sampled) -> PlainData:
        """How much each class of functions counts for each variable, where there are several."""
        if not isinstance(self.score, WeighsFunctions):
            return {}
        some = drawn.graphs[:: max(1, len(drawn.graphs) // _GRAPHS_WEIGHED)]
        weights = self.score.function_weights(stats, some.astype(np.int8))
        found = {
            name: {words: round(float(each[j]), 3) for words, each in weights.items()}
            for j, name in enumerate(data.names)
        }
        return {"function_weights": found}

    def log_score_of(
        self, data: Dataset, knowledge: Constraints, graph: Shaped[Array, "d d"]
    ) -> float:
        """Log posterior of a graph with one order of its own, order-modular.

        Beside the best of each stage (`provenance["search"]`; `bayesdag.log_scores` puts them
        together) it tells a shortfall of the search from one of the score. Under the first
        noise model, and by networks trained anew: a fit keeps none.
        """
        recorder, score = recorder_of(None), self.score
        stats = strategies.prepare(score, data, recorder)
        first = noise_averaging.noise_models(score, self.num_samples)[0]
        scores = strategies.strategy_for(first.score, stats, knowledge, recorder).scores
        prior = self._components(knowledge.contexts)
        return pipeline.log_score(scores, prior, graph)

    def _effort(self, d: int, strategy: SearchStrategy) -> Effort:
        ladders = min(self.num_ladders or _LADDERS, self.num_samples)
        num_samples = ceil(self.num_samples / ladders)
        total = self.num_chains * ladders
        return Effort(
            num_starts=self.num_starts,
            max_rounds=self.max_rounds,
            limits=self._limits(d, strategy),
            num_chains=self.num_chains,
            num_ladders=total,
            num_rungs=self.num_temperatures,
            hottest=self.hottest,
            schedule=loop.Schedule(self.num_warmup, num_samples, self.thinning),
            num_trial=min(num_samples, ceil(_TRIAL_DRAWS / total)),
        )

    def _limits(self, d: int, strategy: SearchStrategy) -> Limits:
        most = min(self.max_candidates, strategy.most_candidates)
        plain = min(most, (_TABLE_ENTRIES // d).bit_length() - 1)
        return Limits(plain, min(plain, strategy.beside_core))

    def _arranged(self, drawn: Sampled) -> Sampled:
        """The first `num_samples` draws of every chain; ladders follow one another."""

        def first(leaf: np.ndarray) -> np.ndarray:
            chains = leaf.reshape(self.num_chains, -1, *leaf.shape[1:])[:, : self.num_samples]
            return chains.reshape(-1, *leaf.shape[1:])

        return drawn._replace(
            orders=first(drawn.orders),
            component=first(drawn.component),
            graphs=first(drawn.graphs),
            inside=first(drawn.inside),
        )

    def _joined(self, parts: Any) -> np.ndarray:
        """Draws of all noise models; leading dimensions (chain, draw)."""
        leaf = noise_averaging.interleaved(parts, self.num_chains)
        return leaf.reshape(self.num_chains, -1, *leaf.shape[1:])

    def _components(
        self, contexts: Bool[np.ndarray, " d"], order_modular: bool = True
    ) -> Components:
        num_contexts = int(contexts.sum())
        return Components(*self.prior.components(len(contexts), order_modular, num_contexts))

    def _change_of_prior(
        self, drawn: Sampled, prior: Components, contexts: Bool[np.ndarray, " d"]
    ) -> Float[np.ndarray, " s"]:
        """Log ratio of the prior that is meant to the one that was sampled, orders aside."""
        if self.order_modular:
            return np.zeros(len(drawn.graphs))
        meant = self._components(contexts, order_modular=False)
        return meant.log_prob(drawn.graphs) - prior.log_prob(drawn.graphs)

    def _weights(
        self,
        drawn: Sampled,
        change: Float[np.ndarray, " s"],
        contexts: Bool[np.ndarray, " d"],
    ) -> tuple[Float[np.ndarray, " s"], list[str]]:
        """Equal weights, or those that count each graph once."""
        if self.order_modular:
            return np.ones(len(drawn.graphs)), []
        own = np.flatnonzero(~contexts)  # contexts come first, in one order
        graphs = drawn.graphs[:, own][:, :, own]
        weights, effective = order_counting.graph_modular_weights(graphs, change)
        note = (
            f"each graph counts once: draws are re-weighted by their number of orders, which "
            f"leaves {effective:.0f} effective draws of {len(weights)}"
        )
        return weights / weights.mean(), [note]

    def _words(self, data: Dataset, parts: list[ModelDraws]) -> PlainData:
        """Model, prior, search and tables; those of the first noise model in full."""
        models = noise_averaging.noise_models(self.score, self.num_samples)
        scm, evidence = self.score.scm(data), in_words(self.score)
        noise = f"{type(scm.noise).__name__} noise {noise_averaging.describe(models)}".rstrip()
        reading = "order-modular" if self.order_modular else "graph-modular"
        words = {
            "model": f"{type(scm.mechanism).__name__} functions, {noise}, "
            f"integrated out ({evidence})",
            "prior": f"{reading}: {self.prior.describe()}",
            "temperature": 1 / parts[0].power,
            **parts[0].report,
            "notes": max(parts, key=lambda part: part.missing_edges).notes,
        }
        if len(models) > 1:
            words["noise_models"] = [
                {"noise": part.model.words, "num_samples": part.model.num_samples, **part.report}
                for part in parts
            ]
        return words


def _distinct(found: tuple[Found, ...]) -> tuple[Found, ...]:
    """Results with different graphs, the first of each."""
    first: dict[bytes, Found] = {}
    for result in found:
        first.setdefault(result.graph.tobytes(), result)
    return tuple(first.values())


Collapsed.PRESETS = {
    # For a first look, and for tests: few and short chains.
    "quick": Collapsed(num_chains=2, num_warmup=30, num_ladders=8, num_starts=2),
    # For nonlinear functions: learned, and expensive to score, so the tables are small.
    "neural": Collapsed(score=NeuralScore(), num_starts=2, max_candidates=5, max_rounds=5),
    # For nonlinear functions of many variables: sums of curves, in closed form.
    "additive": Collapsed(score=Additive(), num_starts=6, max_candidates=10),
}

build = Collapsed
