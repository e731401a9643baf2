"""From draws of (p, W̃, Θ) to graphs: the proposition "equivalence of posterior expectation".

A function of graphs has the posterior expectation E[ E[f p(D|W)] / E[p(D|W)] ], the outer
expectation over draws given the data (the paper's formula lacks "given the data"), the inner
ones over W ~ p(W|W̃). Both inner ones factor over nodes, so one graph with each column chosen
by its own weight stands for the ratio: d choices among a few columns, instead of one among
graphs of which a single one would carry all the weight.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp

from bayesdag.model.energy import Energy
from bayesdag.runs.devices import on_cpu
from bayesdag.sgmcmc import chains, dagspace, mask_gradients
from bayesdag.sgmcmc.mask_moves import draw_logits
from bayesdag.sgmcmc.node_energies import chain_context
from bayesdag.types import Array, Key, Keys, Params

_ROWS_AT_ONCE = 512


@partial(jax.jit, static_argnums=(1, 4, 5))
def graphs(
    keys: Keys,
    energy: Energy,
    draws: Params,
    context: chains.DataContext,
    num_masks: int,
    scale: float | None,
) -> Params:
    """Draws with a mask, a graph and, as statistics, effective numbers of masks.

    Args:
        keys: one per data set.
        energy: U.
        draws: leading dimensions (draw, data set, chain).
        context: the rows of all data sets.
        num_masks: drawn from p(W|W̃) for each draw.
        scale: None where the chain has moved W̃. Otherwise it has moved the mask itself, and
            the prior deviation of W̃, which is then drawn given that mask; the mask is one of
            the candidates, which leaves its distribution as it is at any number of them.
    """
    num_draws, _, num_chains = draws["potentials"].shape[:3]
    indices = jnp.arange(num_draws)

    def one_set(key: Key, x: Array, counted: Array, own: Params) -> Params:
        here = chains.DataContext(x, counted, context.support)

        def one_draw(index: Array, of_chains: Params) -> Params:
            # By index, so that more draws leave the first ones as they are.
            keys = jax.random.split(jax.random.fold_in(key, index), num_chains)
            choose = partial(_choose, energy, here, num_masks, scale)
            return chains.over_chains(choose, one_by_one=on_cpu())(keys, of_chains)

        return jax.lax.map(lambda pair: one_draw(*pair), (indices, own))

    own = jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), draws)
    found = jax.lax.map(lambda each: one_set(*each), (keys, context.x, context.counted, own))
    return jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), found)


def _choose(
    energy: Energy,
    context: chains.DataContext,
    num_masks: int,
    scale: float | None,
    key: Key,
    draw: Params,
) -> Params:
    """One draw with its columns chosen, on all rows."""
    key_component, key_logits, key_masks, key_choice = jax.random.split(key, 4)
    n = context.x.shape[0]
    batch = chains.tiled(context, jnp.arange(n), math.ceil(n / _ROWS_AT_ONCE), correct=False)
    kept = draw["mask"].astype(jnp.float32)
    logits = draw["logits"] if scale is None else draw_logits(key_logits, kept, scale)
    masks = mask_gradients.draw(key_masks, logits, num_masks)[1]
    if scale is not None:
        masks = jnp.concatenate([kept[None], masks])
    params = {name: draw[name] for name in ("mechanism", "noise")}
    potentials, support = draw["potentials"], context.support
    chain = chain_context(key_component, energy, potentials, kept, params, support, batch)
    log_terms = chain.log_terms(masks)
    chosen = mask_gradients.choose(key_choice, log_terms)
    mask = dagspace.confine(mask_gradients.columns(masks, chosen), support)
    effective = mask_gradients.effective_number(log_terms)
    return {
        **draw,
        "logits": logits,
        "mask": mask.astype(jnp.int8),
        "graph": (mask * chain.order).astype(jnp.int8),
        "stats": {"effective_masks": effective.mean(), "least_effective_masks": effective.min()},
    }
