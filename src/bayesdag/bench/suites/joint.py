"""The two engines of the paper side by side, and remedies for the second one."""

from dataclasses import replace
from typing import Any

from bayesdag.bench.datasets import OriginalUnits
from bayesdag.bench.fits import FitRunner, with_baselines
from bayesdag.bench.runners import Call
from bayesdag.bench.suite import Part, Size, Suite, Table, Trial, trials
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.exact import Exact
from bayesdag.methods.joint import Joint
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.scores.linear_gaussian import LinearGaussian
from bayesdag.sgmcmc.mask_gradients import StraightThrough
from bayesdag.sgmcmc.mask_moves import AveragedMasks, Flips
from bayesdag.sgmcmc.samplers.adam_sghmc import AdamSGHMC
from bayesdag.types import Facts, PlainData

VI, VI_ANNEALED = "SG-MCMC+VI", "SG-MCMC+VI, annealed"
PRINTED = "joint as printed"
FLIPS, FLIPS_SWAPS = "flips of the mask", "flips and swaps of the order"
SWAPS = "flips, swaps, no order gradient"
DEFAULT = f"{SWAPS}, annealed"  # what `Joint()` does
HEAT = 3000.0  # of annealed engines at the first step
LINEAR = Linear(intercept=False, init_scale=0.1)
AS_PRINTED = {"masks": AveragedMasks(estimate=StraightThrough()), "num_swaps": 0}
FIGURE_SEEDS, DEVELOPMENT_SEEDS = range(1000, 1010), range(1, 5)
ROWS = {"linear": (1000, 500), "mlp": (5000, 1000)}  # to learn from, held out
# Few rows and steps, to see that everything runs.
FEW = {"num_warmup": 4, "num_samples": 2, "thinning": 2, "num_chains": 2}
QUALITY = {
    "E-SHD": "expected_shd .1f",
    "F1": "edge_f1 .2f",
    "edges": "expected_num_edges .1f",
    "AUROC": "auroc .2f",
    "NLL": "nll .2f",
    "log joint": "log_joint .0f",
    "best log joint": "best_log_joint .0f",
    "effective masks": "effective_masks .2f",
    "chains": "num_chains .0f",
    "s per data set": "seconds .0f",
}
DIFFERENCES = {"E-SHD": "expected_shd .1f", "F1": "edge_f1 .3f", "NLL": "nll .2f"}
DIFFERENCES |= {"best log joint": "best_log_joint .0f"}
DISTANCES = {
    "largest edge error": "edge_error .2f",
    "MMD": "mmd .3f",
    "TV": "total_variation .2f",
    "edges": "expected_num_edges .1f",
    "edges of the exact posterior": "exact_edges .1f",
    "s per data set": "seconds .0f",
}
CAPTION = (
    "A reversal counts 1 in SHD; NLL is per held-out row in the units of the data, which are "
    "raw; log joint: under each method's own model, so that baselines do not compare in it; "
    "effective masks: of those weighed for each draw, node by node. Rows to learn from and held "
    "out: (5000, 1000) with networks, (1000, 500) with linear functions."
)
TITLES = {
    "figure": "The paper's figure: nonlinear, d=10, seeds from 1000",
    "nonlinear": "Remedies, nonlinear, d=10, development seeds",
    "linear": "Remedies, linear, d=10, development seeds",
    "truth": "Chains that start at the true graph, development seeds",
}


def engines(**shared: Any) -> PlainData:
    """Both engines of the paper and the remedies, at equal settings."""
    printed = Joint(**shared, **AS_PRINTED, order_gradient=True, start_heat=1.0)
    averaged = replace(printed, masks=AveragedMasks())
    flips = replace(printed, masks=Flips())
    swaps = replace(flips, num_swaps=1)
    alone = replace(swaps, order_gradient=False)
    larger = AdamSGHMC(step_size=0.2, num_adapt=None)
    return {
        VI: BayesDAG(**shared, start_heat=1.0),
        PRINTED: printed,
        DEFAULT: replace(alone, start_heat=HEAT),
        VI_ANNEALED: BayesDAG(**shared, start_heat=HEAT),
        f"{DEFAULT} from 1000": replace(alone, start_heat=1000.0),
        f"{DEFAULT} from 100": replace(alone, start_heat=100.0),
        "flips, swaps, annealed from 1000": replace(swaps, start_heat=1000.0),
        SWAPS: alone,
        FLIPS_SWAPS: swaps,
        FLIPS: flips,
        "self-normalised slopes": averaged,
        "+ 4 logit steps a step": replace(averaged, masks=AveragedMasks(num_steps=4)),
        "+ larger adaptive logit steps": replace(averaged, logit_sampler=larger),
    }


