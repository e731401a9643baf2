"""What each doubt earns: the learned score with one of its parts left out, on broken worlds."""

from dataclasses import replace

from bayesdag.bench.columns import fits, trivial
from bayesdag.bench.datasets import standardised_columns
from bayesdag.bench.suite import Part, Size, Suite, Table, Trial
from bayesdag.bench.suites.broken_worlds import WORTH
from bayesdag.datasets._worlds import DEVELOPMENT
from bayesdag.datasets.broken_world import BrokenWorld
from bayesdag.methods.collapsed import Collapsed
from bayesdag.scores.neural import NeuralScore
from bayesdag.types import PlainData

NUM_SETS = {"quick": 1, "paper": 3}
SIZES = {"quick": (3, 100), "paper": (5, 1000)}
CAPTION = (
    "Families of the development half alone, five variables, one edge per node, 1000 rows, "
    "seeds below 1000; `linear` is linear Gaussian. Each row leaves out one part: networks "
    "alone (no other functions), no Gaussian processes, no normal scores, parameter priors that "
    "are not score equivalent, evidence that is not coarsened where a check contradicts the model, "
    "evidence at its word whatever the number of rows, no groups that nobody marked. Columns as "
    "in broken_worlds."
)


def build(size: Size) -> Suite:
    """The suite of this size."""
    trials = tuple(_trials(size))
    runners = {**fits(_methods(size)), **trivial()}
    parts = (Part("ablations", trials, runners, 900.0, interleaved=True),)
    return Suite(
        title="What each part of the doubt earns",
        caption=CAPTION,
        parts=parts,
        tables=(
            Table("All families", ("method",), WORTH),
            Table("By family", ("data", "method"), WORTH),
        ),
    )


def _methods(size: Size) -> PlainData:
    """The preset, and what is left of it without each of its parts."""
    score, whole = NeuralScore(), Collapsed.PRESETS["neural"]
    if size == "quick":
        score = replace(score, width=2, num_starts=1, rough_steps=2, fine_steps=2)
        whole = replace(Collapsed.PRESETS["quick"], score=score)
        return {"collapsed, neural": whole, "not coarsened": replace(whole, coarsened=False)}
    infinite = float("inf")
    alone = replace(score, simpler_functions=False, gaussian_processes=False)
    return {
        "collapsed, neural": whole,
        "networks alone": replace(whole, score=alone),
        "no Gaussian processes": replace(whole, score=replace(score, gaussian_processes=False)),
        "no normal scores": replace(whole, score=replace(score, normal_scores=False)),
        "priors of their own": replace(whole, score=replace(score, equivalent_lines=False)),
        "not coarsened": replace(whole, coarsened=False),
        "all rows trusted": replace(whole, score=replace(score, trusted_rows=infinite)),
        "no unmarked groups": replace(whole, unmarked_groups=False),
    }


def _trials(size: Size) -> list[Trial]:
    """Families take turns, seed by seed."""
    d, num_rows = SIZES[size]
    linear = standardised_columns(d, num_rows, "signed_linear")
    made = {"linear": linear}
    made |= {family: BrokenWorld(family, d, 1, num_rows) for family in DEVELOPMENT}
    return [
        Trial({"data": name}, seed, world)
        for seed in range(NUM_SETS[size])
        for name, world in made.items()
    ]
