"""The systems of the published comparison, and those people use, on the same data."""

from bayesdag.bench.columns import PATIENCE, RIVALS
from bayesdag.bench.fits import FitRunner, with_baselines
from bayesdag.bench.runners import Call, Opponent
from bayesdag.bench.suite import BASELINES, Part, Size, Suite, Table, Trial, trials
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.bcd import BCD
from bayesdag.methods.bootstrap_ges import BootstrapGES
from bayesdag.methods.cam import CAM
from bayesdag.methods.dds import DDS
from bayesdag.methods.dibs import DiBS
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.mechanisms.mlp import MLP
from bayesdag.types import PlainData

FIRST_SEED = 1000  # smaller seeds are for development
NUM_DATASETS = {"quick": 1, "paper": 5}
SIZES = {"quick": (5,), "paper": (10, 20)}
KINDS = {"linear": "signed_linear", "nonlinear": "mlp"}
SYSTEMS: dict[str, PlainData] = {
    "quick": {
        "cam": CAM(num_samples=5),
        "bootstrap_ges": BootstrapGES(num_samples=5),
        "dibs": DiBS.PRESETS["quick"],
        "bcd": BCD.PRESETS["quick"],
        "dds": DDS.PRESETS["quick"],
    },
    "paper": {
        "cam": CAM(),
        "bootstrap_ges": BootstrapGES(),
        "dibs": DiBS(),
        "bcd": BCD(),
        "dds": DDS(),
        "collapsed": "collapsed",
        "auto": "auto",
    },
}
# Times on an accelerator: 50 variables, the settings of 20.
ON_DEVICE = {
    "dibs": DiBS(),
    "dibs, networks": DiBS(mechanism=MLP()),
    "dibs, marginal": DiBS.PRESETS["marginal"],
    "bcd": BCD(),
    "dds": DDS(),
}
NEURAL_DIBS = {"quick": {}, "paper": {"dibs, networks": DiBS(mechanism=MLP())}}
# Chains are timed on five variables, 500 rows.
SMALL = Synthetic(
    num_variables=5, edges_per_node=1, mechanism="signed_linear", num_train=500, num_test=0
)
SWEEPS = {
    f"{rank}, d = {d}": Call(
        "claims:sinkhorn_sweeps",
        {"d": d, "temperature": 0.2, "full_rank": rank == "full rank", "deviation": 0.5},
    )
    for d in (20, 50)
    for rank in ("rank one", "full rank")
}
PARTICLES = (20, 80, 320, 1280)
CHAINS = (10, 20, 40, 80)
COLUMNS = {
    "E-SHD": "expected_shd .1f",
    "CPDAG-SHD": "expected_cpdag_shd .1f",
    "Brier": "brier .4f",
    "AUPRC": "auprc .3f",
    "edges": "expected_num_edges .1f",
    "wall s": "seconds .1f",
    "GB": "memory_gb .2f",
}


def build(size: Size) -> Suite:
    """The suite of this size."""
    num = NUM_DATASETS[size]
    return Suite(
        title="The published comparison, and what people use",
        caption="1000 rows, one edge per node, standardised columns. Other packages return one "
        "graph or class; they run in an interpreter of their own and give up after "
        f"{PATIENCE:.0f} s.",
        parts=(
            Part(
                "compared",
                _made(size),
                with_baselines(SYSTEMS[size] | NEURAL_DIBS[size], score_truth=False),
                interleaved=True,
            ),
            Part("opponents", _made(size), RIVALS, limit=PATIENCE, fresh=True, interleaved=True),
            Part("sinkhorn", tuple(Trial({}, seed, None) for seed in _seeds(4 * num)), SWEEPS),
            Part("particles", (Trial({}, FIRST_SEED, None),), _particles(size)),
            Part("chains", tuple(trials({}, SMALL, _seeds(1))), _chains(size)),
            Part("device", _large(size), _on_device(size), limit=1200.0),
        ),
        tables=_tables(),
    )


def _seeds(num: int) -> range:
    return range(FIRST_SEED, FIRST_SEED + num)


def _made(size: Size) -> tuple[Trial, ...]:
    """Data sets, all kinds and sizes of one seed before the next."""
    return tuple(
        Trial(
            {"functions": kind, "d": d},
            seed,
            Synthetic(
                num_variables=d,
                edges_per_node=1,
                mechanism=mechanism,
                num_train=1000,
                num_test=0,
                scaling="standardised",
            ),
        )
        for d in SIZES[size]
        for seed in _seeds(NUM_DATASETS[size])
        for kind, mechanism in KINDS.items()
    )


def _large(size: Size) -> tuple[Trial, ...]:
    """One data set for times on an accelerator."""
    d = {"quick": 5, "paper": 50}[size]
    made = Synthetic(
        num_variables=d, edges_per_node=1, num_train=1000, num_test=0, scaling="standardised"
    )
    return tuple(trials({"d": d}, made, _seeds(1)))


def _on_device(size: Size) -> dict[str, FitRunner]:
    methods = SYSTEMS[size] if size == "quick" else ON_DEVICE
    return {name: FitRunner(method, score_truth=False) for name, method in methods.items()}


def _particles(size: Size) -> dict[str, Call]:
    few = {"quick": (2, 4), "paper": PARTICLES}[size]
    steps = {"quick": 2, "paper": 10}[size]
    d = {"quick": 5, "paper": 20}[size]
    return {
        f"{num} particles": Call(
            "claims:particle_seconds", {"d": d, "num_particles": num, "num_steps": steps}
        )
        for num in few
    }


def _chains(size: Size) -> dict[str, FitRunner]:
    few = {"quick": (2,), "paper": CHAINS}[size]
    samples = {"quick": 2, "paper": 20}[size]

    def chains(num: int) -> BayesDAG:
        return BayesDAG(
            mechanism=Linear(),
            num_chains=num,
            num_warmup=0,
            num_samples=samples,
            thinning=10,
            batch_size=100,
        )

    return {f"{num} chains": FitRunner(chains(num)) for num in few}


def _settings_in_words() -> str:
    """What other packages are told, each in turn."""
    told = (
        f"{name}: {', '.join(f'{key} {value:g}' for key, value in runner.settings.items())}"
        for name, runner in RIVALS.items()
        if isinstance(runner, Opponent) and runner.settings
    )
    return "; ".join(told) + "."


def _tables() -> tuple[Table, ...]:
    return (
        Table("Methods", ("functions", "d", "method"), COLUMNS, parts=("compared", "opponents")),
        Table(
            "Versions of other packages",
            ("method",),
            {"version": "package_version listed", "wall s, longest": "seconds max .1f"},
            "Settings that are not a package's defaults: " + _settings_in_words(),
            parts=("opponents",),
            without=("SCORE", "NoGAM"),
        ),
        Table(
            "Times by device, networks as functions, 1000 rows",
            ("d", "device", "method"),
            {"wall s": "seconds .0f", "GB": "memory_gb .2f", "E-SHD": "expected_shd .1f"},
            parts=("device",),
            without=BASELINES,
        ),
        Table(
            "Sweeps of Sinkhorn until sums are one within 0.001",
            ("method",),
            {"mean": "sweeps .0f", "most": "sweeps max .0f"},
            "Temperature 0.2; scores of full rank have the size of those of rank one. "
            "The count stops at 20000.",
            parts=("sinkhorn",),
        ),
        Table(
            "Seconds per step, by particles of DiBS and by chains of SG-MCMC",
            ("method",),
            {"s per step": "step_seconds .4f"},
            parts=("particles", "chains"),
        ),
    )
