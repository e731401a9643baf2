"""The paper's linear comparison: five variables, beside the exact posterior."""

from bayesdag.bench.columns import ADDITIVE, ENGINES, LINEAR, NEURAL, PATIENCE, fits, rivals
from bayesdag.bench.datasets import five_linear
from bayesdag.bench.fits import with_baselines
from bayesdag.bench.suite import FIGURES, Part, Runner, Size, Suite, Table, trials
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.bcd import BCD
from bayesdag.methods.bootstrap_ges import BootstrapGES
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.dds import DDS
from bayesdag.methods.dibs import DiBS
from bayesdag.methods.exact import Exact
from bayesdag.methods.joint import Joint
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.priors.uniform import Uniform
from bayesdag.scores.bge import BGe
from bayesdag.types import PlainData

NUM_SETS = {"quick": 1, "paper": 30}
GRAPHS = ("er", "sf")
REFERENCES = {
    "bge": Exact(BGe(), Uniform(), order_modular=False),
    "own_prior": Exact(BGe()),
}
COLUMNS = {
    "MMD to BGe, uniform prior": "mmd_bge .3f",
    "MMD to BGe, prior of `exact`": "mmd_own_prior .3f",
    "E-CPDAG-SHD": "expected_cpdag_shd .2f",
    "E-SHD": "expected_shd .2f",
    "NLL": "nll .2f",
    "edges": "expected_num_edges .1f",
    "s": "seconds .1f",
}
CAPTION = (
    "Linear functions with weights U(.5, 1.5), five variables, five edges in expectation, 500 rows "
    "to learn from and 100 held out, unequal noise. MMD with the Hamming kernel, to the exact "
    "posterior under BGe: with the uniform prior over graphs, as in the paper, and with the prior "
    "of this package's exact and collapsed engines. `published` are the settings of the paper."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    return Suite(
        title="Linear, five variables, against the exact posterior",
        caption=CAPTION,
        parts=tuple(part for graph in GRAPHS for part in _parts(size, graph)),
        tables=(Table("", ("graph", "method"), COLUMNS),),
    )


def _parts(size: Size, graph: str) -> list[Part]:
    seeds = range(FIGURES, FIGURES + NUM_SETS[size])
    sets = tuple(trials({"graph": graph.upper()}, five_linear(graph), seeds))
    ours = with_baselines(_methods(size, graph), REFERENCES, score_truth=False)
    return [
        Part(f"{graph}5", sets, ours, PATIENCE, interleaved=True),
        Part(f"{graph}5 rivals", sets[:5], _others(size), PATIENCE, interleaved=True),
    ]


def _others(size: Size) -> dict[str, Runner]:
    """Rivals, and engines for functions that need not be lines."""
    engines = {n: one for n, one in ENGINES[size].items() if n in (NEURAL, "auto")}
    return {**fits({**engines, **ADDITIVE[size]}, references=REFERENCES), **rivals(size)}


def _methods(size: Size, graph: str) -> PlainData:
    if size == "quick":
        return {LINEAR: Collapsed.PRESETS["quick"], "exact": Exact()}
    preset = f"paper-linear-{graph}5"
    return {
        "exact": Exact(),
        LINEAR: Collapsed(num_samples=2500),
        "bayesdag, published": BayesDAG.PRESETS[preset],
        "bayesdag": BayesDAG(mechanism=Linear()),
        "joint": Joint(mechanism=Linear()),
        "bootstrap_ges": BootstrapGES(),
        "bcd": BCD(),
        "dds": DDS(),
        "dibs, published": DiBS.PRESETS[preset],
        "dibs, marginal": DiBS.PRESETS["marginal"],
    }
