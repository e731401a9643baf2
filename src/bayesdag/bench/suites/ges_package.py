"""Greedy equivalence search beside causal-learn's: same rows, same score, a hundred data sets."""

from bayesdag.bench.datasets import standardised_columns
from bayesdag.bench.ges_package import BesideSearch
from bayesdag.bench.runners import Opponent
from bayesdag.bench.suite import Part, Size, Suite, Table, trials
from bayesdag.bench.table_entries import NEGLIGIBLE
from bayesdag.datasets.synthetic import Synthetic

FIRST_SEED = 1000  # smaller seeds are for development
# (variables, edges per node, rows): data sets.
NUM_SETS = {
    "quick": {(5, 1, 200): 2},
    "paper": {
        (5, 1, 200): 20,
        (5, 1, 1000): 20,
        (10, 2, 200): 20,
        (10, 2, 1000): 20,
        (20, 2, 1000): 20,
    },
}
BIC = 0.5  # causal-learn's λ, from 0.1.4.8 on: of log n per edge, where BIC has ½


def build(size: Size) -> Suite:
    """The suite of this size."""
    return Suite(
        title="Greedy equivalence search beside causal-learn",
        caption="Linear Gaussian data, standardised columns. Both have BIC, one core; "
        "ours goes forward, backward and turns edges, as often as something is gained, the "
        "package forward and backward once.",
        parts=tuple(
            Part(
                "beside",
                tuple(
                    trials(
                        {"d": d, "edges per node": degree, "rows": num_rows},
                        _made(d, degree, num_rows),
                        range(FIRST_SEED, FIRST_SEED + num),
                    )
                ),
                {"ges": BesideSearch(Opponent("ges", {"penalty": BIC}))},
                limit=600.0,
                one_thread=True,
            )
            for (d, degree, num_rows), num in NUM_SETS[size].items()
        ),
        tables=(
            Table(
                "Classes and their scores",
                ("d", "edges per node", "rows"),
                {
                    "same class": "same positive",
                    "score as good or better": "gain reached",
                    "better": "gain above",
                    "worse": "gain below",
                    "nats better, where better": "gain mean-above .2f",
                    "nats worse, where worse": "gain mean-below .2f",
                    "version": "package_version listed",
                },
                "The score is BIC in nats, ours against the package's; better and worse count "
                f"differences of more than {NEGLIGIBLE:g}.",
            ),
            Table(
                "Distance from the class of the truth, and time",
                ("d", "edges per node", "rows"),
                {
                    "CPDAG-SHD": "cpdag_shd_ours .1f",
                    "CPDAG-SHD, package": "cpdag_shd_package .1f",
                    "CPU s": "cpu_ours .4f",
                    "CPU s, package": "cpu_package .3f",
                },
            ),
        ),
    )


def _made(d: int, degree: int, num_rows: int) -> Synthetic:
    return standardised_columns(d, num_rows, "signed_linear", edges_per_node=degree)
