"""Commands that print something do not wait for libraries that compute."""

import subprocess
import sys

import pytest

import bayesdag
from tests.interrupted import NEURAL
from tests.posterior import test_contexts
from tests.posteriors import random_linear
from tests.test_end_to_end import nonlinear_rows

HEAVY = {"jax", "pandas", "scipy.stats", "scipy.sparse", "arviz_stats", "arviz_base", "xarray"}
PROGRAM = """
import sys
from bayesdag.cli import app
try:
    app()
except SystemExit as ended:
    assert not ended.code, ended.code
print("modules:", *sys.modules)
"""


def loaded(*arguments: str) -> set[str]:
    """Modules that a command has imported when it ends."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("modules:")[2].split())


@pytest.mark.parametrize("options", [(), ("--json",), ("--top", "3")])
def test_a_linear_result_is_shown_without_jax_and_pandas(options, tmp_path, seed):
    random_linear(seed, num_chains=4, d=5).save(tmp_path / "result.nc")
    modules = loaded("show", str(tmp_path / "result.nc"), *options)
    assert "bayesdag.posterior.posterior" in modules
    assert not modules & HEAVY


def test_what_environments_act_on_is_shown_without_pandas(tmp_path):
    test_contexts.straight().with_evidence().save(tmp_path / "result.nc")
    assert not loaded("show", str(tmp_path / "result.nc")) & HEAVY


@pytest.fixture(scope="module")
def learned_functions(tmp_path_factory):
    """A result with learned functions, two edges of which are in every draw."""
    knowledge = {"required": [["dose", "response"], ["other", "dose"]]}
    posterior = bayesdag.fit(nonlinear_rows(), NEURAL, knowledge=knowledge, progress=False)
    path = tmp_path_factory.mktemp("learned") / "result.nc"
    posterior.save(path)
    return path


@pytest.mark.parametrize(
    "options", [(), ("--json",), ("--variable", "dose"), ("--paths", "--blanket")]
)
def test_learned_functions_are_shown_without_jax_and_pandas(options, learned_functions):
    """Edges of equal probability are ranked by what the fit has computed."""
    assert (bayesdag.load(learned_functions).evidence_matrix() > 0).sum() > 1
    modules = loaded("show", str(learned_functions), *options)
    assert "bayesdag.posterior.posterior" in modules
    assert not modules & HEAVY


@pytest.mark.parametrize("num_columns", [4, 12])
def test_a_linear_table_is_fitted_without_jax_and_xarray(num_columns, tmp_path, seed):
    """By exact sums and by chains; what trains networks is not imported either."""
    rows = random_linear(seed, d=num_columns).sample(60, seed=0)
    rows.to_csv(tmp_path / "table.csv", index=False)
    settings = ("--preset", "quick", "--quiet", "--out", str(tmp_path / "result.nc"))
    modules = loaded("fit", str(tmp_path / "table.csv"), *settings)
    chosen = "bayesdag.exact.order_dp" if num_columns == 4 else "bayesdag.orders.tempering"
    assert chosen in modules
    assert not modules & (HEAVY - {"pandas", "scipy.sparse"})
    assert not modules & {"bayesdag.scores._neural.crossfit", "dask", "scipy.optimize"}


@pytest.mark.parametrize("command", ["--help", "methods", "datasets"])
def test_lists_and_help_need_no_heavy_library(command):
    assert not loaded(command) & HEAVY


def test_columns_are_inspected_without_jax(tmp_path):
    rows = ["a,b", *(f"{k % 7}.5,{k * k % 11}.25" for k in range(40))]
    (tmp_path / "table.csv").write_text("\n".join(rows))
    assert not loaded("inspect", str(tmp_path / "table.csv")) & {"jax", "scipy.stats", "xarray"}
