"""Rows pooled from several environments, with and without the column that says so."""

from collections.abc import Iterator

from bayesdag.bench.datasets import WithEnvironments
from bayesdag.bench.fits import with_baselines
from bayesdag.bench.suite import Part, Size, Suite, Table, Trial, trials
from bayesdag.datasets.broken_world import BrokenWorld

FIRST_SEED = 1000  # smaller seeds are for development
COLUMN = {"no": lambda dataset: dataset, "yes": WithEnvironments}
COLUMNS = {
    "E-SHD": "expected_shd .2f",
    "log score": "log_score .3f",
    "edges above .95": "num_sure .1f",
    "of these true": "num_sure_true .1f",
    "seconds": "seconds .0f",
}
CAPTION = (
    "Three environments shift and stretch the noise of some variables (broken_world, mixture); "
    "one edge per node, 500 rows. With the column, each environment but one is a context variable; "
    "only the graph of the variables is judged."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    made = _trials((5,), 2) if size == "quick" else _trials((5, 10), 30)
    return Suite(
        title="Pooled environments",
        caption=CAPTION,
        parts=(Part("mixture", tuple(made), with_baselines({"collapsed": "collapsed"})),),
        tables=(Table("Mixtures", ("variables", "column", "method"), COLUMNS),),
    )


def _trials(sizes: tuple[int, ...], num_seeds: int) -> Iterator[Trial]:
    seeds = range(FIRST_SEED, FIRST_SEED + num_seeds)
    for d in sizes:
        world = BrokenWorld("mixture", num_variables=d, edges_per_node=1, num_train=500)
        for column, fitted in COLUMN.items():
            yield from trials({"variables": d, "column": column}, fitted(world), seeds)
