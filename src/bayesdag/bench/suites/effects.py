"""Effects of interventions: errors, coverage of intervals, held-out interventional likelihood."""

from itertools import product

from bayesdag import fitting
from bayesdag.bench.columns import (
    ADDITIVE,
    ENGINES,
    LINEAR,
    PATIENCE,
    SYSTEMS,
    fits,
    rivals,
    trivial,
)
from bayesdag.bench.graph_effects import GraphEffects, TreatmentEffect
from bayesdag.bench.suite import FIGURES, Part, Runner, Size, Suite, Table, Trial
from bayesdag.bench.treatments import SURFACES, LeastSquares, PosteriorEffect, Treatments
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.collapsed import Collapsed
from bayesdag.types import Method

NUM_SETS = {"quick": 1, "paper": 10}
NUM_TREATMENTS = {"quick": 1, "paper": 20}
NUM_EFFECTS = {"quick": 4, "paper": 20}
SIZES = {"quick": (4, 200), "paper": (10, 1000)}
FUNCTIONS = {"quick": ("signed_linear",), "paper": ("signed_linear", "mlp", "gp", "additive")}
COVARIATES = {"quick": (2, 1), "paper": (6, 19)}
COLUMNS = {
    "mean error": "effect_error .3f",
    "95 % intervals that hold the truth": "effect_coverage fraction",
    "mean width": "effect_width .3f",
    "interventional NLL": "interventional_nll .2f",
    "NLL": "nll .2f",
    "E-SHD": "expected_shd .2f",
    "s": "seconds .1f",
}
OF_TREATMENTS = {
    **{name: COLUMNS[name] for name in list(COLUMNS)[:3]},
    "error of single rows": "individual_error .3f",
    "intervals of rows that hold the truth": "individual_coverage fraction",
    "s": "seconds .1f",
}
CAPTION = (
    "Pairs: the cause goes from one standard deviation below its mean to one above; half of the "
    "pairs have no causal path; errors and widths in standard deviations of the outcome. NLL is "
    "per held-out row; interventional: of rows in which one variable was set to values up to three "
    "standard deviations away. Treatments: tables after IHDP, 747 rows, 25 covariates, the average "
    "effect of a confounded treatment and that on each of a hundred rows (root mean square error, "
    "PEHE); methods are told that covariates precede the treatment and that the outcome follows "
    "it. Rivals return graphs: their effects are those of a linear regression on the cause and its "
    "parents there, 0 without a path; where a class leaves several sets of parents possible, the "
    "mean over them and the hull of their intervals (IDA). Treatments: on the treatment and the "
    "covariates adjacent to it, 0 where the outcome is not; their seconds are those of the graph."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    pairs = Part("pairs", tuple(_trials(size)), _methods(size), PATIENCE, interleaved=True)
    treated = Part("treatments", tuple(_tables(size)), _adjusted(size), PATIENCE, interleaved=True)
    return Suite(
        title="Effects of interventions",
        caption=CAPTION,
        parts=(pairs, treated),
        tables=(
            Table("Pairs", ("functions", "d", "rows", "method"), COLUMNS, parts=("pairs",)),
            Table("Treatments", ("surface", "method"), OF_TREATMENTS, parts=("treatments",)),
        ),
    )


def _methods(size: Size) -> dict[str, Runner]:
    options = {"num_effects": NUM_EFFECTS[size]}
    others = {name: GraphEffects(rival, **options) for name, rival in rivals(size).items()}
    if size == "quick":
        ours = {LINEAR: Collapsed.PRESETS["quick"]}
        return {**fits(ours, **options), **others, **trivial(**options)}
    methods = {**ENGINES[size], **SYSTEMS[size], **ADDITIVE[size], "exact": "exact"}
    return {**fits(methods, **options), **others, **trivial(**options)}


def _adjusted(size: Size) -> dict[str, Runner]:
    linear = Collapsed.PRESETS["quick"] if size == "quick" else Collapsed()
    ours: dict[str, Runner] = {f"{LINEAR}, codes as numbers": PosteriorEffect(linear, True)}
    if size == "paper":  # with a model for binary columns, or codes as numbers without one
        ours |= {"collapsed": PosteriorEffect(Collapsed())}
        methods = {**ENGINES[size], **SYSTEMS[size], **ADDITIVE[size]}
        ours |= {m: PosteriorEffect(one) for m, one in methods.items() if _obeys_tiers(one)}
    return {
        **ours,
        **{name: TreatmentEffect(rival) for name, rival in rivals(size).items()},
        "regression on all covariates": LeastSquares(),
        "regression with interactions": LeastSquares(interactions=True),
        "difference of means": LeastSquares(covariates=False),
    }


def _obeys_tiers(method: str | Method) -> bool:
    return "forbidden" in fitting.build_method(method).supported_constraints


def _trials(size: Size) -> list[Trial]:
    d, num_rows = SIZES[size]
    return [
        Trial(
            {"functions": functions, "d": d, "rows": num_rows},
            seed,
            Synthetic(
                num_variables=d,
                edges_per_node=1,
                mechanism=functions,
                scaling="standardised",
                num_train=num_rows,
                num_test=200,
                num_interventions=d // 2,
                num_interventional=200,
            ),
        )
        for seed in range(FIGURES, FIGURES + NUM_SETS[size])
        for functions in FUNCTIONS[size]
    ]


def _tables(size: Size) -> list[Trial]:
    continuous, binary = COVARIATES[size]
    seeds = range(FIGURES, FIGURES + NUM_TREATMENTS[size])
    return [
        Trial({"surface": surface}, seed, Treatments(surface, continuous, binary))
        for seed, surface in product(seeds, SURFACES)
    ]
