"""Tempered chains over the orders of the variables.

A replica is an order of the variables and a component of the structure prior; its log
posterior is one look-up per node. Replicas of neighbouring temperatures exchange their
states, so that cold ones cross valleys that single moves cannot. Everything here is for
many replicas at once: (ladder, rung), where a ladder is a set of replicas that exchange
states among themselves and with nobody else. The first rung is the posterior itself.

Moves, each leaving every tempered posterior invariant:
- *relocate*: one variable is put at a position drawn from its exact conditional
  distribution, all d positions at the price of three look-ups per node;
- *swap* two variables and *adjacent* swap: symmetric proposals, Metropolis rule;
- a Gibbs step for the component of the prior, and exchanges between neighbouring rungs.
Which variables a step tries is common to all replicas: it depends on nobody's state, and
it keeps memory access regular.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float32, Int, Int32

from bayesdag.orders.score_tables import Lookup
from bayesdag.types import Array, JaxArray, Key

# Probabilities of the first two kinds of moves.
RELOCATE, SWAP = 0.6, 0.1


class Replicas(NamedTuple):
    """State of every replica; leading dimensions (ladder, rung).

    Attributes:
        order: variables, sources first.
        position: of each variable in the order.
        index: where each node stands in its table, before the cut-off.
        component: of the structure prior.
        log_prob: log posterior up to a constant, never tempered.
    """

    order: Int32[JaxArray, "*r d"]
    position: Int32[JaxArray, "*r d"]
    index: Int32[JaxArray, "*r d"]  # pyright: ignore[reportIncompatibleMethodOverride]
    component: Int32[JaxArray, "*r"]
    log_prob: Float32[JaxArray, "*r"]


class TemperingState(NamedTuple):
    """The replicas, and how many exchanges each pair of neighbouring rungs accepted."""

    replicas: Replicas
    exchanges: Float32[JaxArray, "l t-1"]


class OrderDraw(NamedTuple):
    """Draws that are kept: the first rung of every ladder."""

    order: Int32[JaxArray, "*s d"]
    component: Int32[JaxArray, "*s"]
    log_prob: Float32[JaxArray, "*s"]


class TemperingContext(NamedTuple):
    """Inputs of the chains: the tables, and the inverse temperature of every replica."""

    table: Lookup
    beta: Float32[JaxArray, "l t"]


@dataclass(frozen=True)
class OrderChains:
    """The kernel that `loop` runs; one step is a sweep.

    A sweep is d moves, a Gibbs step for the component and one round of exchanges.
    """

    def step(
        self, key: Key, step: Array, state: TemperingState, context: TemperingContext
    ) -> tuple[TemperingState, dict]:
        """All replicas after one more sweep."""
        del step
        replicas, accepted = _sweep(key, state.replicas, *context)
        stats = {"energy": -replicas.log_prob[:, 0]}
        return TemperingState(replicas, state.exchanges + accepted), stats

    def keep(self, key: Key, state: TemperingState, context: TemperingContext) -> OrderDraw:
        """The replicas that sample the posterior itself."""
        del key, context
        cold = jax.tree.map(lambda leaf: leaf[:, 0], state.replicas)
        return OrderDraw(cold.order, cold.component, cold.log_prob)


def init(
    table: Lookup, orders: Int[Array, "l t d"], component: Int[Array, "l t"]
) -> TemperingState:
    """Replicas that start from the given orders."""
    replicas = _replicas(table, jnp.asarray(orders, jnp.int32), jnp.asarray(component, jnp.int32))
    num_ladders, num_rungs = replicas.log_prob.shape
    return TemperingState(replicas, jnp.zeros((num_ladders, num_rungs - 1), jnp.float32))


def ladders(num_ladders: int, num_rungs: int, hottest: float) -> Float32[JaxArray, "l t"]:
    """Inverse temperatures from 1 down to 1/hottest, evenly spaced in the logarithm."""
    one = jnp.geomspace(1.0, 1.0 / hottest, num_rungs, dtype=jnp.float32)
    return jnp.tile(one[None], (num_ladders, 1))


def _sweep(key: Key, state: Replicas, table: Lookup, beta: JaxArray) -> tuple[Replicas, JaxArray]:
    d = table.base.shape[0]
    # All random numbers of a sweep at once: every further call costs time to compile.
    uniform = jax.random.uniform(key, (3 * d + (d + 3) * beta.size,))
    common = uniform[: 3 * d].reshape(d, 3)
    each = uniform[3 * d :].reshape(d + 3, *beta.shape)

    def move(state: Replicas, uniform: tuple[JaxArray, JaxArray]) -> tuple[Replicas, None]:
        return _move(*uniform, state, table, beta), None

    state, _ = lax.scan(move, state, (common, each[:d]))
    state = _all_replicas(_choose_component, each[d], state, table, beta)
    state, even = _exchange(each[d + 1], state, beta, parity=0)
    state, odd = _exchange(each[d + 2], state, beta, parity=1)
    return state, (even | odd).astype(jnp.float32)


def _move(common: JaxArray, each: JaxArray, state: Replicas, table: Lookup, beta) -> Replicas:
    d = table.base.shape[0]
    first = _whole(common[0], d)
    second = (first + 1 + _whole(common[1], max(d - 1, 1))) % d
    position = _whole(common[1], max(d - 1, 1))
    kind = (common[2] > jnp.array([RELOCATE, RELOCATE + SWAP], jnp.float32)).sum()
    kernels = (
        partial(_relocate, first),
        partial(_swap, first, second),
        partial(_adjacent, position),
    )
    branches = [partial(_all_replicas, kernel, each, state, table, beta) for kernel in kernels]
    return lax.switch(kind, branches)


def _whole(uniform: JaxArray, num: int) -> JaxArray:
    """A whole number below `num` from a number in [0, 1)."""
    return jnp.minimum((uniform * num).astype(jnp.int32), num - 1)


def _all_replicas(kernel, uniform: JaxArray, state: Replicas, table: Lookup, beta) -> Replicas:
    """One kernel for all replicas, each with its own uniform number."""
    return jax.vmap(jax.vmap(lambda u, s, b: kernel(u, s, table, b)))(uniform, state, beta)


def _earlier(d: int) -> JaxArray:
    """Multiplying by it sums over the first 0, 1, ... d entries.

    As a matrix product this is faster than a cumulative sum for all d that tables allow.
    """
    return jnp.triu(jnp.ones((d, d + 1), jnp.float32), 1)


def _look(table: Lookup, component: JaxArray, index: JaxArray) -> JaxArray:
    """T of every node."""
    return table.values[component, table.offset + jnp.minimum(index, table.top)]


def _look_at(table: Lookup, component: JaxArray, nodes: JaxArray, index: JaxArray) -> JaxArray:
    """T of some nodes, for one index each."""
    return table.values[component, table.offset[nodes] + jnp.minimum(index, table.top[nodes])]


def _categorical(uniform: JaxArray, logits: JaxArray) -> JaxArray:
    """The draw that one uniform number decides; cheaper than one number per category."""
    total = jnp.cumsum(jnp.exp(logits - logits.max()))
    return jnp.minimum((total <= uniform * total[-1]).sum(dtype=jnp.int32), len(logits) - 1)


def _replica(table: Lookup, order: JaxArray, component: JaxArray) -> Replicas:
    """The replica with this order, from scratch."""
    position = jnp.argsort(order).astype(jnp.int32)
    earlier = position[None, :] < position[:, None]
    index = table.base + jnp.where(earlier, table.stride, 0).sum(axis=1, dtype=jnp.int32)
    log_prob = _look(table, component, index).sum() + table.weight[component]
    return Replicas(order, position, index, component, log_prob)


_replicas = jax.jit(jax.vmap(jax.vmap(_replica, (None, 0, 0)), (None, 0, 0)))


def _relocate(
    node: JaxArray, uniform: JaxArray, state: Replicas, table: Lookup, beta: JaxArray
) -> Replicas:
    """Draw the position of `node` given the order of all others."""
    slot = jnp.arange(table.base.shape[0])
    now, position = state.position[node], state.position
    step = table.stride[:, node]
    bare = state.index - jnp.where(position > now, step, 0)
    behind = _look(table, state.component, bare + step)
    # What each other node loses when `node` comes after it.
    loss = jnp.where(slot == node, 0.0, _look(table, state.component, bare) - behind)
    # Sums over the first 0, 1, ... d variables; at slot `now` stands `node`, with a zero.
    ahead = jnp.matmul(loss[state.order], _earlier(len(slot)), precision=lax.Precision.HIGHEST)
    ahead = jnp.where(slot <= now, ahead[:-1], ahead[1:])
    # Indices may exceed what float32 can count, so they are summed as whole numbers.
    seen = table.stride[node, state.order]
    with_me = jnp.cumsum(seen)
    own_index = table.base[node] + jnp.where(slot <= now, with_me - seen, with_me)
    at = table.offset[node] + jnp.minimum(own_index, table.top[node])
    total = table.values[state.component, at] + ahead
    new = _categorical(uniform, beta * total)
    everyone = jnp.where(slot == node, 0.0, behind).sum() + table.weight[state.component]
    # Those between the old and the new position step aside by one.
    aside = ((position >= new) & (position < now)).astype(jnp.int32)
    up = ((position <= new) & (position > now)).astype(jnp.int32)
    index = state.index + (aside - up) * step
    between = jnp.where(slot > new, jnp.roll(state.order, 1), jnp.roll(state.order, -1))
    outside = (slot < jnp.minimum(now, new)) | (slot > jnp.maximum(now, new))
    return Replicas(
        order=jnp.where(slot == new, node, jnp.where(outside, state.order, between)),
        position=jnp.where(slot == node, new, position + aside - up),
        index=jnp.where(slot == node, own_index[new], index),
        component=state.component,
        log_prob=total[new] + everyone,
    )


def _swap(
    first: JaxArray, second: JaxArray, uniform: JaxArray, state: Replicas, table: Lookup, beta
) -> Replicas:
    """Try to exchange the positions of two variables; those in between see the other one."""
    node, order, position = jnp.arange(len(state.order)), state.order, state.position
    ahead, behind = position[first], position[second]
    side = jnp.where(ahead < behind, 1, -1)
    between = (position - ahead) * (position - behind) < 0
    is_first, is_second = node == first, node == second
    # Each of the two gains or loses the other and all in between as predecessors.
    of_first = jnp.where(between | is_second, table.stride[first], 0).sum(dtype=jnp.int32)
    of_second = jnp.where(between | is_first, table.stride[second], 0).sum(dtype=jnp.int32)
    change = jnp.where(between, table.stride[:, second] - table.stride[:, first], 0)
    change = jnp.where(is_first, of_first, jnp.where(is_second, -of_second, change))
    index = state.index + side * change
    proposal = Replicas(
        order=jnp.where(order == first, second, jnp.where(order == second, first, order)),
        position=jnp.where(is_first, behind, jnp.where(is_second, ahead, position)),
        index=index,
        component=state.component,
        log_prob=_look(table, state.component, index).sum() + table.weight[state.component],
    )
    return _metropolis(uniform, state, proposal, beta)


def _adjacent(
    slot: JaxArray, uniform: JaxArray, state: Replicas, table: Lookup, beta: JaxArray
) -> Replicas:
    """Try to exchange the variable at position `slot` with the next one: two nodes change."""
    pair = jnp.stack([state.order[slot], state.order[slot + 1]])
    change = jnp.stack([table.stride[pair[0], pair[1]], -table.stride[pair[1], pair[0]]])
    now = state.index[pair]
    new, old = (_look_at(table, state.component, pair, at) for at in (now + change, now))
    node = jnp.arange(table.base.shape[0])
    is_first, is_second = ((node == which).astype(jnp.int32) for which in pair)
    proposal = Replicas(
        order=jnp.where(node == slot, pair[1], jnp.where(node == slot + 1, pair[0], state.order)),
        position=state.position + is_first - is_second,
        index=state.index + is_first * change[0] + is_second * change[1],
        component=state.component,
        log_prob=state.log_prob + (new - old).sum(),
    )
    return _metropolis(uniform, state, proposal, beta)


def _metropolis(uniform: JaxArray, state: Replicas, proposal: Replicas, beta) -> Replicas:
    """The proposal or the old state; the proposal distribution is symmetric."""
    accept = jnp.log(uniform) < beta * (proposal.log_prob - state.log_prob)
    return jax.tree.map(lambda new, old: jnp.where(accept, new, old), proposal, state)


def _choose_component(uniform: JaxArray, state: Replicas, table: Lookup, beta) -> Replicas:
    """Draw the component of the structure prior given the order."""
    at = table.offset + jnp.minimum(state.index, table.top)
    log_prob = table.values[:, at].sum(axis=1) + table.weight
    component = _categorical(uniform, beta * log_prob)
    return state._replace(component=component, log_prob=log_prob[component])


def _exchange(
    uniform: JaxArray, state: Replicas, beta: JaxArray, parity: int
) -> tuple[Replicas, JaxArray]:
    """Exchange states between rungs 0-1, 2-3, ... or, with parity 1, 1-2, 3-4, ..."""
    num_rungs = beta.shape[1]
    rung = np.arange(num_rungs)
    partner = np.where((rung - parity) % 2 == 0, rung + 1, rung - 1)
    partner = np.where((partner < 0) | (partner >= num_rungs), rung, partner)
    gain = (beta - beta[:, partner]) * (state.log_prob[:, partner] - state.log_prob)
    # Both members of a pair must see the same random number.
    shared = uniform[:, np.minimum(rung, partner)]
    accept = (jnp.log(shared) < gain) & (partner != rung)[None, :]
    source = jnp.where(accept, partner[None, :], rung[None, :])
    take = jax.vmap(lambda leaf, which: leaf[which])
    exchanged = jax.tree.map(lambda leaf: take(leaf, source), state)
    return exchanged, accept[:, :-1] & (rung[:-1] % 2 == parity)[None, :]
