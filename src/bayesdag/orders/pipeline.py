"""From a score to draws of orders: search, tables and chains in turn.

Search first, among all predecessors; then tables around what it found; then short chains,
whose draws say which variables are missing from the tables; and again, until none is.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesdag.orders import candidates, score_tables, search, tempering
from bayesdag.orders.candidates import Limits, Lists, Outside
from bayesdag.orders.local_scores import FamilyScores
from bayesdag.orders.prior import Components
from bayesdag.orders.score_tables import NodeTable
from bayesdag.orders.search import Found
from bayesdag.orders.strategies import SearchStrategy
from bayesdag.random import generator, split
from bayesdag.runs import host_loop, loop
from bayesdag.runs.packing import fingerprint
from bayesdag.runs.trees import map_leaves
from bayesdag.types import Array, Key, PlainData, Recorder

# Results of the search this many nats below the best still supply candidates.
MARGIN = 30.0
# Sweeps before the first draw of a trial run that starts from the end of another.
CONTINUED_WARMUP = 10
# Times that tables are made again because their cores were no certain parents.
MAX_CORE_REVISIONS = 6


@dataclass(frozen=True)
class Effort:
    """Effort of the search and the chains.

    Attributes:
        num_starts: searches, from afar and from the best result so far.
        max_rounds: rounds of tables, chains and widening.
        limits: size of the tables.
        num_chains: chains of the result, each a group of ladders.
        num_ladders: sets of replicas that exchange states among themselves, in all chains.
        num_rungs: temperatures of a ladder.
        hottest: the highest of them.
        schedule: of the chains, in sweeps.
        num_trial: draws of each ladder in the short runs.
    """

    num_starts: int
    max_rounds: int
    limits: Limits
    num_chains: int
    num_ladders: int
    num_rungs: int
    hottest: float
    schedule: loop.Schedule
    num_trial: int


@dataclass(frozen=True)
class Region:
    """The tables, where they come from, and what is known to be outside of them.

    Attributes:
        found: results of the search, best first.
        components: of the structure prior, as far as the tables hold them.
        lists: candidates of every node.
        node_tables: their tables.
        starts: orders from which the replicas start.
        history: log score of the best graph after each stage, and how many candidates
            entered the tables because of it.
        independent: results of searches from different starts, each meant to find the best.
        contexts: True for nodes that precede all others.
    """

    found: tuple[Found, ...]
    components: Components
    lists: Lists
    node_tables: tuple[NodeTable, ...]
    starts: Int[np.ndarray, "l t d"]
    history: tuple[PlainData, ...]
    independent: tuple[Found, ...] = ()
    contexts: Bool[np.ndarray, " d"] | None = None


class Sampled(NamedTuple):
    """Draws of the chains; leading dimension: draws of all ladders, ladder by ladder.

    Attributes:
        orders: of the variables, sources first.
        component: of the structure prior.
        graphs: drawn exactly, given the order and the component.
        inside: nodes whose tables held the order.
        last: orders in which all replicas ended.
        exchanges: acceptance rate of each pair of neighbouring rungs.
    """

    orders: Int[np.ndarray, "s d"]
    component: Int[np.ndarray, " s"]
    graphs: Bool[np.ndarray, "s d d"]
    inside: Bool[np.ndarray, "s d"]
    last: Int[np.ndarray, "l t d"]
    exchanges: Float[np.ndarray, " t-1"]


def explore(
    key: Key,
    strategy: SearchStrategy,
    prior: Components,
    effort: Effort,
    known_results: Sequence[Found] = (),
) -> Region:
    """Search, tables and short chains in turn, until nothing enters the tables.

    Args:
        known_results: what another noise model has found, best first.
    """
    key_search, key_start, key_rounds = split(key, 3)
    rng, scores = generator(key_search), strategy.scores
    revisited = strategy.revisit(prior, known_results) if known_results else None
    found, parents, independent = revisited or strategy.find(rng, prior, effort.num_starts)
    history = [{"stage": "search", "best": log_score(scores, prior, found[0].graph)}]
    by_ladder = _by_chain(found, effort) if independent else _by_ladder(found, effort)
    starts = _starts(generator(key_start), by_ladder, effort, scores.knowledge.precedes)
    probability = candidates.of_search(scores, parents.penalty, found, MARGIN)
    all_fit = scores.num_variables - 1 <= effort.limits.plain and strategy.tabulates_all
    if all_fit:
        probability = np.maximum(probability, ~scores.knowledge.forbidden * 0.5)
    known: dict[tuple, NodeTable] = {}
    for key_round in split(key_rounds, effort.max_rounds):
        lists, node_tables = _tables(scores, probability, parents.penalty, effort.limits, known)
        components = prior.near(found[0].graph)
        region = Region(
            tuple(found),
            components,
            lists,
            node_tables,
            starts,
            tuple(history),
            contexts=scores.knowledge.contexts,
        )
        if all_fit or history[-1].get("entered") == 0:
            break
        drawn = try_out(key_round, region, effort, strategy.recorder)
        effort = _continued(effort)
        value = scores.of_graphs(drawn.graphs).sum(axis=1) + prior.log_prob(drawn.graphs)
        refined = strategy.refine(rng, parents, drawn.orders[np.argmax(value)])
        found = sorted([*found, refined], key=lambda result: -result.value)
        probability = _update(lists, drawn, outside(scores, region, drawn), refined)
        best = max(float(value.max()), log_score(scores, prior, refined.graph))
        entered = _entering(probability, lists, scores.knowledge.required, effort.limits)
        history.append({"stage": f"chains {len(history)}", "best": best, "entered": entered})
        starts = drawn.last
    last = region  # pyright: ignore[reportPossiblyUnboundVariable]
    return dataclasses.replace(
        last,
        found=tuple(found),
        starts=starts,
        history=tuple(history),
        independent=independent,
    )


def _continued(effort: Effort) -> Effort:
    """Trial runs that start where another has ended need fewer sweeps before they draw."""
    schedule = effort.schedule
    fewer = min(schedule.num_warmup, CONTINUED_WARMUP)
    return dataclasses.replace(effort, schedule=dataclasses.replace(schedule, num_warmup=fewer))


class _Ended(NamedTuple):
    """Result of the chains: draws of (ladder, draw), and where they ended."""

    orders: Int[np.ndarray, "l s d"]
    component: Int[np.ndarray, "l s"]
    last: Int[np.ndarray, "l t d"]
    exchanges: Float[np.ndarray, " t-1"]


def run(key: Key, region: Region, effort: Effort, recorder: Recorder) -> Sampled:
    """Chains over the tables of a region, and exact draws of the graphs."""
    key_chains, key_graphs = split(key)
    num = effort.schedule.num_samples
    return _with_graphs(key_graphs, region, _chains(key_chains, region, effort, num, recorder))


def try_out(key: Key, region: Region, effort: Effort, recorder: Recorder) -> Sampled:
    """Short chains with the compiled code of the long ones; their end is recorded as one."""
    key_chains, key_graphs = split(key)
    num, schedule = effort.num_trial, effort.schedule
    tables = [(table.core, table.uncertain, table.scores) for table in region.node_tables]
    decides = (key, region.components, region.starts, tables, effort.hottest, num)
    name = f"trial {fingerprint(decides, schedule.num_warmup, schedule.thinning)}"
    ended = recorder.recall(name, lambda: _chains(key_chains, region, effort, num, None)._asdict())
    return _with_graphs(key_graphs, region, _Ended(**ended))


def _chains(
    key: Key, region: Region, effort: Effort, num: int, recorder: Recorder | None
) -> _Ended:
    """`num` draws of every ladder."""
    table = score_tables.lookup(region.node_tables, *region.components, region.contexts)
    beta = tempering.ladders(effort.num_ladders, effort.num_rungs, effort.hottest)
    context = tempering.TemperingContext(table, beta)
    state = tempering.init(context, region.starts, np.zeros(region.starts.shape[:2], dtype=int))
    schedule = effort.schedule
    done = host_loop.run(
        key,
        tempering.OrderChains(context),
        state,
        schedule,
        recorder,
        until=schedule.num_warmup + num * schedule.thinning,
    )
    draws = map_leaves(lambda leaf: leaf[:num].swapaxes(0, 1), done.draws)
    exchanges = done.state.exchanges.mean(axis=0) / int(done.step)
    orders, last = (
        _contexts_first(order, region.contexts) for order in (draws.order, done.state.orders)
    )
    return _Ended(orders, draws.component, last, exchanges)


def _contexts_first(
    orders: Int[np.ndarray, "*s d"], contexts: Bool[np.ndarray, " d"] | None
) -> Int[np.ndarray, "*s d"]:
    """The orders that are meant: chains leave contexts anywhere, they count as first."""
    if contexts is None or not contexts.any():
        return orders
    place = np.argsort(~contexts[orders], axis=-1, kind="stable")
    return np.take_along_axis(orders, place, axis=-1)


def _with_graphs(key: Key, region: Region, ended: _Ended) -> Sampled:
    orders = ended.orders.reshape(-1, ended.orders.shape[-1])
    component = ended.component.reshape(-1)
    graphs, inside = score_tables.draw_graphs(
        generator(key), region.node_tables, region.components.penalty, orders, component
    )
    return Sampled(orders, component, graphs, inside, ended.last, ended.exchanges)


def outside(scores: FamilyScores, region: Region, drawn: Sampled) -> Outside:
    """Estimates, from the draws, for variables that are no candidates."""
    penalty = region.components.most_common(drawn.component)
    return candidates.outside(scores, penalty, region.lists, drawn.orders, drawn.graphs)


def log_score(scores: FamilyScores, prior: Components, graph: Shaped[Array, "d d"]) -> float:
    """Log posterior of a graph with any one order of its own, up to a constant."""
    graphs = np.asarray(graph)[None]
    return float(scores.of_graphs(graphs).sum() + prior.log_prob(graphs)[0])


def _tables(
    scores: FamilyScores,
    probability: Float[np.ndarray, "d d"],
    penalty: Float[np.ndarray, " d"],
    limits: Limits,
    known: dict,
) -> tuple[Lists, tuple[NodeTable, ...]]:
    """Candidates and their tables, without cores that the tables themselves do not bear out.

    Chains cannot drop a core parent, and the search is no proof of one.
    """
    gap = -np.log1p(-candidates.CERTAIN)
    for _ in range(MAX_CORE_REVISIONS):
        lists = candidates.choose(probability, scores.knowledge.required, limits)
        node_tables = _tabulate(scores, lists, known)
        dispensable = [(j, t.node) for t in node_tables for j in t.dispensable(penalty, gap)]
        if not dispensable:
            break
        at = tuple(np.array(dispensable).T)
        probability = probability.copy()
        probability[at] = np.minimum(probability[at], candidates.UNCERTAIN)
    return lists, node_tables  # pyright: ignore[reportPossiblyUnboundVariable]


def _tabulate(scores: FamilyScores, lists: Lists, known: dict) -> tuple[NodeTable, ...]:
    """Tables of all nodes; those with the lists of an earlier round are not made again."""
    result = []
    if not scores.stable:
        known.clear()
        _prefetch(scores, lists)
    for node, sets in enumerate(zip(lists.core, lists.uncertain, strict=True)):
        if (node, sets) not in known:
            known[node, sets] = score_tables.tabulate(scores, node, *sets)
        result.append(known[node, sets])
    return tuple(result)


def _prefetch(scores: FamilyScores, lists: Lists) -> None:
    """Have the sets of all tables scored in one batch."""
    d = scores.num_variables
    families = zip(lists.core, lists.uncertain, strict=True)
    sets = [score_tables.represented(d, *family)[1].reshape(-1, d) for family in families]
    nodes = np.repeat(np.arange(d), [len(some) for some in sets])
    scores.prefetch(nodes, np.concatenate(sets))


def _by_ladder(found: list[Found], effort: Effort) -> Int[np.ndarray, "l t d"]:
    """Orders of search results for every replica; neighbouring ladders have different ones."""
    ladder, rung = np.indices((effort.num_ladders, effort.num_rungs))
    return np.stack([result.order for result in found])[(ladder + rung) % len(found)]


def _by_chain(found: list[Found], effort: Effort) -> Int[np.ndarray, "l t d"]:
    """The same, with one result for all ladders of a chain.

    Where independent searches differ and the chains do not mix, R-hat shows it.
    """
    ladder, rung = np.indices((effort.num_ladders, effort.num_rungs))
    chain = ladder // (effort.num_ladders // effort.num_chains)
    return np.stack([result.order for result in found])[(chain + rung) % len(found)]


def _starts(
    rng: np.random.Generator,
    known: Int[np.ndarray, "l t d"],
    effort: Effort,
    required: np.ndarray,
) -> Int[np.ndarray, "l t d"]:
    """Cold replicas start from what the search found, every other hot one at random."""
    d = len(required)
    starts = np.array(known, dtype=np.int32)
    for ladder in range(effort.num_ladders):
        for rung in range(effort.num_rungs):
            if rung >= effort.num_rungs // 2 and rung % 2 == 1:
                starts[ladder, rung] = search.causes_first(rng.permutation(d), required)
    return starts


def _update(
    lists: Lists, drawn: Sampled, missing: Outside, refined: Found
) -> Float[np.ndarray, "d d"]:
    """Edge probabilities as the last draws show them.

    Candidates have an advantage over others, so that lists settle; those that were never
    drawn stay, at the end of their list, while there is room.
    """
    inside = np.zeros(missing.probability.shape, dtype=bool)
    for node in range(len(inside)):
        inside[list(lists.inside(node)), node] = True
    seen = drawn.graphs.mean(axis=0)
    favoured = np.minimum(seen + candidates.WORTH_A_ROUND, candidates.UNCERTAIN)
    favoured = np.where(seen >= candidates.CERTAIN, seen, favoured)
    updated = np.where(inside, favoured, missing.probability)
    return np.where(refined.graph != 0, np.maximum(updated, 0.5), updated)


def _entering(probability: np.ndarray, lists: Lists, required: np.ndarray, limits: Limits) -> int:
    """Number of variables that would enter the lists and are probable enough to matter."""
    wanted = candidates.choose(probability, required, limits)
    return sum(
        int(probability[j, node] > candidates.WORTH_A_ROUND)
        for node in range(len(probability))
        for j in wanted.inside(node) - lists.inside(node)
    )
