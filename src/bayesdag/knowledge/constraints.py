"""Prior knowledge about single edges (never paths), and the graphs that it allows.

A knowledge file is YAML; every part may be left out:

    required:                     # edges that are in every graph
      - Raf -> Mek
      - [Mek, Erk]                # a list, for names that contain an arrow
    forbidden: [Erk -> Raf]       # edges that are in none
    tiers:                        # no edge from a later tier to an earlier one; edges within
      - [Age, Sex]                # a tier are allowed, variables in no tier are free
      - [Dose]
    roots: [Age]                  # no parents
    sinks: [Outcome]              # no children
    beliefs:                      # probability of an edge, strictly between 0 and 1
      Dose -> Outcome: 0.9        # or [Dose, Outcome, 0.9] in a list

Also understood: the keys `required_edges`, `forbidden_edges` and `temporal_order`, objects
with these attributes (pgmpy's ExpertKnowledge), and Tetrad's text files (`/knowledge`).
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Shaped

from bayesdag.errors import KnowledgeError, did_you_mean
from bayesdag.graphs import ancestors, find_cycle
from bayesdag.knowledge import parse
from bayesdag.types import Array, Graph, ParentSets, PlainData


@dataclass(frozen=True)
class Knowledge:
    """Statements about edges by column name, not yet tied to a table.

    Edges may be given as (cause, effect) or "cause -> effect", here and in a file.

    Attributes:
        required: edges of every graph.
        forbidden: edges of none.
        tiers: groups of names; no edge runs from a later group to an earlier one.
        roots: names without parents.
        sinks: names without children.
        beliefs: (cause, effect, probability); its odds multiply the prior odds of the edge.
        assumed_roots: names without parents, too, which nobody has said: they are called so that
            nothing in a table would act on them (`fit` finds them).
    """

    required: tuple[tuple[str, str], ...] = ()
    forbidden: tuple[tuple[str, str], ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    roots: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()
    beliefs: tuple[tuple[str, str, float], ...] = ()
    assumed_roots: tuple[str, ...] = ()

    def __init__(
        self,
        required: object = (),
        forbidden: object = (),
        tiers: object = (),
        roots: object = (),
        sinks: object = (),
        beliefs: object = (),
        assumed_roots: object = (),
    ) -> None:
        parts = (required, forbidden, tiers, roots, sinks, beliefs, assumed_roots)
        for name, statement in zip(parse.PARTS, parts, strict=True):
            object.__setattr__(self, name, parse.normal_form(name, statement))

    @classmethod
    def read(cls, source: object) -> "Knowledge":
        """Knowledge from None, a mapping, the path of a file, or pgmpy's ExpertKnowledge."""
        return source if isinstance(source, Knowledge) else cls(**parse.read(source))

    def assuming(self, roots: Iterable[str]) -> "Knowledge":
        """The same with further roots that are assumed; what has been said is not overruled.

        Whoever requires an edge into a column, believes in one, or puts it into a later tier has
        thought of causes, and a root that has been said need not be assumed.
        """
        effects = {edge[1] for edge in (*self.required, *self.beliefs)}
        later = {name for tier in self.tiers[1:] for name in tier}
        spoken_of = effects | later | set(self.roots)
        wanted = dict.fromkeys((*self.assumed_roots, *roots))
        assumed = tuple(name for name in wanted if name not in spoken_of)
        return dataclasses.replace(self, assumed_roots=assumed)

    def bind(
        self, names: Iterable[str], contexts: Bool[np.ndarray, " d"] | None = None
    ) -> "Constraints":
        """The same knowledge about the columns `names`; refuses what contradicts itself.

        Args:
            contexts: True for context variables: no edge leads into them.
        """
        names = tuple(names)
        self._refuse_unknown(names)
        index = {name: position for position, name in enumerate(names)}
        contexts = np.zeros(len(names), dtype=bool) if contexts is None else np.asarray(contexts)
        required = _matrix(self.required, index)
        _refuse_cycle(required, names)
        bans = [*self._bans(index), _into_contexts(contexts), _closing(required, names)]
        self._refuse_contradictions(bans, index)
        log_odds = np.zeros(required.shape)
        for cause, effect, probability in self.beliefs:
            log_odds[index[cause], index[effect]] = np.log(probability) - np.log1p(-probability)
        forbidden = np.logical_or.reduce([np.eye(len(names), dtype=bool), *(b.edges for b in bans)])
        kinds = self._kinds() | ({"environments"} if contexts.any() else set())
        return Constraints(names, required, forbidden, log_odds, kinds, contexts)

    def to_dict(self) -> PlainData:
        """Plain lists for JSON, empty parts left out; `Knowledge.read` takes them back."""
        parts = dataclasses.asdict(self)
        return {
            part: [list(item) if isinstance(item, tuple) else item for item in items]
            for part, items in parts.items()
            if items
        }

    def _refuse_unknown(self, names: tuple[str, ...]) -> None:
        edges = [*self.required, *self.forbidden, *(belief[:2] for belief in self.beliefs)]
        groups = [*edges, *self.tiers, self.roots, self.sinks, self.assumed_roots]
        named = dict.fromkeys(name for group in groups for name in group)
        unknown = [name for name in named if name not in names]
        if unknown:
            hints = "; ".join(f"{name!r} ({did_you_mean(name, names)})" for name in unknown)
            raise KnowledgeError(f"knowledge names unknown columns: {hints}")

    def _bans(self, index: dict[str, int]) -> list["_Ban"]:
        """Edges ruled out by each kind of statement, the required ones aside."""
        is_root = np.array([name in self.roots for name in index], dtype=bool)
        is_assumed = np.array([name in self.assumed_roots for name in index], dtype=bool)
        is_sink = np.array([name in self.sinks for name in index], dtype=bool)
        tier = _tier_of(self.tiers)
        level = np.array([tier.get(name, np.nan) for name in index])
        nowhere = np.zeros((len(index), len(index)), dtype=bool)
        return [
            _Ban(_matrix(self.forbidden, index), lambda *_: "it is forbidden"),
            _Ban(nowhere | is_root, lambda _, effect: f"{effect} is a root: it has no parents"),
            _Ban(
                nowhere | is_assumed,
                lambda _, effect: f"{effect} is an assumed root: it has no parents",
            ),
            _Ban(
                nowhere | is_sink[:, None],
                lambda cause, _: f"{cause} is a sink: it has no children",
            ),
            _Ban(
                level[:, None] > level,  # False wherever a level is missing
                lambda cause, effect: (
                    f"it runs from tier {tier[cause]} back to tier {tier[effect]}"
                ),
            ),
        ]

    def _refuse_contradictions(self, bans: list["_Ban"], index: dict[str, int]) -> None:
        """Names every required edge that is banned and every belief on a settled edge."""
        claims = [(*edge, "is required", bans) for edge in self.required]
        settled = [*bans, _Ban(_matrix(self.required, index), lambda *_: "it is required")]
        for cause, effect, probability in self.beliefs:
            claims.append((cause, effect, f"has the belief {probability:g}", settled))
        found = [
            f"{cause} -> {effect} {claim}, but {ban.reason(cause, effect)}"
            for cause, effect, claim, against in claims
            for ban in against
            if ban.edges[index[cause], index[effect]]
        ]
        if found:
            raise KnowledgeError(f"knowledge contradicts itself: {'; '.join(found)}. Drop one side")

    def _kinds(self) -> frozenset[str]:
        used = {
            "required": self.required,
            "forbidden": self.forbidden
            or self.tiers[1:]
            or self.roots
            or self.sinks
            or self.assumed_roots,
            "beliefs": self.beliefs,
        }
        return frozenset(kind for kind, statement in used.items() if statement)


