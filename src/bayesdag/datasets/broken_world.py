"""Data sets with a known graph that break an assumption of the usual models.

What a method calls 95 % sure should be right that often here, too. Half of the families are
for development, the other half for figures only (`_worlds.DEVELOPMENT`, `_worlds.FIGURES`).
"""

from dataclasses import dataclass
from typing import ClassVar

from bayesdag import plugins
from bayesdag.data import Dataset
from bayesdag.datasets import _graphs
from bayesdag.datasets._benchmark import Benchmark
from bayesdag.datasets._streams import stream
from bayesdag.datasets._worlds import WORLDS
from bayesdag.errors import InputError


@dataclass(frozen=True)
class BrokenWorld:
    """Rows of a random graph that violate one named assumption.

    Attributes:
        world: which assumption is broken: "post_nonlinear", "multiplicative", "rounded",
            "hidden_cause", "mixture", "deterministic", "heteroscedastic", "saturated",
            "measurement_error", "autocorrelated", "discrete", "feedback" or "selection";
            "additive" breaks none.
        num_variables: number of columns.
        edges_per_node: an Erdős–Rényi graph has exactly this times `num_variables` edges.
        num_train: rows.
    """

    description: ClassVar[str] = "a known graph whose rows break an assumption"

    world: str = "multiplicative"
    num_variables: int = 10
    edges_per_node: int = 1
    num_train: int = 1000

    def __post_init__(self) -> None:
        if self.world not in WORLDS:
            raise InputError(f"no world is called {self.world!r}; there are: {', '.join(WORLDS)}")
        if self.num_train < 2:
            raise InputError(f"num_train is {self.num_train}; it must be 2 or more")
        _graphs.check_num_edges(self.num_variables, self.edges_per_node)

    @property
    def size(self) -> tuple[int, int]:
        """Variables and training rows."""
        return self.num_variables, self.num_train

    def __call__(self, seed: int = 0) -> Benchmark:
        """The data set of this seed; other seeds give independent ones."""
        labels = (self.world, self.num_variables, self.edges_per_node)
        graph = _graphs.erdos_renyi(
            stream(seed, *labels, "graph"), self.num_variables, self.edges_per_node, False
        )
        rows = WORLDS[self.world](stream(seed, *labels, "rows"), graph, self.num_train)
        return Benchmark(
            train=Dataset(rows.values, tuple(f"v{j}" for j in range(rows.values.shape[1]))),
            graph=rows.graph,
            unknown=rows.unknown,
            environment=rows.environment,
            description=self.description,
            provenance={
                "dataset": plugins.configuration(self),
                "seed": seed,
                "notes": rows.notes,
            },
        )


build = BrokenWorld
