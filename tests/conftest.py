"""Strict by default: shapes are checked, promotions are errors, keys come from test names."""

import functools
import gc
import os
import zlib
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# What one worker has compiled serves the others, commands in processes of their own, and
# the next run: a fit of seconds is mostly compilation.
_CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
# Small programs, too: reading one takes a third of the time to compile it.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# One worker per core: threads that wait for work spin, and take the cores from one another.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("BAYESDAG_WORKERS", "1")
# Programs of tests are small and run few times: optimising them takes longer than running them,
# and XLA's newer emitters take twice the time of the older ones to compile a program.
_QUICKLY = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
# Programs that are meant for accelerators solve several systems side by side, and on a CPU two
# solutions that share its threads can block one another for ever.
_IN_TURN = "--xla_cpu_enable_concurrency_optimized_scheduler=false"
os.environ["XLA_FLAGS"] = f"{_QUICKLY} {_IN_TURN} {os.environ.get('XLA_FLAGS', '')}".strip()

import jax  # noqa: E402 (the platform and the cache are chosen first)
import pytest  # noqa: E402

from tests import shape_checks  # noqa: E402

try:  # A bare GPU image has no beartype; the tests still run there, without shape checks.
    import beartype  # noqa: F401
except ImportError:
    pass
else:
    shape_checks.install("bayesdag")

try:
    from hypothesis import settings
except ImportError:
    pass
else:  # Compilation makes deadlines meaningless; the same commit meets the same examples.
    settings.register_profile("bayesdag", deadline=None, derandomize=True, max_examples=30)
    settings.load_profile("bayesdag")

import typer.main  # noqa: E402

from tests import scheduling  # noqa: E402

# The command is the same whenever it is called: its options are looked up once.
typer.main.get_command = functools.cache(typer.main.get_command)

# Tracing makes many objects and little garbage, and JAX adds to the cost of every collection.
gc.set_threshold(50_000, 20, 50)

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker runs all tests of a group, and so shares their fits."""
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scheduling.group(nodeid)

    config.option.loadscopereorder = False  # the order is that of the collection
    return GroupScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first."""
    items.sort(key=lambda item: scheduling.rank(item.nodeid))


def pytest_runtest_setup() -> None:
    """Shapes are checked where a test first calls a function."""
    shape_checks.begin_test()


def _seed(name: str) -> int:
    return zlib.crc32(name.encode()) % 2**31


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A fixed number that differs between tests: never the date."""
    return _seed(request.node.name)


@pytest.fixture
def key(seed: int) -> jax.Array:
    """A random key of the test's own."""
    return jax.random.key(seed)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder with the published data sets, or a skip that says how to name it."""
    folder = os.environ.get("BAYESDAG_DATA") or Path(__file__).parents[2] / "shared" / "data"
    if not Path(folder).is_dir():
        pytest.skip("no data folder: set BAYESDAG_DATA to one with sachs.zip and syntren_p20.zip")
    return Path(folder)


@pytest.fixture
def measured_folder(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with measured data sets that are not published, or a skip that names them."""
    folder = data_folder / "measured"
    if not folder.is_dir():
        pytest.skip("no measured data: put sachs_full.npz and chamber_light.npz into measured/")
    monkeypatch.setenv("BAYESDAG_DATA", str(data_folder))
    return folder


@pytest.fixture(scope="session")
def anchors_folder() -> Path:
    """Folder with results of the published code, or a skip that says what is missing."""
    folder = Path(__file__).parents[2] / "shared" / "anchors"
    if not folder.is_dir():
        pytest.skip("no folder shared/anchors beside the repository: published results are absent")
    return folder
