"""Neural: evidence of functions that are learned, whatever their shape.

log p(all rows) = log p(some) + log p(the others | some). Small networks are trained on all
folds but one: the first term is Laplace's approximation around them, which charges for
every parameter that the rows determine, the second is their predictive density of the fold
they have not seen, which charges for what Laplace overlooks. The mean over the folds is the
evidence (of regressions Laplace overlooks nothing, and one fit is enough): no
penalty constant, no assumption on the shape of the functions beyond one hidden layer, tails of
the noise as the residuals show them, and a scale of the noise that may depend on the parents.
Every family is also a line, a sum of curves and a Gaussian process (`_neural.function_classes`,
`_neural.gaussian_process`), and each of them of the values as they are and of their normal scores
(`_neural.normal_scores`). Beforehand one half is that of lines, and the others are equally
probable. Lines have the parameter prior of BGe, under which Markov equivalent graphs
have equal evidence (`_neural.wishart_prior`). Posteriors under other assumptions on the noise:
`noise_hypotheses`.
"""

from dataclasses import dataclass, field, replace
from math import log
from typing import TYPE_CHECKING, ForwardRef, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.special import expit, softmax

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.graphs.bitsets import members_of
from bayesdag.model.mechanisms.networks import Networks
from bayesdag.model.noises.skewed_student_t import SkewedStudentT
from bayesdag.model.scm import SCM
from bayesdag.random import generator
from bayesdag.runs.recording import recorder_of
from bayesdag.scores import _sufficient_statistics
from bayesdag.scores._neural.normal_scores import NormalScores, no_scores, normal_scores
from bayesdag.scores._neural.surrogate import AdditiveSurrogate, Moments
from bayesdag.types import Key, Params, ParentSets, Recorder
from bayesdag.types.late_imports import late

if TYPE_CHECKING:
    from bayesdag.scores._neural import folds as in_folds
    from bayesdag.scores._neural import (
        function_classes,
        network_cache,
        noise_forms,
        parameter_draws,
        training,
        wishart_prior,
    )
    from bayesdag.scores._neural.folds import Folds
    from bayesdag.scores._neural.network_cache import Family, NetworkCache, Rival, TrainedFamily
    from bayesdag.scores._neural.noise_forms import NoiseForm
    from bayesdag.scores._neural.training import TrainingPlan
    from bayesdag.scores._neural.wishart_prior import WishartPrior
else:
    # This score is among the settings of every automatic choice: straight lines must not wait
    # for what trains networks.
    _ROOM = "bayesdag.scores._neural"
    in_folds, network_cache = late(f"{_ROOM}.folds"), late(f"{_ROOM}.network_cache")
    function_classes, training = late(f"{_ROOM}.function_classes"), late(f"{_ROOM}.training")
    noise_forms, parameter_draws = late(f"{_ROOM}.noise_forms"), late(f"{_ROOM}.parameter_draws")
    Folds, NoiseForm = (
        ForwardRef(f"{_ROOM}.folds.Folds"),
        ForwardRef(f"{_ROOM}.noise_forms.NoiseForm"),
    )
    NetworkCache, Rival, TrainedFamily = (
        ForwardRef(f"{_ROOM}.network_cache.{name}")
        for name in ("NetworkCache", "Rival", "TrainedFamily")
    )
    TrainingPlan = ForwardRef(f"{_ROOM}.training.TrainingPlan")
    wishart_prior = late(f"{_ROOM}.wishart_prior")
    WishartPrior = ForwardRef(f"{_ROOM}.wishart_prior.WishartPrior")
    Family = tuple[int, int]


_EXPECTED_PARENTS = 12  # of the largest sets that most searches ask for
_FEWEST_OF_MANY = 1000  # rows that a longer table is represented by, at least


class _Trained(NamedTuple):
    """Families of one scale, by name, and what was trained for them."""

    names: list[Family]
    families: list[TrainedFamily]


