"""The exact posterior: every DAG counts, none is sampled past.

Dynamic programming over subsets of the variables adds up all graphs (exponential in the
number of variables, but not in the number of graphs), so edge and path probabilities carry
no Monte-Carlo error, and draws of graphs and functions are independent.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int8, Shaped

from bayesdag import posterior
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.exact import graph_dp, order_dp
from bayesdag.exact.tables import Tables, edges
from bayesdag.graphs import iterate_dags, num_linear_extensions_each
from bayesdag.graphs.bitsets import members
from bayesdag.knowledge import Constraints
from bayesdag.methods import _sure_arrows
from bayesdag.model.priors.density import DensityGrid
from bayesdag.posterior import Posterior, coarsening
from bayesdag.random import generator, split
from bayesdag.runs.trees import map_leaves
from bayesdag.scores import in_words, notes_of
from bayesdag.scores.bge import BGe
from bayesdag.types import (
    Array,
    Components,
    Duration,
    ExactDependence,
    Key,
    Monitor,
    PlainData,
    Score,
    StructurePrior,
    kinds_taken,
)

NEGLIGIBLE = 1e-12  # posterior weight of a prior component that is left out of the marginals
MAX_ORDERED_PATHS = 13  # variables up to which order-modular path probabilities are exact


# On two cores, of sums alone: starting and drawing take a second or two more.
_SECONDS_AT_TEN = 0.3


class Mixture(NamedTuple):
    """The posterior under every component of the structure prior.

    Attributes:
        sums: over the graphs, under each component.
        weight: posterior probability of each component.
        log_evidence: of the whole table, graphs and components summed out.
    """

    sums: list[Any]
    weight: Float[np.ndarray, " c"]
    log_evidence: float


@dataclass(frozen=True)
class Exact:
    """All graphs added up exactly, for up to about 15 variables; draws are independent.

    Attributes:
        score: local evidence, and the functions behind it.
        prior: on the number of edges.
        order_modular: the prior counts a graph once for each of its orders, as random node
            potentials do; False: each graph once.
        num_samples: independent draws of graphs and functions.
        max_variables: refuse more. 15 take seconds when order-modular and minutes when not;
            each further variable doubles the score table and makes the work two or four
            times as much.
        coarsened: whether evidence counts less where a check finds that the rows contradict the
            model or one another. False: the exact posterior of the model, right or wrong.
    """

    supported_constraints = frozenset({"required", "forbidden", "beliefs", "environments"})
    supports_interventions = True
    exact_dependence = ExactDependence.AVERAGED

    score: Score = BGe()
    prior: StructurePrior = DensityGrid()
    order_modular: bool = True
    num_samples: int = 1000
    max_variables: int = 15
    coarsened: bool = False

    def __post_init__(self) -> None:
        if self.num_samples < 1:
            raise InputError(f"num_samples is {self.num_samples}; it must be 1 or more")

    @property
    def takes_kinds(self) -> frozenset[str]:
        """Those of its score; by default measurements."""
        return kinds_taken(self.score)

    def min_rows(self, d: int) -> int:
        """The evidence is exact for any number of rows."""
        del d
        return 2

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """Doubles with each variable, and grows fourfold where each graph counts once."""
        del num_rows
        growth = 2.0 if self.order_modular else 4.0
        return Duration(
            _SECONDS_AT_TEN * growth ** (num_variables - 10),
            ("fewer columns", "method 'collapsed', which samples"),
        )

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """Exact marginals, and independent joint draws of graphs and functions."""
        del monitor  # nothing to resume: a second run takes as long as the first
        self._refuse_too_many(data.num_variables)
        stats = self.score.prepare(data)
        found = self._posterior(key, data, knowledge, stats)
        if not self.coarsened:
            return found
        coarse = coarsening.coarsened(
            found.check(data),
            data,
            lambda power: self._posterior(key, data, knowledge, stats, power),
            lambda drawn: _sure_arrows.check(key, self.score, stats, drawn, data),
        )
        if coarse is None:
            return found
        again, power, reason = coarse
        notes = [coarsening.in_words(reason, power), *again.provenance["notes"]]
        counted = {"repetition": reason.repetition, "notes": notes}
        return replace(again, provenance={**again.provenance, **counted})

    def _posterior(
        self, key: Key, data: Dataset, knowledge: Constraints, stats: Any, power: float = 1.0
    ) -> Posterior:
        """The posterior with the evidence raised to a power."""
        key_graphs, key_functions = split(key)
        tables = score_tables(self.score, stats, knowledge, power)
        mixture = self._mixture(tables, knowledge.contexts)
        graphs = self._draw(generator(key_graphs), mixture)
        log_joint = self._log_prior(graphs, knowledge.num_contexts) + _log_weights(tables, graphs)
        params = self.score.draw(key_functions, stats, graphs)
        return posterior.from_draws(
            graphs[None],
            self.score.scm(data),
            map_leaves(lambda leaf: np.asarray(leaf)[None], params),
            data,
            log_joint=log_joint[None],
            marginals=self._marginals(mixture, knowledge),
            provenance=self._words(data, stats, power),
        )

    def log_posterior_of_all_dags(
        self, data: Dataset, knowledge: Constraints
    ) -> tuple[Int8[np.ndarray, "num d d"], Float[np.ndarray, " num"]]:
        """Every DAG and its log probability, by enumeration: up to 6 variables.

        Takes another way than the dynamic programming, to check it and to measure how far
        the draws of any method are from the truth.
        """
        tables = score_tables(self.score, self.score.prepare(data), knowledge)

        def log_weight(dags: np.ndarray) -> np.ndarray:
            value = self._log_prior(dags, knowledge.num_contexts) + _log_weights(tables, dags)
            if not self.order_modular:
                return value
            own = np.flatnonzero(~knowledge.contexts)  # contexts come first, in one order
            return value + np.log(num_linear_extensions_each(dags[:, own][:, :, own]))

        # Piece by piece: all components of all graphs at once would take gigabytes.
        pieces = [(dags, log_weight(dags)) for dags in iterate_dags(data.num_variables)]
        dags, value = (np.concatenate(part) for part in zip(*pieces, strict=True))
        return dags, value - np.logaddexp.reduce(value)

    def log_score_of(
        self, data: Dataset, knowledge: Constraints, graph: Shaped[Array, "d d"]
    ) -> float:
        """Log joint of a graph, on the scale of the draws."""
        graphs = (np.asarray(graph)[None] != 0).astype(np.int8)
        tables = score_tables(self.score, self.score.prepare(data), knowledge)
        return float(
            (self._log_prior(graphs, knowledge.num_contexts) + _log_weights(tables, graphs))[0]
        )

    def edges_and_log_evidence(
        self, data: Dataset, knowledge: Constraints
    ) -> tuple[Float[np.ndarray, "d d"], float]:
        """Edge probabilities, and the log evidence of the whole table; nothing is drawn."""
        tables = score_tables(self.score, self.score.prepare(data), knowledge)
        mixture = self._mixture(tables, knowledge.contexts)
        return self._edges(mixture), mixture.log_evidence

    def _mixture(self, tables: Tables, contexts: Bool[np.ndarray, " d"] | None = None) -> Mixture:
        d = len(tables)
        contexts = np.zeros(d, dtype=bool) if contexts is None else contexts
        log_prior, penalty = self._components(d, int(contexts.sum()))
        sizes = members(d).sum(axis=1)
        # The set of all variables is nobody's parent set; any finite penalty will do for it.
        by_set = np.append(penalty, penalty[:, -1:], axis=1)[:, sizes]
        sums = [self._sums(tables + added, contexts) for added in by_set]
        log_weight = log_prior + [found.log_total for found in sums]
        log_evidence = float(np.logaddexp.reduce(log_weight))
        return Mixture(sums, np.exp(log_weight - log_evidence), log_evidence)

    def _sums(self, tables: Tables, contexts: Bool[np.ndarray, " d"]) -> Any:
        """Sums over graphs; in an order, contexts precede the variables."""
        if not self.order_modular:
            return graph_dp.sums(tables)
        return order_dp.sums(tables, int(contexts @ (1 << np.arange(len(contexts)))))

    def _components(self, d: int, num_contexts: int) -> Components:
        return self.prior.components(d, self.order_modular, num_contexts)

    def _log_prior(
        self, graphs: Int8[np.ndarray, "s d d"], num_contexts: int = 0
    ) -> Float[np.ndarray, " s"]:
        """Of each graph with one order of its own, or alone; components summed out."""
        log_weights, penalty = self._components(graphs.shape[1], num_contexts)
        local = penalty[:, graphs.sum(axis=1)].sum(axis=-1)
        return np.logaddexp.reduce(log_weights[:, None] + local, axis=0)

    def _marginals(
        self, mixture: Mixture, knowledge: Constraints
    ) -> dict[str, Float[np.ndarray, "d d"]]:
        """Edge and, where affordable, path probabilities, averaged over components.

        A required edge has probability 1; sums over graphs give it up to rounding.
        """
        found = {"edge": self._edges(mixture)}
        if self._knows_paths(len(found["edge"])):
            found["ancestor"] = _average(mixture, self._modular.ancestors)
        return {name: np.where(knowledge.required, 1.0, each) for name, each in found.items()}

    def _edges(self, mixture: Mixture) -> Float[np.ndarray, "d d"]:
        return _average(mixture, lambda sums: edges(self._modular.parent_sets(sums)))

    def _draw(
        self, rng: np.random.Generator, mixture: Mixture
    ) -> Int8[np.ndarray, "num_samples d d"]:
        """Independent graphs; how many from each component is random too."""
        counts = rng.multinomial(self.num_samples, mixture.weight / mixture.weight.sum())
        drawn = [
            self._modular.draw(rng, found, int(count))
            for found, count in zip(mixture.sums, counts, strict=True)
            if count
        ]
        return rng.permutation(np.concatenate(drawn))

    @property
    def _modular(self) -> Any:
        return order_dp if self.order_modular else graph_dp

    def _knows_paths(self, d: int) -> bool:
        return not self.order_modular or d <= MAX_ORDERED_PATHS

    def _refuse_too_many(self, d: int) -> None:
        if d > self.max_variables:
            growth, unit = (2.2, "seconds") if self.order_modular else (4.0, "minutes")
            raise InputError(
                f"method 'exact' adds up all graphs of at most {self.max_variables} variables "
                f"and the data have {d}: use method 'collapsed', which samples them, or drop "
                f"columns (max_variables={d} would take about {growth ** (d - 15):.2g} times as "
                f"long as 15 variables, which take {unit})"
            )

    def _words(self, data: Dataset, stats: Any, power: float) -> PlainData:
        scm = self.score.scm(data)
        reading = (
            "order-modular (a graph counts once for each of its orders)"
            if self.order_modular
            else "graph-modular (each graph counts once)"
        )
        exact = "edge and path" if self._knows_paths(data.num_variables) else "edge"
        return {
            "model": f"{type(scm.mechanism).__name__} functions, {type(scm.noise).__name__} "
            f"noise, integrated out ({in_words(self.score)})",
            "prior": f"{reading}: {self.prior.describe()}",
            "temperature": 1 / power,
            "independent": True,
            "notes": [
                *notes_of(self.score, stats),
                f"{exact} probabilities are exact, and the draws are independent",
            ],
        }


def _average(mixture: Mixture, question: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Probabilities under each component, averaged; those of negligible weight are left out."""
    kept = np.flatnonzero(mixture.weight > NEGLIGIBLE)
    weight = mixture.weight[kept] / mixture.weight[kept].sum()
    found = (w * question(mixture.sums[c]) for w, c in zip(weight, kept, strict=True))
    return np.clip(reduce(np.add, found), 0, 1)


def score_tables(score: Score, stats: Any, knowledge: Constraints, power: float = 1.0) -> Tables:
    """Log evidence raised to a power, and knowledge: for every node with every set of parents.

    Sets that break the knowledge are -inf and never handed to the score.
    """
    d = len(knowledge.names)
    sets = members(d)
    tables = np.full((d, 2**d), -np.inf)
    for node in range(d):
        own = np.flatnonzero(~sets[:, node])
        log_prior = knowledge.log_prior(node, sets[own])
        allowed = own[log_prior > -np.inf]
        evidence = score.log_evidence(stats, node, sets[allowed])
        tables[node, allowed] = log_prior[log_prior > -np.inf] + power * evidence
    return tables


def _log_weights(tables: Tables, graphs: Int8[np.ndarray, "s d d"]) -> Float[np.ndarray, " s"]:
    """Sum over the nodes of each graph's table entries."""
    d = len(tables)
    parents = np.tensordot(graphs, 2 ** np.arange(d), axes=(1, 0))
    return tables[np.arange(d), parents].sum(axis=1)


build = Exact
