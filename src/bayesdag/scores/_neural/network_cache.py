"""Trained families of one fit, and which of them may start from which.

A network without one of its parents, or with one more, is a good start for that set: sets
that are compared with one another then do not differ by the luck of their training.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int, Int32

from bayesdag.runs.packing import fingerprint, pack, unpack_like
from bayesdag.scores._neural import crossfit
from bayesdag.scores._neural.fold_fits import SCORED, FoldFits, Scored
from bayesdag.scores._neural.folds import (
    SIZES,
    Families,
    Folds,
    StartingNetworks,
    families_by_size,
)
from bayesdag.scores._neural.function_classes import CLASS_PROBABILITY, FunctionClass
from bayesdag.scores._neural.network import Network
from bayesdag.scores._neural.noise_forms import NoiseForm
from bayesdag.scores._neural.training import TrainingPlan
from bayesdag.types import ParentSets, Recorder

Family = tuple[int, int]  # a node, and its parents as the bits of a number
# Evidence that a further parent adds: between these bounds the smaller set is trained again from
# the larger one's network, because bad luck in its training may explain the gain.
MIN_GAIN, MAX_GAIN = 2.0, 40.0
# Nats that a network may add to the better of line and sum of curves, at most: a multiple of what
# a Gaussian process adds, and some more (of 1742 networks on development sets that were trained
# one had more). Where that does not reach a rival, none is trained.
_MULTIPLE, _MORE = 6.0, 20.0
# Programs for sets that are larger by this factor than those of now are compiled meanwhile.
_AHEAD = 4 / 3


class TrainedFamily(NamedTuple):
    """One family: the fields of `Scored` without the leading dimension, and its inputs."""

    members: Int32[np.ndarray, " k"]
    used: Float[np.ndarray, " k"]
    log_evidence: Float[np.ndarray, "class form"]
    predicted: Float[np.ndarray, "class form"]
    approximate_gain: Float[np.ndarray, " d"]
    unexplained: float
    num_folds: float
    folds: FoldFits

    @property
    def log_posterior(self) -> float:
        """Of the networks of all folds on their training rows: how well they are trained."""
        return float(self.folds.log_posterior.sum())

    def trained_worse_than(self, other: "TrainedFamily") -> bool:
        """Whether its networks fit their rows worse, in the folds that both have."""
        num = int(max(1, min(self.num_folds, other.num_folds)))
        own, others = (f.folds.log_posterior[:num].sum() for f in (self, other))
        return bool(own < others)

    @property
    def has_networks(self) -> bool:
        """Whether any were trained: where regressions leave nothing, none are."""
        return bool(np.isfinite(self.folds.log_posterior).all())

    @property
    def best_evidence(self) -> float:
        """Of the best class of functions and form of the noise."""
        return float(self.log_evidence.max())

    def with_networks(self, networks: "TrainedFamily") -> "TrainedFamily":
        """The family with networks that were trained for it."""
        own, better = FunctionClass.NETWORK, networks.best_evidence > self.best_regression
        evidence, predicted = self.log_evidence.copy(), self.predicted.copy()
        evidence[own], predicted[own] = networks.log_evidence[0], networks.predicted[0]
        return self._replace(
            log_evidence=evidence,
            predicted=predicted,
            approximate_gain=networks.approximate_gain if better else self.approximate_gain,
            num_folds=networks.num_folds,
            folds=networks.folds,
        )

    def with_classes(self, classes: frozenset[int]) -> "TrainedFamily":
        """The family if only these classes of functions are hypotheses."""
        count = np.array([kind in classes for kind in FunctionClass])[:, None]
        evidence, predicted = (
            np.where(count, leaf, -np.inf) for leaf in (self.log_evidence, self.predicted)
        )
        return self._replace(log_evidence=evidence, predicted=predicted)

    @property
    def reach_of_networks(self) -> float:
        """Evidence above which no network of it is expected."""
        simple = self.log_evidence[[FunctionClass.LINEAR, FunctionClass.ADDITIVE]].max()
        return float(simple + _MULTIPLE * self.unexplained + _MORE)

    @property
    def best_regression(self) -> float:
        """The evidence of the best of line, sum of curves and Gaussian process."""
        return float(self.log_evidence[FunctionClass.LINEAR :].max())

    def log_evidence_of_fitted(
        self, forms: tuple[NoiseForm, ...]
    ) -> Float[np.ndarray, "class form"]:
        """The evidence of functions that can be drawn: zero for networks that there are not."""
        evidence = self.log_evidence[:, list(forms)].astype(float)
        if not self.has_networks:
            evidence[FunctionClass.NETWORK] = -np.inf
        return evidence


class Rival(NamedTuple):
    """The same parents on another scale; `lead` is added to its evidence to compare the two."""

    family: Family
    lead: float


class Relatives(NamedTuple):
    """The best trained sets with one parent less and with one more, where there are any."""

    smaller: TrainedFamily | None
    larger: TrainedFamily | None


@dataclass
class NetworkCache:
    """What one fit has trained, and what it will train again.

    Created with every fit, because networks depend on those trained before them and equal fits
    must give equal results. It is shared by all noise models of the fit.

    Attributes:
        recorder: where batches of trained families are recorded, and recalled from.
        classes: of functions, that count.
        trained: families.
        queue: families to train again with the next batch.
        consulted: families whose smaller sets were queued because of them, as they were then.
        changed: families that were trained again, and better, since `retrained` was last called.
        expected: parents of the largest sets that programs are compiled for.
    """

    recorder: Recorder
    classes: frozenset[int] = frozenset(FunctionClass)
    trained: dict[Family, TrainedFamily] = field(default_factory=dict)
    queue: dict[Family, None] = field(default_factory=dict)
    consulted: dict[Family, TrainedFamily] = field(default_factory=dict)
    changed: set[Family] = field(default_factory=set)
    expected: int = -1

    def expect(self, num_parents: int, folds: Folds, plan: TrainingPlan) -> None:
        """Have programs for sets of up to so many parents compiled meanwhile, if they are."""
        if folds.compiled and num_parents > self.expected:
            self.expected = num_parents
            _compile_ahead(num_parents, folds, plan)

    def missing(self, families: Sequence[Family]) -> list[Family]:
        """Those that have not been trained, each once."""
        return list(dict.fromkeys(f for f in families if f not in self.trained))

    def queue_smaller(self, family: Family) -> None:
        """Queue all trained sets with one parent less, unless this network has served them."""
        larger = self.trained.get(family)
        if larger is None or self.consulted.get(family) is larger:
            return
        self.consulted[family] = larger
        if larger.has_networks:
            self.queue.update((f, None) for f in smaller_sets(family) if self._learned(f))

    def _learned(self, family: Family) -> bool:
        """Whether networks of it were trained."""
        found = self.trained.get(family)
        return found is not None and found.has_networks

    def retrained(self) -> set[Family]:
        """Families that have changed since this was last asked."""
        changed, self.changed = self.changed, set()
        return changed

    def train(
        self,
        fresh: list[Family],
        folds: Folds,
        plan: TrainingPlan,
        forms: tuple[NoiseForm, ...],
        rivals: Mapping[Family, Rival],
    ) -> None:
        """Train these, and again those in the queue.

        Sets that a fresh one beats by little are queued to be trained again from its network,
        so that no parent is taken up for the luck of its training.

        Args:
            rivals: that make a family superfluous where they have far more evidence.
        """
        queued = list(self.queue)
        self.queue.clear()
        most = max((mask.bit_count() for _, mask in fresh), default=0)
        self.expect(round(_AHEAD * most), folds, plan)
        self._regress(fresh, folds, plan)
        first, second = self._in_turn(fresh, rivals)
        if folds.compiled:  # one large batch costs less than two
            first, second = fresh, []
        self._train_networks(self._worth_training(first, plan, rivals), folds, plan, rivals)
        self._train_networks(self._worth_training(second, plan, rivals), folds, plan, rivals)
        # What is trained again may be what decides: it is trained in all folds.
        self._train_networks(queued, folds, plan, None)
        self.queue.update(self._beaten_by_little(fresh, forms))

    def _in_turn(
        self, families: list[Family], rivals: Mapping[Family, Rival]
    ) -> tuple[list[Family], list[Family]]:
        """Those that regressions put ahead of their rivals, and the others, which may be spared."""

        def ahead(family: Family) -> bool:
            own, rival = self.trained[family], rivals.get(family)
            if rival is None:
                return True
            other = self.trained[rival.family]
            return bool(own.best_regression >= other.best_regression + rival.lead)

        leading = {family for family in families if ahead(family)}
        return list(filter(leading.__contains__, families)), [
            family for family in families if family not in leading
        ]

    def _regress(self, families: list[Family], folds: Folds, plan: TrainingPlan) -> None:
        """Lines and sums of curves of these."""
        by_size = families_by_size(folds, *arrays_of(families, folds.values.shape[2]))
        groups = [group for _, group in by_size]
        every = self._recalled("regressions", crossfit.without_networks, folds, groups, plan)
        for (which, group), scored in zip(by_size, every, strict=True):
            for k, family in zip(which, _families_of(group, scored), strict=True):
                if len(self.classes) < len(FunctionClass):
                    family = family.with_classes(self.classes)
                self.trained[families[k]] = family

    def _train_networks(
        self,
        families: list[Family],
        folds: Folds,
        plan: TrainingPlan,
        rivals: Mapping[Family, Rival] | None,
    ) -> None:
        """Networks of these; those that were trained before stay where they are better.

        Args:
            rivals: of the families, which need not be trained in all folds if they stay far
                behind; None: all of them are.
        """
        # Compiled, families of several sizes are one batch, and begin together.
        for level in [families] if folds.compiled else _levels(families):
            self._train_side_by_side(level, folds, plan, rivals)

    def _train_side_by_side(
        self,
        families: list[Family],
        folds: Folds,
        plan: TrainingPlan,
        rivals: Mapping[Family, Rival] | None,
    ) -> None:
        """Networks of families of which none starts from another."""
        d = folds.values.shape[2]
        by_size = families_by_size(folds, *arrays_of(families, d))
        batches: list[tuple[Families, StartingNetworks]] = []
        for which, group in by_size:
            relatives = [self._relatives(families[k], d) for k in which]
            bars = [-np.inf if rivals is None else self._bar(families[k], rivals) for k in which]
            own = [self.trained[families[k]] if rivals is None else None for k in which]
            batches.append((group, starting_networks(group, relatives, bars, plan.width, own)))
        every = self._recalled("trained", crossfit.networks, folds, batches, plan)
        for (which, group), scored in zip(by_size, every, strict=True):
            for k, networks in zip(which, _families_of(group, scored), strict=True):
                self._keep_better(families[k], networks)

    def _recalled(
        self,
        word: str,
        compute: Callable[..., list[Scored]],
        folds: Folds,
        batches: list[Any],
        plan: TrainingPlan,
    ) -> list[Scored]:
        """Batches of families, computed or recalled: their name says whether they are the same."""
        if not batches:
            return []
        name = f"{word} {fingerprint(*batches, plan)}"
        recalled = self.recorder.recall(name, lambda: pack(compute(folds, batches, plan)))
        return unpack_like([SCORED] * len(batches), recalled)

    def _worth_training(
        self, families: list[Family], plan: TrainingPlan, rivals: Mapping[Family, Rival]
    ) -> list[Family]:
        """Those for which networks may change what they are worth, as far as regressions tell."""
        if not np.isfinite(plan.least_unexplained):
            return families

        def hopeful(family: Family) -> bool:
            found = self.trained[family]
            if found.unexplained <= plan.least_unexplained:
                return False
            return found.reach_of_networks > self._bar(family, rivals)

        return list(filter(hopeful, families))

    def _bar(self, family: Family, rivals: Mapping[Family, Rival]) -> float:
        """Evidence of what makes the family superfluous, if it has far less.

        That is its rival, or a smaller set: whenever the larger one may be chosen, the smaller
        one may, too.
        """
        smaller = (self.trained.get(less) for less in smaller_sets(family))
        bars = [less.best_evidence for less in smaller if less is not None]
        if rival := rivals.get(family):
            bars.append(self.trained[rival.family].best_evidence + rival.lead)
        return max(bars, default=-np.inf)

    def _keep_better(self, family: Family, networks: TrainedFamily) -> None:
        """Keep the networks that are trained better; training rows decide."""
        before = self.trained[family]
        if before.trained_worse_than(networks):
            self.trained[family] = before.with_networks(networks)
            if before.has_networks:
                self.changed.add(family)

    def _relatives(self, family: Family, d: int) -> Relatives:
        node, parents = family
        best: dict[bool, TrainedFamily | None] = {False: None, True: None}
        for j in range(d):
            found = self.trained.get((node, parents ^ 1 << j))
            if found is None or not found.has_networks:
                continue
            larger = not parents >> j & 1
            now = best[larger]
            if now is None or found.log_posterior > now.log_posterior:
                best[larger] = found
        return Relatives(smaller=best[False], larger=best[True])

    def _beaten_by_little(
        self, fresh: list[Family], forms: tuple[NoiseForm, ...]
    ) -> dict[Family, None]:
        """Sets with networks that a fresh one with one parent more beats by little."""
        pairs = [
            (larger, smaller)
            for larger in fresh
            if self._learned(larger)
            for smaller in smaller_sets(larger)
            if self._learned(smaller)
        ]
        with_it = log_evidence([self.trained[larger] for larger, _ in pairs], forms)
        without = log_evidence([self.trained[smaller] for _, smaller in pairs], forms)
        gains = zip(pairs, with_it - without, strict=True)
        return {smaller: None for (_, smaller), gain in gains if MIN_GAIN < gain < MAX_GAIN}


def _compile_ahead(num_parents: int, folds: Folds, plan: TrainingPlan) -> None:
    """Begin to compile what trains sets of up to so many parents."""
    d = folds.values.shape[2]
    nodes, nobody = np.zeros(1, dtype=int), np.zeros((1, d), dtype=bool)
    ((_, smallest),) = families_by_size(folds, nodes, nobody)
    k = smallest.members.shape[1]
    # Smaller sets than the largest that there can be fill its size up.
    for size in [k, *(size for size in SIZES if k < size < 2 * min(num_parents, d))]:
        gap = ((0, 0), (0, size - k))
        group = Families(smallest.node, np.pad(smallest.members, gap), np.pad(smallest.used, gap))
        starts = starting_networks(group, [Relatives(None, None)], [-np.inf], plan.width)
        crossfit.compile_ahead(folds, (group, starts), plan)


def families_of(nodes: Int[np.ndarray, " m"], parents: ParentSets) -> list[Family]:
    """Keys of the cache."""
    packed = np.packbits(parents, axis=1, bitorder="little")
    return [
        (int(node), int.from_bytes(row.tobytes(), "little"))
        for node, row in zip(nodes, packed, strict=True)
    ]


def arrays_of(families: Sequence[Family], d: int) -> tuple[Int[np.ndarray, " m"], ParentSets]:
    """Inverse of `families_of`."""
    nodes = np.array([node for node, _ in families], dtype=int)
    num_bytes = -(-d // 8)
    packed = b"".join(mask.to_bytes(num_bytes, "little") for _, mask in families)
    rows = np.frombuffer(packed, np.uint8).reshape(-1, num_bytes)
    return nodes, np.unpackbits(rows, axis=1, count=d, bitorder="little").astype(bool)


def smaller_sets(family: Family) -> list[Family]:
    """All sets with one parent less."""
    node, mask = family
    return [(node, mask & ~(1 << j)) for j in range(mask.bit_length()) if mask >> j & 1]


def _levels(families: Sequence[Family]) -> list[list[Family]]:
    """The families, each after those of its sets with one parent less that are among them."""
    level: dict[Family, int] = {}
    by_size = sorted(families, key=lambda family: family[1].bit_count())
    for family in by_size:
        level[family] = 1 + max((level.get(less, -1) for less in smaller_sets(family)), default=-1)
    levels: list[list[Family]] = [[] for _ in range(1 + max(level.values(), default=-1))]
    for family in families:
        levels[level[family]].append(family)
    return levels


def log_evidence(
    families: Sequence[TrainedFamily], forms: tuple[NoiseForm, ...]
) -> Float[np.ndarray, " m"]:
    """Of each family: functions of any class, and noise of any of these forms.

    Forms are equally probable beforehand, classes as `CLASS_PROBABILITY` says.
    """
    values = np.array([family.log_evidence for family in families], dtype=float)
    values = values.reshape(-1, len(FunctionClass), len(NoiseForm))[:, :, list(forms)]
    values += np.log(CLASS_PROBABILITY)[:, None]
    return np.logaddexp.reduce(values, axis=(1, 2)) - log(len(forms))


def starting_networks(
    group: Families,
    relatives: Sequence[Relatives],
    bars: Sequence[float],
    width: int,
    own: Sequence[TrainedFamily | None] = (),
) -> StartingNetworks:
    """The networks of relatives, those of the first fold, as functions of a family's own inputs.

    Args:
        own: the families themselves, where they are trained again.
    """
    members, used = np.asarray(group.members), np.asarray(group.used)
    num, k = members.shape
    slots = len(Relatives._fields)
    first = np.zeros((num, slots, k, width), dtype=np.float32)
    bias = np.zeros((num, slots, width), dtype=np.float32)
    second = np.zeros((num, slots, width + k + 1), dtype=np.float32)
    known = np.zeros((num, slots), dtype=bool)
    for row, some in enumerate(relatives):
        for slot, relative in enumerate(some):
            if relative is None:
                continue
            known[row, slot] = True
            here, there = _shared_inputs(members[row], used[row], relative)
            network = Network(*(leaf[0] for leaf in relative.folds.networks))
            first[row, slot, here] = network.first[there]
            bias[row, slot] = network.bias
            second[row, slot, :width] = network.second[:width]
            second[row, slot, width + here] = network.second[width + there]
            second[row, slot, -1] = network.second[-1]
    networks, before = (
        Network(first, bias, second),
        Network(*(np.zeros_like(leaf[:, 0]) for leaf in (first, bias, second))),
    )
    again = np.zeros(num, dtype=bool)
    for row, family in enumerate(own):
        if family is not None:
            again[row] = True
            for leaf, trained in zip(before, family.folds.networks, strict=True):
                leaf[row] = trained[0]
    return StartingNetworks(networks, known, np.array(bars, np.float32), before, again)


def _families_of(group: Families, scored: Scored) -> list[TrainedFamily]:
    """The families of a batch, one by one."""
    members, used = np.asarray(group.members), np.asarray(group.used)
    leaves, structure = jax.tree.flatten(scored)
    result = []
    for row, own in enumerate(zip(*leaves, strict=True)):
        result.append(TrainedFamily(members[row], used[row], *structure.unflatten(own)))
    return result


def _shared_inputs(
    members: np.ndarray, used: np.ndarray, relative: TrainedFamily
) -> tuple[Int[np.ndarray, " c"], Int[np.ndarray, " c"]]:
    """Positions of the common parents here and there."""
    there = {int(v): p for p, v in enumerate(relative.members) if relative.used[p] > 0}
    pairs = [(p, there[int(v)]) for p, v in enumerate(members) if used[p] > 0 and int(v) in there]
    here, theirs = np.array(pairs, dtype=int).reshape(-1, 2).T
    return here, theirs
