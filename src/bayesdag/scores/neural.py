"""Neural: evidence of functions that are learned, whatever their shape.

log p(all rows) = log p(some) + log p(the others | some). Small networks are trained on all
folds but one: the first term is Laplace's approximation around them, which charges for
every parameter that the rows determine, the second is their predictive density of the fold
they have not seen, which charges for what Laplace overlooks. The mean over the folds is the
evidence: no penalty constant, no assumption on the shape of the functions beyond one hidden
layer, tails of the noise as the residuals show them, and a scale of the noise that may depend
on the parents. What else noise may be, and a posterior should not depend on, say `views`.
"""

from collections import OrderedDict
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from bayesdag.graphs.bitsets import masks_of
from bayesdag.model.mechanisms.networks import Networks
from bayesdag.model.noises.skewed_student_t import SkewedStudentT
from bayesdag.model.scm import SCM
from bayesdag.random import generator
from bayesdag.scores import _sufficient_statistics
from bayesdag.scores._neural import cache, crossfit
from bayesdag.scores._neural.cache import Address, Kinds, Trained
from bayesdag.scores._neural.crossfit import Folds
from bayesdag.scores._neural.network import Plan
from bayesdag.scores._neural.parameter_draws import assembled
from bayesdag.scores._neural.surrogate import AdditiveSurrogate, Moments
from bayesdag.types import Key, Params, ParentSets

# Data sets whose latest networks are remembered.
_MOST_REMEMBERED = 4
_MEMORY: "OrderedDict[tuple, NeuralStats]" = OrderedDict()


@dataclass(eq=False)
class NeuralStats:
    """The rows in folds, and every family that was trained on them.

    Attributes:
        folds: rows on the device.
        moments: of curves of the variables, for a cheap score.
        num_rows: number of the rows.
        known: trained families.
        doubtful: families to be trained again, because one with a parent more beats them.
        doubted: sets whose smaller ones were in doubt because of them, as they were then.
        changed: whether one was trained again, and better, since this was last asked.
    """

    folds: Folds
    moments: Moments
    num_rows: int
    known: dict[Address, Trained] = field(default_factory=dict)
    doubtful: dict[Address, None] = field(default_factory=dict)
    doubted: dict[Address, Trained] = field(default_factory=dict)
    changed: bool = False