@dataclass(frozen=True, eq=False)
class Constraints:
    """Knowledge bound to columns: what a method receives.

    Attributes:
        names: the columns.
        required: edges of every graph.
        forbidden: edges of none: the diagonal, whatever tiers, roots and sinks rule out,
            and every edge that would close a cycle with required ones.
        log_odds: log(π / (1 - π)) of each belief, added to the log prior odds of its edge;
            0 means no opinion.
        kinds: what the user made use of, out of "required", "forbidden", "beliefs" and
            "environments".
        contexts: True for context variables (indicators of environments): they precede all
            others in every order, their edges into the others may be there or not, and
            where they come from is no question. All edges into them are forbidden.
    """

    names: tuple[str, ...]
    required: Bool[np.ndarray, "d d"]
    forbidden: Bool[np.ndarray, "d d"]
    log_odds: Float[np.ndarray, "d d"]
    kinds: frozenset[str] = frozenset()
    contexts: Bool[np.ndarray, " d"] = None  # pyright: ignore[reportAssignmentType]

    def __post_init__(self) -> None:
        if self.contexts is None:
            object.__setattr__(self, "contexts", np.zeros(len(self.names), dtype=bool))
        for name in ("required", "forbidden", "log_odds", "contexts"):
            array = getattr(self, name).copy()
            array.setflags(write=False)  # one object serves all chains and methods
            object.__setattr__(self, name, array)

    @classmethod
    def free(
        cls, names: Iterable[str], contexts: Bool[np.ndarray, " d"] | None = None
    ) -> "Constraints":
        """Constraints that allow every graph without self-loops and edges into contexts."""
        return Knowledge().bind(names, contexts)

    def with_contexts(self, names: tuple[str, ...]) -> "Constraints":
        """The same knowledge of a table with further columns at its end, all of them contexts."""
        num = len(names) - len(self.names)

        def filled(matrix: np.ndarray, value: bool | float) -> np.ndarray:
            return np.pad(matrix, [(0, num)] * matrix.ndim, constant_values=value)

        contexts = filled(self.contexts, True)
        forbidden = filled(self.forbidden, False) | contexts | np.eye(len(names), dtype=bool)
        kinds = self.kinds | {"environments"}
        required, log_odds = filled(self.required, False), filled(self.log_odds, 0.0)
        return Constraints(names, required, forbidden, log_odds, kinds, contexts)

    @property
    def num_contexts(self) -> int:
        """Context variables among the columns."""
        return int(self.contexts.sum())

    @property
    def precedes(self) -> Bool[np.ndarray, "d d"]:
        """True where one variable comes before another in every order that is meant.

        Causes come before effects along required edges, and contexts before variables.
        """
        return self.required | (self.contexts[:, None] & ~self.contexts)

    def log_prior(self, node: int, parents: ParentSets) -> Float[np.ndarray, " m"]:
        """Belief in each parent set of `node`, unnormalised; -inf where one is broken.

        Summed over nodes it is the total of `log_odds` over the edges of a graph.
        """
        # Only the columns that knowledge speaks of: most often that is the node itself.
        broken = parents[:, self.forbidden[:, node]].any(axis=1)
        broken |= ~parents[:, self.required[:, node]].all(axis=1)
        believed = np.flatnonzero(self.log_odds[:, node])
        return np.where(broken, -np.inf, parents[:, believed] @ self.log_odds[believed, node])

    def allows(self, graphs: Shaped[Array, "*batch d d"]) -> Bool[np.ndarray, "*batch"]:
        """True where a graph has all required edges and no forbidden one."""
        edges = np.asarray(graphs) != 0
        broken = (edges & self.forbidden) | (~edges & self.required)
        return np.asarray(~np.any(broken, axis=(-1, -2)))

    def candidates(self, node: int) -> Bool[np.ndarray, " d"]:
        """True for every variable that may be a parent of `node`."""
        return ~self.forbidden[:, node]

    def violations(self, graph: Graph) -> list[str]:
        """Each broken constraint in words; empty when `allows(graph)`."""
        edges = np.asarray(graph) != 0
        broken = {"is required but missing": self.required & ~edges}
        broken["is forbidden but there"] = self.forbidden & edges
        return [
            f"{self.names[i]} -> {self.names[j]} {how}"
            for how, where in broken.items()
            for i, j in np.argwhere(where)
        ]


