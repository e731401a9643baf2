"""The paper's four ablations of its engine: start of p, chains, noise on p, noise on Θ."""

from collections.abc import Iterator
from dataclasses import replace

from bayesdag.bench.columns import PATIENCE, PUBLISHED, fits, trivial
from bayesdag.bench.datasets import five_linear
from bayesdag.bench.suite import FIGURES, Part, Size, Suite, Table, trials
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.types import PlainData

# Kind: preset, data and number of data sets. Networks want a GPU; lines take two cores minutes.
NONLINEAR, LINEAR_FIVE = "nonlinear, d = 30", "linear, d = 5"
PRESETS = {NONLINEAR: "paper-er30", LINEAR_FIVE: "paper-linear-er5"}
DATA = {
    NONLINEAR: Synthetic(num_variables=30, num_train=5000, num_test=1000),
    LINEAR_FIVE: five_linear("er"),
}
NUM_SETS = {"quick": {LINEAR_FIVE: 1}, "paper": {LINEAR_FIVE: 10, NONLINEAR: 5}}
STARTS = (1e-5, 0.01, 0.1, 1.0, 10.0)
CHAINS = (5, 10, 20, 40)
NOISES = (0.0, 0.001, 0.01, 0.1, 1.0)
FEW: PlainData = {"num_warmup": 2, "num_samples": 1, "num_chains": 2}
COLUMNS = {
    "E-SHD": "expected_shd .1f",
    "F1": "edge_f1 .3f",
    "NLL": "nll .2f",
    "edges": "expected_num_edges .1f",
    "log score": "log_score .3f",
    "s": "seconds .1f",
}


def build(size: Size) -> Suite:
    """The suite of this size."""
    return Suite(
        title="Ablations of the paper's engine",
        caption="Random graphs, raw columns: networks as functions, 30 variables, 60 edges, 5000 "
        "rows, as in the paper; and linear functions, five variables, five edges in expectation, "
        "500 rows. One setting of the published preset is changed at a time; the published value "
        "is among those shown.",
        parts=tuple(part for kind in NUM_SETS[size] for part in _parts(size, kind)),
        tables=tuple(
            Table(title, ("data", "method"), COLUMNS, parts=tuple(_part(k, name) for k in PRESETS))
            for name, title in {"base": "The preset", **TITLES}.items()
        ),
    )


def _parts(size: Size, kind: str) -> Iterator[Part]:
    """The preset and every change to it, on data of one kind."""
    base = BayesDAG.PRESETS[PRESETS[kind]]
    if size == "quick":
        base = replace(base, **FEW)
    seeds = range(FIGURES, FIGURES + NUM_SETS[size][kind])
    sets = tuple(trials({"data": kind}, DATA[kind], seeds))
    yield Part(_part(kind, "base"), sets, {**fits({PUBLISHED: base}), **trivial()}, PATIENCE)
    for name, some in _changes(base).items():
        if size == "quick":  # each is compiled anew
            some = dict(list(some.items())[:1])
        yield Part(_part(kind, name), sets, fits(some), PATIENCE)


def _part(kind: str, name: str) -> str:
    return name if kind == NONLINEAR else f"{name}, {kind.partition(',')[0]}"


TITLES = {
    "start": "Scale of p at the start",
    "chains": "Number of chains",
    "noise of p": "Noise injected into p",
    "noise of functions": "Noise injected into Θ",
}


def _changes(base: BayesDAG) -> dict[str, PlainData]:
    def noisy(sampler: str, scale: float) -> BayesDAG:
        return replace(base, **{sampler: replace(getattr(base, sampler), noise_scale=scale)})

    return {
        "start": {f"scale {scale:g}": replace(base, init_scale=scale) for scale in STARTS},
        "chains": {f"{num} chains": replace(base, num_chains=num) for num in CHAINS},
        "noise of p": {f"s = {s:g}": noisy("potential_sampler", s) for s in NOISES},
        "noise of functions": {f"s = {s:g}": noisy("sampler", s) for s in NOISES},
    }
