"""Browsers and pages for the tests here; `make test-browser` runs them, others skip them."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesdag
from bayesdag.errors import BayesdagError
from bayesdag.fitting import fit
from bayesdag.posterior import Posterior, load
from bayesdag.report import write
from tests.browser.driver import Browser, what_is_missing

# Names that a careless page would take for markup.
HOSTILE = (
    "<script>alert(1)</script>",
    "a\"b'c",
    "glucose [mg/dl]",
    "</script><b>x",
    "&amp; {{ 7 * 7 }}",
    "é\u202egnp",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    wanted = os.environ.get("BAYESDAG_BROWSER")
    for item in items:
        if "tests/browser/" in item.nodeid and not wanted:
            item.add_marker(pytest.mark.skip(reason="in a real browser: make test-browser"))


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Folder for screenshots to look at."""
    folder = Path(os.environ.get("BAYESDAG_PICTURES") or "build/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def hundred(request) -> tuple[Posterior, pd.DataFrame]:
    """A posterior of 100 variables, fitted once and kept for the next run, and its rows."""
    frame = wide_table(100, 300)
    kept = request.config.cache.mkdir("posteriors") / f"hundred-{bayesdag.__version__}.nc"
    try:
        return load(kept), frame
    except (BayesdagError, OSError):
        posterior = fit(frame, "collapsed", preset="quick", progress=False)
        posterior.save(kept)
        return posterior, frame


def wide_table(d: int, num_rows: int) -> pd.DataFrame:
    """Linear Gaussian rows from a random DAG with about two parents per node."""
    rng = np.random.default_rng(3)
    order, weights = rng.permutation(d), np.zeros((d, d))
    for place, node in enumerate(order):
        for cause in order[:place][rng.random(place) < 4 / (d - 1)]:
            weights[cause, node] = rng.choice([-1, 1]) * rng.uniform(0.4, 1.2)
    noise = rng.normal(size=(num_rows, d)) * rng.uniform(0.5, 1.5, d)
    values = noise @ np.linalg.inv(np.eye(d) - weights)
    return pd.DataFrame(
        values * rng.uniform(0.1, 20, d), columns=[f"gene{i:03d}" for i in range(d)]
    )


@pytest.fixture(scope="session")
def large_page(hundred, tmp_path_factory) -> Path:
    page = tmp_path_factory.mktemp("pages") / "hundred.html"
    posterior, frame = hundred
    write(posterior, page, data=frame, title="A hundred genes")
    return page


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(150, 6)) @ (np.eye(6) + np.triu(np.ones((6, 6)), 1) * 0.6)
    frame = pd.DataFrame(values, columns=list(HOSTILE))
    page = tmp_path_factory.mktemp("pages") / "hostile.html"
    posterior = fit(frame, "exact", num_samples=200, progress=False)
    write(posterior, page, data=frame, title="<img src=x onerror=alert(2)>")
    return page


@pytest.fixture(scope="session")
def browser():
    """A desktop window; without a browser the tests fail and say what to install."""
    missing = what_is_missing()
    assert not missing, missing
    window = Browser()
    yield window
    window.close()


@pytest.fixture
def large(browser, large_page) -> Browser:
    browser.open(large_page)
    return browser
