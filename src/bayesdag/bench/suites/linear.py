"""Linear data, unequal noise: who finds the graph, in what time, how close to exact."""

from bayesdag.bench.datasets import standardised_columns
from bayesdag.bench.fits import FitRunner, with_baselines
from bayesdag.bench.runners import Opponent
from bayesdag.bench.suite import Part, Size, Suite, Table, Trial, trials
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact

FIRST_SEED = 1000  # smaller seeds are for development
# Data sets of each size, and on how many of them the opponents run.
NUM_DATASETS = {"quick": {5: (2, 1)}, "paper": {20: (12, 5), 50: (5, 2), 100: (3, 1)}}
NUM_EXACT = {"quick": 1, "paper": 4}
PATIENCE = 1800.0  # seconds until an opponent has given up
# Partition moves of Gadget, before the first draw and after; on development data with d=20
# four times as many changed little. One chain: sixteen tempered ones cost sixteen times that.
GADGET = {"iterations": 30_000, "candidates": 10, "chains": 1}
OPPONENTS = {
    "BOSS, BIC (causal-learn)": Opponent("boss", {"penalty": 0.5}),
    "BOSS, matched penalty": Opponent("boss", {"penalty": "matched"}),
    "Gadget (sumu)": Opponent("gadget", GADGET),
}
SAMPLED = {"quick": Collapsed.PRESETS["quick"], "paper": Collapsed(num_samples=5000)}
COLUMNS = {
    "CPDAG-SHD": "expected_cpdag_shd .1f",
    "E-SHD": "expected_shd .1f",
    "Brier": "brier .5f",
    "AUPRC": "auprc .3f",
    "edges": "expected_num_edges .1f",
    "best − true score": "above_truth .1f",
    "CPU s": "cpu .1f",
    "wall s": "seconds .1f",
}
CAPTION = (
    "1000 rows, two edges per node, unequal noise, standardised columns. Times are those of a "
    "fit that meets no compiled code. The matched penalty of BOSS is that of BIC and the log "
    "prior odds of an edge at the true density. Gadget has a prior of its own (fair in-degree, "
    "each graph once) and its own BGe."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    ours, theirs = _compared(size)
    method = SAMPLED[size]
    reference = Exact(method.score, method.prior, method.order_modular)
    exact = {"collapsed": FitRunner(method, references={"": reference})}
    return Suite(
        title="Linear data",
        caption=CAPTION,
        parts=(
            Part("compared", ours, with_baselines({"collapsed": Collapsed()}), fresh=True),
            Part("opponents", theirs, OPPONENTS, limit=PATIENCE, fresh=True),
            Part("exact", _small(size), exact),
        ),
        tables=_tables(),
    )


def _compared(size: Size) -> tuple[tuple[Trial, ...], tuple[Trial, ...]]:
    ours, theirs = [], []
    for d, (num, with_opponents) in NUM_DATASETS[size].items():
        made = standardised_columns(d, 1000, "signed_linear", edges_per_node=2)
        ours += trials({"d": d}, made, range(FIRST_SEED, FIRST_SEED + num))
        theirs += trials({"d": d}, made, range(FIRST_SEED, FIRST_SEED + with_opponents))
    return tuple(ours), tuple(theirs)


def _small(size: Size) -> tuple[Trial, ...]:
    found = []
    for d, num_rows, edges_per_node in ((5, 100, 1), (12, 200, 2))[: 1 if size == "quick" else 2]:
        made = Synthetic(
            num_variables=d,
            edges_per_node=edges_per_node,
            mechanism="signed_linear",
            num_train=num_rows,
            num_test=0,
        )
        seeds = range(FIRST_SEED, FIRST_SEED + NUM_EXACT[size])
        found += trials({"d": d, "rows": num_rows}, made, seeds)
    return tuple(found)


def _tables() -> tuple[Table, ...]:
    found = ("compared", "opponents")
    common = {name: COLUMNS[name] for name in ("CPDAG-SHD", "Brier")}
    return (
        Table("Methods", ("d", "method"), COLUMNS, parts=found),
        Table(
            "On the data sets of the opponents",
            ("d", "method"),
            {"CPDAG-SHD": "expected_cpdag_shd .1f", "Brier": common["Brier"].replace("5", "4")},
            parts=found,
            common=("collapsed", *OPPONENTS),
        ),
        Table(
            "Search",
            ("d",),
            {"best graph scores no less than the true one": "above_truth reached"},
            parts=("compared",),
            methods=("collapsed",),
        ),
        Table(
            "Distance of `collapsed` from the exact posterior, same score and prior",
            ("d", "rows", "seed"),
            {
                "draws": "num_draws .4g",
                "MMD": "mmd .4g",
                "largest edge error": "edge_error .4g",
            },
            parts=("exact",),
        ),
    )
