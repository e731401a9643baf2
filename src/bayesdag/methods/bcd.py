"""BCD Nets: variational inference over permutations and triangular weights, linear models."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from bayesdag.baselines.bcd import BCDKernel
from bayesdag.baselines.likelihood import (
    GradientContext,
    gradient_context,
    log_likelihood,
    with_intercept,
)
from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.noises.gaussian import Gaussian
from bayesdag.model.scm import SCM
from bayesdag.posterior import Posterior, from_draws
from bayesdag.random import jax_key
from bayesdag.runs import loop
from bayesdag.runs.recording import recorder_of
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn
from bayesdag.types import Array, Duration, ExactDependence, Key, Keys, Monitor, Params, PlainData

MIN_ROWS = 10


@dataclass(frozen=True)
class BCD:
    """A baseline: BCD Nets, a variational posterior over orders, weights and noise variances.

    Every draw is a whole order with a weight for each pair; weights below `threshold` count as
    no edge. Knowledge is refused: it would have to act on the order.

    Attributes:
        num_samples: draws of the fitted posterior.
        num_steps: steps of Adam.
        learning_rate: of Adam, at first; it falls to zero along a cosine.
        equal_noise: one noise variance for all variables.
        horseshoe_scale: τ, the global scale of the horseshoe prior of the weights.
        threshold: absolute weight, in engine units, below which there is no edge.
        num_draws: Monte-Carlo draws of the bound per step.
        hidden: units of the network from weights to the scores of orders.
        sinkhorn: relaxation whose gradient the orders follow.
        flow_layers: layers of a normalising flow in the posterior of weights and noise; 0: it is
            Gaussian, without correlations.

    References:
        Cundy, Grover, Ermon: BCD Nets: scalable variational approaches for Bayesian causal
        discovery. NeurIPS 2021.
    """

    PRESETS: ClassVar[dict[str, "BCD"]]
    supported_constraints = frozenset[str]()
    supports_interventions = True
    exact_dependence = ExactDependence.REFUSED

    num_samples: int = 100
    num_steps: int = 3000
    learning_rate: float = 0.02
    equal_noise: bool = False
    horseshoe_scale: float = 0.1
    threshold: float = 0.3
    num_draws: int = 8
    hidden: int = 128
    sinkhorn: Sinkhorn = Sinkhorn(temperature=0.2)
    flow_layers: int = 0

    def __post_init__(self) -> None:
        for name in ("num_samples", "num_steps", "num_draws", "hidden"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.flow_layers < 0:
            raise InputError(f"flow_layers is {self.flow_layers}; it must be 0 or more")
        for name in ("horseshoe_scale", "learning_rate"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name):g}; it must be above 0")

    def min_rows(self, d: int) -> int:
        """Fewer rows than this say nothing."""
        del d
        return MIN_ROWS

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """In proportion to steps and draws; orders cost the cube of the variables."""
        del num_rows  # they are looked at once
        one = 4e-4 + 3e-8 * num_variables**3  # seconds per draw
        seconds = 10 + one * self.num_draws * self.num_steps  # compiling first
        return Duration(seconds, ("fewer num_draws", "fewer num_steps"))

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """Draws of the fitted posterior."""
        key_start, key_run, key_draws = jax.random.split(jax_key(key), 3)
        context = gradient_context(data, knowledge, Linear())
        kernel, d = self._kernel, data.num_variables
        schedule = loop.Schedule(self.num_steps - 1, 1, 1)
        state = kernel.start(key_start, d)
        done = loop.run(key_run, kernel, state, context, schedule, recorder_of(monitor))
        fitted = jax.tree.map(lambda leaf: leaf[0], done.draws)
        keys = [jax.random.fold_in(key_draws, number) for number in range(self.num_samples)]
        drawn = _draws(kernel, jnp.stack(keys), fitted, d)
        weights, log_scale, order = (np.asarray(part) for part in drawn)
        graphs = ((np.abs(weights) > self.threshold) & (order > 0.5)).astype(np.int8)
        noise = {"log_scale": log_scale}
        log_joint = _log_likelihoods(weights, graphs.astype(np.float32), noise, context)
        params = {"mechanism": with_intercept(weights, graphs, data), "noise": noise}
        sweeps = float(np.asarray(done.stats["sinkhorn_sweeps"]).mean())
        return from_draws(
            graphs[None],
            SCM(Linear(), Gaussian(), data.scaling),
            jax.tree.map(lambda leaf: leaf[None], params),
            data,
            log_joint=np.asarray(log_joint)[None],
            provenance=self._words(sweeps),
        )

    @property
    def _kernel(self) -> BCDKernel:
        return BCDKernel(
            equal_noise=self.equal_noise,
            horseshoe_scale=self.horseshoe_scale,
            num_draws=self.num_draws,
            hidden=self.hidden,
            sinkhorn=self.sinkhorn,
            learning_rate=self.learning_rate,
            num_steps=self.num_steps,
            flow_layers=self.flow_layers,
        )

    def _words(self, sweeps: float) -> PlainData:
        noise = "one variance" if self.equal_noise else "a variance per variable"
        return {
            "model": f"linear functions, Gaussian noise with {noise} (σ² inverse gamma)",
            "prior": f"orders uniform, weights horseshoe (τ = {self.horseshoe_scale:g}); weights "
            f"below {self.threshold:g} in engine units are no edges",
            "temperature": 1.0,
            "independent": True,
            "notes": [
                "baseline: a published method to compare with; its draws are independent, "
                "whatever the distance of a variational approximation from the posterior",
                f"Sinkhorn took {sweeps:.0f} sweeps at the end, with Newton's steps between them; "
                "log_joint is a log likelihood",
            ],
        }


@partial(jax.jit, static_argnums=(0, 3))
def _draws(kernel: BCDKernel, keys: Keys, fitted: Params, d: int) -> tuple[Array, Array, Array]:
    return jax.vmap(lambda key: kernel.draw(key, fitted, d))(keys)


@jax.jit
def _log_likelihoods(
    weights: Float[Array, "s d d"],
    graphs: Float[Array, "s d d"],
    noise: Params,
    context: GradientContext,
) -> Float[Array, " s"]:
    def one(weights: Array, graph: Array, noise: Params) -> Array:
        params = {"mechanism": {"weights": weights}, "noise": noise}
        return log_likelihood(Linear(), params, graph, context)

    return jax.vmap(one)(weights, graphs, noise)


BCD.PRESETS = {
    "quick": BCD(num_steps=500, hidden=32),
    "equal-noise": BCD(equal_noise=True),
    "flow": BCD(flow_layers=2),
}

build = BCD
