"""The suite that leaves out one part of the doubt at a time."""

import dataclasses

from bayesdag.bench.fits import FitRunner
from bayesdag.bench.suite import BASELINES, load_suite
from bayesdag.datasets._worlds import FIGURES
from bayesdag.methods.collapsed import Collapsed


def changes(one, other) -> list[str]:
    """Settings in which two plug-ins differ, those of their parts in place of the parts."""
    found = []
    for field in dataclasses.fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if dataclasses.is_dataclass(mine) and type(mine) is type(theirs):
            found += changes(mine, theirs)
        elif mine != theirs:
            found.append(field.name)
    return found


def test_every_row_leaves_out_one_part_of_the_preset():
    (part,) = load_suite("certainty_ablations", "paper").parts
    preset = Collapsed.PRESETS["neural"]
    fits = {name: run for name, run in part.runners.items() if isinstance(run, FitRunner)}
    assert len(fits) == len(part.runners)
    fits = {name: run for name, run in fits.items() if name not in BASELINES}
    left_out = {name: changes(preset, run.method) for name, run in fits.items()}
    assert left_out.pop("collapsed, neural") == []
    names = sorted(name for one in left_out.values() for name in one)
    assert names == [
        "coarsened",
        "equivalent_lines",
        "gaussian_processes",
        "gaussian_processes",
        "normal_scores",
        "simpler_functions",
        "trusted_rows",
        "unmarked_groups",
    ]


def test_only_families_and_seeds_of_the_development_half_are_looked_at():
    (part,) = load_suite("certainty_ablations", "paper").parts
    assert not {trial.setting["data"] for trial in part.trials} & set(FIGURES)
    assert max(trial.seed for trial in part.trials) < 1000
