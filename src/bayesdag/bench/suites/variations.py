"""Additive noise beyond the paper's data: functions, noises, densities, rows and units."""

from collections.abc import Iterator

from bayesdag.bench.columns import ACCURACY, COST, PATIENCE, everyone
from bayesdag.bench.suite import FIGURES, Part, Size, Suite, Table, trials
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.types import PlainData

NUM_SETS = {"quick": 1, "paper": 5}
SETTING = ("functions", "noise", "edges per node", "d", "rows", "units")
BASE: dict[Size, PlainData] = {
    "quick": dict(zip(SETTING, ("mlp", "gaussian", 1, 5, 200, "standardised"), strict=True)),
    "paper": dict(zip(SETTING, ("mlp", "gaussian", 1, 10, 1000, "standardised"), strict=True)),
}
# One change to the base at a time; products are standardised while they arise, or they explode.
INSIDE = {"units": "internal"}
CHANGES: dict[str, tuple[PlainData, ...]] = {
    "functions": (
        *({"functions": name} for name in ("mlp", "gp", "sigmoid", "additive", "signed_linear")),
        *({"functions": name, "edges per node": 2} for name in ("mlp", "gp", "additive")),
        *({"functions": name, "edges per node": 2, **INSIDE} for name in ("mlp", "gp")),
        {"functions": "products_of_two", "edges per node": 2, **INSIDE},
        {"functions": "products_of_three", "edges per node": 3, **INSIDE},
    ),
    "noises": tuple(
        {"noise": name}
        for name in ("laplace", "student_t", "uniform", "exponential", "heteroscedastic")
    ),
    "densities": tuple({"edges per node": num, "d": d} for d in (10, 20) for num in (1, 2, 3, 4)),
    "rows": tuple({"rows": num} for num in (100, 300, 1000, 3000, 10_000)),
    "units": ({"units": "raw"}, {"units": "standardised"}, {"units": "internal"}),
}
QUICK: dict[str, tuple[PlainData, ...]] = {
    "functions": ({"functions": "products_of_two", "edges per node": 2, **INSIDE},),
    "noises": ({"noise": "uniform"},),
}
COLUMNS = {**ACCURACY, **COST}
CAPTION = (
    "Random graphs, Gaussian noise, standardised columns, one edge per node, ten variables, 1000 "
    "rows, and one of these changed at a time. `internal`: every variable is standardised before "
    "its children see it. Products: children depend on products of two or three parents and on "
    f"no parent alone. A method is given up after {PATIENCE:.0f} s."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    changes = QUICK if size == "quick" else CHANGES
    return Suite(
        title="Variations of the data",
        caption=CAPTION,
        parts=tuple(_part(size, name, some) for name, some in changes.items()),
        tables=tuple(
            Table(name.capitalize(), (*SETTING, "method"), COLUMNS, parts=(name,))
            for name in changes
        ),
    )


def _part(size: Size, name: str, changes: tuple[PlainData, ...]) -> Part:
    made = tuple(trial for trial in _trials(size, changes))
    return Part(name, made, everyone(size), PATIENCE, interleaved=True)


def _trials(size: Size, changes: tuple[PlainData, ...]) -> Iterator:
    """All settings of one seed before the next."""
    for seed in range(FIGURES, FIGURES + NUM_SETS[size]):
        for change in changes:
            setting = BASE[size] | change
            made = Synthetic(
                num_variables=setting["d"],
                edges_per_node=setting["edges per node"],
                mechanism=setting["functions"],
                noise=setting["noise"],
                scaling=setting["units"],
                num_train=setting["rows"],
                num_test=200,
            )
            yield from trials(setting, made, (seed,))
