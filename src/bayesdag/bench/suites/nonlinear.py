"""Nonlinear data: who finds the graph, how sure it is, and in what time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bayesdag.bench.fits import with_baselines
from bayesdag.bench.suite import BASELINES, Part, Size, Suite, Table, Trial, trials
from bayesdag.datasets import Benchmark
from bayesdag.datasets.sachs import Sachs
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.datasets.syntren import Syntren
from bayesdag.methods.averaged import Averaged
from bayesdag.methods.bagged import Bagged
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.exact import Exact
from bayesdag.methods.joint import Joint
from bayesdag.types import PlainData

FIRST_SEED = 1000  # smaller seeds are for development
NEURAL = "collapsed, neural"
SETTING = ("graph", "d", "mechanism", "noise", "rows", "scaling")
BASE: PlainData = dict(zip(SETTING, ("er", 10, "mlp", "gaussian", 5000, "raw"), strict=True))
# One change to the base setting at a time.
CHANGES: tuple[PlainData, ...] = (
    *({"mechanism": name} for name in ("gp", "sigmoid", "additive")),
    *({"noise": name} for name in ("laplace", "student_t", "heteroscedastic")),
    *({"rows": number} for number in (500, 100)),
    {"scaling": "standardised"},
)
LEARNED = {
    NEURAL: Collapsed.PRESETS["neural"],
    "collapsed, curves": Collapsed.PRESETS["additive"],
    "collapsed, BGe": Collapsed(),
}
OTHERS = {"bayesdag": BayesDAG(), "joint": Joint(), "exact": Exact()}
LESS_SURE = {"bagged, neural": Bagged.PRESETS["neural"], "averaged, neural": Averaged()}
ACCURACY = {
    "E-SHD": "expected_shd .2f",
    "F1": "edge_f1 .3f",
    "Brier skill": "brier_skill .3f",
    "AUROC": "auroc .3f",
    "log score": "log_score .4f",
    "edges": "expected_num_edges .1f",
    "best − true score": "above_truth .1f",
    "scores": "num_scores .0f",
    "calibration error": "unsure calibration",
}
TIMES = {"s": "seconds .1f", "longest s": "seconds max .0f"}
SHORTFALLS = {
    "true graph is best": "above_truth alike",
    "score prefers another": "above_truth above",
    "by nats": "above_truth mean-above .1f",
    "search ends below the truth": "above_truth below",
    "by nats ": "above_truth mean-below .1f",
    "not representable": "tables not-representable",
}


@dataclass(frozen=True)
class NumberedSyntren:
    """The SynTReN set whose number is the seed."""

    def __call__(self, seed: int = 1) -> Benchmark:
        """All its rows."""
        return Syntren(index=seed)(seed)


def build(size: Size) -> Suite:
    """The suite of this size."""
    parts = _quick() if size == "quick" else _paper()
    return Suite(
        title="Nonlinear data",
        caption="Calibration error is over the pairs with a probability between .05 and .95.",
        parts=tuple(parts),
        tables=_tables(),
    )


def _paper() -> Iterator[Part]:
    sizes = {("er", d): 10 for d in (10, 20, 50, 100)}
    sizes |= {("sf", d): 2 for d in (10, 20, 30, 50)}
    of_sizes = [t for (g, d), num in sizes.items() for t in _trials(num, graph=g, d=d)]
    changed = [t for change in CHANGES for t in _trials(3, **change)]
    yield Part("sizes", tuple(of_sizes), with_baselines(LEARNED | OTHERS), limit=7200.0)
    yield Part("changes", tuple(changed), with_baselines(LEARNED | OTHERS))
    yield Part("measured", tuple(_measured()), with_baselines(LEARNED | LESS_SURE))


def _quick() -> Iterator[Part]:
    small = Synthetic(num_variables=4, edges_per_node=1, num_train=200, num_test=0)
    setting = BASE | {"d": 4, "rows": 200}
    quick = {"collapsed, BGe": Collapsed.PRESETS["quick"], "exact": Exact()}
    yield Part("sizes", tuple(trials(setting, small, range(1, 3))), with_baselines(quick), 300.0)


def _trials(num: int, **change: Any) -> list[Trial]:
    setting = BASE | change
    made = Synthetic(
        num_variables=setting["d"],
        graph=setting["graph"],
        mechanism=setting["mechanism"],
        noise=setting["noise"],
        num_train=setting["rows"],
        scaling=setting["scaling"],
        num_test=0,
    )
    return trials(setting, made, range(FIRST_SEED, FIRST_SEED + num))


def _measured() -> Iterator[Trial]:
    yield Trial(_about("sachs", 11, 853), 0, Sachs())
    yield from trials(_about("syntren", 20, 500), NumberedSyntren(), range(1, 6))


def _about(name: str, d: int, rows: int) -> PlainData:
    return dict(zip(SETTING, (name, d, "measured", "–", rows, "raw"), strict=True))


def _tables() -> tuple[Table, ...]:
    judged = ("sizes", "changes", "measured")
    return (
        Table("Accuracy", (*SETTING, "method"), ACCURACY, parts=judged),
        Table(
            "Time",
            ("d", "rows", "graph", "method", "device"),
            TIMES,
            "Seconds per data set. The longest includes compilation, because a process that meets "
            "a size for the first time compiles; engines that take several data sets were given "
            "all of a shape at once.",
            without=BASELINES,
        ),
        Table(
            "Best graph found and true graph, under the learned score",
            SETTING,
            SHORTFALLS,
            "Where another graph scores higher, the score is at fault (too few rows to pay for a "
            "weak parent, or networks that do not come close enough); where the search ends lower, "
            "the search is. Nodes whose tables did not hold the parents of a draw count as not "
            "representable. Mean nats of the data sets in question.",
            parts=judged,
            methods=(NEURAL,),
        ),
    )
