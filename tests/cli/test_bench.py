"""`bayesdag bench`, as a user types it."""

from tests.cli.test_fit import bayesdag


def test_bench_lists_the_suites(tmp_path):
    done = bayesdag("bench", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "nonlinear" in done.stdout
    assert "Nonlinear data: who finds the graph" in done.stdout


def test_bench_refuses_unknown_suites_and_methods_and_writes_nothing(tmp_path):
    done = bayesdag("bench", "linaer", cwd=tmp_path)
    assert done.returncode == 2
    assert "no suite is called 'linaer'; there are: additive_kinds, " in done.stderr
    done = bayesdag("bench", "linear", "--methods", "exakt", "--out", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert "no method is called 'exakt'; did you mean 'exact'?" in done.stderr
    assert list(tmp_path.rglob("*.json")) == []


def test_bench_runs_what_is_missing_and_writes_the_tables(tmp_path):
    arguments = ("bench", "speed", "--part", "start", "--out", "found")
    first = bayesdag(*arguments, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "bayesdag --help, seed 900: seconds" in first.stdout
    page = (tmp_path / "found" / "speed.md").read_text()
    assert "| bayesdag --help | 1 |" in page
    again = bayesdag(*arguments, cwd=tmp_path)
    assert "seed 900" not in again.stdout
    assert (tmp_path / "found" / "speed.md").read_text() == page
