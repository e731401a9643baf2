"""BCD Nets: a variational posterior over permutations, triangular weights and noise.

Cundy, Grover & Ermon (2021), BCD Nets: scalable variational approaches for Bayesian causal
discovery, NeurIPS. With places in the order as rows and columns, the weights are triangular:
W = P U Pᵀ. Written from the paper; the authors' code carries no licence and was not read.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from bayesdag.baselines.flows import start_flow, transform
from bayesdag.baselines.likelihood import GradientContext, log_likelihood
from bayesdag.baselines.optimisers import descend
from bayesdag.baselines.permutations import gumbel_sinkhorn
from bayesdag.model.mechanisms.linear import Linear
from bayesdag.model.parameter_priors import noise_energy
from bayesdag.sgmcmc.relaxations.sinkhorn import Sinkhorn
from bayesdag.types import Array, Graph, Key, Params

NOISE_SHAPE, NOISE_RATE = 1.5, 1.0  # σ² ~ InverseGamma, in engine units
_START_SPREAD = -2.0  # log deviation of the triangular weights at the start
_LINEAR = Linear(intercept=False)


class VariationalState(NamedTuple):
    """The variational posterior and its optimiser.

    Attributes:
        variational: parameters.
        optimiser: state of Adam.
    """

    variational: Params
    optimiser: optax.OptState


@dataclass(frozen=True)
class BCDKernel:
    """One step of stochastic gradient ascent on the evidence lower bound.

    Attributes:
        equal_noise: one noise variance for all variables.
        horseshoe_scale: τ of the prior of the weights.
        num_draws: Monte-Carlo draws per step.
        hidden: units of the network that reads (U, σ) and returns the scores of P.
        sinkhorn: relaxation of the permutation.
        learning_rate: of Adam, at first; it falls to zero along a cosine.
        num_steps: of the whole run.
        flow_layers: of a normalising flow of (U, log σ); 0: a diagonal Gaussian.
    """

    equal_noise: bool
    horseshoe_scale: float
    num_draws: int
    hidden: int
    sinkhorn: Sinkhorn
    learning_rate: float
    num_steps: int
    flow_layers: int

    def start(self, key: Key, d: int) -> VariationalState:
        """A wide posterior over all orders, with weights near zero.

        It prefers some orders slightly. Where all are equally probable, the best weights are near
        zero, and without weights no order is better than another: a plateau that hundreds of
        nats, and thousands of steps, may not lead away from.
        """
        num_weights, num_scales = d * (d - 1) // 2, 1 if self.equal_noise else d
        key_first, key_last, key_mean, key_bias = jax.random.split(key, 4)
        inputs = num_weights + num_scales
        variational = {
            "mean": 0.1 * jax.random.normal(key_mean, (inputs,)),
            "log_deviation": jnp.full(inputs, _START_SPREAD),
            "first": jax.random.normal(key_first, (inputs, self.hidden)) / inputs**0.5,
            "first_bias": jnp.zeros(self.hidden),
            "last": 0.1 * jax.random.normal(key_last, (self.hidden, d * d)) / self.hidden**0.5,
            "last_bias": jax.random.normal(key_bias, (d * d,)),
        }
        if self.flow_layers:
            key_flow = jax.random.fold_in(key, 3)
            variational["flow"] = start_flow(key_flow, self.flow_layers, inputs, self.hidden)
        return VariationalState(variational, self._optimiser.init(variational))

    def step(
        self, key: Key, step: Array, state: VariationalState, context: GradientContext
    ) -> tuple[VariationalState, dict[str, Array]]:
        """The posterior after one step; the energy is the negative bound."""
        del step

        def loss(variational: Params) -> tuple[Array, Array]:
            keys = jax.random.split(key, self.num_draws)
            bound, sweeps = jax.vmap(lambda k: self._bound(k, variational, context))(keys)
            return -bound.mean(), sweeps.astype(jnp.float32).mean()

        (energy, sweeps), grad = jax.value_and_grad(loss, has_aux=True)(state.variational)
        variational, optimiser = descend(self._optimiser, grad, state.optimiser, state.variational)
        stats = {"energy": energy[None], "sinkhorn_sweeps": sweeps[None]}
        return VariationalState(variational, optimiser), stats

    def keep(self, key: Key, state: VariationalState, context: GradientContext) -> Params:
        """The variational parameters."""
        del key, context
        return state.variational

    def draw(self, key: Key, variational: Params, d: int) -> tuple[Graph, Array, Array]:
        """Weights with their order, and log noise scales; then the order itself."""
        (weights, log_scale, order), _ = self._sampled(key, variational, d)
        return weights, log_scale, order

    @property
    def _optimiser(self) -> optax.GradientTransformation:
        # Steps that are large enough to find an order throw it about later.
        return optax.adam(optax.cosine_decay_schedule(self.learning_rate, self.num_steps))

    def _sampled(
        self, key: Key, variational: Params, d: int
    ) -> tuple[tuple[Graph, Array, Array], tuple[Array, Array, Array, Array]]:
        """(W, log σ, order), and (U, log density of (U, log σ), scores of P, sweeps)."""
        key_continuous, key_order = jax.random.split(key)
        drawn, log_density = self._continuous(key_continuous, variational)
        num_weights = d * (d - 1) // 2
        triangle, log_scale = drawn[:num_weights], drawn[num_weights:]
        hidden = jnp.tanh(drawn @ variational["first"] + variational["first_bias"])
        logits = (hidden @ variational["last"] + variational["last_bias"]).reshape(d, d)
        permutation, sweeps = gumbel_sinkhorn(key_order, logits, self.sinkhorn)
        upper = jnp.zeros((d, d)).at[np.triu_indices(d, k=1)].set(triangle)
        weights = permutation @ upper @ permutation.T
        before = jnp.triu(jnp.ones((d, d)), k=1)
        order = permutation @ before @ permutation.T
        scale = jnp.broadcast_to(log_scale, (d,))
        return (weights, scale, order), (triangle, log_density, logits, sweeps)

    def _continuous(self, key: Key, variational: Params) -> tuple[Array, Array]:
        """A draw of (U, log σ) and its log density, up to a constant."""
        mean, log_deviation = variational["mean"], variational["log_deviation"]
        standard = jax.random.normal(key, mean.shape)
        drawn = mean + jnp.exp(log_deviation) * standard
        log_density = (-0.5 * standard**2 - log_deviation).sum()
        if not self.flow_layers:
            return drawn, log_density
        drawn, log_det = transform(variational["flow"], drawn)
        return drawn, log_density - log_det

    def _bound(
        self, key: Key, variational: Params, context: GradientContext
    ) -> tuple[Array, Array]:
        """One Monte-Carlo draw of the evidence lower bound, and Sinkhorn's sweeps."""
        d = context.num_rows.shape[0]
        (weights, log_scale, _), (triangle, log_density, logits, sweeps) = self._sampled(
            key, variational, d
        )
        noise = {"log_scale": log_scale}
        params = {"mechanism": {"weights": weights}, "noise": noise}
        likelihood = log_likelihood(_LINEAR, params, jnp.ones_like(weights), context)
        own = {"log_scale": log_scale[:1]} if self.equal_noise else noise
        prior = log_horseshoe(triangle, self.horseshoe_scale).sum()
        prior = prior - noise_energy(own, NOISE_SHAPE, NOISE_RATE)
        return likelihood + prior - log_density - gumbel_divergence(logits), sweeps


