"""The systems of the published comparison, and those people use, on the same data."""

from bayesdag.bench.columns import PATIENCE, RIVALS, fits, rivals
from bayesdag.bench.datasets import standardised_columns
from bayesdag.bench.fits import FitRunner, with_baselines
from bayesdag.bench.runners import Call, Opponent
from bayesdag.bench.suite import Part, Runner, Size, Suite, Table, Trial, trials
from bayesdag.methods.bcd import BCD
from bayesdag.methods.bootstrap_ges import BootstrapGES
from bayesdag.methods.cam import CAM
from bayesdag.methods.dds import DDS
from bayesdag.methods.dibs import DiBS
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
# Times on an accelerator: 50 variables, the settings of 20; what may take longest comes last.
ON_DEVICE = {
    "dibs": DiBS(),
    "bcd": BCD(),
    "dds": DDS(),
    "dibs, marginal": DiBS.PRESETS["marginal"],
    "dibs, networks": DiBS(mechanism=MLP()),
}
# Times on a CPU: whole runs; and steps of published settings that take hours.
ON_CORES = {"quick": SYSTEMS["quick"], "paper": ON_DEVICE}
WHOLE = ("dibs", "dibs, marginal", "bcd", "dds")
NEURAL_DIBS = {"quick": {}, "paper": {"dibs, networks": DiBS(mechanism=MLP())}}
COLUMNS = {
    "E-SHD": "expected_shd .1f",
    "CPDAG-SHD": "expected_cpdag_shd .1f",
    "Brier": "brier .4f",
    "AUPRC": "auprc .3f",
    "edges": "expected_num_edges .1f",
    "wall s": "seconds .1f",
}


def build(size: Size) -> Suite:
    """The suite of this size."""
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
            Part("opponents", _made(size), rivals(size), PATIENCE, fresh=True, interleaved=True),
            *_cores(size),
            Part("device", _large(size), _on_device(size), limit=1200.0, fresh=True),
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
            standardised_columns(d, 1000, mechanism),
        )
        for d in SIZES[size]
        for seed in _seeds(NUM_DATASETS[size])
        for kind, mechanism in KINDS.items()
    )


def _large(size: Size) -> tuple[Trial, ...]:
    """One data set for times on an accelerator."""
    return _sized({"quick": 5, "paper": 50}[size], 1000)


def _sized(d: int, num_rows: int) -> tuple[Trial, ...]:
    """One data set with networks as functions, for times."""
    made = standardised_columns(d, num_rows)
    return tuple(trials({"d": d, "rows": num_rows}, made, _seeds(1)))


def _cores(size: Size) -> tuple[Part, ...]:
    """Whole runs on a CPU, in processes of their own so that memory is that of one fit."""
    d, many, num_rows = {"quick": (5, 8, 200), "paper": (20, 100, 5000)}[size]
    wide = standardised_columns(many, num_rows, "signed_linear")
    some = {name: ON_CORES[size][name] for name in WHOLE if name in ON_CORES[size]}
    steps: dict[str, Runner] = {
        f"dibs, {preset}": Call(
            "claims:preset_seconds",
            {
                "preset": preset,
                "d": d,
                "num_rows": 1000,
                "num_steps": {"quick": 1, "paper": 5}[size],
            },
        )
        for preset in {"quick": ("mlp",), "paper": ("mlp", "paper-nonlinear-er20")}[size]
    }
    return (
        Part("cores", _sized(d, 1000), fits(some), limit=1800.0, fresh=True),
        Part(
            "cores",
            tuple(trials({"d": many, "rows": num_rows}, wide, _seeds(1))),
            fits({"bootstrap_ges": SYSTEMS[size]["bootstrap_ges"]}),
            limit=1800.0,
            fresh=True,
        ),
        Part("steps", (Trial({"d": d}, FIRST_SEED, None),), steps, limit=1800.0, fresh=True),
    )


def _on_device(size: Size) -> dict[str, FitRunner]:
    methods = SYSTEMS[size] if size == "quick" else ON_DEVICE
    return {name: FitRunner(method, score_truth=False) for name, method in methods.items()}


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
            without=tuple(n for n, one in RIVALS.items() if not isinstance(one, Opponent)),
        ),
        Table(
            "Times of whole runs on a CPU",
            ("d", "rows", "method", "device"),
            {
                "wall s": "seconds .0f",
                "CPU s": "cpu .0f",
                "GB": "memory_gb .2f",
                "E-SHD": "expected_shd .1f",
            },
            "One process per fit: GB is the most memory that it held, Python and libraries "
            "included. `bootstrap_ges` has linear functions, the others networks as functions of "
            "the data.",
            parts=("cores",),
        ),
        Table(
            "Steps of DiBS with networks on a CPU, 1000 rows",
            ("d", "method", "device"),
            {"CPU s per step": "step_cpu .2f", "CPU h of all its steps": "cpu_hours .1f"},
            "The hours are those of one step, times their number.",
            parts=("steps",),
        ),
        Table(
            "Times by device, networks as functions, 1000 rows",
            ("d", "device", "method"),
            {"wall s": "seconds .0f", "GB": "memory_gb .2f", "E-SHD": "expected_shd .1f"},
            "One process per fit, compilation included. GB is the most memory of the accelerator "
            "that it held.",
            parts=("device",),
        ),
    )
