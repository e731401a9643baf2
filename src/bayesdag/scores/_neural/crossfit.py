"""Cross-fitted evidence of batches of families, wherever it is computed.

Lines, sums of curves and Gaussian processes come first: they are regressions. Networks cost most
of the time; whoever asks decides by what the regressions leave to explain (`unexplained`) which
families get some.

On a CPU every family is computed by itself, in NumPy, on all cores. On an accelerator a batch is
one compiled program.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from bayesdag.runs import parallel, processes
from bayesdag.scores._neural import fold_fits, programs
from bayesdag.scores._neural.control_flow import for_each
from bayesdag.scores._neural.fold_fits import FoldFits, Scored
from bayesdag.scores._neural.folds import SIZES, Families, Folds, StartingNetworks
from bayesdag.scores._neural.regressions import Regressions
from bayesdag.scores._neural.training import TrainingPlan

# Families of the smallest size that an accelerator trains at once: it takes as long for one as
# for all of them, and longer to compile a program than to run it, so each size has one batch.
# Fewer of the larger ones fill it (H200: 64 families of 16 parents 0.06 s, 256 of them 0.22 s).
_MOST_ON_ACCELERATORS, _FEWEST_ON_ACCELERATORS = 256, 32
# Families that a process of a CPU is handed at once, at most.
_MOST_ON_CPU = 16


def without_networks(folds: Folds, groups: list[Families], plan: TrainingPlan) -> list[Scored]:
    """Regressions of batches of families, all computed side by side."""
    found = _in_pieces("regressions", folds, None, [(group,) for group in groups])
    return [
        _all_classes(folds, group, plan, simple)
        for group, simple in zip(groups, found, strict=True)
    ]


def _all_classes(folds: Folds, group: Families, plan: TrainingPlan, found: Regressions) -> Scored:
    """Evidence of lines, sums of curves and Gaussian processes, in the layout of all classes.

    A network of several parents that is not trained pays for more than it could find: its evidence
    is zero. With one parent or none it is a curve as well, and counts as the other classes do on
    average.
    """
    few = np.asarray(group.used).sum(axis=1)[:, None, None] <= 1
    num = found.log_evidence.shape[1]
    average = np.logaddexp.reduce(found.log_evidence, axis=1, keepdims=True) - np.log(num)
    absent = np.where(few, average, -np.inf).astype(np.float32)
    evidence = np.concatenate([absent, found.log_evidence], axis=1)
    predicted = np.concatenate([np.full_like(absent, -np.inf), found.predicted], axis=1)
    gain, left = np.array(found.approximate_gain), np.asarray(found.unexplained)
    num_folds = np.zeros(len(left), np.float32)
    return Scored(evidence, predicted, gain, left, num_folds, _no_networks(folds, group, plan))


def networks(
    folds: Folds, batches: list[tuple[Families, StartingNetworks]], plan: TrainingPlan
) -> list[Scored]:
    """Networks of batches of families, in the layout of all classes, all trained side by side."""
    return _in_pieces("networks", folds, _compiled_in(plan), batches)


def compile_ahead(
    folds: Folds, like: tuple[Families, StartingNetworks], plan: TrainingPlan
) -> None:
    """Begin to compile what computes families of this size, where that is done here."""
    if not folds.compiled or parallel.current().elsewhere:
        return
    size = _at_once(folds, like[0], len(like[0].node))
    filled: Any = jax.tree.map(partial(_piece, start=0, size=size, filled=True), like)
    programs.compile_ahead("regressions", None, folds, filled[0])
    programs.compile_ahead("networks", _compiled_in(plan), folds, *filled)


def _compiled_in(plan: TrainingPlan) -> TrainingPlan:
    """What decides whom to train is no part of a program, or each value of it would be compiled."""
    return plan._replace(least_unexplained=0.0)


def regressions(folds: Folds, group: Families) -> Regressions:
    """What is known of a batch of families before a network is trained."""
    return _in_pieces("regressions", folds, None, [(group,)])[0]


def simple_fits(folds: Folds, group: Families) -> tuple[FoldFits, ...]:
    """Regressions of a batch of families, class by class; dimensions (family, fold).

    They are many numbers for each family and few families, those of drawn graphs.

    Args:
        folds: of NumPy arrays (`folds.on_host`).
    """
    return _in_pieces("fits", folds, None, [(group,)])[0]


def _in_pieces(
    program: str, folds: Folds, plan: TrainingPlan | None, batches: Sequence[tuple[Any, ...]]
) -> list[Any]:
    """Results of a program for batches of any length; compiled, in pieces of one shape.

    Pieces of all batches are computed side by side, those of the largest families first, so that
    no process waits long for the last of them.
    """
    total = sum(len(group.node) for group, *_ in batches)
    tasks: list[tuple[Any, ...]] = []
    owner: list[int] = []
    for which in reversed(range(len(batches))):
        num, size = len(batches[which][0].node), _at_once(folds, batches[which][0], total)
        for start in range(0, num, size):
            cut = partial(_piece, start=start, size=size, filled=folds.compiled)
            tasks.append((program, plan, *jax.tree.map(cut, batches[which])))
            owner.append(which)
    pieces: list[list[Any]] = [[] for _ in batches]
    for which, piece in zip(owner, _map(folds, tasks), strict=True):
        pieces[which].append(piece)
    return [_joined(own, len(batch[0].node)) for batch, own in zip(batches, pieces, strict=True)]


def _joined(pieces: list[Any], num: int) -> Any:
    """Results of the pieces of one batch, without those that filled the last one up."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num], *pieces)


