"""The exact posterior: every sum over graphs is carried out, nothing is approximated.

Given its score and prior this is the answer itself, so it also judges every sampler that
shares them.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int8

from bayesdag.data import Dataset
from bayesdag.keys import generator
from bayesdag.knowledge import Constraints
from bayesdag.posterior import Posterior, from_draws
from bayesdag.priors import DensityGrid, StructurePrior
from bayesdag.scores.bge import BGe
from bayesdag.subsets import enumeration, graph_modular, order_modular, transforms
from bayesdag.types import InputError, Key, Monitor, Score

# Components of the prior below this share of the posterior are left out of its sums.
NEGLIGIBLE = 1e-12
# Beyond, ancestor probabilities cost more than everything else and come from the draws.
MAX_ANCESTORS = 12


class Mixture(NamedTuple):
    """The posterior as a mixture over the components of the prior.

    Attributes:
        weight: posterior probability of each component kept.
        tables: its log weights of all parent sets, as in `subsets`.
        log_weight: its log prior weight.
        log_evidence: log p(data), the graphs and the components summed out.
    """

    weight: Float[np.ndarray, " c"]
    tables: Float[np.ndarray, "c d sets"]
    log_weight: Float[np.ndarray, " c"]
    log_evidence: float


@dataclass(frozen=True)
class Exact:
    """Exact sums over all graphs; for tables of up to 15 variables.

    Time and memory grow like 3^d for the sums and, when `order_modular` is False, 4^d for
    the draws.

    Attributes:
        score: evidence of a node given its parents, and the functions behind it.
        prior: on the number of parents.
        order_modular: the prior counts a graph once for each of its orders, as random node
            potentials do; False: each graph once.
        num_samples: independent draws of graphs and functions.
        by_enumeration: add up every single graph, up to 6 variables: the same numbers,
            thousands of times slower, for those who want to see it done.
        max_variables: refuse more variables than this.
    """

    honours: ClassVar[frozenset[str]] = frozenset({"required", "forbidden", "beliefs"})
    interventions: ClassVar[bool] = True

    score: Score = BGe()
    prior: StructurePrior = DensityGrid()
    order_modular: bool = True
    num_samples: int = 1000
    by_enumeration: bool = False
    max_variables: int = 15

    def min_rows(self, d: int) -> int:
        """Two: with a proper prior any number of rows has a posterior."""
        del d
        return 2

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """Exact marginals, and independent joint draws of graphs and functions."""
        del monitor  # no chain, nothing to watch
        self._refuse_too_many(data.num_variables)
        key_graphs, key_functions = jax.random.split(key)
        stats = self.score.prepare(data)
        mixture = self.mixture(log_scores(self.score, stats, knowledge))
        graphs, log_joint = self._draw(generator(key_graphs), mixture)
        params = self.score.draw(key_functions, stats, graphs)
        return from_draws(
            graphs[None],
            self.score.scm(data),
            jax.tree.map(lambda leaf: leaf[None], params),
            data,
            log_joint=log_joint[None],
            marginals=self._marginals(mixture),
            provenance=self._words(mixture),
        )

    def mixture(self, scores: transforms.Tables) -> Mixture:
        """The posterior that belongs to log scores of all parent sets."""
        d = len(scores)
        log_weight, penalty = self.prior.components(d, self.order_modular)
        # The set of all d variables belongs to no node; its entry is -inf whatever it costs.
        sizes = np.minimum(np.bitwise_count(np.arange(2**d)), d - 1)
        tables = scores + penalty[:, None, sizes]
        log_mass = log_weight + np.array([self._log_total(table) for table in tables])
        log_evidence = float(np.logaddexp.reduce(log_mass))
        weight = np.exp(log_mass - log_evidence)
        kept = weight > NEGLIGIBLE
        return Mixture(weight[kept], tables[kept], log_weight[kept], log_evidence)

    def distribution(
        self, scores: transforms.Tables
    ) -> tuple[Int8[np.ndarray, "num d d"], Float[np.ndarray, " num"]]:
        """Every DAG with its posterior probability, for up to 6 variables."""
        mixture = self.mixture(scores)
        dags, probability = [], []
        streams = [enumeration.log_weights(t, self.order_modular) for t in mixture.tables]
        for pieces in zip(*streams, strict=True):
            log_weight = mixture.log_weight[:, None] + np.stack([piece[1] for piece in pieces])
            dags.append(pieces[0][0])
            probability.append(np.exp(log_weight - mixture.log_evidence).sum(axis=0))
        return np.concatenate(dags), np.concatenate(probability)

    @property
    def _sums(self) -> Any:
        return order_modular if self.order_modular else graph_modular

    def _log_total(self, tables: transforms.Tables) -> float:
        if self.by_enumeration:
            return enumeration.sums(tables, self.order_modular).log_total
        if self.order_modular:
            return float(order_modular.prefix_sums(transforms.below(tables))[-1])
        return graph_modular.sums(tables).log_total

    def _marginals(self, mixture: Mixture) -> dict[str, np.ndarray]:
        found = [self._component_marginals(tables) for tables in mixture.tables]
        return {
            name: np.clip(
                sum(w * f[name] for w, f in zip(mixture.weight, found, strict=True)), 0, 1
            )
            for name in found[0]
        }

    def _component_marginals(self, tables: transforms.Tables) -> dict[str, np.ndarray]:
        if self.by_enumeration:
            summed = enumeration.sums(tables, self.order_modular)
            return {"edge": summed.edge, "ancestor": summed.ancestor}
        sums = self._sums.sums(tables)
        marginals = {"edge": transforms.edges(self._sums.parent_sets(sums))}
        if len(tables) <= MAX_ANCESTORS:
            marginals["ancestor"] = self._sums.ancestors(sums)
        return marginals

    def _draw(
        self, rng: np.random.Generator, mixture: Mixture
    ) -> tuple[Int8[np.ndarray, "s d d"], Float[np.ndarray, " s"]]:
        """Graphs, and log p(data, graph given an order) with the components summed out."""
        share = mixture.weight / mixture.weight.sum()
        counts = rng.multinomial(self.num_samples, share)
        drawn = [
            self._sums.draw(rng, self._sums.sums(tables), count)
            for tables, count in zip(mixture.tables, counts, strict=True)
            if count
        ]
        graphs = rng.permutation(np.concatenate(drawn))
        d = graphs.shape[-1]
        parent_sets = np.tensordot(graphs, 2 ** np.arange(d), axes=(1, 0))
        value = mixture.tables[:, np.arange(d), parent_sets].sum(axis=2)
        return graphs, np.logaddexp.reduce(mixture.log_weight[:, None] + value, axis=0)

    def _words(self, mixture: Mixture) -> dict[str, Any]:
        kind = "order-modular" if self.order_modular else "graph-modular"
        return {
            "model": f"{type(self.score).__name__}: linear functions with Gaussian noise",
            "prior": f"{kind}: {self.prior.describe()}",
            "temperature": 1.0,
            "log_evidence": mixture.log_evidence,
            "notes": ["exact: probabilities carry no Monte-Carlo error, draws are independent"],
        }

    def _refuse_too_many(self, d: int) -> None:
        limit = min(self.max_variables, 6) if self.by_enumeration else self.max_variables
        if d > limit:
            raise InputError(
                f"exact sums over graphs with {d} variables are refused beyond {limit}: time and "
                "memory triple with each one. Use method='collapsed', fewer columns, or, with "
                "hours and memory to spare, a larger max_variables"
            )
        if self.num_samples < 1:
            raise InputError(f"num_samples is {self.num_samples}; it must be 1 or more")


def log_scores(score: Score, stats: Any, knowledge: Constraints) -> transforms.Tables:
    """Log evidence and knowledge of every node with every parent set; -inf where refused."""
    d = len(knowledge.names)
    parents = transforms.members(d)
    tables = np.full((d, 2**d), -np.inf)
    for node in range(d):
        known = knowledge.log_prior(node, parents)
        possible = known > -np.inf
        evidence = score.log_evidence(stats, node, parents[possible])
        tables[node, possible] = known[possible] + evidence
    return tables


build = Exact
