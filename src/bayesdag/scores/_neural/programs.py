"""Programs that compute batches of families on an accelerator, compiled before they are needed.

Compiling one takes longer than running it, and one after the other they would keep a search
waiting. Threads compile those of the sizes that will be asked for while the host prepares and
begins the search: the compiler lets go of Python's lock. What is computed is the same.
"""

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import jax
import numpy as np

from bayesdag.runs import compilation_cache
from bayesdag.runs.loop import COMPILER
from bayesdag.scores._neural import fold_networks
from bayesdag.scores._neural import regressions as simple
from bayesdag.scores._neural.folds import Folds
from bayesdag.scores._neural.training import TrainingPlan

PROGRAMS: dict[str, Callable[..., Any]] = {
    "networks": fold_networks.networks,
    "regressions": simple.regressions,
    "fits": simple.fits,
}
_SIDE_BY_SIDE = 4  # programs that are compiled at a time
_ahead: dict[Hashable, Future[Callable[..., Any]]] = {}


def compute(program: str, plan: TrainingPlan | None, folds: Folds, *batch: Any) -> Any:
    """Results of a batch, by a program that was compiled ahead or is compiled now."""
    compilation_cache.enable()
    waiting = _ahead.get(_key(program, plan, folds, batch))
    if waiting is not None:
        found = waiting.result()(folds, *batch)
    else:
        found = _compiled(program)(folds, *batch, **_settings(plan))
    return jax.tree.map(np.asarray, found)


def compile_ahead(program: str, plan: TrainingPlan | None, folds: Folds, *batch: Any) -> None:
    """Begin to compile what computes batches like this one, unless that has begun before."""
    compilation_cache.enable()
    key = _key(program, plan, folds, batch)
    if key not in _ahead:
        lower = partial(_compiled(program).lower, folds, *batch, **_settings(plan))
        _ahead[key] = _threads().submit(lambda: lower().compile())


def _key(program: str, plan: TrainingPlan | None, folds: Folds, batch: Any) -> Hashable:
    """What a program is compiled for: equal tables of one fit and of the next share it."""
    shapes = [(leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves((folds, batch))]
    place = folds.values.sharding  # pyright: ignore[reportAttributeAccessIssue]
    return program, plan, place, tuple(shapes)


def _settings(plan: TrainingPlan | None) -> dict[str, TrainingPlan]:
    return {} if plan is None else {"plan": plan}


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_SIDE_BY_SIDE, "compile")


@cache
def _compiled(program: str) -> Any:
    """A program of one family as a compiled one of many."""
    one = PROGRAMS[program]

    @partial(jax.jit, static_argnames="plan", compiler_options=COMPILER)
    def many(folds: Folds, *batch: Any, plan: TrainingPlan | None = None) -> Any:
        return jax.vmap(lambda *family: one(folds, *family, **_settings(plan)))(*batch)

    return many
