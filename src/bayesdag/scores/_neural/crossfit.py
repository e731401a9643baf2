"""Cross-fitted evidence of batches of families, wherever it is computed.

Lines and sums of curves come first: they are regressions. Networks cost most of the time; whoever
asks decides by what the regressions leave to explain (`unexplained`) which families get some.

On a CPU every family is computed by itself, in NumPy, on all cores. On an accelerator a batch is
one compiled program.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from bayesdag.runs import compilation_cache, parallel, processes
from bayesdag.runs.loop import COMPILER
from bayesdag.scores._neural import fold_fits, fold_networks
from bayesdag.scores._neural import regressions as simple
from bayesdag.scores._neural.control_flow import for_each
from bayesdag.scores._neural.fold_fits import FoldFits, Scored
from bayesdag.scores._neural.folds import SIZES, Families, Folds, StartingNetworks
from bayesdag.scores._neural.regressions import Regressions
from bayesdag.scores._neural.training import TrainingPlan

# Families of the smallest size that an accelerator trains at once: it takes as long for one as
# for all of them, and longer to compile a program than to run it, so each size has one batch.
# Fewer of the larger ones fill it (H200: 64 families of 16 parents 0.06 s, 256 of them 0.22 s).
_MOST_ON_ACCELERATORS, _FEWEST_ON_ACCELERATORS = 256, 32
# Families that a process of a CPU is handed at once, at most: each task carries the rows along.
_MOST_ON_CPU = 16


def without_networks(folds: Folds, group: Families, plan: TrainingPlan) -> Scored:
    """Cross-fitted evidence of lines and sums of curves, in the layout of all classes.

    A network of several parents that is not trained pays for more than it could find: its evidence
    is zero. With one parent or none it is a curve as well, and counts as the other classes do on
    average.
    """
    found = regressions(folds, group)
    few = np.asarray(group.used).sum(axis=1)[:, None, None] <= 1
    average = np.logaddexp.reduce(found.log_evidence, axis=1, keepdims=True) - np.log(2)
    absent = np.where(few, average, -np.inf).astype(np.float32)
    evidence = np.concatenate([absent, found.log_evidence], axis=1)
    predicted = np.concatenate([np.full_like(absent, -np.inf), found.predicted], axis=1)
    gain, left = np.array(found.approximate_gain), np.asarray(found.unexplained)
    num_folds = np.zeros(len(left), np.float32)
    return Scored(evidence, predicted, gain, left, num_folds, _no_networks(folds, group, plan))


def networks(folds: Folds, group: Families, starts: StartingNetworks, plan: TrainingPlan) -> Scored:
    """Networks of a batch of families, in the layout of all classes."""
    # What decides whom to train is no part of the program, or each value of it would be compiled.
    compiled_in = plan._replace(least_unexplained=0.0)
    return _in_pieces("networks", folds, compiled_in, group, starts)


def regressions(folds: Folds, group: Families) -> Regressions:
    """Lines and sums of curves of a batch of families."""
    return _in_pieces("regressions", folds, None, group)


def simple_fits(folds: Folds, group: Families) -> FoldFits:
    """Lines and sums of curves of a batch of families; dimensions (family, class, fold)."""
    fits = regressions(folds, group).fit
    return jax.tree.map(lambda leaf: np.moveaxis(leaf, 2, 1), fits)


def _in_pieces(program: str, folds: Folds, plan: TrainingPlan | None, *batch: Any) -> Any:
    """Results of a program for a batch of any length; compiled, in pieces of one shape."""
    num, size = len(batch[0].node), _at_once(folds, batch[0])
    parts = [
        jax.tree.map(partial(_piece, start=start, size=size, filled=folds.compiled), batch)
        for start in range(0, num, size)
    ]
    pieces = _map(folds, [(program, folds, plan, *part) for part in parts])
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num], *pieces)


def _map(folds: Folds, tasks: list[tuple[Any, ...]]) -> list[Any]:
    """Results of independent tasks: on a cluster, on all cores, or here on an accelerator."""
    cluster = parallel.current()
    if cluster.elsewhere:
        return cluster.map(_compute, tasks)
    if not folds.compiled:
        return processes.compute(_compute, tasks)
    return [_compute(*arguments) for arguments in tasks]


def _compute(program: str, folds: Folds, plan: TrainingPlan | None, *batch: Any) -> Any:
    """One piece of a batch, wherever it is computed."""
    settings = {} if plan is None else {"plan": plan}
    if folds.compiled:
        compilation_cache.enable()
        return jax.tree.map(np.asarray, _COMPILED[program](folds, *batch, **settings))
    one = _PROGRAMS[program]
    with np.errstate(all="ignore"):  # as compiled programs do; what is not finite is dealt with
        return for_each(lambda *family: one(folds, *family, **settings), *batch)


def _no_networks(folds: Folds, group: Families, plan: TrainingPlan) -> FoldFits:
    """The same of every family: no networks were trained."""
    num, k = group.members.shape
    one = fold_fits.no_networks(folds.values.shape[0], k, plan.width)
    return jax.tree.map(lambda leaf: np.repeat(leaf[None], num, axis=0), one)


_PROGRAMS: dict[str, Callable[..., Any]] = {
    "networks": fold_networks.networks,
    "regressions": simple.regressions,
}


def _of_batches(program: str) -> Callable[..., Any]:
    """A program of one family as a compiled one of many."""
    one = _PROGRAMS[program]

    @partial(jax.jit, static_argnames="plan", compiler_options=COMPILER)
    def many(folds: Folds, *batch: Any, plan: TrainingPlan | None = None) -> Any:
        settings = {} if plan is None else {"plan": plan}
        return jax.vmap(lambda *family: one(folds, *family, **settings))(*batch)

    return many


_COMPILED = {program: _of_batches(program) for program in _PROGRAMS}


def _at_once(folds: Folds, group: Families) -> int:
    """Families that are computed together: enough to fill the device, not its memory."""
    if folds.compiled:
        k = group.members.shape[1]
        return max(_MOST_ON_ACCELERATORS * SIZES[0] ** 2 // k**2, _FEWEST_ON_ACCELERATORS)
    shares = 2 * processes.number()  # families differ in cost, so that processes take turns
    return min(max(-(-len(group.node) // shares), 1), _MOST_ON_CPU)


def _piece(leaf: np.ndarray, start: int, size: int, filled: bool) -> np.ndarray:
    """A piece of a batch; where it must be full, its last member is repeated."""
    end = start + size if filled else min(start + size, len(leaf))
    return leaf[np.minimum(np.arange(start, end), len(leaf) - 1)]
