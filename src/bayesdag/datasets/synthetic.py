"""Random structural causal models: the paper's generator, written anew, and its relatives.

Appendix "Synthetic Data" of the paper: Erdős–Rényi or scale-free graphs, linear functions or
small random networks, Gaussian noise of a different variance in each variable. Raw columns
betray the causal order by their variance; `scaling` takes that away.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bayesdag import plugins
from bayesdag.data import Dataset, Scaling
from bayesdag.datasets import _graphs, _mechanisms, _noises
from bayesdag.datasets._benchmark import Benchmark, Interventional, set_rows
from bayesdag.datasets._streams import stream
from bayesdag.datasets._truth import Truth
from bayesdag.errors import InputError

SCALINGS = ("raw", "standardised", "internal")
NUM_POPULATION = 10_000  # rows behind the constants of an internally standardised model
REACH = 3.0  # interventions reach this many standard deviations to both sides of the mean
# What a noise is called in the seeds: its first name, so that a seed keeps its rows.
_LABELS = {_noises.HETEROSCEDASTIC: "uneven"}
LEAST = {
    "num_variables": 2,
    "num_train": 2,
    "num_test": 0,
    "num_interventions": 0,
    "num_interventional": 1,
}


@dataclass(frozen=True)
class Synthetic:
    """A random model and rows of it; the defaults are the paper's nonlinear setting.

    Two data sets that differ only in `scaling` or in numbers of rows come from the same
    model and, as far as they go, the same individuals; any other difference makes another
    model. Units: `raw` as generated; `standardised` afterwards, by the training rows;
    `internal` while generating, so that no variance accumulates along the causal order.

    Attributes:
        num_variables: number of columns d.
        graph: "er" (all pairs alike) or "sf" (scale-free, hubs are sinks).
        edges_per_node: e; "er" has e d edges, "sf" e d - e (e + 1) / 2.
        expected: e d edges in expectation instead of an exact number.
        mechanism: "mlp", "linear", "signed_linear", "gp", "sigmoid", "additive", or
            "products_of_two" and "products_of_three": interactions alone, which grow fast along
            the order unless the scaling is "internal".
        noise: "gaussian", "laplace", "student_t", "uniform", "exponential", or
            "heteroscedastic": Gaussian with a scale that depends on the parents.
        noise_variance: of every variable; None draws one each from InvGamma(1.5, 1).
        scaling: "raw", "standardised" or "internal".
        num_train: rows to learn from.
        num_test: rows to be judged on; 0 for none.
        num_interventions: variables that are set, one interventional set each; taken from
            those with children, again and again if there are too few.
        num_interventional: rows of each interventional set.
    """

    description: ClassVar[str] = "random graph, random functions (the paper's generator)"

    num_variables: int = 10
    graph: str = "er"
    edges_per_node: int = 2
    expected: bool = False
    mechanism: str = "mlp"
    noise: str = "gaussian"
    noise_variance: float | None = None
    scaling: str = "raw"
    num_train: int = 5000
    num_test: int = 1000
    num_interventions: int = 0
    num_interventional: int = 1000

    def __post_init__(self) -> None:
        _check_name("graph", self.graph, _graphs.KINDS)
        _check_name("mechanism", self.mechanism, _mechanisms.FAMILIES)
        _check_name("noise", self.noise, _noises.NOISES)
        _check_name("scaling", self.scaling, SCALINGS)
        for field, least in LEAST.items():
            if getattr(self, field) < least:
                raise InputError(f"{field} is {getattr(self, field)}; it must be {least} or more")
        _graphs.check_num_edges(self.num_variables, self.edges_per_node)
        if self.noise_variance is not None and not self.noise_variance > 0:
            raise InputError(f"noise_variance is {self.noise_variance}; it must be above 0")

    @property
    def size(self) -> tuple[int, int]:
        """Variables and training rows."""
        return self.num_variables, self.num_train

    def __call__(self, seed: int = 0) -> Benchmark:
        """The data set of this seed; other seeds give independent ones."""
        truth = self._truth(seed)
        values = truth.sample(self._stream(seed, "train"), self.num_train)
        if self.scaling == "standardised":
            truth = replace(truth, outer=Scaling.of(values))
            values = Scaling.of(values).apply(values)
        train = Dataset(values, tuple(f"v{j}" for j in range(self.num_variables)))
        test = None
        if self.num_test:
            test = set_rows(truth, self._stream(seed, "test"), self.num_test, {}, train)
        return Benchmark(
            train=train,
            graph=truth.graph,
            test=test,
            interventional=self._interventional(seed, truth, train),
            truth=truth,
            description=self.description,
            provenance={"dataset": plugins.configuration(self), "seed": seed},
        )

    def _truth(self, seed: int) -> Truth:
        draw_graph = _graphs.KINDS[self.graph]
        draw_function = _mechanisms.FAMILIES[self.mechanism]
        graph = draw_graph(
            self._stream(seed, "graph"), self.num_variables, self.edges_per_node, self.expected
        )
        rng = self._stream(seed, "functions")
        num_parents = graph.sum(axis=0).tolist()
        functions = (draw_function(rng, k) if k else _mechanisms.zero for k in num_parents)
        functions, scales = tuple(functions), None
        if self.noise == _noises.HETEROSCEDASTIC:
            scales = tuple(_noises.scale(rng, k) for k in num_parents)
        truth = Truth(
            graph=graph,
            functions=functions,
            noise=_noises.NOISES[self.noise],
            noise_scale=np.sqrt(self._noise_variances(seed)),
            scales=scales,
        )
        if self.scaling == "internal":
            return truth.standardised_inside(self._stream(seed, "population"), NUM_POPULATION)
        return truth

    def _noise_variances(self, seed: int) -> np.ndarray:
        if self.noise_variance is not None:
            return np.full(self.num_variables, self.noise_variance, dtype=float)
        # 1 / Gamma(shape 1.5, rate 1) is InvGamma(1.5, 1).
        return 1 / self._stream(seed, "noise").gamma(1.5, size=self.num_variables)

    def _interventional(
        self, seed: int, truth: Truth, train: Dataset
    ) -> tuple[Interventional, ...]:
        """One set for each target, its values spread evenly over a wide range."""
        rng = self._stream(seed, "interventions")
        causes = np.flatnonzero(truth.graph.any(axis=1))
        candidates = rng.permutation(causes if len(causes) else self.num_variables)
        centre, reach = train.values.mean(axis=0), REACH * train.values.std(axis=0)
        sets = []
        for target in np.resize(candidates, self.num_interventions).tolist():
            low, high = centre[target] - reach[target], centre[target] + reach[target]
            do = {target: rng.uniform(low, high, self.num_interventional)}
            data = set_rows(truth, rng, self.num_interventional, do, train)
            sets.append(Interventional(target, data))
        return tuple(sets)

    def _stream(self, seed: int, part: str) -> np.random.Generator:
        """Random numbers of one part; units and numbers of rows do not change them."""
        graph = (self.graph, self.num_variables, self.edges_per_node, self.expected)
        noise = _LABELS.get(self.noise, self.noise)
        return stream(seed, *graph, self.mechanism, noise, self.noise_variance, part)


def _check_name(field: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise InputError(f"no {field} is called {name!r}; there are: {', '.join(known)}")


build = Synthetic
