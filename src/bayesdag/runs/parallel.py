"""Independent tasks of a run: one after the other, or on the workers of a cluster.

One seam for all that can be computed apart. Whoever starts a run says where, by `using`; what has
independent tasks (bags, averaged models, families, cells of a benchmark) asks `current()` and
calls `map`. The engines behind it are joblib's: Dask, Ray, Spark, or processes of this machine. A
worker that is lost costs the task it was at, which its engine gives to another one.

A task is a function of a module, called with arguments that can be pickled; it must not depend on
where or when it runs. Inside a task, `current()` is this process: tasks are not divided further.
"""

import contextvars
import os
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from bayesdag.errors import InputError

_INSTALL = "pip install 'bayesdag[cluster]'"
_DEFAULT_PORT = ":8786"  # of a Dask scheduler

Result = TypeVar("Result")


@dataclass(frozen=True)
class Workers:
    """Where independent tasks are computed; by default in this process, one after the other.

    Attributes:
        engine: "dask", "ray", "spark" or "loky" (processes of this machine); empty: this process.
        num: tasks that are computed at once.
        options: of joblib's backend.
    """

    engine: str = ""
    num: int = 1
    options: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def elsewhere(self) -> bool:
        """Whether tasks leave this process."""
        return bool(self.engine)

    def map(
        self, function: Callable[..., Result], tasks: Iterable[tuple[object, ...]]
    ) -> list[Result]:
        """What `function` returns for the arguments of each task, in their order."""
        if not self.elsewhere:
            return [function(*arguments) for arguments in tasks]
        import joblib

        # Backends are chosen per thread; with one job at a time joblib would not leave the process.
        with joblib.parallel_config(backend=self.engine, **self.options):
            one_by_one: Any = 1
            run = joblib.Parallel(n_jobs=max(self.num, 2), batch_size=one_by_one)
            found: Any = run(joblib.delayed(function)(*arguments) for arguments in tasks)
            return list(found)

    def call(self, function: Callable[..., Result], *arguments: object) -> Result:
        """What `function` returns; several threads may call at once."""
        return self.map(function, [arguments])[0]

    def map_each(
        self,
        function: Callable[..., Result],
        tasks: Sequence[tuple[object, ...]],
        done: Callable[[int, Result], None],
    ) -> list[Result]:
        """As `map`; `done` is called here with number and result of each task as soon as it ends.

        What others have computed is handed over before the error of one that failed is raised.
        """
        # An error is brought back as a result: joblib would end the tasks of other threads with it.
        with ThreadPoolExecutor(min(self.num, len(tasks)) or 1) as pool:
            number_of = {
                pool.submit(self.call, _attempt, function, arguments): number
                for number, arguments in enumerate(tasks)
            }
            for ended in as_completed(number_of):
                if ended.exception() is None and ended.result().error is None:
                    done(number_of[ended], ended.result().value)
        return [_value(ended.result()) for ended in number_of]


class Attempt(NamedTuple):
    """What a task has returned, or the error it ended with."""

    value: Any = None
    error: Exception | None = None


def _attempt(function: Callable[..., object], arguments: tuple[object, ...]) -> Attempt:
    try:
        return Attempt(value=function(*arguments))
    except Exception as error:
        return Attempt(error=error)


def _value(attempt: Attempt) -> Any:
    if attempt.error is not None:
        raise attempt.error
    return attempt.value


_current: contextvars.ContextVar[Workers | None] = contextvars.ContextVar("workers", default=None)


def current() -> Workers:
    """Where the independent tasks of this run are computed."""
    return _current.get() or Workers()


@contextmanager
def using(address: str | None) -> Iterator[Workers]:
    """Connect to the workers of an address, and use them for every run inside.

    Args:
        address: "dask://HOST:PORT" of a scheduler, "ray://HOST:PORT" or "ray://auto",
            "spark://HOST:PORT" or "spark://local[4]" of a master, "loky://4" for as many processes
            here; None: this process.
    """
    if address is None:
        yield current()
        return
    engine, _, place = address.partition("://")
    if engine not in _CONNECTIONS:
        raise InputError(
            f"no cluster is called {address!r}; there are: dask://HOST:PORT, ray://HOST:PORT, "
            "spark://HOST:PORT, loky://NUMBER"
        )
    with _CONNECTIONS[engine](place) as workers:
        token = _current.set(workers)
        try:
            yield workers
        finally:
            _current.reset(token)


@contextmanager
def _dask(place: str) -> Iterator[Workers]:
    client_class = _needed("distributed:Client", _INSTALL)
    _needed("joblib:Parallel", _INSTALL)
    where = f"tcp://{place if ':' in place else place + _DEFAULT_PORT}"
    try:
        client = client_class(where, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {where} ({error or 'time out'}); start one with "
            "`dask scheduler`, and workers with `dask worker ADDRESS`"
        ) from error
    with client:
        num = sum(client.nthreads().values())
        if not num:
            raise InputError(f"the Dask scheduler at {where} has no workers; start some first")
        yield Workers("dask", num, {"client": client})


@contextmanager
def _ray(place: str) -> Iterator[Workers]:
    install = "pip install 'ray[default]' joblib"
    _needed("ray.util.joblib:register_ray", install)()
    address = place if place == "auto" else f"ray://{place}"
    _needed("ray:init", install)(address=address, ignore_reinit_error=True)
    yield Workers("ray", int(_needed("ray:cluster_resources", install)()["CPU"]))


@contextmanager
def _spark(place: str) -> Iterator[Workers]:
    install = "pip install pyspark joblibspark"
    _needed("joblibspark:register_spark", install)()
    master = place if place.startswith("local") else f"spark://{place}"
    builder = _needed("pyspark.sql:SparkSession", install).builder
    session = builder.master(master).appName("bayesdag").getOrCreate()
    yield Workers("spark", session.sparkContext.defaultParallelism)


@contextmanager
def _loky(place: str) -> Iterator[Workers]:
    _needed("joblib:Parallel", _INSTALL)
    if place and not place.isdigit():
        raise InputError(f"loky://{place}: say how many processes, as in loky://4")
    yield Workers("loky", int(place) if place else os.cpu_count() or 1)


def _needed(name: str, install: str) -> Any:
    try:
        return pkgutil.resolve_name(name)
    except ImportError as error:
        package = name.partition(":")[0].partition(".")[0]
        raise InputError(f"a cluster needs the package {package}; run {install}") from error


_CONNECTIONS = {"dask": _dask, "ray": _ray, "spark": _spark, "loky": _loky}
