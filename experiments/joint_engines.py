"""The engines that `experiments/joint.py` compares, each at the settings of its opponents."""

from dataclasses import replace
from typing import Any

from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.methods.joint import Joint
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.sgmcmc.mask_gradients import StraightThrough
from bayesdag.sgmcmc.mask_moves import AveragedMasks, Flips
from bayesdag.sgmcmc.samplers.adam_sghmc import AdamSGHMC

ROWS = {"linear": (1000, 500), "mlp": (5000, 1000), "trial": (600, 50)}  # to learn from, held out
VI, VI_ANNEALED = "SG-MCMC+VI", "SG-MCMC+VI, annealed"
PRINTED = "joint as printed"
SWAPS = "flips, swaps, no order gradient"
DEFAULT = f"{SWAPS}, annealed"  # what `Joint()` does
FIGURE = (VI, VI_ANNEALED, PRINTED)
FROM_TRUTH = (SWAPS, VI)
_HEAT = 3000.0  # of annealed engines at the first step
_AS_PRINTED = {"masks": AveragedMasks(estimate=StraightThrough()), "num_swaps": 0}
_LINEAR = Linear(intercept=False, init_scale=0.1)


def linear() -> dict[str, Any]:
    """Linear functions, all rows in every step."""
    return _engines(
        mechanism=_LINEAR,
        num_chains=8,
        num_warmup=1000,
        num_samples=10,
        thinning=25,
        batch_size=ROWS["linear"][0],
    )


def nonlinear() -> dict[str, Any]:
    """The defaults (the paper's networks, 10 chains, batches of 512), for 500 epochs."""
    return _engines(num_warmup=3000)


def small_linear() -> dict[str, Any]:
    """For distances to an exact posterior: many independent chains."""
    found = _engines(mechanism=_LINEAR, num_chains=16, num_warmup=1000, num_samples=20, thinning=25)
    wanted = (VI, PRINTED, "flips of the mask", "flips and swaps of the order", SWAPS, DEFAULT)
    return {name: found[name] for name in wanted} | {VI: replace(found[VI], share_edges=False)}


def timed() -> dict[str, Any]:
    """The paper's settings at d=10."""
    found = _engines(num_warmup=10**6, num_samples=1, thinning=1)
    return {name: found[name] for name in (VI, PRINTED, "flips of the mask", SWAPS, DEFAULT)}


def _engines(**shared: Any) -> dict[str, Any]:
    """Both engines of the paper and the remedies, at equal settings."""
    printed = Joint(**shared, **_AS_PRINTED, order_gradient=True, start_heat=1.0)
    averaged = replace(printed, masks=AveragedMasks())
    flips = replace(printed, masks=Flips())
    swaps = replace(flips, num_swaps=1)
    alone = replace(swaps, order_gradient=False)
    larger = AdamSGHMC(step_size=0.2, num_adapt=None)
    return {
        VI: BayesDAG(**shared, start_heat=1.0),
        PRINTED: printed,
        DEFAULT: replace(alone, start_heat=_HEAT),
        VI_ANNEALED: BayesDAG(**shared, start_heat=_HEAT),
        f"{DEFAULT} from 1000": replace(alone, start_heat=1000.0),
        f"{DEFAULT} from 100": replace(alone, start_heat=100.0),
        "flips, swaps, annealed from 1000": replace(swaps, start_heat=1000.0),
        SWAPS: alone,
        "flips and swaps of the order": swaps,
        "flips of the mask": flips,
        "self-normalised slopes": averaged,
        "+ 4 logit steps a step": replace(averaged, masks=AveragedMasks(num_steps=4)),
        "+ larger adaptive logit steps": replace(averaged, logit_sampler=larger),
    }
