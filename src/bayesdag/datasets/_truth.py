"""A structural causal model whose functions are known: the truth of simulated data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int8

from bayesdag.data import Scaling
from bayesdag.graphs import topological_order

Function = Callable[[np.ndarray], np.ndarray]  # parents' columns (n, k) -> means (n,)
Draws = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]  # mean 0, variance 1


@dataclass(frozen=True, eq=False)
class Truth:
    """x_j = f_j(parents of j) + s_j(parents of j) noise_j, sampled sources first.

    Attributes:
        graph: `graph[i, j] = 1` means i -> j.
        functions: f_j of the parents' columns in ascending order, one per variable.
        noise: independent draws of mean 0 and variance 1.
        noise_scale: standard deviation of each variable's noise, before s_j.
        scales: s_j of the parents' columns, one per variable; None: 1.
        inner: applied to each variable as it arises, so its children see the scaled values
            (an internally standardised model); None changes nothing.
        outer: applied to finished rows, so the functions see the unscaled values; None
            changes nothing.
    """

    graph: Int8[np.ndarray, "d d"]
    functions: tuple[Function, ...]
    noise: Draws
    noise_scale: Float[np.ndarray, " d"]
    scales: tuple[Function, ...] | None = None
    inner: Scaling | None = None
    outer: Scaling | None = None

    def sample(
        self,
        rng: np.random.Generator,
        num_rows: int,
        do: Mapping[int, float | int | np.ndarray] | None = None,
    ) -> Float[np.ndarray, "n d"]:
        """Rows of the model in which every variable named in `do` is set to its value(s).

        The noise does not depend on `do`: with equal generators, row r of two samples is the
        same individual under two treatments.
        """
        inner, outer = self.inner or _unit(self.graph), self.outer or _unit(self.graph)
        noise = self.noise(rng, (num_rows, len(self.graph))) * self.noise_scale
        x = np.empty(noise.shape, order="F")
        for j in topological_order(self.graph).tolist():
            if do and j in do:
                x[:, j] = do[j] * outer.scale[j] + outer.shift[j]
            else:
                x[:, j] = (self._raw(j, x, noise) - inner.shift[j]) / inner.scale[j]
        rows = outer.apply(x)
        for j, value in (do or {}).items():
            rows[:, j] = value  # exactly, not up to a rounding there and back
        return np.ascontiguousarray(rows)

    def standardised_inside(self, rng: np.random.Generator, num_rows: int) -> "Truth":
        """The model with every variable brought to mean 0, variance 1 before it acts.

        Ormaniec et al., "Standardizing structural causal models" (2025). The constants come
        from a sample of `num_rows` and are then part of the model, so training rows, test
        rows and interventions all obey the same equations.
        """
        noise = self.noise(rng, (num_rows, len(self.graph))) * self.noise_scale
        shift, scale = np.zeros(len(self.graph)), np.ones(len(self.graph))
        x = np.empty(noise.shape, order="F")
        for j in topological_order(self.graph).tolist():
            raw = self._raw(j, x, noise)
            shift[j], scale[j] = raw.mean(), raw.std()
            x[:, j] = (raw - shift[j]) / scale[j]
        return replace(self, inner=Scaling(shift, scale))

    def _raw(self, j: int, x: np.ndarray, noise: np.ndarray) -> np.ndarray:
        parents = x[:, np.flatnonzero(self.graph[:, j])]
        scale = 1.0 if self.scales is None else self.scales[j](parents)
        return self.functions[j](parents) + scale * noise[:, j]


def _unit(graph: np.ndarray) -> Scaling:
    return Scaling(np.zeros(len(graph)), np.ones(len(graph)))
