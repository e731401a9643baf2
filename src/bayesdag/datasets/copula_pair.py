"""Two exchangeable variables: nothing in their rows says which is the cause.

A Gaussian copula with the same marginal on both sides is the same distribution with the columns
swapped. A model whose evidence differs between the two directions has learnt that from its own
assumptions; whoever is sure of a direction here is wrong to be.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._streams import stream
from bayesdag.errors import InputError

CORRELATIONS = (0.3, 0.9)
MARGINALS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gaussian": lambda z: z,
    "lognormal": np.exp,
    "cubed": lambda z: z**3,
}


@dataclass(frozen=True)
class CopulaPair:
    """Rows of two variables under a Gaussian copula, either one as good a cause as the other.

    Both directions are `unknown`, so that neither is scored; `graph` holds one of them.

    Attributes:
        marginal: of both variables: "gaussian", "lognormal" or "cubed" (of a Gaussian).
        correlation: of the Gaussian variables behind; None draws it from U(0.3, 0.9) by the seed.
        num_train: rows.
    """

    description: ClassVar[str] = "two exchangeable variables: no direction is right"

    marginal: str = "gaussian"
    correlation: float | None = None
    num_train: int = 500

    def __post_init__(self) -> None:
        if self.marginal not in MARGINALS:
            raise InputError(
                f"no marginal is called {self.marginal!r}; there are: {', '.join(MARGINALS)}"
            )
        if self.correlation is not None and not -1 < self.correlation < 1:
            raise InputError(f"correlation is {self.correlation}; it must be between -1 and 1")
        if self.num_train < 2:
            raise InputError(f"num_train is {self.num_train}; it must be 2 or more")

    @property
    def size(self) -> tuple[int, int]:
        """Variables and training rows."""
        return 2, self.num_train

    def __call__(self, seed: int = 0) -> Benchmark:
        """The data set of this seed; marginals of one seed share their Gaussian variables."""
        rng = stream(seed, "copula_pair")
        drawn = rng.uniform(*CORRELATIONS)
        rho = drawn if self.correlation is None else self.correlation
        z = rng.standard_normal((self.num_train, 2))
        z[:, 1] = rho * z[:, 0] + np.sqrt(1 - rho**2) * z[:, 1]
        return Benchmark(
            train=Dataset(MARGINALS[self.marginal](z), ("v0", "v1")),
            graph=np.array([[0, 1], [0, 0]], dtype=np.int8),
            unknown=~np.eye(2, dtype=bool),
            description=self.description,
            provenance={
                "dataset": plugins.configuration(self),
                "seed": seed,
                "notes": {"correlation": float(rho)},
            },
        )


build = CopulaPair
