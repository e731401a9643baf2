"""Evidence of learned functions on trial: exact posteriors of small data sets."""

from math import inf
from typing import Any

from bayesdag.bench.fits import with_baselines
from bayesdag.bench.suite import Part, Size, Suite, Table, trials
from bayesdag.datasets.misspecified import KINDS, Misspecified
from bayesdag.datasets.synthetic import Synthetic
from bayesdag.methods.averaged import Averaged
from bayesdag.methods.bagged import Bagged
from bayesdag.methods.exact import Exact
from bayesdag.scores.bge import BGe
from bayesdag.scores.neural import NeuralScore
from bayesdag.types import PlainData

NUM_VARIABLES, NUM_DRAWS = 6, 400
SETTINGS: dict[str, PlainData] = {
    "mlp, 100": {"num_train": 100},
    "mlp, 500": {"num_train": 500},
    "mlp, 5000": {"num_train": 5000},
    "mlp, 5000, dense": {"num_train": 5000, "edges_per_node": 2},
    "gp, 100": {"num_train": 100, "mechanism": "gp"},
    "gp, 500": {"num_train": 500, "mechanism": "gp"},
    "gp, 5000": {"num_train": 5000, "mechanism": "gp"},
    "sigmoid, 500": {"num_train": 500, "mechanism": "sigmoid"},
    "mlp, Laplace noise, 5000": {"num_train": 5000, "noise": "laplace"},
    "mlp, heteroscedastic noise, 500": {"num_train": 500, "noise": "heteroscedastic"},
}
TRUSTED = (inf, 8000.0, 2000.0, 500.0)
COLUMNS = {
    "E-SHD": "expected_shd .2f",
    "F1": "edge_f1 .3f",
    "log score": "log_score .3f",
    "Brier skill": "brier_skill .3f",
    "edges": "expected_num_edges .1f",
    "best − true score": "above_truth .1f",
    "reliability": "reliability reliability",
}
CAPTION = (
    "Six variables, exact posteriors, so that differences are differences of the evidence; "
    "development seeds (1 and on). `trusted n`: evidence is coarsened after n rows; otherwise it "
    "is taken at its word. Reliability: mean probability → share of edges (pairs), for "
    "probabilities in (.05, .25), (.25, .5), (.5, .75), (.75, .95) and above."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    quick = size == "quick"
    seeds = range(1, 2) if quick else range(1, 7)
    made: PlainData = {name: _synthetic(**changes) for name, changes in SETTINGS.items()}
    made |= {f"{kind}, 500": Misspecified(kind, NUM_VARIABLES) for kind in KINDS}
    if quick:
        made = {"mlp, 100": _synthetic(num_variables=3, num_train=100)}
    every = [t for name, data in made.items() for t in trials({"data": name}, data, seeds)]
    part = Part("evidence", tuple(every), with_baselines(methods(quick)))
    table = Table("Evidence", ("data", "method"), COLUMNS)
    return Suite("Evidence of learned functions", CAPTION, (part,), (table,))


def methods(quick: bool) -> PlainData:
    """Exact posteriors under each assumption on the noise, averages of them, and others."""
    effort: PlainData = {"num_starts": 1, "rough_steps": 2, "fine_steps": 2} if quick else {}
    effort |= {"average_noise_models": False}

    def exact(heteroscedastic: bool, skewed: bool, trusted: float = inf, seed: int = 0) -> Exact:
        assumed: PlainData = {"heteroscedastic": heteroscedastic, "skewed": skewed}
        score = NeuralScore(**assumed, trusted_rows=trusted, seed=seed, **effort)
        return Exact(score, num_samples=NUM_DRAWS)

    def averaged(trusted: float = inf) -> Averaged:
        kinds = ((True, False), (False, False), (True, True))
        return Averaged(tuple(exact(*kind, trusted=trusted) for kind in kinds))

    found: PlainData = {"one scale of noise": exact(False, False)}
    found |= {f"two scales of noise{_words(t)}": exact(True, False, t) for t in TRUSTED}
    found |= {"noise may be skewed": exact(True, True)}
    found |= {f"averaged over noise models{_words(t)}": averaged(t) for t in TRUSTED}
    found["two trainings, averaged"] = Averaged((exact(True, False), exact(True, False, seed=1)))
    found["4 bags"] = Bagged(exact(True, False), num_bags=4)
    found["linear (BGe)"] = Exact(BGe(), num_samples=NUM_DRAWS)
    if quick:
        return {name: found[name] for name in ("one scale of noise", "linear (BGe)")}
    return found


def _synthetic(**changes: Any) -> Synthetic:
    base = {"num_variables": NUM_VARIABLES, "edges_per_node": 1, "num_test": 0}
    return Synthetic(**{**base, **changes})


def _words(trusted: float) -> str:
    return "" if trusted == inf else f", trusted {trusted:g}"
