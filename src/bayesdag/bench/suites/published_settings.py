"""The four systems of the published comparison on settings with published figures."""

from dataclasses import dataclass, replace

from bayesdag.bench.columns import fits, trivial
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.runners import Opponent
from bayesdag.bench.suite import Part, Runner, Size, Suite, Table, trials
from bayesdag.data import read
from bayesdag.datasets import Benchmark
from bayesdag.datasets.sachs import Sachs
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.bcd import BCD
from bayesdag.methods.bootstrap_ges import BootstrapGES
from bayesdag.methods.dds import DDS
from bayesdag.methods.dibs import DiBS
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.priors.erdos_renyi import ErdosRenyi

FIRST_SEED = 1000  # of generated data sets; smaller ones are for development
NUM_SETS = {"quick": 1, "paper": 5}
# The published comparison draws 800 of the 853 cells with replacement.
CELLS = Sachs(num_bootstrap=800)
# DiBS' own setting: 20 variables, two edges per node, 100 rows, linear functions, noise 0.1.
OWN = Synthetic(
    num_variables=20,
    edges_per_node=2,
    expected=True,
    mechanism="signed_linear",
    noise_variance=0.1,
    num_train=100,
    num_test=0,
)
# The published comparison told DiBS how many edges the truth has: 17, of 11 variables.
TOLD = replace(DiBS.PRESETS["paper-sachs"], prior=ErdosRenyi(expected_parents=17 / 11))
TOLD_LINEAR = replace(TOLD, mechanism=Linear(intercept=False))
TOLD_NETWORKS = replace(TOLD, num_graphs=8, num_acyclicity_graphs=8)
# `dibs-lib` multiplies logits by what it calls the temperature: its 0.1 is our 10.
SOFT = {"temperature": 10.0}
SMALL = {"quick": {"num_variables": 5, "edges_per_node": 1}, "paper": {}}
SYSTEMS = {
    "quick": {
        "bootstrap_ges": BootstrapGES(num_samples=5),
        "dds": DDS.PRESETS["quick"],
        "bcd": BCD.PRESETS["quick"],
        "dibs": DiBS.PRESETS["quick"],
    },
    "paper": {
        "bootstrap_ges": BootstrapGES(),
        "bootstrap_ges, weighted": BootstrapGES(weighted=True),
        "dds": DDS(),
        **{f"dds, λ = {weight:g}": DDS(regularisation=weight) for weight in (1e-3, 1e-4, 0.0)},
        "bcd": BCD(),
        "bcd, flow": BCD.PRESETS["flow"],
        "dibs": DiBS(),
        "dibs, told, linear": TOLD_LINEAR,
        "dibs, told, networks": TOLD,  # hours on a CPU
        "dibs, told, linear, 2000 steps": replace(TOLD_LINEAR, num_steps=2000),
        **{
            f"dibs, told, networks, {steps} steps": replace(TOLD_NETWORKS, num_steps=steps)
            for steps in (500, 1000, 2000)
        },
        "dibs, told, linear, soft, 2000 steps": replace(TOLD_LINEAR, num_steps=2000, **SOFT),
        "dibs, told, networks, soft, 1000 steps": replace(TOLD_NETWORKS, num_steps=1000, **SOFT),
    },
}
PUBLISHED = (
    "Published (BayesDAG, table 2; five restarts, 95 % intervals): E-SHD of bootstrap GES "
    "16.61 ± 0.44, BCD 17.05 ± 1.93, DiBS 22.3 ± 0.31, DDS 34.90 ± 0.73; F1 0.22 ± 0.02, "
    "0.20 ± 0.08, 0.20 ± 0.01 and 0.21 ± 0.02. BCD and DiBS were told there how many edges the "
    "truth has; here those are that are called told. `dibs, told` has the published settings "
    "(10000 steps, bandwidths, rate, temperature) with linear functions or networks, which the "
    "publication had; networks with fewer steps have 8 Monte-Carlo graphs in the place of 128. The "
    "published temperature 0.1 divides logits here; soft is where it multiplies them, as in "
    "`dibs-lib`. The empty graph has E-SHD 17 and F1 0: E-SHD alone does not tell a method that "
    "found something from one that found nothing."
)


@dataclass(frozen=True)
class Centred:
    """Rows in the units they were generated in, which tell the order by their variances.

    Attributes:
        source: makes the rows.
    """

    source: Synthetic

    def __call__(self, seed: int) -> Benchmark:
        """The data set of this seed."""
        made = self.source(seed)
        return replace(made, train=read(made.train, scaling="centre"))


def build(size: Size) -> Suite:
    """The suite of this size."""
    seeds, made = range(NUM_SETS[size]), range(FIRST_SEED, FIRST_SEED + NUM_SETS[size])
    own = Centred(replace(OWN, **SMALL[size]))
    return Suite(
        title="Published settings",
        caption="The Sachs data as measured, standardised; a reversal counts 1 in SHD.",
        parts=(
            Part("sachs", tuple(trials({}, CELLS, seeds)), _fits(size), interleaved=True),
            Part("dibs", tuple(trials({}, own, made)), _dibs(size), interleaved=True),
        ),
        tables=(
            Table(
                "Sachs, 800 cells with replacement",
                ("method",),
                {
                    "E-SHD": "expected_shd .2f",
                    "F1": "edge_f1 .2f",
                    "edges": "expected_num_edges .1f",
                },
                PUBLISHED,
                parts=("sachs",),
            ),
            Table(
                "DiBS in a setting of its paper: linear, 20 variables, 40 edges, 100 rows",
                ("method",),
                {
                    "E-SHD": "expected_shd .1f",
                    "AUROC": "auroc .3f",
                    "edges": "expected_num_edges .1f",
                },
                "`dibs-lib` is the authors' package with its defaults, told the noise variance.",
                parts=("dibs",),
            ),
        ),
    )


def _fits(size: Size) -> dict[str, Runner]:
    return {**fits(SYSTEMS[size]), **trivial()}


def _dibs(size: Size) -> dict[str, Runner]:
    steps = {"quick": 100, "paper": 2000}[size]
    graphs = {"quick": 16, "paper": 128}[size]
    joint = DiBS(num_steps=steps, num_graphs=graphs)
    marginal = {"quick": DiBS.PRESETS["quick"], "paper": DiBS.PRESETS["marginal"]}[size]
    return {
        "dibs": FitRunner(joint, score_truth=False),
        "dibs, marginal": FitRunner(marginal, score_truth=False),
        "dibs-lib": Opponent("dibs_lib", {"steps": steps, "particles": 20, "variance": 0.1}),
        **trivial(),
    }