def build(size: Size) -> Suite:
    """The suite of this size."""
    parts = (
        _remedies("figure", "mlp", size, only=(VI, VI_ANNEALED, PRINTED, DEFAULT)),
        _remedies("nonlinear", "mlp", size),
        _remedies("linear", "linear", size),
        _remedies("truth", "mlp", size, only=(SWAPS, f"{DEFAULT} from 1000", VI), from_truth=True),
        _exact(size),
        _gradients(size),
        _step_time(size),
    )
    return Suite("The joint engine", CAPTION, parts, _tables())


def _remedies(
    name: str, kind: str, size: Size, only: tuple[str, ...] = (), from_truth: bool = False
) -> Part:
    """Engines on data with networks, or with linear functions and all rows in every step."""
    settings: PlainData = {"num_warmup": 3000}  # 500 epochs
    if kind == "linear":
        settings = {"num_warmup": 1000, "num_samples": 10, "thinning": 25, "num_chains": 8}
        settings |= {"mechanism": LINEAR, "batch_size": ROWS["linear"][0]}
    wanted = _chosen(settings, size, only)
    seeds = FIGURE_SEEDS if name == "figure" else DEVELOPMENT_SEEDS
    rows, test = ROWS[kind] if size == "paper" else (200, 50)
    found: list[Trial] = []
    for graph in ("er", "sf"):
        made = Synthetic(graph=graph, mechanism=kind, num_train=rows, num_test=test)
        shown = seeds if size == "paper" else seeds[:1]
        found += trials({"graph": graph.upper()}, OriginalUnits(made), shown)
    return Part(name, tuple(found), with_baselines(wanted, from_truth=from_truth))


def _chosen(settings: Facts, size: Size, only: tuple[str, ...]) -> PlainData:
    """These engines, or all; in a quick run short ones, and few: each is compiled anew."""
    if size == "paper":
        found = engines(**settings)
        return {name: found[name] for name in only or found}
    found = engines(**dict(settings) | FEW)
    return {name: found[name] for name in (VI, DEFAULT) if not only or name in only}


def _exact(size: Size) -> Part:
    """Many independent chains, beside the exact posterior of the same model."""
    settings = {"num_chains": 16, "num_warmup": 1000, "num_samples": 20, "thinning": 25}
    settings |= {"mechanism": LINEAR}
    only = (VI, PRINTED, FLIPS, FLIPS_SWAPS, SWAPS, DEFAULT)
    found = _chosen(settings, size, only)
    found[VI] = replace(found[VI], share_edges=False)
    reference = {"": Exact(LinearGaussian())}
    made = [
        trial
        for graph in ("er", "sf")
        for trial in trials(
            {"graph": graph.upper()},
            Synthetic(num_variables=5, mechanism="linear", num_train=100, graph=graph),
            FIGURE_SEEDS[:5] if size == "paper" else FIGURE_SEEDS[:1],
        )
    ]
    return Part("exact", tuple(made), with_baselines(found, references=reference))


def _gradients(size: Size) -> Part:
    many = {"num_rows": (20, 200), "num_masks": (4, 16, 64), "repetitions": 2000}
    few = {"num_rows": (20,), "num_masks": (4,), "repetitions": 100}
    call = Call("gradients:measure_gradients", many if size == "paper" else few)
    return Part("gradients", (Trial({}, 1, None),), {"all": call}, one_thread=True)


def _step_time(size: Size) -> Part:
    """The paper's settings; the least CPU time per step of a short run."""
    short = {"num_warmup": 30 if size == "paper" else 3, "num_samples": 1, "thinning": 1}
    found = engines(**short)
    only = (VI, PRINTED, FLIPS, SWAPS, DEFAULT) if size == "paper" else (VI,)
    runners = {name: FitRunner(found[name]) for name in only}
    made = Synthetic(num_train=5000, num_test=0)
    return Part("time", (Trial({"d": 10}, 0, made),), runners, one_thread=True)


def _tables() -> tuple[Table, ...]:
    found = []
    for part, title in TITLES.items():
        found.append(Table(title, ("graph", "method"), QUALITY, parts=(part,)))
        caption = f"Differences to {VI} on the same data, ER and SF together:"
        found.append(Table("", ("method",), DIFFERENCES, caption, parts=(part,), less=VI))
    found.append(
        Table(
            "Linear, d=5, 100 rows: distance to the exact posterior of the same model",
            ("method",),
            DISTANCES,
            parts=("exact",),
        )
    )
    found.append(
        Table(
            "Estimates of the gradient in the mask logits, linear, d=5",
            ("rows", "masks", "estimate"),
            {
                "true gradient": "true_gradient .3g",
                "bias": "bias .3g",
                "deviation": "deviation .3g",
            },
            parts=("gradients",),
        )
    )
    found.append(
        Table(
            "CPU seconds per step: 10 chains, batch 512, d=10, networks of 64 units",
            ("method",),
            {"seconds": "step_cpu .3g"},
            parts=("time",),
            ratio=("times faster", "step_cpu", VI),
        )
    )
    return tuple(found)
