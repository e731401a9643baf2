"""Tempered chains over the orders of the variables.

A replica is an order of the variables and a component of the structure prior; its log
posterior is one look-up per node. Replicas of neighbouring temperatures exchange their
states, so that cold ones cross valleys that single moves cannot. Everything here is for
many replicas at once: (ladder, rung), where a ladder is a set of replicas that exchange
states among themselves and with nobody else. The first rung is the posterior itself.

Moves, each leaving every tempered posterior invariant:
- *relocate*: one variable is put at a position drawn from its exact conditional
  distribution, at the price of one look-up per variable whose table knows it;
- a Gibbs step for the component of the prior, and exchanges between neighbouring rungs.
The order in which a sweep visits the variables is common to all replicas: it depends on nobody's
state, and every array operation then serves all replicas. That is why this is numpy: a compiled
program would be no faster, and compiling it takes longer than all sweeps.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from bayesdag.orders.score_tables import Lookup


class Replicas(NamedTuple):
    """State of every replica; the last dimension is (ladder, rung), ladder by ladder.

    Attributes:
        position: of each variable in the order.
        index: where each node stands in the values of the tables, before the cut-off.
        value: what stands there.
        component: of the structure prior.
        log_prob: log posterior up to a constant, never tempered.
    """

    position: Int[np.ndarray, "d r"]
    index: Int[np.ndarray, "d r"]  # pyright: ignore[reportIncompatibleMethodOverride]
    value: Float32[np.ndarray, "d r"]
    component: Int[np.ndarray, " r"]
    log_prob: Float[np.ndarray, " r"]


class TemperingState(NamedTuple):
    """The replicas, and how many exchanges each pair of neighbouring rungs accepted."""

    replicas: Replicas
    exchanges: Float[np.ndarray, "l pairs"]

    @property
    def num_rungs(self) -> int:
        """Replicas of a ladder."""
        return self.exchanges.shape[1] + 1

    @property
    def orders(self) -> Int[np.ndarray, "l t d"]:
        """Variables of every replica, sources first."""
        order = np.argsort(self.replicas.position, axis=0, kind="stable").T
        return order.reshape(len(self.exchanges), self.num_rungs, -1)


class OrderDraw(NamedTuple):
    """Draws that are kept: the first rung of every ladder."""

    order: Int[np.ndarray, "*s d"]
    component: Int[np.ndarray, "*s"]
    log_prob: Float[np.ndarray, "*s"]


class Neighbours(NamedTuple):
    """Variables that the position of one variable matters to, or that matter to its own table.

    Attributes:
        members: children first.
        num_children: members whose tables know the variable.
        child_stride: what it adds to their index by preceding them; a column.
        own_stride: what each member adds to its own.
        number: 0, 1, ... of the members; a column.
        is_cut: whether an index of a child can be beyond its table.
    """

    members: Int[np.ndarray, " m"]
    num_children: int
    child_stride: Int[np.ndarray, "k one"]
    own_stride: Int[np.ndarray, " m"]
    number: Int[np.ndarray, "m one"]
    is_cut: bool


class TemperingContext:
    """Inputs of the chains: the tables, and the inverse temperature of every replica."""

    def __init__(self, table: Lookup, beta: Float[np.ndarray, "l t"]) -> None:
        self.shape, self.beta = beta.shape, beta.reshape(-1).astype(np.float32)
        self.table = table
        self.values, self.width = table.values.ravel(), table.values.shape[1]
        self.end = (table.offset + table.top)[:, None]
        self.is_cut = (table.base + np.maximum(table.stride, 0).sum(axis=1)) > table.top
        self.start = table.offset + table.base
        self.neighbours = [self._neighbours(node) for node in range(len(table.base))]

    def _neighbours(self, node: int) -> Neighbours:
        stride = self.table.stride
        children = np.flatnonzero(stride[:, node])
        others = np.setdiff1d(np.flatnonzero(stride[node]), children)
        members = np.concatenate([children, others])
        return Neighbours(
            members,
            len(children),
            stride[children, node][:, None].astype(np.int64),
            stride[node, members].astype(np.int64),
            np.arange(len(members), dtype=np.int32)[:, None],
            bool(self.is_cut[children].any()),
        )

    def look(
        self, index: Int[np.ndarray, "k r"], component: Int[np.ndarray, " r"], end: np.ndarray
    ) -> Float32[np.ndarray, "k r"]:
        """T at these indices, cut off at `end`."""
        at = np.minimum(index, end)
        at += component * self.width
        return self.values.take(at)


@dataclass(frozen=True)
class OrderChains:
    """The kernel that the loop on the host runs; one step is a sweep.

    A sweep relocates every variable once, takes a Gibbs step for the component and one round of
    exchanges.
    """

    context: TemperingContext

    @property
    def inputs(self) -> tuple[Lookup, Float[np.ndarray, " r"]]:
        """The tables and the temperatures."""
        return self.context.table, self.context.beta

    def step(
        self, rng: np.random.Generator, state: TemperingState
    ) -> tuple[TemperingState, dict[str, np.ndarray]]:
        """All replicas after one more sweep; `state` is used up."""
        replicas, context, d = state.replicas, self.context, len(self.context.start)
        uniform = rng.random((d + 3, len(context.beta)), dtype=np.float32)
        for node, own in zip(rng.permutation(d).tolist(), uniform[:d], strict=True):
            relocate(node, own, replicas, context)
        replicas = choose_component(uniform[d], replicas, context)
        replicas, even = exchange(uniform[d + 1], replicas, context, parity=0)
        replicas, odd = exchange(uniform[d + 2], replicas, context, parity=1)
        state = TemperingState(replicas, state.exchanges + (even | odd))
        return state, {"energy": self.energy(state)}

    def keep(self, state: TemperingState) -> OrderDraw:
        """The replicas that sample the posterior itself."""
        cold = Replicas(*(leaf[..., :: state.num_rungs] for leaf in state.replicas))
        order = np.argsort(cold.position, axis=0, kind="stable").T
        return OrderDraw(order, cold.component, cold.log_prob)

    def energy(self, state: TemperingState) -> Float[np.ndarray, " l"]:
        """Of the first rung of every ladder."""
        return -state.replicas.log_prob[:: state.num_rungs]


def init(
    context: TemperingContext, orders: Int[np.ndarray, "l t d"], component: Int[np.ndarray, "l t"]
) -> TemperingState:
    """Replicas that start from the given orders."""
    d, table = orders.shape[-1], context.table
    flat = component.reshape(-1).astype(np.int64)
    position = np.argsort(orders.reshape(-1, d), axis=1).T.astype(np.int32)
    index = np.empty(position.shape, dtype=np.int64)
    for node, place in enumerate(position):
        index[node] = context.start[node] + table.stride[node].astype(np.int64) @ (position < place)
    value = context.look(index, flat, context.end)
    log_prob = value.sum(axis=0, dtype=float) + table.weight[flat]
    num_ladders, num_rungs = context.shape
    replicas = Replicas(position, index, value, flat, log_prob)
    return TemperingState(replicas, np.zeros((num_ladders, num_rungs - 1)))


def ladders(num_ladders: int, num_rungs: int, hottest: float) -> Float[np.ndarray, "l t"]:
    """Inverse temperatures from 1 down to 1/hottest, evenly spaced in the logarithm."""
    return np.tile(np.geomspace(1.0, 1.0 / hottest, num_rungs), (num_ladders, 1))


def relocate(
    node: int, uniform: Float[np.ndarray, " r"], state: Replicas, context: TemperingContext
) -> None:
    """Draw the position of `node` given the order of all others, in place.

    Between two neighbours its position changes nothing, so the conditional distribution is that
    of the gap between neighbours, each weighed by the number of positions in it.
    """
    near, position = context.neighbours[node], state.position
    now = position[node]
    rest = position - (position > now)  # positions among the others
    place = rest[near.members]
    children = near.members[: near.num_children]
    precedes = place[: near.num_children] >= now
    other, other_value, loss = _other_side(near, children, precedes, state, context)
    bounds, before, total = _sorted_sums(near, place, loss, len(position) - 1)
    own_index = before + context.start[node]
    own_value = context.look(own_index, state.component, context.end[node])
    total += own_value
    total *= context.beta
    which, slot = _draw_gap(uniform, total, bounds)
    np.add(rest, rest >= slot, out=position)
    position[node] = slot
    flipped = precedes != (place[: near.num_children] >= slot)
    _replace_where(state.index, children, flipped, other)
    _replace_where(state.value, children, flipped, other_value)
    each = np.arange(len(slot))
    state.index[node], state.value[node] = own_index[which, each], own_value[which, each]


def _other_side(
    near: Neighbours,
    children: Int[np.ndarray, " k"],
    precedes: Bool[np.ndarray, "k r"],
    state: Replicas,
    context: TemperingContext,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Index and value of the children if the node were on their other side, and the loss.

    The loss is what each child changes by when the node comes after it instead of before.
    """
    sign = 2 * precedes.view(np.int8) - 1
    other = state.index[children] - near.child_stride * sign
    if near.is_cut:
        value = context.look(other, state.component, context.end[children])
    else:
        value = context.values.take(other + state.component * context.width)
    return other, value, (value - state.value[children]) * sign


