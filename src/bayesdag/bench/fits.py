"""A method on data sets with a known truth: fitted, judged and timed."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from bayesdag import fitting, plugins
from bayesdag.bench import usage
from bayesdag.bench.effects import judge_effects
from bayesdag.bench.judging import against_exact, against_truth, by_draw, stages
from bayesdag.bench.monitors import RunClock, StartAt, Watch
from bayesdag.bench.suite import BASELINES, Measures, Trial
from bayesdag.data import Dataset, read
from bayesdag.datasets import Benchmark
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.posterior import Posterior
from bayesdag.runs import compilation_cache
from bayesdag.sgmcmc.engine import Engine
from bayesdag.types import Method, Monitor

# Plug-ins that gain by an accelerator: neural networks, what trains them, particles of graphs.
ACCELERATED = (
    *("scores/neural", "mechanisms/neural", "mechanisms/mlp"),
    *("methods/bcd", "methods/dibs"),
)


@dataclass(frozen=True)
class FitRunner:
    """Fits a method and measures what it found, how long it took and how much memory.

    Attributes:
        method: a method, or the name of one.
        references: exact methods, by name: distances of the edge probabilities to theirs.
        from_truth: chains start at the true graph (methods that move chains).
        by_epoch: also what the chains held at every draw, by epoch.
        with_environment: the method is told where each row comes from, if the data set says it.
        score_truth: also the score of the true graph, which a learned score trains anew.
        num_effects: also so many effects of interventions, beside the true ones.
    """

    method: str | Method
    references: Mapping[str, Method] = field(default_factory=dict)
    from_truth: bool = False
    by_epoch: bool = False
    with_environment: bool = False
    score_truth: bool = True
    num_effects: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.method, str):
            plugins.load("methods", self.method)  # refuses a name that no method has

    @property
    def together(self) -> bool:
        """Data sets of one shape are fitted in one compiled run where the method can."""
        return hasattr(self.built(), "fit_many")

    @property
    def accelerated(self) -> bool:
        """Whether the method trains networks, or moves many graphs at once."""
        said = str(plugins.configuration(self.built()))
        return any(f"'{name}'" in said for name in ACCELERATED)

    def built(self) -> Method:
        """The method object."""
        return fitting.build_method(self.method)

    def lacking(self) -> str | None:
        """Nothing: the package runs everywhere."""
        return None

    def measure(self, trials: list[Trial]) -> list[Measures]:
        """Quality and time on every data set."""
        sources = [trial.dataset(trial.seed) for trial in trials]
        clock = RunClock()
        wall, cpu = time.perf_counter(), usage.cpu_seconds()
        found = self._posteriors(trials, sources, clock)
        spent = {
            "seconds": (time.perf_counter() - wall) / len(trials),
            "cpu": (usage.cpu_seconds() - cpu) / len(trials),
            "memory_gb": peak_memory() / 1e9,
            **clock.measures(),
        }
        return [self._judged(p, s) | spent for p, s in zip(found, sources, strict=True)]

    def _posteriors(
        self, trials: list[Trial], sources: list[Benchmark], clock: RunClock
    ) -> list[Posterior]:
        """Data sets that differ in shape or need care, and methods that take one, one by one."""
        shapes = {source.train.values.shape for source in sources}
        if self.together and len(shapes) == 1 and all(map(self._takes_as_it_is, sources)):
            return self._fit_many(trials, sources, clock)
        found = []
        for trial, source in zip(trials, sources, strict=True):
            # What the rows say is measured, not what names of columns would.
            given: Measures = {
                "monitor": self._watch([source], clock),
                "progress": False,
                "assumed_roots": False,
            }
            if self.with_environment and source.environment is not None:
                given["environment"] = source.environment
            found.append(fitting.fit(source.train, self.method, seed=trial.seed, **given))
        return found

    def _takes_as_it_is(self, source: Benchmark) -> bool:
        """Whether there are no gaps, levels or computed columns, which `fit` alone attends to."""
        method = self.built()
        chosen, data = fitting.suited(method, source.train)
        return chosen is method and data is source.train and not data.dependences

    def _fit_many(
        self, trials: list[Trial], sources: list[Benchmark], clock: RunClock
    ) -> list[Posterior]:
        method = self.built()
        if not isinstance(method, Engine):
            raise InputError(f"{type(method).__name__} fits one data set at a time")
        compilation_cache.enable()
        datasets = [self._as_given(source) for source in sources]
        keys = jnp.stack([jax.random.key(trial.seed) for trial in trials])
        free = Constraints.free(datasets[0].names, datasets[0].contexts)
        return method.given(free).fit_many(keys, datasets, free, self._watch(sources, clock))

    def _as_given(self, source: Benchmark) -> Dataset:
        """The rows, and where they come from if the method is to know it."""
        if not self.with_environment or source.environment is None:
            return source.train
        return read(source.train, environment=source.environment)

    def _watch(self, sources: list[Benchmark], clock: RunClock) -> Monitor | None:
        if not self.together:
            return None
        start = StartAt([source.graph for source in sources]) if self.from_truth else None
        return Watch(clock, start)

    def _judged(self, posterior: Posterior, source: Benchmark) -> Measures:
        measures = against_truth(posterior, source)
        if self.score_truth:
            measures |= stages(self.built(), posterior, source)
        measures["dataset"] = source.provenance.get("dataset")
        for name, method in self.references.items():
            measures |= against_exact(name, method, posterior, source)
        if self.num_effects:
            measures |= judge_effects(posterior, source, self.num_effects)
        if self.by_epoch:
            engine = self.built()
            assert isinstance(engine, Engine), "only the paper's engines count epochs"
            epoch = -(-source.train.num_rows // engine.batch_size)
            measures["series"] = by_draw(posterior, source, engine, epoch)
        return measures


def with_baselines(
    methods: Mapping[str, str | Method],
    references: Mapping[str, Method] | None = None,
    from_truth: bool = False,
    **options: Any,
) -> dict[str, FitRunner]:
    """A `FitRunner` of every method, and of every baseline that a result must beat.

    `options` are fields of all of them.
    """
    known = references or {}
    fits = {name: FitRunner(m, known, from_truth, **options) for name, m in methods.items()}
    return fits | {name: FitRunner(name, known, **options) for name in BASELINES}


def peak_memory() -> float:
    """Most bytes that the accelerator, or else this process and its children, have held."""
    stats = jax.devices()[0].memory_stats() or {}
    return float(stats.get("peak_bytes_in_use", 0)) or usage.most_bytes()
