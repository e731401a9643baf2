"""The methods that tables compare: engines, published systems, trivial baselines, rivals.

Every setting is fixed or found from the data; nothing here knows the truth.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bayesdag.bench.fits import FitRunner
from bayesdag.bench.runners import Opponent
from bayesdag.bench.score_matching import ScoreMatching
from bayesdag.bench.suite import BASELINES, Runner, Size
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.bcd import BCD
from bayesdag.methods.bootstrap_ges import BootstrapGES
from bayesdag.methods.cam import CAM
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.dds import DDS
from bayesdag.methods.dibs import DiBS
from bayesdag.methods.joint import Joint
from bayesdag.types import Method, PlainData

Methods = dict[str, str | Method]
PATIENCE = 1800.0  # seconds until a method is given up
HOURS = 4 * 3600.0  # where a cell is many fits
NEURAL, LINEAR, PUBLISHED = "collapsed, neural", "collapsed, BGe", "bayesdag, published"
_FEW: PlainData = {"num_warmup": 4, "num_samples": 2, "thinning": 2, "num_chains": 2}
ENGINES: dict[Size, Methods] = {
    "quick": {LINEAR: Collapsed.PRESETS["quick"], "bayesdag": BayesDAG(**_FEW)},
    "paper": {
        NEURAL: Collapsed.PRESETS["neural"],
        LINEAR: Collapsed(),
        "auto": "auto",
        "bayesdag": BayesDAG(),
        "joint": Joint(),
    },
}
SYSTEMS: dict[Size, Methods] = {
    "quick": {"bootstrap_ges": BootstrapGES(num_samples=5), "dds": DDS.PRESETS["quick"]},
    "paper": {
        "bootstrap_ges": BootstrapGES(),
        "dds": DDS(),
        "bcd": BCD(),
        "dibs": DiBS.PRESETS["mlp"],
    },
}
ADDITIVE: dict[Size, Methods] = {
    "quick": {"cam": CAM(num_samples=5)},
    "paper": {"cam": CAM(num_samples=20)},
}
RIVALS: dict[str, Opponent | ScoreMatching] = {
    "GES (causal-learn)": Opponent("ges", {"penalty": 0.5}),
    "BOSS (causal-learn)": Opponent("boss", {"penalty": 0.5}),
    "GRaSP (causal-learn)": Opponent("grasp", {"penalty": 0.5}),
    "DirectLiNGAM (lingam)": Opponent("lingam", {}),
    "DAGMA-MLP (dagma)": Opponent("dagma", {"hidden": 10}),
    "NOTEARS-MLP (gcastle)": Opponent("notears_mlp", {}),
    "GraN-DAG (gcastle)": Opponent("gran_dag", {}),
    "SDCD (sdcd)": Opponent("sdcd", {}),
    "SCORE": ScoreMatching("score"),
    "NoGAM": ScoreMatching("nogam"),
    "CaPS": ScoreMatching("caps"),
    "CaPS, raw units": ScoreMatching("caps", raw=True),
}
# These train networks for minutes, however small the table.
TRAINED = ("DAGMA-MLP (dagma)", "NOTEARS-MLP (gcastle)", "GraN-DAG (gcastle)", "SDCD (sdcd)")
ACCURACY = {
    "E-SHD": "expected_shd .2f",
    "F1": "edge_f1 .3f",
    "CPDAG-SHD": "expected_cpdag_shd .2f",
    "NLL": "nll .2f",
    "AUROC": "auroc .3f",
    "log score": "log_score .4f",
    "true at p ≥ .95": "curve bin5",
    "calibration error": "unsure calibration",
    "edges": "expected_num_edges .1f",
}
# No memory: the most that a process has held is that of a fit only where it makes no other.
COST = {"s": "seconds .1f", "CPU s": "cpu .1f"}


def fits(methods: Mapping[str, str | Method], **options: Any) -> dict[str, Runner]:
    """A fit of every method; `options` are those of `FitRunner`."""
    return {name: FitRunner(m, score_truth=False, **options) for name, m in methods.items()}


def trivial(**options: Any) -> dict[str, Runner]:
    """The baselines that no table may lack."""
    return fits({name: name for name in BASELINES}, **options)


def rivals(size: Size) -> dict[str, Opponent | ScoreMatching]:
    """Other people's methods; at quick size those that answer within seconds."""
    return {
        name: runner for name, runner in RIVALS.items() if size == "paper" or name not in TRAINED
    }


def everyone(size: Size, published: str | None = None, **options: Any) -> dict[str, Runner]:
    """All columns: engines, systems of the published comparison, CAM, trivial ones, rivals.

    Args:
        published: the setting whose published presets stand beside the defaults, as "er20".
        options: those of `FitRunner`.
    """
    presets = published_presets(published) if published else {}
    methods = {**presets, **ENGINES[size], **SYSTEMS[size], **ADDITIVE[size]}
    return {**fits(methods, **options), **rivals(size), **trivial(**options)}


def others(size: Size, but: Iterable[str], *given: Any, **options: Any) -> dict[str, Runner]:
    """All columns but these, which another part of a suite has; all else is as in `everyone`."""
    left_out = set(but)
    found = everyone(size, *given, **options)
    return {name: runner for name, runner in found.items() if name not in left_out}


def published_presets(setting: str) -> Methods:
    """Settings as published, which the authors chose by looking at the truth of tuning sets."""
    found: Methods = {PUBLISHED: BayesDAG.PRESETS[f"paper-{setting}"]}
    for name in (f"paper-nonlinear-{setting}", f"paper-{setting}"):
        if name in DiBS.PRESETS:
            found["dibs, published"] = DiBS.PRESETS[name]
    return found