def gumbel_divergence(logits: Graph) -> Float[Array, ""]:
    """KL of Gumbel variables with these locations from standard ones.

    It bounds that of the permutations that they decide, whose own density needs a permanent.
    """
    return (logits + jnp.exp(-logits) - 1).sum()


def log_horseshoe(x: Array, scale: float) -> Array:
    """Log density of the horseshoe, (2π³)^-½ exp(z) E1(z) / τ with z = x² / 2τ².

    exp(z) E1(z) by the approximation of Barry, Parlange & Li (2000), good to 0.1 %.
    """
    z = jnp.maximum(x**2 / (2 * scale**2), 1e-12)
    ratio = float(np.exp(-np.euler_gamma))
    slope = (2 * (1 - ratio) / (ratio * (2 - ratio))) ** 0.5
    limit = (1 - ratio) * (ratio**2 - 6 * ratio + 12) / (3 * ratio * (2 - ratio) ** 2 * slope)
    power = 20 / 47 * z ** (31 / 26) ** 0.5
    middle = 1 / (1 + z * jnp.sqrt(z)) + limit * power / (1 + power)
    inner = jnp.log1p(ratio / z - (1 - ratio) / (middle + slope * z) ** 2)
    value = inner / (ratio + (1 - ratio) * jnp.exp(-z / (1 - ratio)))
    return jnp.log(value) - 0.5 * float(np.log(2 * np.pi**3)) - float(np.log(scale))
