"""Diagnostics of chains: agreement, and effective numbers of draws.

R-hat and effective sizes come from ArviZ and use unweighted draws; the effective size of the
weights stands beside them. Whatever never changes has no R-hat. Chains stuck at different
values have not mixed, however calm each of them looks. R-hat averages over chains and may
overlook a single one: each chain's edge probabilities are compared with the others', too.

A result made of several posteriors (of bootstrap samples, of models) has members: chains are
compared within each member only, since members are meant to differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from bayesdag import graphs as graph_facts
from bayesdag.posterior import estimates
from bayesdag.posterior.chain_comparison import (
    NOT_MIXED,
    STUCK,
    Outlier,
    Quantity,
    compare,
    outliers,
)
from bayesdag.posterior.libraries import DataFrame, data_frame
from bayesdag.posterior.notebook import NotebookView
from bayesdag.types import Draws, Facts, PlainData, Weights

ESS_LIMIT = 100.0  # then a probability of one half is known to 0.05
RARE = 0.02  # edges nearer to 0 or 1 change too seldom for an R-hat
NAMED = 5  # so many offenders are named in a verdict


@dataclass(frozen=True, repr=False)
class Diagnostics(NotebookView):
    """Agreement of the chains, and effective numbers of draws.

    Attributes:
        num_chains: independent runs.
        num_draws: draws per chain.
        num_distinct: different graphs among all draws.
        kish_ess: effective number of draws of the weights alone.
        quantities: everything that was watched.
        outliers: chains that differ from the others in an edge probability, furthest first.
        scatter: standard deviation between chains of each edge probability.
        names: column names.
        independent: whether draws are independent by construction, without a Markov chain.
        members: for a result made of several posteriors, what the chains of each say.
        search: how independent searches disagree, in words, where it matters.
    """

    num_chains: int
    num_draws: int
    num_distinct: int
    kish_ess: float
    quantities: tuple[Quantity, ...]
    outliers: tuple[Outlier, ...]
    scatter: Float[np.ndarray, "d d"]
    names: tuple[str, ...]
    independent: bool = False
    members: tuple[tuple[str, "Diagnostics"], ...] = ()
    search: str = ""
    notebook_words = "verdict"

    def __repr__(self) -> str:
        agree = {True: "converged", False: "not converged", None: "nothing to compare"}
        if self.independent and not self.members:
            agree[None] = "independent draws"
        return (
            f"<Diagnostics of {self.num_chains} × {self.num_draws} draws: {agree[self.converged]}>"
        )

    @property
    def comparable(self) -> bool:
        """Whether there are chains to compare, long enough to be split."""
        if self.members:
            return any(member.comparable for _, member in self.members)
        return self.num_chains > 1 and self.num_draws >= estimates.FEWEST_DRAWS

    @property
    def unmixed(self) -> list[Quantity]:
        """Quantities that differ between the chains more than chance allows, worst first."""
        wrong = [q for q in self.quantities if q.state in (NOT_MIXED, STUCK)]
        return sorted(wrong, key=lambda q: -np.nan_to_num(q.rhat, posinf=np.inf))

    @property
    def converged(self) -> bool | None:
        """Whether the chains agree and hold enough draws; None: there are none to compare."""
        if self.members:
            judged = [member.converged for _, member in self.members]
            return False if False in judged else None if None in judged else True
        if self.independent or not self.comparable:
            return None
        return not self.unmixed and not self.outliers and self._smallest_size() >= ESS_LIMIT

    @property
    def verdict(self) -> str:
        """The state of the chains in plain words, and what to do."""
        said = [*self._verdict_on_chains(), *self._verdict_on_weights()]
        return " ".join([*said, *self._verdict_on_search()])

    def table(self, top: int = 12) -> DataFrame:
        """The watched quantities: statistics, then the worst of the rest."""
        return data_frame(self.columns(top))

    def columns(self, top: int = 12) -> dict[str, list[Any]]:
        """The columns of `table`, without pandas."""
        first = [q for q in self.quantities if q.kind == "stat" and not self.members]
        rest = sorted((q for q in self.quantities if q not in first), key=_badness)
        shown = [*first, *rest][:top]
        columns = {"quantity": "name", "rhat": "rhat", "ess": "ess", "state": "state"}
        return {title: [getattr(q, field) for q in shown] for title, field in columns.items()}

    def summary(self) -> PlainData:
        """The whole as plain data; numbers that do not exist are None."""
        return {
            "verdict": self.verdict,
            "converged": self.converged,
            "num_chains": self.num_chains,
            "num_draws": self.num_draws,
            "num_distinct_graphs": self.num_distinct,
            "kish_ess": self.kish_ess,
            "largest_scatter": float(self.scatter.max(initial=0.0)),
            "outliers": [outlier._asdict() for outlier in self.outliers],
            "members": [
                {"name": name, "verdict": member.verdict, "converged": member.converged}
                for name, member in self.members
            ],
            "quantities": [
                {field: _plain(value) for field, value in q._asdict().items()}
                for q in self.quantities
            ],
        }

    def _verdict_on_chains(self) -> list[str]:
        if self.members:
            return self._verdict_on_members()
        if self.independent:
            return [
                f"{self.num_chains * self.num_draws} independent draws ({self.num_distinct} "
                "different graphs), made without a Markov chain: there is no mixing to judge."
            ]
        if self.num_chains == 1:
            return [
                f"One run of {self.num_draws} draws ({self.num_distinct} different graphs): there "
                "is nothing to compare it with, so no R-hat. Fit again with num_chains=4, or "
                "merge runs with other seeds."
            ]
        if not self.comparable:
            return [
                f"{self.num_chains} chains of {self.num_draws} draws are too short to be "
                f"compared; raise num_samples to at least {estimates.FEWEST_DRAWS}, better 100."
            ]
        return self._what_has_not_mixed() or self._enough_draws()

    def _verdict_on_members(self) -> list[str]:
        """The worst verdict of a member stands for all."""
        judged = [(name, member) for name, member in self.members if member.converged is not None]
        wrong = [(name, member) for name, member in judged if not member.converged]
        if wrong:
            name, worst = max(wrong, key=lambda pair: len(pair[1].unmixed + [*pair[1].outliers]))
            return [f"{name}, the worst of {len(wrong)} with poor chains: {worst.verdict}"]
        silent = [(name, member) for name, member in self.members if member.converged is None]
        if silent:
            name, first = silent[0]
            return [f"{name}, like {len(silent) - 1} more: {first.verdict}"]
        sizes = [member._smallest_size() for _, member in judged]
        return [
            f"The chains agree within each of {len(judged)} members, {judged[0][0]} to "
            f"{judged[-1][0]}; the smallest effective number of draws is {min(sizes):.0f}. "
            "Members differ from one another by design."
        ]

    def _what_has_not_mixed(self) -> list[str]:
        wrong, alone = self.unmixed, self.outliers
        if not wrong and not alone:
            return []
        said = [outlier.words for outlier in alone[: NAMED - 3]]
        if wrong:
            named = [_offender(q) for q in wrong[:NAMED]]
            more = f" and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
            said.insert(0, f"the chains disagree about {', '.join(named)}{more}")
        return [
            f"NOT MIXED: {'; '.join(said)}. Edge probabilities differ between chains by up to "
            f"{self.scatter.max():.2f} (one standard deviation). Do not trust these numbers yet: "
            "raise num_warmup and num_samples, and use what all chains agree on in the meantime."
        ]

    def _enough_draws(self) -> list[str]:
        size = self._smallest_size()
        largest = max((q.rhat for q in self.quantities if q.rhat > 0), default=1.0)
        agree = f"The chains agree (largest R-hat {largest:.2f})."
        if size >= ESS_LIMIT:
            return [f"{agree} The smallest effective number of draws is {size:.0f}."]
        times = int(np.ceil(ESS_LIMIT / max(size, 1.0)))
        worst = min(self.quantities, key=lambda q: q.ess if q.ess > 0 else np.inf).name
        return [
            f"{agree} But {worst} has only {size:.0f} effective draws: raise num_samples about "
            f"{times} times before reading small differences."
        ]

    def _verdict_on_weights(self) -> list[str]:
        total = self.num_chains * self.num_draws
        if self.kish_ess >= min(0.1 * total, ESS_LIMIT) or total < 10:
            return []
        return [
            f"A few draws carry nearly all the weight: {total} draws count like "
            f"{self.kish_ess:.1f}."
        ]

    def _verdict_on_search(self) -> list[str]:
        return [f"{self.search[0].upper()}{self.search[1:]}."] if self.search else []

    def _smallest_size(self) -> float:
        return min((q.ess for q in self.quantities if q.ess > 0), default=self.kish_ess)


def diagnose(
    graphs: Draws,
    weights: Weights,
    stats: Mapping[str, Float[np.ndarray, "chain draw"]],
    names: Sequence[str],
    independent: bool = False,
    members: Sequence[Facts] = (),
) -> Diagnostics:
    """Compares the chains on log joint, edge count, ancestors of each node, and edges.

    Args:
        members: for a result made of several posteriors, what `member` says of each, in the
            order of their chains.
    """
    if members:
        return _diagnose_members(graphs, weights, stats, names, members)
    different, index = graph_facts.unique_graphs(graphs)
    above = graph_facts.ancestors(different).sum(axis=1)[index].astype(float)
    probability = estimates.mean(graphs, np.full(weights.shape, 1 / weights.size))
    edges = np.argwhere((probability > RARE) & (probability < 1 - RARE))
    arrows = [f"{names[int(i)]} → {names[int(j)]}" for i, j in edges]
    indicators = graphs[:, :, edges[:, 0], edges[:, 1]].astype(float)
    watched = np.stack(list(stats.values()), axis=2)
    quantities = [
        *compare("stat", [name.replace("_", " ") for name in stats], watched),
        *compare("order", [f"ancestors of {name}" for name in names], above),
        *compare("edge", arrows, indicators),
    ]
    return Diagnostics(
        num_chains=graphs.shape[0],
        num_draws=graphs.shape[1],
        num_distinct=len(different),
        kish_ess=float(estimates.kish_ess(weights)),
        quantities=tuple(quantities),
        outliers=() if independent else tuple(outliers(arrows, indicators, weights)),
        scatter=chain_probabilities(graphs, weights).std(axis=0),
        names=tuple(names),
        independent=independent,
    )


def member(name: str, num_chains: int, provenance: Facts) -> PlainData:
    """Record, as plain data, of one of the posteriors that a result is made of."""
    independent = bool(provenance.get("independent", False))
    return {"name": name, "num_chains": num_chains, "independent": independent}


def _diagnose_members(
    graphs: Draws,
    weights: Weights,
    stats: Mapping[str, Float[np.ndarray, "chain draw"]],
    names: Sequence[str],
    members: Sequence[Facts],
) -> Diagnostics:
    parts: list[tuple[str, Diagnostics]] = []
    start = 0
    for one in members:
        own = slice(start, start + one["num_chains"])
        start = own.stop
        own_stats = {name: values[own] for name, values in stats.items()}
        found = diagnose(graphs[own], weights[own], own_stats, names, one["independent"])
        parts.append((one["name"], found))
    return Diagnostics(
        num_chains=graphs.shape[0],
        num_draws=graphs.shape[1],
        num_distinct=len(graph_facts.unique_graphs(graphs)[0]),
        kish_ess=float(estimates.kish_ess(weights)),
        quantities=tuple(
            q._replace(name=f"{name}: {q.name}") for name, part in parts for q in part.quantities
        ),
        outliers=tuple(outlier for _, part in parts for outlier in part.outliers),
        scatter=chain_probabilities(graphs, weights).std(axis=0),
        names=tuple(names),
        members=tuple(parts),
    )


def chain_probabilities(graphs: Draws, weights: Weights) -> Float[np.ndarray, "chain d d"]:
    """Edge probabilities of every chain on its own."""
    own = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return np.stack([estimates.mean(g[None], w[None]) for g, w in zip(graphs, own, strict=True)])


def _offender(quantity: Quantity) -> str:
    if quantity.state == STUCK:
        return f"{quantity.name} (chains stuck at different values)"
    return f"{quantity.name} (R-hat {quantity.rhat:.2f})"


def _badness(quantity: Quantity) -> tuple[float, float]:
    """Largest R-hat first, then smallest effective size; what has neither comes last."""
    return -np.nan_to_num(quantity.rhat, posinf=np.inf), np.nan_to_num(quantity.ess, nan=np.inf)


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not np.isfinite(value) else value
