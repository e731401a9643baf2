"""Have the chains found the same posterior, and how many independent draws are there?

R-hat and effective sizes come from ArviZ and use unweighted draws; the effective size of the
weights stands beside them. Whatever never changes has no R-hat. Chains frozen on different
values have not mixed, however calm each of them looks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bayesdag import graphs as graph_facts
from bayesdag.posterior import estimates
from bayesdag.types import Draws, Weights

if TYPE_CHECKING:
    import pandas

RHAT_LIMIT = 1.05
ESS_LIMIT = 100.0  # then a probability of one half is known to 0.05
RARE = 0.02  # edges nearer to 0 or 1 change too seldom for an R-hat
NAMED = 5  # so many offenders are named in a verdict

MIXED, NOT_MIXED, FROZEN = "mixed", "not mixed", "frozen apart"
CONSTANT, UNKNOWN = "never changes", "not compared"


class Quantity(NamedTuple):
    """Something watched along the chains; NaN where a number does not exist.

    `kind` is "stat" (log joint, edge count), "order" (ancestors of a node) or "edge".
    """

    name: str
    kind: str
    rhat: float
    ess: float
    state: str


@dataclass(frozen=True)
class Diagnostics:
    """What the chains say of one another.

    Attributes:
        num_chains: independent runs.
        num_draws: draws a chain.
        num_distinct: different graphs among all draws.
        weight_size: effective number of draws of the weights alone.
        quantities: everything that was watched.
        scatter: standard deviation between chains of each edge probability.
        names: column names.
        independent: whether the method draws without a chain, so that nothing has to mix.
        search: how independent searches disagree, in words, where it matters.
    """

    num_chains: int
    num_draws: int
    num_distinct: int
    weight_size: float
    quantities: tuple[Quantity, ...]
    scatter: Float[np.ndarray, "d d"]
    names: tuple[str, ...]
    independent: bool = False
    search: str = ""

    @property
    def comparable(self) -> bool:
        """Whether there are chains to compare, long enough to be split."""
        return self.num_chains > 1 and self.num_draws >= estimates.FEWEST_DRAWS

    @property
    def unmixed(self) -> list[Quantity]:
        """What differs between the chains more than chance allows, worst first."""
        wrong = [q for q in self.quantities if q.state in (NOT_MIXED, FROZEN)]
        return sorted(wrong, key=lambda q: -q.rhat)

    @property
    def converged(self) -> bool | None:
        """Whether the chains agree and hold enough draws; None: there are none to compare."""
        if not self.comparable:
            return None
        return not self.unmixed and self._smallest_size() >= ESS_LIMIT

    @property
    def verdict(self) -> str:
        """The state of the chains in plain words, and what to do."""
        said = [*self._verdict_on_chains(), *self._verdict_on_weights()]
        return " ".join([*said, *self._verdict_on_search()])

    def table(self, top: int = 12) -> "pandas.DataFrame":
        """The watched quantities: statistics, then the worst of the rest."""
        import pandas

        rest = sorted((q for q in self.quantities if q.kind != "stat"), key=_badness)
        shown = [*(q for q in self.quantities if q.kind == "stat"), *rest][:top]
        columns = {"quantity": "name", "rhat": "rhat", "ess": "ess", "state": "state"}
        return pandas.DataFrame(
            {title: [getattr(q, field) for q in shown] for title, field in columns.items()}
        )

    def summary(self) -> dict[str, Any]:
        """The whole as plain data; numbers that do not exist are None."""
        return {
            "verdict": self.verdict,
            "converged": self.converged,
            "num_chains": self.num_chains,
            "num_draws": self.num_draws,
            "num_distinct_graphs": self.num_distinct,
            "weight_ess": self.weight_size,
            "largest_scatter": float(self.scatter.max(initial=0.0)),
            "quantities": [
                {field: _plain(value) for field, value in q._asdict().items()}
                for q in self.quantities
            ],
        }

    def _verdict_on_chains(self) -> list[str]:
        if self.independent:
            return [
                f"{self.num_chains * self.num_draws} independent draws ({self.num_distinct} "
                "different graphs): the method uses no chain, so nothing has to mix."
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

    def _what_has_not_mixed(self) -> list[str]:
        wrong = self.unmixed
        if not wrong:
            return []
        named = [_offender(q) for q in wrong[:NAMED]]
        more = f" and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
        return [
            f"NOT MIXED: the chains disagree about {', '.join(named)}{more}. Edge probabilities "
            f"differ between chains by up to {self.scatter.max():.2f} (one standard deviation). "
            "Do not trust these numbers yet: raise num_warmup and num_samples, and use what "
            "all chains agree on in the meantime."
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
        if self.weight_size >= min(0.1 * total, ESS_LIMIT) or total < 10:
            return []
        return [
            f"A few draws carry nearly all the weight: {total} draws count like "
            f"{self.weight_size:.1f}."
        ]

    def _verdict_on_search(self) -> list[str]:
        return [f"{self.search[0].upper()}{self.search[1:]}."] if self.search else []

    def _smallest_size(self) -> float:
        return min((q.ess for q in self.quantities if q.ess > 0), default=self.weight_size)


def diagnose(
    graphs: Draws,
    weights: Weights,
    stats: Mapping[str, Float[np.ndarray, "chain draw"]],
    names: Sequence[str],
    independent: bool = False,
) -> Diagnostics:
    """Compares the chains on log joint, edge count, ancestors of each node, and edges."""
    different, index = graph_facts.unique_graphs(graphs)
    above = graph_facts.ancestors(different).sum(axis=1)[index].astype(float)
    probability = estimates.mean(graphs, np.full(weights.shape, 1 / weights.size))
    edges = np.argwhere((probability > RARE) & (probability < 1 - RARE))
    arrows = [f"{names[int(i)]} → {names[int(j)]}" for i, j in edges]
    indicators = graphs[:, :, edges[:, 0], edges[:, 1]].astype(float)
    watched = np.stack(list(stats.values()), axis=2)
    quantities = [
        *_compare("stat", [name.replace("_", " ") for name in stats], watched),
        *_compare("order", [f"ancestors of {name}" for name in names], above),
        *_compare("edge", arrows, indicators),
    ]
    return Diagnostics(
        num_chains=graphs.shape[0],
        num_draws=graphs.shape[1],
        num_distinct=len(different),
        weight_size=estimates.kish_ess(weights),
        quantities=tuple(quantities),
        scatter=chain_probabilities(graphs, weights).std(axis=0),
        names=tuple(names),
        independent=independent,
    )


def chain_probabilities(graphs: Draws, weights: Weights) -> Float[np.ndarray, "chain d d"]:
    """Edge probabilities of every chain on its own."""
    own = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return np.stack([estimates.mean(g[None], w[None]) for g, w in zip(graphs, own, strict=True)])


def _compare(
    kind: str, names: list[str], values: Float[np.ndarray, "chain draw k"]
) -> list[Quantity]:
    """R-hat, effective size and state of every quantity of one kind."""
    num_chains, num_draws, k = values.shape
    rhat, size = np.full(k, np.nan), np.full(k, np.nan)
    varies = np.ptp(values, axis=(0, 1)) > 0
    if num_draws >= estimates.FEWEST_DRAWS:
        moving = (np.ptp(values, axis=1) > 0).any(axis=0)
        # Ranks make the size of a skewed statistic robust; an indicator has none to speak of.
        how = "mean" if kind == "edge" else "bulk"
        size[moving] = estimates.autocorrelated_size(values[:, :, moving], how)
        if num_chains > 1:
            rhat[moving] = _rhat(values[:, :, moving])
            rhat[varies & ~moving] = np.inf
    state = _state(rhat, varies, num_chains, num_draws)
    return [
        Quantity(name, kind, float(rhat[q]), float(size[q]), state[q])
        for q, name in enumerate(names)
    ]


def _state(
    rhat: Float[np.ndarray, " k"], varies: Bool[np.ndarray, " k"], num_chains: int, num_draws: int
) -> list[str]:
    limit = _limit(num_chains, num_draws, int(np.isfinite(rhat).sum()))
    state = np.where(rhat > limit, NOT_MIXED, MIXED).astype(object)
    state[np.isnan(rhat)] = UNKNOWN
    state[np.isinf(rhat)] = FROZEN
    state[~varies] = CONSTANT
    return state.tolist()


def _limit(num_chains: int, num_draws: int, num_compared: int) -> float:
    """1.05, or what independent draws exceed in one of a hundred fits, if that is more.

    Short chains differ by chance: with m halves of n draws, n (R-hat² - 1) + 1 is the F
    ratio of a one-way analysis of variance. The level is shared among all that is compared.
    """
    half = num_draws // 2
    if num_compared == 0 or half < 2:
        return RHAT_LIMIT
    from scipy.special import fdtri

    groups = 2 * num_chains
    ratio = fdtri(groups - 1, groups * (half - 1), 1 - 0.01 / num_compared)
    return max(RHAT_LIMIT, float(np.sqrt(1 + (ratio - 1) / half)))


def _rhat(values: Float[np.ndarray, "chain draw k"]) -> Float[np.ndarray, " k"]:
    """Split R-hat; infinite where all halves stand still on different values."""
    from arviz_stats.base.array import array_stats

    if values.shape[2] == 0:
        return np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(array_stats.rhat(values, chain_axis=0, draw_axis=1, method="split"))


def _offender(quantity: Quantity) -> str:
    if quantity.state == FROZEN:
        return f"{quantity.name} (frozen on different values)"
    return f"{quantity.name} (R-hat {quantity.rhat:.2f})"


def _badness(quantity: Quantity) -> tuple[float, float]:
    """Largest R-hat first, then smallest effective size; what has neither comes last."""
    return -np.nan_to_num(quantity.rhat, posinf=np.inf), np.nan_to_num(quantity.ess, nan=np.inf)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
