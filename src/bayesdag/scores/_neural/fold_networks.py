"""Cross-fitted networks of a family: one per fold, all from one pilot."""

from functools import partial

import numpy as np
from jaxtyping import Bool, Float

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.scores._neural import fold_fits, folds, laplace, network, training
from bayesdag.scores._neural import whitening as units
from bayesdag.scores._neural.control_flow import for_each, stack
from bayesdag.scores._neural.fold_fits import HeldOut, Scored
from bayesdag.scores._neural.folds import Families, Folds, Rows, StartingNetworks
from bayesdag.scores._neural.laplace import Fit
from bayesdag.scores._neural.network import Network, TrainingRows
from bayesdag.scores._neural.training import TrainingPlan
from bayesdag.scores._neural.whitening import Whitening

# Nats below its bar, for 1000 rows, at which a family gets no network for a second fold. The
# evidence by one fold differs from the mean of all by 1.6, 2.2 and 6.8 (standard deviations at
# 300, 1000 and 5000 rows), about as the root of the number of rows.
_HOPELESS, _TYPICAL_ROWS = 10.0, 1000


def networks(
    rows_in_folds: Folds, family: Families, starts: StartingNetworks, plan: TrainingPlan
) -> Scored:
    """Networks of one family, in the layout of all classes.

    Where it has some, NumPy trains others only if they begin better: an evidence of zero says so.
    """
    xp, rows = namespace(rows_in_folds.values), folds.rows_of(rows_in_folds, family)
    if xp is np and starts.again:
        pilot = _pilot_again(rows, family.used, starts, plan)
        if pilot is None:
            return fold_fits.nothing_better(rows_in_folds, family, plan.width)
    else:
        pilot = _pilot(rows, family.used, starts, plan)
    found, active, counts = _in_folds(rows, family.used, pilot, starts.bar, plan)
    evidence, predicted = fold_fits.evidence_of(found, (rows[2] * counts[:, None]).reshape(-1))
    best = xp.argmax(evidence)
    residual = found.residual[:, best] * rows[2].reshape(-1)
    gain = fold_fits.approximate_gain(rows_in_folds.curves, residual, active)
    num_folds = (counts > 0).sum().astype(evidence.dtype)
    return Scored(evidence[None], predicted[None], gain, 0 * evidence[0], num_folds, found.fit)


def _in_folds(
    rows: Rows, used: Array, pilot: Network, bar: Array, plan: TrainingPlan
) -> tuple[HeldOut, Bool[Array, "n h"], Float[Array, " f"]]:
    """One network per fold, every row as the network that has not seen it sees it.

    All start from one pilot, so that they differ by the rows they see and not by their luck.
    Where the first is hopeless, NumPy trains no other: it stands for all, and the rows that it
    has not seen count for the others. The last result says how often the rows of each fold count.
    """
    xp, num_folds = namespace(rows[1]), len(rows[1])

    def trained(f: Array) -> tuple[Whitening, Fit, Array]:
        train = folds.all_but(f, rows)
        by = units.whitening(*train, used)
        seen = units.whitened(by, *train, used)
        own = training.finish(units.in_whitened_units(by, pilot), seen, used, plan)
        return by, laplace.fit(own, seen, used), train[2].sum()

    def judged(f: Array, by: Whitening, fit: Fit, num_rows: Array) -> tuple[HeldOut, Array]:
        test = units.whitened(by, *folds.one_of(f, rows), used)
        known = fold_fits.held_out(by, fit, test, num_rows)
        return known, network.units(fit.network, test.inputs) > 0

    every, counts = xp.arange(num_folds), xp.ones(num_folds, rows[1].dtype)
    if xp is not np:
        return *fold_fits.by_row(*for_each(lambda f: judged(f, *trained(f)), every)), counts
    first = trained(every[0])
    results = [judged(every[0], *first)]
    if _hopeless(results[0][0], rows[2], bar):
        results += [judged(f, *first) for f in every[1:]]
        counts = np.where(every == 0, num_folds, 0).astype(counts.dtype)
    else:
        results += [judged(f, *trained(f)) for f in every[1:]]
    return *fold_fits.by_row(*stack(results)), counts


def _pilot(rows: Rows, used: Array, starts: StartingNetworks, plan: TrainingPlan) -> Network:
    """Where the networks of all folds start, in engine units."""
    by_all, whitened, given = _pooled(rows, used, starts)
    return units.in_engine_units(by_all, training.pilot(whitened, used, given, starts.known, plan))


def _pilot_again(
    rows: Rows, used: Array, starts: StartingNetworks, plan: TrainingPlan
) -> Network | None:
    """The same for a family that has networks; None where a start of its own is no worse."""
    by_all, whitened, given = _pooled(rows, used, starts)
    own = units.in_whitened_units(by_all, starts.own)
    found = training.again(whitened, used, given, starts.known, own, plan)
    return None if found is None else units.in_engine_units(by_all, found)


def _pooled(
    rows: Rows, used: Array, starts: StartingNetworks
) -> tuple[Whitening, TrainingRows, Network]:
    """All rows and the networks to start from, as a network sees them."""
    pooled = folds.all_rows(rows)
    by_all = units.whitening(*pooled, used)
    given = for_each(partial(units.in_whitened_units, by_all), starts.networks)
    return by_all, units.whitened(by_all, *pooled, used), given


def _hopeless(first: HeldOut, weight: Float[Array, "f m"], bar: Array) -> bool:
    """Whether the other folds cannot lift the evidence to the bar, as far as the first tells."""
    margin = _HOPELESS * np.sqrt(weight.sum() / _TYPICAL_ROWS)
    return bool(fold_fits.evidence_of_fold(first, weight[0]).max() < bar - margin)