@dataclass(frozen=True)
class _Ban:
    """Edges ruled out by one kind of statement, and why, given cause and effect."""

    edges: Bool[np.ndarray, "d d"]
    reason: Callable[..., str]


def _matrix(edges: Iterable[tuple[str, str]], index: dict[str, int]) -> np.ndarray:
    matrix = np.zeros((len(index), len(index)), dtype=bool)
    for cause, effect in edges:
        matrix[index[cause], index[effect]] = True
    return matrix


def _tier_of(tiers: tuple[tuple[str, ...], ...]) -> dict[str, int]:
    """Tier of each name, counted from 1."""
    found: dict[str, int] = {}
    for number, tier in enumerate(tiers, start=1):
        for name in tier:
            if found.setdefault(name, number) != number:
                raise KnowledgeError(
                    f"{name!r} is in tier {found[name]} and in tier {number}; keep one"
                )
    return found


def _into_contexts(contexts: np.ndarray) -> _Ban:
    """Edges into context variables."""
    return _Ban(
        np.zeros((len(contexts), len(contexts)), dtype=bool) | contexts,
        lambda _, effect: f"{effect} is an environment: nothing acts on it",
    )


def _closing(required: np.ndarray, names: tuple[str, ...]) -> _Ban:
    """Edges that would close a cycle with required ones."""

    def reason(cause: str, effect: str) -> str:
        closed = required.copy()
        closed[names.index(cause), names.index(effect)] = True
        return f"with the required edges it closes the cycle {_cycle(closed, names)}"

    return _Ban(ancestors(required).T, reason)


def _refuse_cycle(required: np.ndarray, names: tuple[str, ...]) -> None:
    if find_cycle(required):
        raise KnowledgeError(
            f"the required edges form a cycle: {_cycle(required, names)}. Drop one of them"
        )


def _cycle(graph: np.ndarray, names: tuple[str, ...]) -> str:
    nodes = find_cycle(graph) or []
    return " -> ".join(names[node] for node in [*nodes, *nodes[:1]])