def _sorted_sums(
    near: Neighbours, place: Int[np.ndarray, "m r"], loss: np.ndarray, last: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds of all gaps, and for each gap the own strides and the losses of those before it."""
    num, num_replicas = place.shape
    bits = num.bit_length()
    code = np.sort((place << bits) | near.number, axis=0)
    bounds = np.empty((num + 2, num_replicas), dtype=place.dtype)
    bounds[0], bounds[-1] = -1, last
    np.right_shift(code, bits, out=bounds[1:-1])
    member = (code & ((1 << bits) - 1)).astype(np.int64)
    strides = np.zeros((num + 1, num_replicas), dtype=np.int64)
    near.own_stride.take(member, out=strides[1:], mode="clip")
    # Each replica has its own column of losses.
    member *= num_replicas
    member += np.arange(num_replicas)
    padded = np.zeros((num, num_replicas), dtype=np.float32)
    padded[: len(loss)] = loss
    losses = np.zeros((num + 1, num_replicas), dtype=np.float32)
    padded.ravel().take(member, out=losses[1:], mode="clip")
    return bounds, _accumulated(strides), _accumulated(losses)


def _accumulated(terms: np.ndarray) -> np.ndarray:
    """Sums over the first rows, in place: row by row this is faster than `cumsum`."""
    for before, row in zip(terms, terms[1:], strict=False):
        row += before
    return terms


def _draw_gap(
    uniform: Float32[np.ndarray, " r"],
    logits: np.ndarray,
    bounds: Int[np.ndarray, "gaps_and_one r"],
) -> tuple[Int[np.ndarray, " r"], Int[np.ndarray, " r"]]:
    """A gap, and a position in it; one uniform number decides both."""
    room = bounds[1:] - bounds[:-1]
    logits -= logits.max(axis=0)
    weight = np.exp(logits, out=logits)
    weight *= room
    each = np.arange(len(uniform))
    total = _accumulated(weight.copy())
    wanted = uniform * total[-1]
    which = (total[:-1] <= wanted).sum(axis=0)
    num = room[which, each]
    share = 1 - (total[which, each] - wanted) / weight[which, each]
    inside = np.minimum(np.maximum(share * num, 0).astype(num.dtype), num - 1)
    return which, bounds[which, each] + 1 + inside


def _replace_where(
    array: np.ndarray, rows: Int[np.ndarray, " k"], where: np.ndarray, by: np.ndarray
) -> None:
    some = array[rows]
    np.copyto(some, by, where=where)
    array[rows] = some


def choose_component(
    uniform: Float[np.ndarray, " r"], state: Replicas, context: TemperingContext
) -> Replicas:
    """Draw the component of the structure prior given the order."""
    at, weight = np.minimum(state.index, context.end), context.table.weight
    log_prob = np.stack([row.take(at).sum(axis=0, dtype=float) for row in context.table.values])
    log_prob += weight[:, None]
    logits = context.beta * log_prob
    total = np.cumsum(np.exp(logits - logits.max(axis=0)), axis=0)
    component = (total[:-1] <= uniform * total[-1]).sum(axis=0)
    value = context.values.take(at + component * context.width)
    chosen = log_prob[component, np.arange(len(component))]
    return state._replace(value=value, component=component, log_prob=chosen)


def exchange(
    uniform: Float[np.ndarray, " r"], state: Replicas, context: TemperingContext, parity: int
) -> tuple[Replicas, Bool[np.ndarray, "l pairs"]]:
    """Exchange states between rungs 0-1, 2-3, ... or, with parity 1, 1-2, 3-4, ..."""
    num_ladders, num_rungs = context.shape
    rung = np.arange(num_rungs)
    partner = np.where((rung - parity) % 2 == 0, rung + 1, rung - 1)
    partner = np.where((partner < 0) | (partner >= num_rungs), rung, partner)
    beta, log_prob = (x.reshape(context.shape) for x in (context.beta, state.log_prob))
    gain = (beta - beta[:, partner]) * (log_prob[:, partner] - log_prob)
    # Both members of a pair must see the same random number.
    shared = uniform.reshape(context.shape)[:, np.minimum(rung, partner)]
    accept = (np.log(shared) < gain) & (partner != rung)
    first = num_rungs * np.arange(num_ladders)[:, None]
    source = (first + np.where(accept, partner, rung)).ravel()
    return Replicas(*(leaf[..., source] for leaf in state)), (
        accept[:, :-1] & (rung[:-1] % 2 == parity)
    )
