"""Cross-fitted networks of a family: one per fold, all from one pilot."""

from functools import partial

from jaxtyping import Bool

from bayesdag.model.array_namespace import Array, namespace
from bayesdag.scores._neural import fold_fits, folds, laplace, network, training
from bayesdag.scores._neural import whitening as units
from bayesdag.scores._neural.control_flow import for_each
from bayesdag.scores._neural.fold_fits import HeldOut, Scored
from bayesdag.scores._neural.folds import Families, Folds, Rows, StartingNetworks
from bayesdag.scores._neural.training import TrainingPlan


def networks(
    rows_in_folds: Folds, family: Families, starts: StartingNetworks, plan: TrainingPlan
) -> Scored:
    """Networks of one family, in the layout of all classes."""
    xp, rows = namespace(rows_in_folds.values), folds.rows_of(rows_in_folds, family)
    weight = rows[2].reshape(-1)
    found, active = _in_folds(rows, family.used, starts, plan)
    evidence, predicted = fold_fits.evidence_of(found, weight)
    best = xp.argmax(evidence)
    residual = found.residual[:, best] * weight
    gain = fold_fits.approximate_gain(rows_in_folds.curves, residual, active)
    return Scored(evidence[None], predicted[None], gain, 0 * evidence[0], found.fit)


def _in_folds(
    rows: Rows, used: Array, starts: StartingNetworks, plan: TrainingPlan
) -> tuple[HeldOut, Bool[Array, "n h"]]:
    """One network per fold, every row as the network that has not seen it sees it.

    All start from one pilot, so that they differ by the rows they see and not by their luck.
    """
    pooled = folds.all_rows(rows)
    by_all = units.whitening(*pooled, used)
    given = for_each(partial(units.in_whitened_units, by_all), starts.networks)
    whitened = units.whitened(by_all, *pooled, used)
    pilot = training.pilot(whitened, used, given, starts.known, plan)
    pilot = units.in_engine_units(by_all, pilot)

    def without(f: Array) -> tuple[HeldOut, Array]:
        train = folds.all_but(f, rows)
        by = units.whitening(*train, used)
        seen = units.whitened(by, *train, used)
        own = training.finish(units.in_whitened_units(by, pilot), seen, used, plan)
        fit = laplace.fit(own, seen, used)
        test = units.whitened(by, *folds.one_of(f, rows), used)
        known = fold_fits.held_out(by, fit, test, train[2].sum())
        return known, network.units(fit.network, test.inputs) > 0

    return fold_fits.by_row(*for_each(without, namespace(rows[1]).arange(len(rows[1]))))