@dataclass(frozen=True, eq=False)
class NeuralStats:
    """The rows in folds, and the cache of the fit that looks at them.

    Attributes:
        folds: rows on the device.
        margins: the normal scores of columns that are not normal; they follow the columns in
            the folds.
        prior: under which lines of equivalent graphs have equal evidence; its columns are those
            of the folds; None: every class has its own.
        moments: of curves of the variables, for the surrogate.
        num_rows: number of the rows.
        num_given: how many rows the table has.
        cache: families that this fit has trained; it grows.
        log_odds: of the two priors, for each family that was asked for (`wishart_prior`).
    """

    folds: Folds
    margins: NormalScores
    prior: WishartPrior | None
    moments: Moments
    num_rows: int
    num_given: int
    cache: NetworkCache
    log_odds: dict[Family, float] = field(default_factory=dict)


@dataclass(frozen=True)
class NeuralScore:
    """Evidence of small networks, half integrated, half predicted; Student-t or Gaussian noise.

    h(x) = f(parents) + s(parents) · noise, where f is a line (with probability one half
    beforehand), a sum of curves, a Gaussian process or a network, h the identity or the normal
    scores of x (parents then count with theirs, too), and s is constant or not, family by family.
    Taken for constant where it is not, the scale makes wrong directions look right, and so does
    noise that is taken to add to x where it adds to h(x).
    Networks come close to a function but not arbitrarily so, and what they miss is worth
    more nats the more rows there are. Evidence is therefore coarsened (Miller & Dunson, 2019,
    "Robust Bayesian inference via coarsening").
    Rows where a node was set by an experimenter neither train its networks nor count.

    Attributes:
        width: hidden units of a network.
        num_folds: parts of the rows, each predicted from the others; 0: by their number.
        num_starts: random starts, of which the one with the best training loss goes on.
        rough_steps: Levenberg-Marquardt steps of every start, on few rows.
        fine_steps: of the best start, on all rows.
        heteroscedastic: whether the scale of the noise may depend on the parents.
        skewed: whether noise may be skewed.
        average_noise_models: whether `collapsed` averages the posterior over noise models
            (see `noise_hypotheses`); the score itself is that of this noise model alone.
        simpler_functions: whether lines and sums of curves are hypotheses, too.
        gaussian_processes: whether Gaussian processes are.
        normal_scores: whether families count through normal scores, too.
        equivalent_lines: whether the parameter prior is one under which lines of Markov
            equivalent graphs have equal evidence.
        trusted_rows: rows after which the imperfection of the networks, not chance, decides
            what is left: the evidence of N rows is raised to the power
            trusted_rows / (trusted_rows + N). Infinite: it is taken at its word.
        most_rows: of a longer table so many rows, drawn at random, are learned from. All of
            them would take longer and count little more: what is weighed against a superfluous
            parent grows with the logarithm of N, and is raised to the same power.
        least_unexplained: nats that lines and sums of curves must leave to a Gaussian process,
            or a family counts with them alone and no network is trained for it; -inf trains all.
        seed: of folds and starts.
    """

    width: int = 8
    num_folds: int = 0
    num_starts: int = 3
    rough_steps: int = 12
    fine_steps: int = 8
    heteroscedastic: bool = True
    skewed: bool = False
    average_noise_models: bool = True
    simpler_functions: bool = True
    gaussian_processes: bool = True
    normal_scores: bool = True
    equivalent_lines: bool = True
    trusted_rows: float = 8000.0
    most_rows: int = 10_000
    least_unexplained: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("width", "num_starts"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.num_folds < 0 or self.num_folds == 1:
            raise InputError(f"num_folds is {self.num_folds}; it must be 2 or more, or 0")
        if not self.trusted_rows > 0:
            raise InputError(f"trusted_rows is {self.trusted_rows:g}; it must be above 0")
        if self.most_rows < _FEWEST_OF_MANY:
            raise InputError(f"most_rows is {self.most_rows}; it must be {_FEWEST_OF_MANY} or more")

    def noise_hypotheses(self) -> "tuple[NeuralScore, ...]":
        """This score under every assumption on the noise that is averaged over.

        All learn from the same networks, so what is trained for one serves the others. Each
        grows sure of what suits it best, and which of them fits better does not say whose
        graphs are better: they count the same.
        """
        if not self.average_noise_models:
            return (self,)
        own = (self.heteroscedastic, self.skewed)
        assumptions = (own, (True, False), (False, False), (True, True))
        return tuple(
            replace(
                self, average_noise_models=False, heteroscedastic=heteroscedastic, skewed=skewed
            )
            for heteroscedastic, skewed in dict.fromkeys(assumptions)
        )

    def describe_noise(self) -> str:
        """What is assumed of the noise, in words."""
        scale = "a scale that may depend on the parents" if self.heteroscedastic else "one scale"
        return f"of {scale}" + ", which may be skewed" * self.skewed

    def prepare(self, data: Dataset, recorder: Recorder | None = None) -> NeuralStats:
        """The rows in folds, and an empty cache of networks.

        Args:
            recorder: where trained networks are recorded, and recalled from.
        """
        rng, num_given = np.random.default_rng(self.seed), data.num_rows
        data = _at_most(self.most_rows, data, self.seed)
        scaled, observed = np.asarray(data.scaled), np.asarray(data.observed)
        margins = self._margins(scaled, observed)
        values = np.concatenate([scaled, margins.values], axis=1)
        chosen = observed[:, margins.origin]
        folds = in_folds.fold(rng, values, chosen, self._folds(data.num_rows))
        cache = network_cache.NetworkCache(recorder_of(recorder), self._classes)
        cache.expect(_EXPECTED_PARENTS, folds, self._plan())
        moments = AdditiveSurrogate().prepare(data)
        prior = wishart_prior.wishart_prior(values, chosen) if self.equivalent_lines else None
        return NeuralStats(folds, margins, prior, moments, data.num_rows, num_given, cache)

    def notes(self, stats: NeuralStats) -> list[str]:
        """What of the data decided how they are modelled, in words."""
        if stats.num_rows == stats.num_given:
            return []
        return [
            f"functions are learned from {stats.num_rows} of the {stats.num_given} rows, drawn at "
            "random: networks come close to a function but not arbitrarily so, and more rows "
            "would be trusted little more (most_rows)"
        ]

    def log_evidence(
        self, stats: NeuralStats, node: int, parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """Log predictive density of the node given its parents, for m parent sets."""
        self._trained(stats, np.full(len(parents), node), parents)
        self.retrain_queued(stats)
        return self.log_evidence_of_families(stats, np.full(len(parents), node), parents)

    def log_evidence_of_families(
        self, stats: NeuralStats, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """The same for families of several nodes: the more at once, the faster.

        Queued families are trained again with the next batch, or by `retrain_queued`.
        """
        trained = self._trained(stats, nodes, parents)
        by_scale = self._log_evidence_by_scale(stats, nodes, trained)
        return (np.logaddexp(*by_scale) - log(2)) * self.power(stats)

    def approximate_gain(
        self, stats: NeuralStats, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """Roughly what each variable adds to these parents, in nats, by their residuals."""
        trained = self._trained(stats, nodes, parents)
        now = self._log_evidence_by_scale(stats, nodes, trained)
        then = []
        for value, place, found in zip(now, _places(stats), trained, strict=True):
            gain = np.stack([one.approximate_gain for one in found.families]).astype(float)
            then.append(value[:, None] + gain[:, place])
        return np.logaddexp(*then) - np.logaddexp(*now)[:, None]

    def surrogate(self, stats: NeuralStats) -> tuple[AdditiveSurrogate, Moments]:
        """Sums of curves, one of each parent, instead of networks."""
        return AdditiveSurrogate(), stats.moments

    def power(self, stats: NeuralStats) -> float:
        """To which the evidence is raised: 1 for few rows, falling like 1 / N for many."""
        return float(1 / (1 + stats.num_rows / self.trusted_rows))

    def queue_retraining(
        self, stats: NeuralStats, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> None:
        """Queue all sets with one parent less than these, to be trained from their networks.

        However much a parent adds: a network that was badly trained without it may do as
        well once it is trained from the one with it.
        """
        for families in _by_scale(stats, nodes, parents):
            for family in families:
                stats.cache.queue_smaller(family)

    def retrain_queued(self, stats: NeuralStats) -> set[Family]:
        """Train what is queued; the families whose score has changed since the last time."""
        stats.cache.train([], stats.folds, self._plan(), self._forms, {})
        origin = stats.margins.origin
        return {
            (int(origin[column]), sum(1 << int(origin[j]) for j in members_of(parents)))
            for column, parents in stats.cache.retrained()
        }

    def scm(self, data: Dataset) -> SCM:
        """A small network for each variable, with noise whose tails are its own."""
        return SCM(Networks(self.width), SkewedStudentT(), data.scaling)

    def draw(self, key: Key, stats: NeuralStats, graphs: Shaped[np.ndarray, "s d d"]) -> Params:
        """The function of a random fold, its last layer and noise scale drawn.

        Scale of the values, class of the function and form of the noise are drawn with the
        probability that the rows give them. Hidden units stay as trained; the weights that
        read them vary as in a linear regression on them.
        """
        every, parents = _sufficient_statistics.of_graphs(graphs)
        first, own = _sufficient_statistics.distinct(every, parents)
        rng, nodes = generator(key), every[first]
        trained = self._trained(stats, nodes, parents[first])
        odds = np.subtract(*self._log_evidence_by_scale(stats, nodes, trained))
        warped = rng.random(len(every)) < expit(-odds)[own]
        raw, scores = (found.names for found in trained)
        pairs = zip(own.tolist(), warped.tolist(), strict=True)
        names = [scores[k] if is_warped else raw[k] for k, is_warped in pairs]
        families = {name: stats.cache.trained[name] for name in dict.fromkeys(names)}
        number = {family: k for k, family in enumerate(families)}
        which = np.array([number[family] for family in names])
        given = parameter_draws.Drawing(
            stats.folds, stats.margins, stats.num_rows, self.width, self._forms
        )
        return parameter_draws.assembled(rng, given, families, which, graphs.shape[:2], warped)

    def function_weights(
        self, stats: NeuralStats, graphs: Shaped[np.ndarray, "s d d"]
    ) -> dict[str, Float[np.ndarray, " d"]]:
        """Probability of each class of functions, and of normal scores, by variable."""
        every, parents = _sufficient_statistics.of_graphs(graphs)
        first, own = _sufficient_statistics.distinct(every, parents)
        nodes = every[first]
        trained = self._trained(stats, nodes, parents[first])
        values = np.stack(
            [
                [family.log_evidence_of_fitted(self._forms) for family in found.families]
                for found in trained
            ],
            axis=1,
        )
        constants = np.stack(_constants(stats, nodes, trained), axis=1)
        values += constants[:, :, None, None]
        weights = softmax(values * self.power(stats), axis=(1, 2, 3))[own]
        by_node = weights.reshape(*graphs.shape[:2], *weights.shape[1:]).mean(axis=0)
        found = {
            one.name.lower().replace("_", " "): by_node[:, :, one].sum(axis=(1, 2))
            for one in function_classes.FunctionClass
        }
        return found | {"of normal scores": by_node[:, 1].sum(axis=(1, 2))}

    def _log_evidence_by_scale(
        self,
        stats: NeuralStats,
        nodes: Int[np.ndarray, " m"],
        trained: tuple[_Trained, _Trained],
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Of the values as they are, and through normal scores; where these differ."""
        raw, scores = (
            network_cache.log_evidence(found.families, self._forms) + constant
            for found, constant in zip(trained, _constants(stats, nodes, trained), strict=True)
        )
        return raw, scores

    def _trained(
        self, stats: NeuralStats, nodes: np.ndarray, parents: np.ndarray
    ) -> tuple[_Trained, _Trained]:
        """All families on both scales, after those not in the cache have been trained."""
        raw, scores = _by_scale(stats, nodes, parents)
        if fresh := stats.cache.missing([*raw, *scores]):
            rivals = _rivals(stats, nodes, raw, scores)
            stats.cache.train(fresh, stats.folds, self._plan(), self._forms, rivals)
        found = stats.cache.trained
        return (
            _Trained(raw, [found[name] for name in raw]),
            _Trained(scores, [found[name] for name in scores]),
        )

    def _margins(
        self, values: Float[np.ndarray, "n d"], observed: Bool[np.ndarray, "n d"]
    ) -> NormalScores:
        """Normal scores of the columns that are not normal, if these are to count."""
        if not self.normal_scores:
            return no_scores(values)
        return normal_scores(np.random.default_rng(self.seed), values, observed)

    def _plan(self) -> TrainingPlan:
        return training.TrainingPlan(
            width=self.width,
            num_starts=self.num_starts,
            rough_steps=self.rough_steps,
            fine_steps=self.fine_steps,
            seed=self.seed,
            least_unexplained=self.least_unexplained if self.simpler_functions else -np.inf,
        )

    @property
    def _classes(self) -> frozenset[int]:
        """Of functions, that are hypotheses."""
        kind = function_classes.FunctionClass
        left_out = {kind.LINEAR, kind.ADDITIVE} if not self.simpler_functions else set()
        left_out |= set() if self.gaussian_processes else {kind.GAUSSIAN_PROCESS}
        return frozenset(kind) - left_out

    @property
    def _forms(self) -> tuple[NoiseForm, ...]:
        """Of the noise, equally probable beforehand."""
        return noise_forms.noise_forms(heteroscedastic=self.heteroscedastic, skewed=self.skewed)

    def _folds(self, num_rows: int) -> int:
        """Few rows are worth more folds: each network then sees more of them."""
        if self.num_folds:
            return min(self.num_folds, num_rows)
        return 2 if num_rows >= 2000 else 4 if num_rows >= 500 else 8


def _places(stats: NeuralStats) -> tuple[Int[np.ndarray, " d"], Int[np.ndarray, " d"]]:
    """The column of each variable in the folds: its values, and its normal scores if it has any."""
    place = stats.margins.place
    return np.arange(len(place)), place


def _by_scale(
    stats: NeuralStats, nodes: Int[np.ndarray, " m"], parents: ParentSets
) -> tuple[list[Family], list[Family]]:
    """Families of values as they are, and of normal scores; columns without any are the same."""
    raw, scores = (
        network_cache.families_of(place[nodes], _moved(stats, parents, place))
        for place in _places(stats)
    )
    return raw, scores


def _moved(
    stats: NeuralStats, parents: ParentSets, place: Int[np.ndarray, " d"]
) -> Bool[np.ndarray, "m c"]:
    """Parents as columns of the folds."""
    chosen = np.zeros((len(parents), stats.folds.values.shape[2]), dtype=bool)
    chosen[:, place] = np.asarray(parents, bool)
    return chosen


def _at_most(most: int, data: Dataset, seed: int) -> Dataset:
    """Rows drawn at random from a longer table; all, where a column would be constant."""
    if data.num_rows <= most:
        return data
    fewer = data.with_rows(np.random.default_rng(seed).permutation(data.num_rows)[:most])
    return fewer if np.all(np.ptp(fewer.values, axis=0) > 0) else data


def _constants(
    stats: NeuralStats, nodes: Int[np.ndarray, " m"], trained: tuple[_Trained, _Trained]
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """What every class and form of a family has in common, on each scale.

    That is the density of the margin, and the odds of the prior under which equivalent lines have
    equal evidence.
    """
    raw, scores = (_log_odds(stats, found.names) for found in trained)
    return raw, scores + stats.margins.log_slope[nodes]


def _log_odds(stats: NeuralStats, families: list[Family]) -> Float[np.ndarray, " m"]:
    """Of the prior that was meant for lines to their own; computed once for each family."""
    if stats.prior is None:
        return np.zeros(len(families))
    known = stats.log_odds
    if fresh := list(dict.fromkeys(family for family in families if family not in known)):
        asked = network_cache.arrays_of(fresh, stats.folds.values.shape[2])
        known.update(zip(fresh, wishart_prior.log_odds(stats.prior, *asked).tolist(), strict=True))
    return np.array([known[family] for family in families])


def _rivals(
    stats: NeuralStats, nodes: Int[np.ndarray, " m"], raw: list[Family], scores: list[Family]
) -> dict[Family, Rival]:
    """The same family on the other scale, where that is another one."""
    lead, rival = stats.margins.log_slope[nodes].tolist(), network_cache.Rival
    found: dict[Family, Rival] = {}
    for own, other, slope in zip(raw, scores, lead, strict=True):
        if own != other:
            found[own], found[other] = rival(other, slope), rival(own, -slope)
    return found


build = NeuralScore
