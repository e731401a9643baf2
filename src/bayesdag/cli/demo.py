"""The demonstration: the example that ships with the package, fitted and compared."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesdag import fitting
from bayesdag.datasets.example import load_example
from bayesdag.knowledge import Knowledge
from bayesdag.metrics import summary
from bayesdag.posterior import Posterior

if TYPE_CHECKING:
    import pandas

SEED = 0


@dataclass(frozen=True)
class Comparison:
    """The most probable edges beside the truth, and a sentence about them."""

    edges: "pandas.DataFrame"
    words: str


def introduction() -> list[str]:
    """Introduction to the example that is fitted, line by line."""
    example = load_example()
    rows, columns = example.train.values.shape
    return [*example.description.splitlines(), f"Fitting {rows} rows of {columns} variables ..."]


def settings() -> dict[str, Any]:
    """Everything that decides what `run` returns."""
    method = fitting.build_method(fitting.DEFAULT_METHOD)
    return fitting.settings_of(method, load_example().train, Knowledge(), SEED)


def run() -> Posterior:
    """Fit the example with the default method."""
    return fitting.fit(load_example().train, seed=SEED)


def report_facts(result: str) -> dict[str, Any]:
    """What a report of the example says of where it comes from."""
    rows = load_example().train
    return {"data": rows, "title": "Greenhouse", "table": "greenhouse.csv", "result": result}


def truth() -> np.ndarray:
    """The graph behind the example."""
    return load_example().graph


def compare(posterior: Posterior, truth) -> Comparison:
    """The posterior's edges beside the true graph."""
    node = {name: i for i, name in enumerate(posterior.names)}
    # Twice the true number of rows is enough to show what was missed just below the cut.
    edges = posterior.edge_table().head(2 * int(truth.sum()))
    present = [truth[node[s], node[t]] for s, t in zip(edges.source, edges.target, strict=True)]
    backwards = [truth[node[t], node[s]] for s, t in zip(edges.source, edges.target, strict=True)]
    verdicts = [
        "yes" if p else "reversed" if b else "no" for p, b in zip(present, backwards, strict=True)
    ]
    d = posterior.num_variables
    row = summary(posterior.graphs.reshape(-1, d, d), truth, posterior.weights.reshape(-1))
    words = (
        f"The truth has {int(truth.sum())} edges. A draw from the posterior differs from it by "
        f"{row['expected_shd']:.1f} edges on average (the empty graph by {int(truth.sum())}); "
        f"area under the ROC curve {row['auroc']:.3f}."
    )
    return Comparison(edges.assign(**{"in truth": verdicts}), words)
