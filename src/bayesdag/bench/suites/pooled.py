"""Rows pooled from several environments, with and without the column that says so."""

from collections.abc import Iterator, Mapping

from bayesdag.bench.columns import PATIENCE, others
from bayesdag.bench.fits import FitRunner, with_baselines
from bayesdag.bench.suite import BASELINES, Part, Runner, Size, Suite, Table, Trial, trials
from bayesdag.datasets.broken_world import BrokenWorld

FIRST_SEED = 1000  # smaller seeds are for development
NUM_OF_OTHERS = 5  # data sets of all other columns
COLUMNS = {
    "E-SHD": "expected_shd .2f",
    "log score": "log_score .3f",
    "edges above .95": "num_sure .1f",
    "of these true": "num_sure_true .1f",
    "true at p ≥ .95": "curve bin5",
    "seconds": "seconds .0f",
}
CAPTION = (
    "Three environments shift and stretch the noise of some variables (broken_world, mixture); "
    "one edge per node, 500 rows. With the column, each environment but one is a context variable; "
    "only the graph of the variables is judged."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    made = tuple(_trials((5,), 2) if size == "quick" else _trials((5, 10), 30))
    some = tuple(trial for trial in made if trial.seed < FIRST_SEED + NUM_OF_OTHERS)
    return Suite(
        title="Pooled environments",
        caption=CAPTION,
        parts=(
            Part("mixture", made, _runners()),
            Part("mixture others", some, _others(size), PATIENCE, interleaved=True),
        ),
        tables=(Table("Mixtures", ("variables", "method"), COLUMNS),),
    )


def _runners() -> dict[str, Runner]:
    """Everybody twice: rows pooled in silence, and with the column."""
    pooled = with_baselines({"collapsed": "collapsed"})
    told = with_baselines({"collapsed": "collapsed"}, with_environment=True)
    return {**pooled, **_with_the_column(told)}


def _others(size: Size) -> dict[str, Runner]:
    """All other columns; with the column of environments those that can be told."""
    told = {
        name: runner
        for name, runner in others(size, BASELINES, with_environment=True).items()
        if isinstance(runner, FitRunner) and "environments" in runner.built().supported_constraints
    }
    return {**others(size, BASELINES), **_with_the_column(told)}


def _with_the_column(told: Mapping[str, Runner]) -> dict[str, Runner]:
    return {f"{name}, with the column": runner for name, runner in told.items()}


def _trials(sizes: tuple[int, ...], num_seeds: int) -> Iterator[Trial]:
    seeds = range(FIRST_SEED, FIRST_SEED + num_seeds)
    for d in sizes:
        world = BrokenWorld("mixture", num_variables=d, edges_per_node=1, num_train=500)
        yield from trials({"variables": d}, world, seeds)
