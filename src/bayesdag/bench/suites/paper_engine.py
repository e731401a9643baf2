"""The paper's engine beside the published code: quality by epoch, time, and distance.

Cells of the published code were measured once, by the programs of the commit in their stamps.
"""

from dataclasses import replace

from bayesdag.bench.datasets import PublishedSet
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.suite import Part, Size, Suite, Table, Trial, trials
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.exact import Exact
from bayesdag.model.priors.density import DensityGrid
from bayesdag.model.priors.uniform import Uniform
from bayesdag.scores.bge import BGe
from bayesdag.scores.linear_gaussian import LinearGaussian
from bayesdag.types import PlainData

PUBLISHED = "published"
EPOCHS, EVERY = 96, 8  # of a curve: how long, and how often it is looked at
WHOLE_RUN = 700  # epochs
SETS = {"er10_seed5": "paper-er10", "sf10_seed5": "paper-sf10", "er20_seed5": "paper-er20"}
CURVE = {
    "E-SHD": "expected_shd .2f",
    "F1": "edge_f1 .2f",
    "held-out NLL": "nll .2f",
    "edges": "expected_num_edges .2f",
}
RUN = {
    "seconds": "seconds .1f",
    "compile seconds": "compile_seconds .1f",
    "median Sinkhorn iterations": "sinkhorn_iterations .1f",
    "peak memory GB": "memory_gb .2f",
    "E-SHD": "expected_shd .1f",
    "F1": "edge_f1 .3f",
}
DISTANCES = {
    "MMD to its own model": "mmd_own_model .3f",
    "MMD to BGe, uniform prior": "mmd_bge .3f",
    "E-SHD": "expected_shd .2f",
    "edges": "expected_num_edges .2f",
    "CPU s": "cpu .1f",
}


def build(size: Size) -> Suite:
    """The suite of this size."""
    parts = (_step(size), _device(size))
    if size == "paper":
        parts = (*_curves(), *parts, _distance())
    return Suite(
        title="The paper's engine beside the published code",
        caption="One data set with several seeds: the interval is that of the seeds.",
        parts=parts,
        tables=_tables(),
    )


def _curves() -> list[Part]:
    """By epoch, on data sets of the published generator (BAYESDAG_ANCHORS)."""
    found = []
    for data, preset in SETS.items():
        published = BayesDAG.PRESETS[preset]
        epoch = -(-5000 // published.batch_size)
        method = replace(
            published, num_warmup=epoch, thinning=EVERY * epoch, num_samples=EPOCHS // EVERY
        )
        runners = {"ours": FitRunner(method, by_epoch=True)}
        setting = {"data": data, "moves": "0"}
        found.append(Part("curve", tuple(trials(setting, PublishedSet(data), range(3))), runners))
    return found


def _step(size: Size) -> Part:
    """Least CPU seconds per step: ten chains, batches of 512, one thread."""
    sizes = (10, 20, 30, 50) if size == "paper" else (10,)
    made = [Trial({"d": d}, 0, Synthetic(num_variables=d, num_test=0)) for d in sizes]
    steps = 20 if size == "paper" else 3
    runners: PlainData = {
        f"ours, {passes} pass{'es' * (passes > 1)}": FitRunner(
            BayesDAG(passes=passes, num_warmup=steps, num_samples=1, thinning=1)
        )
        for passes in ((2, 1) if size == "paper" else (1,))
    }
    return Part("step", tuple(made), runners, one_thread=True)


def _device(size: Size) -> Part:
    """Whole runs, compilation included."""
    method = BayesDAG(num_warmup=5, num_samples=2, thinning=1)
    made = [Trial({"variables": 5}, 900, Synthetic(num_variables=5, num_train=600, num_test=0))]
    if size == "paper":
        steps = WHOLE_RUN * -(-5000 // BayesDAG().batch_size)
        method = BayesDAG()
        method = replace(method, num_warmup=steps - method.num_samples * method.thinning)
        made = [
            Trial({"variables": d}, 900, Synthetic(num_variables=d, num_test=0))
            for d in (30, 50, 70, 100)
        ]
    return Part("device", tuple(made), {"bayesdag": FitRunner(method)}, fresh=True)


def _distance() -> Part:
    """At temperature 1, and as published, where no exact posterior is the engine's own."""
    warm = replace(BayesDAG.PRESETS["quick"], num_warmup=1000, num_samples=20, thinning=25)
    references = {
        "own_model": Exact(LinearGaussian(), DensityGrid(), order_modular=True),
        "bge": Exact(BGe(), Uniform(), order_modular=False),
    }
    methods = {
        "temperature 1": warm,
        "published preset": BayesDAG.PRESETS["paper-linear-er5"],
    }
    runners = {name: FitRunner(method, references=references) for name, method in methods.items()}
    made = [
        trial
        for number in (5, 6, 7)
        for trial in trials(
            {"data": f"linear_er5_seed{number}"},
            PublishedSet(f"linear_er5_seed{number}"),
            range(1, 4),
        )
    ]
    return Part("distance", tuple(made), runners)


def _tables() -> tuple[Table, ...]:
    return (
        Table(
            "Quality at equal epochs",
            ("data", "moves", "epoch", "method"),
            CURVE,
            "Graphs of all chains at the present state; `moves` are the steps of p and Θ that an "
            "evaluation takes first, as the published one does.",
            parts=("curve",),
        ),
        Table(
            "CPU time per step (10 chains, a batch of 512, one thread)",
            ("d", "machine", "method"),
            {"seconds": "step_cpu .4f", "compile seconds": "compile_seconds .1f"},
            parts=("step",),
            ratio=("times faster", "step_cpu", PUBLISHED),
        ),
        Table(
            f"Whole runs ({WHOLE_RUN} epochs, 10 chains, N=5000)",
            ("variables",),
            RUN,
            "Seconds include compilation.",
            parts=("device",),
        ),
        Table(
            "Distance from exact posteriors, linear data of five variables",
            ("data", "method"),
            DISTANCES,
            "MMD with the Hamming kernel, which sees edge marginals. BGe is another model, and the "
            "published preset has a temperature near 0: comparisons, not targets.",
            parts=("distance",),
        ),
    )
