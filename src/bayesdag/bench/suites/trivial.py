"""Baselines that learn nothing about causes: the rows no table may lack."""

from collections.abc import Iterator

from bayesdag.bench.datasets import Standardised
from bayesdag.bench.fits import with_baselines
from bayesdag.bench.suite import BASELINES, Part, Size, Suite, Table, Trial, trials
from bayesdag.datasets.sachs import Sachs
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.datasets.syntren import Syntren

FIRST_SEED = 1000  # smaller seeds are for development
NUM_MEASURED = 5
UNITS = {"raw": lambda dataset: dataset, "standardised": Standardised}
COLUMNS = {
    "E-SHD": "expected_shd .1f",
    "E-CPDAG-SHD": "expected_cpdag_shd .1f",
    "F1": "edge_f1 .2f",
    "edges": "expected_num_edges .1f",
    "AUROC": "auroc .2f",
    "AUPRC": "auprc .2f",
    "Brier skill": "brier_skill .2f",
    "log score": "log_score .3f",
    "calibration error": "calibration_error .2f",
    "pairs in it": "calibration_count .0f",
    "ancestor AUROC": "ancestor_auroc .2f",
    "NLL": "nll .2f",
}
FACTS = {
    "true edges": "num_true_edges .1f",
    "varsortability": "varsortability .2f",
    "R²-sortability": "r2_sortability .2f",
}
CAPTION = (
    "A reversal counts 1 in SHD; the log score has its floor at probability .001; calibration "
    "error is over pairs with .05 < p < .95; NLL is per held-out row, in the units of the row. "
    "Restarts share their data, so their interval is that of the method's own chance."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    made = _quick() if size == "quick" else _paper()
    return Suite(
        title="Trivial methods",
        caption=CAPTION,
        parts=(Part("baselines", tuple(made), with_baselines({})),),
        tables=(
            Table("The data", ("data", "units"), FACTS, methods=BASELINES[:1]),
            Table("The methods", ("data", "units", "method"), COLUMNS),
        ),
    )


def _paper() -> Iterator[Trial]:
    seeds = range(FIRST_SEED, FIRST_SEED + 30)
    for units, scaled in UNITS.items():
        for mechanism, d, graph in (
            (m, d, g) for m in ("mlp", "linear") for d in (10, 20, 50) for g in ("er", "sf")
        ):
            kind = "nonlinear" if mechanism == "mlp" else "linear"
            setting = {"data": f"{kind} {graph.upper()} d={d}", "units": units}
            made = Synthetic(num_variables=d, graph=graph, mechanism=mechanism)
            yield from trials(setting, scaled(made), seeds)
        for number in range(NUM_MEASURED):
            for name, dataset in _measured(number).items():
                setting = {"data": name, "units": units}
                yield Trial(setting, FIRST_SEED + number, scaled(dataset))


def _measured(number: int) -> dict[str, Sachs | Syntren]:
    return {
        "Sachs, bootstraps of 800": Sachs(num_bootstrap=800),
        "Sachs, all 853 cells, restarts": Sachs(),
        "SynTReN, sets 1–5": Syntren(index=number + 1, num_test=100),
    }


def _quick() -> Iterator[Trial]:
    made = Synthetic(num_variables=5, edges_per_node=1, num_train=200, num_test=50)
    for units, scaled in UNITS.items():
        setting = {"data": "nonlinear ER d=5", "units": units}
        yield from trials(setting, scaled(made), range(FIRST_SEED, FIRST_SEED + 2))
