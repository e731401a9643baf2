"""The posterior of BCD Nets' own model for a handful of variables, to compare `bcd` with.

Under that model every variable is a regression on all that come before it, with horseshoe weights:
an order has a prior, a graph has none, and an edge is a weight above a threshold.
"""

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesdag.baselines.bcd import NOISE_RATE, NOISE_SHAPE, log_horseshoe
from bayesdag.baselines.likelihood import with_intercept
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.posterior import Posterior, from_draws
from bayesdag.random import generator
from bayesdag.scores._sufficient_statistics import RowMoments, rows_of
from bayesdag.types import ExactDependence, Key, Monitor

MOST_VARIABLES = 6  # all of whose orders are gone through


class HorseshoeRegression(NamedTuple):
    """One variable given those before it.

    Attributes:
        log_evidence: weights and noise integrated out.
        weights: points of the posterior.
        log_scale: of the noise, at these points.
        probability: of each point.
    """

    log_evidence: float
    weights: Float[np.ndarray, "m p"]
    log_scale: Float[np.ndarray, " m"]
    probability: Float[np.ndarray, " m"]


@dataclass(frozen=True)
class HorseshoeOrders:
    """All orders summed, every regression by importance sampling; draws are independent.

    Points of a regression are drawn under flat weights, where everything is known in closed form,
    and count by the horseshoe density: with hundreds of rows nearly all of them do.

    Attributes:
        horseshoe_scale: τ, as in `bcd`.
        threshold: absolute weight below which there is no edge.
        num_samples: independent draws.
        num_points: of each regression.
    """

    supported_constraints = frozenset[str]()
    supports_interventions = True
    exact_dependence = ExactDependence.REFUSED

    horseshoe_scale: float = 0.1
    threshold: float = 0.3
    num_samples: int = 4000
    num_points: int = 20_000

    def min_rows(self, d: int) -> int:
        """More rows than weights: flat ones have a posterior then."""
        return d + 1

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """Independent draws of orders, weights and noise."""
        del knowledge, monitor
        d, rng = data.num_variables, generator(key)
        if d > MOST_VARIABLES:
            raise InputError(f"{d} variables have too many orders; {MOST_VARIABLES} is the most")
        orders = list(permutations(range(d)))
        found = self._regressions(rng, rows_of(data.scaled, data.observed))
        log_evidence = np.array(
            [sum(found[j, _before(o, j)].log_evidence for j in o) for o in orders]
        )
        chance = np.exp(log_evidence - np.logaddexp.reduce(log_evidence))
        chosen = rng.choice(len(orders), self.num_samples, p=chance)
        weights, log_scale = np.zeros((self.num_samples, d, d)), np.zeros((self.num_samples, d))
        for (j, earlier), given in found.items():
            ours = np.flatnonzero([_before(orders[number], j) == earlier for number in chosen])
            points = rng.choice(self.num_points, len(ours), p=given.probability)
            weights[ours[:, None], list(earlier), j] = given.weights[points]
            log_scale[ours, j] = given.log_scale[points]
        graphs = (np.abs(weights) > self.threshold).astype(np.int8)
        params = {
            "mechanism": with_intercept(weights, graphs, data),
            "noise": {"log_scale": log_scale},
        }
        return from_draws(
            graphs[None],
            SCM(Linear(), Gaussian(), data.scaling),
            {part: {k: v[None] for k, v in leaves.items()} for part, leaves in params.items()},
            data,
            log_joint=log_evidence[chosen][None],
            provenance={
                "model": "linear functions, Gaussian noise (σ² inverse gamma)",
                "prior": f"orders uniform, weights horseshoe (τ = {self.horseshoe_scale:g})",
                "temperature": 1.0,
                "independent": True,
            },
        )

    def _regressions(
        self, rng: np.random.Generator, moments: RowMoments
    ) -> dict[tuple[int, tuple[int, ...]], HorseshoeRegression]:
        """Of every variable on every set of others."""
        d = len(moments.group)
        return {
            (node, earlier): self.regression(rng, moments, node, earlier)
            for node in range(d)
            for size in range(d)
            for earlier in combinations([i for i in range(d) if i != node], size)
        }

    def regression(
        self, rng: np.random.Generator, moments: RowMoments, node: int, earlier: tuple[int, ...]
    ) -> HorseshoeRegression:
        """Evidence and posterior of one variable given all those before it."""
        entry, given = moments.group[node], list(earlier)
        scatter, num_rows = moments.scatter[entry], int(moments.num_rows[entry])
        inner, outer = scatter[np.ix_(given, given)], scatter[given, node]
        best = np.linalg.solve(inner, outer)
        left = float(scatter[node, node] - outer @ best)
        shape = NOISE_SHAPE + (num_rows - len(given)) / 2
        rate = NOISE_RATE + left / 2
        flat = gammaln(shape) - gammaln(NOISE_SHAPE) + NOISE_SHAPE * np.log(NOISE_RATE)
        flat += -shape * np.log(rate) - 0.5 * np.linalg.slogdet(inner)[1]
        flat -= 0.5 * (num_rows - len(given)) * np.log(2 * np.pi)
        variance = rate / rng.gamma(shape, size=self.num_points)
        standard = rng.normal(size=(self.num_points, len(given)))
        spread = np.linalg.solve(np.linalg.cholesky(inner).T, standard.T).T
        weights = best + np.sqrt(variance)[:, None] * spread
        density = np.asarray(log_horseshoe(weights, self.horseshoe_scale), float).sum(axis=1)
        total = float(np.logaddexp.reduce(density))
        return HorseshoeRegression(
            float(flat) + total - np.log(self.num_points),
            weights,
            0.5 * np.log(variance),
            np.exp(density - total),
        )


def _before(order: tuple[int, ...], node: int) -> tuple[int, ...]:
    """Variables that an order has before this one, sorted."""
    return tuple(sorted(order[: order.index(node)]))
