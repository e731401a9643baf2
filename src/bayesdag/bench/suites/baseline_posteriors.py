"""Distance of the published comparison's systems from exact posteriors, on five variables."""

from collections.abc import Mapping
from typing import NamedTuple

from bayesdag.bench.columns import trivial
from bayesdag.bench.datasets import standardised_columns
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.horseshoe import HorseshoeOrders
from bayesdag.bench.suite import Part, Runner, Size, Suite, Table, trials
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.bcd import BCD
from bayesdag.methods.bootstrap_ges import BootstrapGES
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.dds import DDS
from bayesdag.methods.dibs import DiBS
from bayesdag.methods.exact import Exact
from bayesdag.model.priors.erdos_renyi import ErdosRenyi
from bayesdag.scores.linear_gaussian import LinearGaussian
from bayesdag.types import Method

FIRST_SEED = 1000  # smaller seeds are for development
NUM_SETS = {"quick": 1, "paper": 5}
ROWS = (100, 500)
# Every graph once, as DiBS counts them, and one expected parent per variable.
BGE = Exact(prior=ErdosRenyi(), order_modular=False)
OF_DIBS = Exact(LinearGaussian(), ErdosRenyi(), order_modular=False)
OF_BCD = HorseshoeOrders()


class ComparedSystem(NamedTuple):
    """A method, and the posterior of its own model where it can be computed."""

    method: Method
    own: Method | None = None


SYSTEMS: Mapping[str, Mapping[str, ComparedSystem]] = {
    "quick": {
        "bootstrap_ges": ComparedSystem(BootstrapGES(num_samples=5)),
        "dibs": ComparedSystem(DiBS.PRESETS["quick"], OF_DIBS),
        "bcd": ComparedSystem(BCD.PRESETS["quick"], OF_BCD),
        "dds": ComparedSystem(DDS.PRESETS["quick"]),
    },
    "paper": {
        "bootstrap_ges": ComparedSystem(BootstrapGES()),
        "bootstrap_ges, weighted": ComparedSystem(BootstrapGES(weighted=True), BGE),
        "dibs": ComparedSystem(DiBS(), OF_DIBS),
        "dibs, marginal": ComparedSystem(DiBS.PRESETS["marginal"], BGE),
        "bcd": ComparedSystem(BCD(), OF_BCD),
        "bcd, flow": ComparedSystem(BCD.PRESETS["flow"], OF_BCD),
        "dds": ComparedSystem(DDS()),
        "collapsed": ComparedSystem(Collapsed()),
    },
}


def build(size: Size) -> Suite:
    """The suite of this size."""
    seeds = range(FIRST_SEED, FIRST_SEED + NUM_SETS[size])
    sets = [trial for num in ROWS for trial in trials({"rows": num}, _made(num), seeds)]
    systems = {name: _runner(system) for name, system in SYSTEMS[size].items()}
    runners = {**systems, **trivial(references={"": BGE})}
    return Suite(
        title="Baselines beside exact posteriors",
        caption="Linear functions, Gaussian noise, five variables, one edge per node, standardised "
        "columns.",
        parts=(Part("small", tuple(sets), runners, interleaved=True),),
        tables=(
            Table(
                "Distance from the exact posterior of BGe",
                ("rows", "method"),
                {
                    "MMD": "mmd .3f",
                    "largest edge error": "edge_error .3f",
                    "total variation": "total_variation .3f",
                    "edges": "expected_num_edges .1f",
                    "edges, exact": "exact_edges .1f",
                    "wall s": "seconds .1f",
                },
                "Every graph counts once, one expected parent per variable. MMD is that of the "
                "Hamming kernel, which sees edge probabilities alone.",
            ),
            Table(
                "Distance from the exact posterior of its own model",
                ("rows", "method"),
                {
                    "MMD": "mmd_own .3f",
                    "largest edge error": "edge_error_own .3f",
                    "edges": "expected_num_edges .1f",
                    "edges, exact": "exact_edges_own .1f",
                },
                "`dibs`: weights N(0, 1), variances inverse gamma, summed over all graphs. `bcd`: "
                "horseshoe weights, summed over all orders; edges are weights above the threshold "
                "(4000 draws: edge probabilities within 0.02). Weighted `bootstrap_ges` and "
                "marginal `dibs` have BGe. The others have no posterior of their own.",
                methods=tuple(name for name, system in SYSTEMS[size].items() if system.own),
            ),
        ),
    )


def _made(num_rows: int) -> Synthetic:
    return standardised_columns(5, num_rows, "signed_linear")


def _runner(system: ComparedSystem) -> Runner:
    own = {} if system.own is None else {"own": system.own}
    return FitRunner(system.method, {"": BGE, **own}, score_truth=False)