@dataclass(frozen=True)
class NeuralScore:
    """Evidence of small networks, half integrated, half predicted; Student-t or Gaussian noise.

    x = f(parents) + s(parents) · noise; that s is 1 and that it is not are equally probable
    beforehand, family by family. Taken for constant where it is not, the scale makes wrong
    directions look right.
    Networks come close to a function but not arbitrarily so, and what they miss is worth
    more nats the more rows there are. Evidence is therefore coarsened (Miller & Dunson, 2019,
    "Robust Bayesian inference via coarsening").
    Rows where a node was set by an experimenter neither train its networks nor count. A fit
    starts without networks, because networks depend on those trained before them and equal
    fits must give equal results; whoever asks about a fit afterwards recalls what it trained.

    Attributes:
        width: hidden units of a network.
        num_folds: parts of the rows, each predicted from the others; 0: by their number.
        num_starts: random starts, of which the one with the best training loss goes on.
        rough_steps: Levenberg-Marquardt steps of every start, on few rows.
        fine_steps: of the best start, on all rows.
        uneven: whether the scale of the noise may depend on the parents.
        skewed: whether noise may lean to one side.
        hedged: whether `collapsed` puts the posteriors under several assumptions on the noise
            together (see `views`); whoever asks the score itself hears of this one alone.
        trusted_rows: rows after which the imperfection of the networks, not chance, decides
            what is left: the evidence of N rows is raised to the power
            trusted_rows / (trusted_rows + N). Infinite: it is taken at its word.
        seed: of folds and starts.
    """

    width: int = 8
    num_folds: int = 0
    num_starts: int = 3
    rough_steps: int = 12
    fine_steps: int = 8
    uneven: bool = True
    skewed: bool = False
    hedged: bool = True
    trusted_rows: float = 8000.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("width", "num_starts"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        if self.num_folds < 0 or self.num_folds == 1:
            raise InputError(f"num_folds is {self.num_folds}; it must be 2 or more, or 0")
        if not self.trusted_rows > 0:
            raise InputError(f"trusted_rows is {self.trusted_rows:g}; it must be above 0")

    def views(self) -> "tuple[NeuralScore, ...]":
        """This score, and as it would be under other assumptions on the noise, if hedged.

        All learn from the same networks, so what is trained for one serves the others. Each
        grows sure of what suits it best, and which of them fits better does not say whose
        graphs are better: they count the same.
        """
        if not self.hedged:
            return (self,)
        assumptions = ((self.uneven, self.skewed), (True, False), (False, False), (True, True))
        return tuple(
            replace(self, hedged=False, uneven=uneven, skewed=skewed)
            for uneven, skewed in dict.fromkeys(assumptions)
        )

    @property
    def assumed(self) -> str:
        """Of the noise, in words."""
        scale = "a scale that may depend on the parents" if self.uneven else "one scale"
        return f"of {scale}" + ", which may be skewed" * self.skewed

    def prepare(self, data: Dataset) -> NeuralStats:
        """The rows in folds, and no network yet."""
        rng = np.random.default_rng(self.seed)
        folds = crossfit.fold(rng, data.scaled, data.observed, self._folds(data.num_rows))
        stats = NeuralStats(folds, AdditiveSurrogate().prepare(data), data.num_rows)
        _MEMORY[self._address(data)] = stats
        _MEMORY.move_to_end(self._address(data))
        while len(_MEMORY) > _MOST_REMEMBERED:
            _MEMORY.popitem(last=False)
        return stats

    def recall(self, data: Dataset) -> NeuralStats:
        """What was last prepared and trained on these rows; anew where that is forgotten."""
        return _MEMORY.get(self._address(data)) or self.prepare(data)

    def log_evidence(
        self, stats: NeuralStats, node: int, parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """Log predictive density of the node given its parents, for m parent sets."""
        self._trained(stats, np.full(len(parents), node), parents)
        self.settle(stats)
        return self.log_evidence_of_families(stats, np.full(len(parents), node), parents)

    def log_evidence_of_families(
        self, stats: NeuralStats, nodes: Int[np.ndarray, " m"], parents: ParentSets
    ) -> Float[np.ndarray, " m"]:
        """The same for families of several nodes: the more at once, the faster.

        Those in doubt are trained again with the next batch, or when all is settled.
        """
        found = self._trained(stats, nodes, parents)
        return cache.log_evidence(found, self._kinds) * self.power(stats)

    def promise(
        self, stats: NeuralStats, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> Float[np.ndarray, "b d"]:
        """What each variable could add to these parents, in nats: whom to try first."""
        found = self._trained(stats, nodes, parents)
        return np.stack([family.could_add for family in found]).astype(float)

    def sketch(self, stats: NeuralStats) -> tuple[AdditiveSurrogate, Moments]:
        """Sums of curves, one of each parent, instead of networks."""
        return AdditiveSurrogate(), stats.moments

    def power(self, stats: NeuralStats) -> float:
        """To which the evidence is raised: 1 for few rows, falling like 1 / N for many."""
        return float(1 / (1 + stats.num_rows / self.trusted_rows))

    def doubt(
        self, stats: NeuralStats, nodes: Int[np.ndarray, " b"], parents: Bool[np.ndarray, "b d"]
    ) -> None:
        """Put into doubt all sets with one parent less than these.

        However much a parent adds: a network that was badly trained without it may do as
        well once it is trained from the one with it.
        """
        for node, mask in _addresses(nodes, parents):
            larger = stats.known.get((node, mask))
            if larger is None or stats.doubted.get((node, mask)) is larger:
                continue  # it has nothing to teach that was not taught before
            stats.doubted[node, mask] = larger
            smaller = ((node, mask & ~(1 << j)) for j in range(mask.bit_length()) if mask >> j & 1)
            stats.doubtful.update((family, None) for family in smaller if family in stats.known)

    def settle(self, stats: NeuralStats) -> bool:
        """Train again what is in doubt; whether any score has changed since the last time."""
        self._train(stats, [])
        changed, stats.changed = stats.changed, False
        return changed

    def scm(self, data: Dataset) -> SCM:
        """A small network for each variable, with noise whose tails are its own."""
        return SCM(Networks(self.width), SkewedStudentT(), data.scaling)

    def draw(self, key: Key, stats: NeuralStats, graphs: Shaped[np.ndarray, "s d d"]) -> Params:
        """The network of a random fold, its last layer and noise scale drawn.

        Hidden units stay as trained; the weights that read them vary as in a linear
        regression on them.
        """
        nodes, parents = _sufficient_statistics.of_graphs(graphs)
        self._trained(stats, nodes, parents)
        addresses = _addresses(nodes, parents)
        place = {address: k for k, address in enumerate(dict.fromkeys(addresses))}
        which = np.array([place[address] for address in addresses])
        families = [stats.known[address] for address in place]
        rng, shape = generator(key), graphs.shape[:2]
        return assembled(rng, families, which, shape, stats.num_rows, self._kinds)

    def _trained(self, stats: NeuralStats, nodes: np.ndarray, parents: np.ndarray) -> list[Trained]:
        """All families, after those that are not known have been trained."""
        addresses = _addresses(nodes, parents)
        fresh = list(dict.fromkeys(a for a in addresses if a not in stats.known))
        if fresh:
            self._train(stats, fresh)
        return [stats.known[address] for address in addresses]

    def _train(self, stats: NeuralStats, fresh: list[Address]) -> None:
        """Train these, and again those in doubt.

        Sets that a fresh one beats by little are trained again from its network, so that no
        parent is taken up for the luck of its training; training rows decide which stays.
        """
        num_folds, _, d = stats.folds.values.shape
        addresses = [*fresh, *stats.doubtful]
        stats.doubtful.clear()
        nodes = np.array([node for node, _ in addresses], dtype=int)
        bits = [[mask >> j & 1 for j in range(d)] for _, mask in addresses]
        parents = np.array(bits, dtype=bool).reshape(-1, d)
        for which, group in crossfit.families(nodes, parents):
            near = [cache.relatives(stats.known, addresses[k], d) for k in which]
            given = cache.handed_on(group, near, num_folds, self.width)
            scored = crossfit.score(stats.folds, group, given, self._plan())
            for k, family in zip(which, cache.entries(group, scored), strict=True):
                self._remember(stats, addresses[k], family)
        stats.doubtful.update(cache.in_doubt(stats.known, fresh, d, self._kinds))

    @staticmethod
    def _remember(stats: NeuralStats, address: Address, family: Trained) -> None:
        """Keep what is trained better."""
        before = stats.known.get(address)
        if before is None or before.log_posterior.sum() < family.log_posterior.sum():
            stats.known[address] = family
            stats.changed |= before is not None

    def _address(self, data: Dataset) -> tuple:
        return (self._plan(), self.num_folds, data.hash, data.scaling)

    def _plan(self) -> Plan:
        return Plan(
            width=self.width,
            num_starts=self.num_starts,
            rough_steps=self.rough_steps,
            fine_steps=self.fine_steps,
            seed=self.seed,
        )

    @property
    def _kinds(self) -> Kinds:
        """Of noise; see `Noise`."""
        first = 2 * self.skewed
        return (first, first + 1) if self.uneven else (first,)

    def _folds(self, num_rows: int) -> int:
        """Few rows are worth more folds: each network then sees more of them."""
        if self.num_folds:
            return min(self.num_folds, num_rows)
        return 2 if num_rows >= 2000 else 4 if num_rows >= 500 else 8


def _addresses(nodes: np.ndarray, parents: np.ndarray) -> list[Address]:
    return [(int(node), mask) for node, mask in zip(nodes, masks_of(parents), strict=True)]


build = NeuralScore
