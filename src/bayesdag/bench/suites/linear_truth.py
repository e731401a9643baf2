"""Linear Gaussian data under learned functions: whether they end where the exact posterior is."""

from itertools import product

from bayesdag.bench.datasets import standardised_columns
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.suite import Part, Size, Suite, Table, Trial
from bayesdag.bench.suites.broken_worlds import METHODS
from bayesdag.methods.exact import Exact

FIRST_SEED = 1000  # smaller seeds are for development
NUM_SETS = {"quick": 1, "paper": 9}  # of each of the six sizes
SIZES = {"quick": [(3, 500), (4, 500)], "paper": list(product((3, 4, 5), (500, 1000)))}
COLUMNS = {
    "pairs that agree": "class_agreement fraction",
    "reversible edges outside (.05, .95)": "reversible_sure fraction",
    "in the exact posterior": "reversible_sure_exact fraction",
    "largest edge difference": "edge_error .2f",
    "total variation": "total_variation .2f",
    "s": "seconds .1f",
}
CAPTION = (
    "Against the exact posterior under BGe with the same prior. A pair agrees when the "
    "probabilities that it is adjacent, and that an edge of either direction is compelled (the "
    "same in all Markov equivalent graphs), are within .1. Reversible edges are those of the true "
    "graph whose direction observation cannot tell; probabilities of their directions are given "
    "that the two are adjacent. 95 % intervals, data sets as clusters."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    exact = {"": Exact(num_samples=4000)}
    methods = {
        name: FitRunner(method, exact, score_truth=False)
        for name, method in {**METHODS[size], "exact": Exact()}.items()
    }
    return Suite(
        title="Linear Gaussian data under learned functions",
        caption=CAPTION,
        parts=(Part("linear", tuple(_trials(size)), methods, 900.0, interleaved=True),),
        tables=(
            Table("All sizes", ("method",), COLUMNS),
            Table("By size", ("d", "rows", "method"), COLUMNS),
        ),
    )


def _trials(size: Size) -> list[Trial]:
    return [
        Trial(
            {"d": d, "rows": num_rows},
            seed,
            standardised_columns(d, num_rows, "signed_linear", expected=True),
        )
        for seed in range(FIRST_SEED, FIRST_SEED + NUM_SETS[size])
        for d, num_rows in SIZES[size]
    ]
