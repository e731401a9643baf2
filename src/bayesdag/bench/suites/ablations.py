"""The paper's four ablations of its engine: start of p, chains, noise on p, noise on Θ."""

from dataclasses import replace

from bayesdag.bench.columns import PATIENCE, PUBLISHED, fits, trivial
from bayesdag.bench.suite import FIGURES, Part, Size, Suite, Table, trials
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.bayesdag import BayesDAG
from bayesdag.types import PlainData

NUM_SETS = {"quick": 1, "paper": 5}
VARIABLES = {"quick": 5, "paper": 30}
ROWS = {"quick": (100, 20), "paper": (5000, 1000)}
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
    "s": "seconds .0f",
}


def build(size: Size) -> Suite:
    """The suite of this size."""
    rows, test = ROWS[size]
    made = Synthetic(num_variables=VARIABLES[size], num_train=rows, num_test=test)
    sets = tuple(trials({}, made, range(FIGURES, FIGURES + NUM_SETS[size])))
    base = BayesDAG.PRESETS["paper-er30"]
    if size == "quick":  # linear functions compile in seconds
        base = replace(BayesDAG.PRESETS["paper-linear-er5"], **FEW)
    changes = _changes(base)
    if size == "quick":  # each is compiled anew
        changes = {name: dict(list(some.items())[:1]) for name, some in changes.items()}
    return Suite(
        title="Ablations of the paper's engine",
        caption="Nonlinear, random graphs, 30 variables, 60 edges, raw columns. One setting of the "
        "published preset is changed at a time; the published value is among those shown.",
        parts=(
            Part("base", sets, {**fits({PUBLISHED: base}), **trivial()}, PATIENCE),
            *(Part(name, sets, fits(some), PATIENCE) for name, some in changes.items()),
        ),
        tables=tuple(
            Table(title, ("method",), COLUMNS, parts=(name,))
            for name, title in {"base": "The preset", **TITLES}.items()
        ),
    )


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