def _map(folds: Folds, tasks: list[tuple[Any, ...]]) -> list[Any]:
    """Results of independent tasks: on a cluster, on all cores, or here on an accelerator."""
    cluster = parallel.current()
    if cluster.elsewhere:
        return cluster.map(_compute, [(folds, *task) for task in tasks])
    if folds.compiled:
        return [_compute(folds, *task) for task in tasks]
    with processes.sent_once(folds) as sent:
        return processes.compute(_compute, [(sent, *task) for task in tasks])


def _compute(
    sent: Folds | processes.Kept, program: str, plan: TrainingPlan | None, *batch: Any
) -> Any:
    """One piece of a batch, wherever it is computed."""
    folds: Folds = processes.received(sent)
    if folds.compiled:
        return programs.compute(program, plan, folds, *batch)
    one, settings = programs.PROGRAMS[program], {} if plan is None else {"plan": plan}
    with np.errstate(all="ignore"):  # as compiled programs do; what is not finite is dealt with
        return for_each(lambda *family: one(folds, *family, **settings), *batch)


def _no_networks(folds: Folds, group: Families, plan: TrainingPlan) -> FoldFits:
    """The same of every family: no networks were trained."""
    num, k = group.members.shape
    one = fold_fits.no_networks(folds.values.shape[0], k, plan.width)
    return jax.tree.map(lambda leaf: np.repeat(leaf[None], num, axis=0), one)


def _at_once(folds: Folds, group: Families, total: int) -> int:
    """Families, of so many, that are computed together: enough to fill the device or a task."""
    if folds.compiled:
        k = group.members.shape[1]
        return max(_MOST_ON_ACCELERATORS * SIZES[0] ** 2 // k**2, _FEWEST_ON_ACCELERATORS)
    shares = 2 * processes.number()  # families differ in cost, so that processes take turns
    return min(max(-(-total // shares), 1), _MOST_ON_CPU)


def _piece(leaf: np.ndarray, start: int, size: int, filled: bool) -> np.ndarray:
    """A piece of a batch; where it must be full, its last member is repeated."""
    end = start + size if filled else min(start + size, len(leaf))
    return leaf[np.minimum(np.arange(start, end), len(leaf) - 1)]
