"""Population annealing: how chains find good orders during the warm-up.

At first the likelihood is tempered for orders and edges: raised to a power below a thousandth,
so that functions are learned under many graphs. The power then grows to 1, and chains are
resampled by how much better they explain the data than the others. Functions are never
tempered: they would be forgotten.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from bayesdag.sgmcmc.samplers._trees import flatten
from bayesdag.types import Array, Key, Pytree

_STAGES = 50  # resamplings of the chains


def likelihood_power(start_heat: float, num_warmup: int, step: Array) -> Array | float:
    """Power of the likelihood for graphs: from 1 / start_heat to 1 at half the warm-up."""
    if start_heat == 1:
        return 1.0
    done = jnp.clip(2 * step.astype(jnp.float32) / max(num_warmup, 1), 0.0, 1.0)
    return start_heat ** (done - 1)


def survivors(
    key: Key, start_heat: float, num_warmup: int, step: Array, energy: Float[Array, " chain"]
) -> Int[Array, " chain"]:
    """For each index in the population, the chain that continues there.

    Args:
        key: consumed.
        start_heat: of the schedule.
        num_warmup: likewise.
        step: the current one; at most steps every chain continues as itself.
        energy: of the data under each chain.
    """
    stage = _stage(num_warmup)
    gained = likelihood_power(start_heat, num_warmup, step) - likelihood_power(
        start_heat, num_warmup, step - stage
    )
    unchanged = jnp.arange(energy.shape[0])
    is_due = (step % stage == 0) & (2 * step <= num_warmup) & (step > 0)
    return jnp.where(is_due, _systematic(key, -gained * energy), unchanged)


def smoothed_energy(num_warmup: int, step: Array, old: Array, new: Array) -> Array:
    """Energies averaged over about the last stage: one batch says little about a chain."""
    weight = jnp.where(step == 0, 1.0, 2 / (_stage(num_warmup) + 1))
    return old + weight * (new - old)


def take_chains(chosen: Int[Array, " chain"], state: Pytree) -> Pytree:
    """The state of a sampler of all chains, restricted to the chosen ones."""
    vector, restore = flatten(state.position)

    def of_chosen(tree: Pytree) -> Pytree:
        return jax.tree.map(lambda leaf: leaf[chosen], tree)

    def of_vector(value: Array) -> Array:
        return flatten(of_chosen(restore(value)))[0] if value.shape == vector.shape else value

    others = {
        name: of_vector(value) for name, value in state._asdict().items() if name != "position"
    }
    return state._replace(position=of_chosen(state.position), **others)


def _stage(num_warmup: int) -> int:
    """Steps between two resamplings of the chains."""
    return max(num_warmup // (2 * _STAGES), 1)


def _systematic(key: Key, log_weights: Float[Array, " chain"]) -> Int[Array, " chain"]:
    """Indices drawn in proportion to the weights, with the least variance of their counts."""
    num = log_weights.shape[0]
    total = jnp.cumsum(jax.nn.softmax(log_weights))
    ticks = (jnp.arange(num, dtype=total.dtype) + jax.random.uniform(key)) / num
    return jnp.minimum(jnp.searchsorted(total, ticks), num - 1)
