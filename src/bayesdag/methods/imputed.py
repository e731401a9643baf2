"""The posterior of a table with gaps: missing cells are drawn from the model itself.

Data augmentation (Tanner and Wong, 1987, "The calculation of posterior distributions by data
augmentation"): a completed table gives a posterior, one draw of its graph and functions gives the
missing cells anew, and so on. The posteriors of the completed tables, averaged, are the
posterior given what was measured: no row is thrown away, and what the gaps leave open shows in
how much the completions differ.

Whether a cell is missing may depend on what was measured in its row, not on the value that is
missing (missing at random); where it does, nothing in the table would tell.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bayesdag import plugins
from bayesdag.data import Dataset, chained_trees
from bayesdag.data.gaps import ASSUMPTION
from bayesdag.errors import InputError
from bayesdag.knowledge import Constraints
from bayesdag.methods import _mixture
from bayesdag.methods._mixture import Member
from bayesdag.methods.auto import Auto
from bayesdag.methods.collapsed import Collapsed
from bayesdag.posterior import Posterior, check_result, imputation
from bayesdag.posterior.check_result import Check
from bayesdag.random import generator, split
from bayesdag.runs.recording import recorder_of
from bayesdag.scores.additive import Additive
from bayesdag.scores.neural import NeuralScore
from bayesdag.types import (
    Duration,
    Key,
    Method,
    Monitor,
    PlainData,
    Recorder,
    Timed,
)

# Completions where a fit takes seconds, and where it takes longer than that.
_MANY, _FEW = 10, 3
# Completions that only lead away from the first one: where a fit takes seconds, and where another
# model has drawn its cells.
_UNUSED, _UNUSED_OF_ANOTHER = 5, 1
_SECONDS = 20.0


@dataclass(frozen=True)
class Imputed(_mixture.OfOneMethod):
    """Tables with gaps: missing cells drawn from the model, posteriors of completions averaged.

    Any other method is put into this one where the data have gaps. It is fitted once to a first
    completion by regression trees, to have a model (sums of curves stand in for networks), and then
    to each completion by the posterior of the one before. Cells are taken as missing at random.

    Attributes:
        method: fitted to each completion.
        num_completions: completed tables whose posteriors are averaged; 0: ten where a fit takes
            seconds, three where it takes longer. Before them come some that are not counted: five
            where a fit takes seconds and more than three count, one where networks are trained.
    """

    PRESETS: ClassVar[dict[str, "Imputed"]]

    method: Method = Auto()
    num_completions: int = 0

    def __post_init__(self) -> None:
        if self.num_completions < 0:
            raise InputError(f"num_completions is {self.num_completions}; it must be 0 or more")
        if isinstance(self.method, Imputed):
            raise InputError("a method that imputes is put into another one; once is enough")

    @property
    def takes_kinds(self) -> frozenset[str]:  # read from here by `bayesdag methods`
        """Those of the method inside; by default all."""
        return super().takes_kinds

    def expected_duration(self, num_rows: int, num_variables: int) -> Duration:
        """So many times that of the method, and once more for the first model."""
        if not isinstance(self.method, Timed):
            return Duration(0.0, ())
        one = self.method.expected_duration(num_rows, num_variables)
        times = 1 + self._num_completions(self.method, num_rows, num_variables)
        times += self._num_unused(self.method, num_rows, num_variables)
        faster = ("fewer completions (num_completions of method 'imputed')", *one.faster)
        return one._replace(seconds=one.seconds * times, faster=faster)

    def __call__(
        self, key: Key, data: Dataset, knowledge: Constraints, monitor: Monitor | None
    ) -> Posterior:
        """All draws of all completions; each completion has the same weight."""
        if data.missing is None:
            return self.method(key, data, knowledge, monitor)
        recorder = recorder_of(monitor)
        key_start, key_first, key = split(key, 3)
        # Ten completions are made only where a fit takes seconds.
        method = _mixture.sharing_time(self.method, 1 + (self.num_completions or _FEW))
        whole, (data, omitted) = data, _in_time(method, data)
        completion = _first_completion(key_start, data, recorder)
        name, own = "first completion, by regression trees", _first_model(method)
        first = Member(name, key_first, own, completion)
        first_found = _mixture.fit_member(first, knowledge, recorder)
        # What was chosen by looking at one completion is kept for all.
        method, reasons = _chosen(method, first_found)
        unused = self._num_unused(method, data.num_rows, data.num_variables)
        members, found, rates = [], [], []
        num = self._num_completions(method, data.num_rows, data.num_variables)
        for number, own in enumerate(split(key, unused + num), start=1 - unused):
            start = f"completion {number + unused} of {unused} that are not counted"
            name = f"completion {number} of {num}" if number > 0 else start
            key_cells, key_fit = split(own)
            # From the last posterior, as Gibbs sampling asks: drawn from all so far, a graph that
            # one completion favoured by chance would come back again and again.
            model = found[-1] if found else first_found
            completion, rate = _next_completion(
                key_cells, model, data, completion, recorder.child(name)
            )
            members.append(Member(name, key_fit, method, completion))
            found.append(_mixture.fit_member(members[-1], knowledge, recorder))
            rates.append(rate)
        counted = slice(unused, None)
        notes = [*reasons, *omitted]
        return self._pooled(members[counted], found[counted], rates[counted], whole, notes)

    def _num_completions(self, method: Method, num_rows: int, num_variables: int) -> int:
        if self.num_completions:
            return self.num_completions
        return _MANY if _is_fast(method, num_rows, num_variables) else _FEW

    def _num_unused(self, method: Method, num_rows: int, num_variables: int) -> int:
        """Completions before those that count: the chain is to forget where it started."""
        many = self._num_completions(method, num_rows, num_variables) > _FEW
        if many and _is_fast(method, num_rows, num_variables):
            return _UNUSED
        return _UNUSED_OF_ANOTHER if _first_model(method) is not method else 0

    def _pooled(
        self,
        members: list[Member],
        found: list[Posterior],
        rates: list[float],
        data: Dataset,
        reasons: list[str],
    ) -> Posterior:
        """The mixture, with what it says of gaps."""
        pairs = zip(data.names, data.missing_fraction.tolist(), strict=True)
        fractions = {name: fraction for name, fraction in pairs if fraction}
        shown = ", ".join(f"{name} {fraction:.1%}" for name, fraction in fractions.items())
        note = (
            f"cells that were not measured ({shown}) are imputed: the average of {len(members)} "
            "posteriors, each of the table completed by draws from the model; chains are compared "
            "within each completion"
        )
        pooled = _mixture.together(members, found, note)
        imputed: PlainData = {
            "assumption": ASSUMPTION,
            "num_completions": len(members),
            "missing_fraction": fractions,
            "acceptance": float(np.mean(rates)),
        }
        # Notes of the other completions stand with their members.
        more = dict.fromkeys([*reasons, *found[0].provenance.get("notes", [])])
        notes = [*pooled.provenance["notes"], f"cells are taken as {ASSUMPTION}", *more]
        # A check takes as long as a fast fit, and completions differ little in it.
        last = list(zip(members, found, strict=True))[-_FEW:]
        checks = [_checked(member, one) for member, one in last]
        check = check_result.averaged(checks, [1] * len(checks))
        stated = {
            **pooled.provenance,
            "imputation": imputed,
            "notes": notes,
            "check": check.summary(),
        }
        return dataclasses.replace(pooled, summary=data.summary(), provenance=stated)


def _is_fast(method: Method, num_rows: int, num_variables: int) -> bool:
    """Whether a fit takes seconds."""
    if not isinstance(method, Timed):
        return False
    return method.expected_duration(num_rows, num_variables).seconds <= _SECONDS


def _in_time(method: Method, data: Dataset) -> tuple[Dataset, list[str]]:
    """The rows that a method fits in the time that it keeps to, and what is left out."""
    return method.in_time(data) if isinstance(method, Auto) else (data, [])


def _first_model(method: Method) -> Method:
    """What draws the first cells: sums of curves instead of networks, which take long to train."""
    if isinstance(method, Collapsed) and isinstance(method.score, NeuralScore):
        return dataclasses.replace(method, score=Additive())
    return method


def _chosen(method: Method, model: Posterior) -> tuple[Method, list[str]]:
    """The method that another one has chosen, and why; or the method itself."""
    chosen = model.provenance.get("chosen")
    if chosen is None:
        return method, []
    reasons = [note for note in model.provenance.get("notes", []) if note.startswith("chosen")]
    return plugins.from_configuration(chosen, "methods"), reasons


def _first_completion(key: Key, data: Dataset, recorder: Recorder) -> Dataset:
    """Completed by regression trees, with values that occur."""

    def drawn() -> dict[str, np.ndarray]:
        assert data.missing is not None
        rng = generator(key)
        return {"values": chained_trees.complete(rng, data.values, data.missing, data.kinds)}

    recorder.report("filling gaps by regression trees")
    return imputation.completed(data, recorder.recall("first completion", drawn)["values"])


def _next_completion(
    key: Key, model: Posterior, data: Dataset, start: Dataset, recorder: Recorder
) -> tuple[Dataset, float]:
    """Completed by one draw of the model, and the rate at which proposals were accepted."""

    def drawn() -> dict[str, np.ndarray]:
        found = imputation.complete(key, model, data, start)
        return {"values": found.data.values, "acceptance": np.array(found.acceptance)}

    recorder.report("drawing missing cells from the model")
    kept = recorder.recall("missing cells", drawn)
    return imputation.completed(data, kept["values"]), float(kept["acceptance"])


def _checked(member: Member, found: Posterior) -> Check:
    """Whether the model fits the completed rows."""
    fitted: dict[str, Any] = {"method": plugins.configuration(member.method), **found.provenance}
    return dataclasses.replace(found, provenance=fitted).check(member.data)


Imputed.PRESETS = {"quick": Imputed(Collapsed.PRESETS["quick"], num_completions=2)}

build = Imputed
