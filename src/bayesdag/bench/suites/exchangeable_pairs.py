"""Two exchangeable variables: how often a direction is called sure that nothing decides."""

from bayesdag.bench.suite import Part, Size, Suite, Table, Trial
from bayesdag.bench.suites.broken_worlds import METHODS, runners
from bayesdag.datasets.copula_pair import MARGINALS, CopulaPair
from bayesdag.methods.exact import Exact

FIRST_SEED = 1000  # smaller seeds are for development
NUM_SETS = {"quick": 2, "paper": 50}
NUM_ROWS = 500
COLUMNS = {
    "directions outside (.05, .95)": "undefined_directions fraction",
    "misfit": "misfit .3f",
    "s": "seconds .1f",
}


def build(size: Size) -> Suite:
    """The suite of this size."""
    trials = (
        Trial({"marginal": name, "rows": NUM_ROWS}, seed, CopulaPair(name, num_train=NUM_ROWS))
        for seed in range(FIRST_SEED, FIRST_SEED + NUM_SETS[size])
        for name in MARGINALS
    )
    methods = runners({**METHODS[size], "exact": Exact()})
    return Suite(
        title="Exchangeable pairs",
        caption="Rows of a Gaussian copula with the same marginal on both sides: swapping the "
        "columns changes nothing, so no direction is right. Counted where the two are called "
        "adjacent; probabilities of a direction are given that they are.",
        parts=(Part("pairs", tuple(trials), methods, 900.0, interleaved=True),),
        tables=(Table("", ("marginal", "rows", "method"), COLUMNS),),
    )
