"""What is left unexplained by the arrows of a posterior that are sure, and by no others."""

from typing import Any

import numpy as np

from bayesdag import posterior
from bayesdag.data import Dataset
from bayesdag.posterior import Posterior, coarsening
from bayesdag.posterior.check_result import Check
from bayesdag.runs.trees import map_leaves
from bayesdag.types import Key, Score


def check(key: Key, score: Score, stats: Any, found: Posterior, data: Dataset) -> Check:
    """The check of functions of all rows on arrows that are sure.

    Functions are drawn from all of the evidence, so that unsure arrows between trends would
    explain as much as sure ones.
    """
    graphs = coarsening.with_sure_arrows(found)
    params = score.draw(key, stats, graphs)
    sure = posterior.from_draws(
        graphs[None],
        score.scm(data),
        map_leaves(lambda leaf: np.asarray(leaf)[None], params),
        data,
        log_joint=np.zeros((1, len(graphs))),
        provenance={name: found.provenance[name] for name in ("model", "prior", "temperature")},
    )
    return sure.check(data)
