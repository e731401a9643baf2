"""DiBS beside its authors' package dibs-lib: same rows, model, settings and numbers of runs."""

from bayesdag.bench.dibs_package import BesidePackage
from bayesdag.bench.runners import Opponent
from bayesdag.bench.suite import Part, Runner, Size, Suite, Table, trials
from bayesdag.bench.suites.published_settings import Centred
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.dibs import DiBS
from bayesdag.methods.exact import Exact
from bayesdag.model.priors.erdos_renyi import ErdosRenyi
from bayesdag.scores.bge import BGe

FIRST_SEED = 1000  # smaller seeds are for development
NUM_SETS = {"quick": {4: 1}, "paper": {5: 5, 10: 2}}  # by number of variables
STEPS = {"quick": 50, "paper": 1000}
EQUAL_START = "joint, equal start"
VARIANCE = 0.1  # of the noise, which joint DiBS is told, as its authors do


def build(size: Size) -> Suite:
    """The suite of this size."""
    return Suite(
        title="DiBS beside dibs-lib",
        caption=f"Linear functions, one edge per node, noise of variance {VARIANCE}, 100 rows in "
        "the units they were generated in, centred. Both have 20 particles, "
        f"{STEPS[size]} steps and the package's defaults: 128 and 32 Monte-Carlo graphs, RMSprop "
        "with rate 0.005, temperature 1, β = step; joint: α = 0.05 · step, bandwidths 5 and 500, "
        "σ² known; marginal: BGe, α = step, bandwidth 5, score functions. Two runs each. The "
        "package moves weights at the start by 0.5 away from zero, ours does not; at an equal "
        "start neither does.",
        parts=tuple(
            Part(
                "beside",
                tuple(trials({"d": d}, _made(d), range(FIRST_SEED, FIRST_SEED + num))),
                _runners(d, STEPS[size]),
                interleaved=True,
            )
            for d, num in NUM_SETS[size].items()
        ),
        tables=_tables(),
    )


def _made(d: int) -> Centred:
    return Centred(
        Synthetic(
            num_variables=d,
            edges_per_node=1,
            mechanism="signed_linear",
            noise_variance=VARIANCE,
            num_train=100,
            num_test=0,
        )
    )


def _runners(d: int, steps: int) -> dict[str, Runner]:
    """Joint and marginal DiBS with the package's prior: one edge per node."""
    prior = ErdosRenyi(probability=2 / (d - 1))
    told = {"particles": 20, "steps": steps, "edges": 1, "runs": 2}
    joint = DiBS(prior=prior, num_steps=steps, noise_variance=VARIANCE)
    marginal = DiBS(prior=prior, num_steps=steps, score=BGe(), alpha=1.0)
    exact = Exact(prior=prior, order_modular=False) if d <= 5 else None
    known = {**told, "variance": VARIANCE}
    return {
        "joint": BesidePackage(joint, Opponent("dibs_lib", known)),
        EQUAL_START: BesidePackage(joint, Opponent("dibs_lib", {**known, "shift": 0.0})),
        "marginal": BesidePackage(marginal, Opponent("dibs_lib_marginal", told), exact=exact),
    }


def _tables() -> tuple[Table, ...]:
    return (
        Table(
            "Difference of edge probabilities",
            ("d", "method"),
            {
                "to the package": "between .3f",
                "between runs of ours": "within_ours .3f",
                "between runs of the package": "within_package .3f",
                "ours to exact": "error_ours .3f",
                "package to exact": "error_package .3f",
            },
            "Mean absolute difference over ordered pairs of variables. Programs that do the same "
            "differ from each other as much as runs of each with other seeds.",
        ),
        Table(
            "Accuracy and time",
            ("d", "method"),
            {
                "E-SHD": "shd_ours .2f",
                "E-SHD, package": "shd_package .2f",
                "ours less package": "shd_difference .2f",
                "AUROC": "auroc_ours .3f",
                "AUROC, package": "auroc_package .3f",
                "edges": "edges_ours .1f",
                "edges, package": "edges_package .1f",
                "cyclic": "cyclic_ours .1f",
                "cyclic, package": "cyclic_package .1f",
                "CPU s": "cpu_ours .0f",
                "CPU s, package": "cpu_package .0f",
                "version": "package_version listed",
            },
            "E-SHD from edge probabilities; cyclic particles, of 20, are left out by both; CPU "
            "seconds of both runs, compilation included.",
        ),
    )
