"""Ways in which rows break the assumptions of additive noise, one function per family.

A world takes a generator, a graph and a number of rows, and returns rows of that graph which
some common assumption does not describe. Functions are drawn per node (linear, smooth or
kinked), scaled to the fraction of variance that they explain.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int8

from bayesdag.datasets import _mechanisms
from bayesdag.graphs import topological_order

Graph = Int8[np.ndarray, "d d"]
Values = Float[np.ndarray, "n d"]
Column = Float[np.ndarray, " n"]
# Generator, node, what its parents say, its noise -> its column.
Response = Callable[[np.random.Generator, int, Column, Column], Column]
MECHANISMS = ("linear", "gp", "mlp")
EXPLAINED = (0.4, 0.9)  # fraction of a node's variance that its parents explain


class WorldRows(NamedTuple):
    """Rows of a broken world.

    Attributes:
        values: one column per observed variable.
        graph: the true graph among the observed variables.
        unknown: True where the truth of an entry is not defined, so that nobody scores it.
        environment: where each row comes from, or None.
        notes: what is hidden or changed, as plain data.
    """

    values: Values
    graph: Graph
    unknown: Bool[np.ndarray, "d d"]
    environment: np.ndarray | None = None
    notes: dict = {}


World = Callable[[np.random.Generator, Graph, int], WorldRows]


def additive(rng: np.random.Generator, node: int, signal: Column, noise: Column) -> Column:
    """Noise that adds to the function of the parents: the world that is not broken."""
    del node
    fraction = rng.uniform(*EXPLAINED)
    return np.sqrt(fraction) * signal + np.sqrt(1 - fraction) * noise


def _warped(rng: np.random.Generator, node: int, signal: Column, noise: Column) -> Column:
    """A monotone function of an additive sum: the post-nonlinear model."""
    x = additive(rng, node, signal, noise)
    bends = (lambda z: z + z**3 / 3, lambda z: np.exp(0.8 * z), lambda z: np.cbrt(z), np.tanh)
    return bends[rng.integers(len(bends))](x)


def _multiplied(rng: np.random.Generator, node: int, signal: Column, noise: Column) -> Column:
    """Noise that multiplies a positive function of the parents."""
    del node
    fraction = rng.uniform(0.3, 0.8)
    level = np.exp(fraction * signal) if rng.random() < 0.5 else 1 + np.log1p(np.exp(2 * signal))
    return level * np.exp((1 - fraction) * noise)


def _rescaled(rng: np.random.Generator, node: int, signal: Column, noise: Column) -> Column:
    """Noise whose scale depends on the parents, besides the mean."""
    del node
    fraction = rng.uniform(*EXPLAINED)
    return np.sqrt(fraction) * signal + np.sqrt(1 - fraction) * np.exp(np.tanh(signal)) * noise


def simulate(
    rng: np.random.Generator,
    graph: Graph,
    noise: Values,
    respond: Response = additive,
    after: Callable[[int, Column], Column] | None = None,
) -> Values:
    """Rows of a graph, sources first; `after` changes a column before its children see it."""
    x = np.empty(noise.shape)
    for j in topological_order(graph).tolist():
        parents = np.flatnonzero(graph[:, j])
        x[:, j] = respond(rng, j, _signal(rng, x[:, parents]), noise[:, j])
        x[:, j] = standardised(x[:, j])
        if after is not None:
            x[:, j] = after(j, x[:, j])
    return x


def _signal(rng: np.random.Generator, parents: Values) -> Column:
    """A random function of the parents with mean 0 and variance 1; 0 without parents."""
    num = parents.shape[1]
    if num == 0:
        return np.zeros(len(parents))
    draw = _mechanisms.FAMILIES[MECHANISMS[rng.integers(len(MECHANISMS))]]
    return standardised(draw(rng, num)(parents))


def standardised(x: Column) -> Column:
    """Mean 0 and variance 1; a constant becomes 0."""
    centred = x - x.mean()
    return centred / max(centred.std(), 1e-12)


def _plain(values: Values, graph: Graph, **notes: object) -> WorldRows:
    return WorldRows(values, graph, np.zeros(graph.shape, dtype=bool), notes=dict(notes))


def _responding(respond: Response) -> World:
    def world(rng: np.random.Generator, graph: Graph, num_rows: int) -> WorldRows:
        noise = rng.standard_normal((num_rows, len(graph)))
        return _plain(simulate(rng, graph, noise, respond), graph)

    return world


def _saturated(rng: np.random.Generator, graph: Graph, num_rows: int) -> WorldRows:
    """Sensors that clip: causes act with their own values, which nobody sees beyond a limit."""
    values = simulate(rng, graph, rng.standard_normal((num_rows, len(graph))))
    low, high = rng.uniform(0.0, 0.1, len(graph)), rng.uniform(0.7, 0.95, len(graph))
    limits = [np.quantile(values[:, j], [low[j], high[j]]) for j in range(len(graph))]
    clipped = [np.clip(values[:, j], *limits[j]) for j in range(len(graph))]
    return _plain(np.column_stack(clipped), graph)


def _rounded(rng: np.random.Generator, graph: Graph, num_rows: int) -> WorldRows:
    """Readings rounded to a coarse scale of about five to fifteen steps."""
    values = simulate(rng, graph, rng.standard_normal((num_rows, len(graph))))
    step = rng.uniform(0.25, 0.8, len(graph))
    return _plain(np.round(values / step) * step, graph)


def _mismeasured(rng: np.random.Generator, graph: Graph, num_rows: int) -> WorldRows:
    """Independent measurement error on every column."""
    values = simulate(rng, graph, rng.standard_normal((num_rows, len(graph))))
    scale = rng.uniform(0.2, 0.7, len(graph))
    return _plain(values + scale * rng.standard_normal(values.shape), graph)


def _hidden_cause(rng: np.random.Generator, graph: Graph, num_rows: int) -> WorldRows:
    """Hidden common causes, one per five variables, each of two or three observed ones."""
    d = len(graph)
    num_hidden = max(1, d // 5)
    whole = np.zeros((d + num_hidden, d + num_hidden), dtype=np.int8)
    whole[:d, :d] = graph
    sizes = rng.integers(2, 4, size=num_hidden)
    children = [rng.choice(d, size=min(d, size), replace=False) for size in sizes]
    for hidden, reached in enumerate(children):
        whole[d + hidden, reached] = 1
    values = simulate(rng, whole, rng.standard_normal((num_rows, len(whole))))
    confounded = [sorted(int(j) for j in reached) for reached in children]
    return _plain(values[:, :d], graph, confounded=confounded)


def _mixture(rng: np.random.Generator, graph: Graph, num_rows: int) -> WorldRows:
    """Environments that shift and stretch the noise of some variables, pooled."""
    environment = rng.integers(3, size=num_rows)
    noise = rng.standard_normal((num_rows, len(graph)))
    for number in (1, 2):
        moved = rng.random(len(graph)) < 0.4
        shift, stretch = rng.normal(0, 2, len(graph)), np.exp(rng.normal(0, 0.5, len(graph)))
        changed = np.where(moved, shift + stretch * noise, noise)
        noise = np.where((environment == number)[:, None], changed, noise)
    rows = _plain(simulate(rng, graph, noise), graph)
    return rows._replace(environment=environment)


def _autocorrelated(rng: np.random.Generator, graph: Graph, num_rows: int) -> WorldRows:
    """Rows in time: the noise of a variable remembers that of the row before."""
    fresh = rng.standard_normal((num_rows, len(graph)))
    memory = rng.uniform(0.7, 0.95, len(graph))
    noise = fresh.copy()
    for row in range(1, num_rows):
        noise[row] = memory * noise[row - 1] + np.sqrt(1 - memory**2) * fresh[row]
    return _plain(simulate(rng, graph, noise), graph)


def _deterministic(rng: np.random.Generator, graph: Graph, num_rows: int) -> WorldRows:
    """A third of the variables with parents follow from them without noise."""
    caused = np.flatnonzero(graph.any(axis=0))
    exact = rng.permutation(caused)[: max(1, len(caused) // 3)]

    def respond(rng: np.random.Generator, node: int, signal: Column, noise: Column) -> Column:
        return signal if node in exact else additive(rng, node, signal, noise)

    values = simulate(rng, graph, rng.standard_normal((num_rows, len(graph))), respond)
    return _plain(values, graph, deterministic=sorted(int(j) for j in exact))


def _discrete(rng: np.random.Generator, graph: Graph, num_rows: int) -> WorldRows:
    """Half of the columns take two to five values, and their children see those values."""
    chosen = rng.permutation(len(graph))[: len(graph) // 2]
    levels = {int(j): int(rng.integers(2, 6)) for j in chosen}

    def cut(j: int, x: Column) -> Column:
        if j not in levels:
            return x
        edges = np.quantile(x, np.arange(1, levels[j]) / levels[j])
        return np.searchsorted(edges, x).astype(float)

    values = simulate(rng, graph, rng.standard_normal((num_rows, len(graph))), after=cut)
    return _plain(values, graph, discrete=sorted(levels))


def _feedback(rng: np.random.Generator, graph: Graph, num_rows: int) -> WorldRows:
    """Some effects act back on a cause, for three rounds, then the rows are read off."""
    x = simulate(rng, graph, rng.standard_normal((num_rows, len(graph))))
    edges = np.argwhere(graph)
    some = edges[rng.permutation(len(edges))[: max(1, len(edges) // 5)]]
    unknown = np.zeros(graph.shape, dtype=bool)
    strength = rng.uniform(0.3, 0.6, len(some))
    for _ in range(3):
        for (cause, effect), weight in zip(some, strength, strict=True):
            x[:, cause] = standardised(x[:, cause] + weight * np.tanh(x[:, effect]))
            x[:, effect] = standardised(x[:, effect] + weight * x[:, cause])
    unknown[some[:, 1], some[:, 0]] = True  # the way back is there, and in no DAG
    pairs = [[int(i), int(j)] for i, j in some]
    return _plain(x, graph, feedback=pairs)._replace(unknown=unknown)


def _selection(rng: np.random.Generator, graph: Graph, num_rows: int) -> WorldRows:
    """Only rows in which a sum of two or three variables is large are in the table."""
    noise = rng.standard_normal((4 * num_rows, len(graph)))
    values = simulate(rng, graph, noise)
    chosen = rng.choice(len(graph), size=min(len(graph), rng.integers(2, 4)), replace=False)
    total = values[:, chosen] @ rng.choice([-1.0, 1.0], len(chosen))
    kept = np.sort(np.argsort(-total + 0.3 * rng.standard_normal(len(total)))[:num_rows])
    return _plain(values[kept], graph, selected_by=sorted(int(j) for j in chosen))


# Figures come from families that were never looked at during development.
DEVELOPMENT: dict[str, World] = {
    "additive": _responding(additive),
    "post_nonlinear": _responding(_warped),
    "multiplicative": _responding(_multiplied),
    "rounded": _rounded,
    "hidden_cause": _hidden_cause,
    "mixture": _mixture,
    "deterministic": _deterministic,
}
FIGURES: dict[str, World] = {
    "heteroscedastic": _responding(_rescaled),
    "saturated": _saturated,
    "measurement_error": _mismeasured,
    "autocorrelated": _autocorrelated,
    "discrete": _discrete,
    "feedback": _feedback,
    "selection": _selection,
}
WORLDS = DEVELOPMENT | FIGURES
