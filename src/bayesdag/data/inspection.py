"""A look at a table before anybody waits: what each column holds, and what a fit does with it."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
from jaxtyping import Float

from bayesdag import plugins
from bayesdag.data import (
    environments,
    gaps,
    kinds,
    preparing,
    reading,
    root_names,
    tables,
    validation,
)
from bayesdag.data.dataset import Dataset
from bayesdag.data.kinds import Declaration, Kind
from bayesdag.errors import BayesdagWarning, InputError

if TYPE_CHECKING:
    import pandas

BARS = "▁▂▃▄▅▆▇█"
NUM_BINS = 12
RARE = 5  # rows of a level that hardly say anything of it
REFUSED = "refused"
_MODELS = {
    "count": "counts",
    "ordinal": "ordered levels",
    "binary": "two levels",
    "categorical": "levels without an order",
}


class InspectedColumn(NamedTuple):
    """One column, as `bayesdag inspect` shows it.

    Attributes:
        name: of the column.
        kind: one of `KINDS`, or "refused".
        levels: labels of a column of levels.
        reason: why it is of this kind; where it is refused, what to do.
        distribution: a bar for each level, or for each twelfth of the range.
        values: range of numbers, or the most frequent label.
        num_distinct: different values.
        missing_fraction: of its cells.
        fit: what a fit does with it.
        assumed_root: whether it is taken to have no causes in the table, by its name.
        advice: what to look at before a fit.
    """

    name: str
    kind: str
    levels: tuple[str, ...]
    reason: str
    distribution: str
    values: str
    num_distinct: int
    missing_fraction: float
    fit: str
    assumed_root: bool
    advice: tuple[str, ...]


class Inspection(NamedTuple):
    """A table, as `bayesdag inspect` shows it.

    Attributes:
        num_rows: n.
        columns: in the order of the table.
        environments: columns that say where rows come from.
        advice: about the table as a whole.
        refusal: why a fit would refuse the table as it is; empty where it would not.
    """

    num_rows: int
    columns: tuple[InspectedColumn, ...]
    environments: tuple[str, ...]
    advice: tuple[str, ...]
    refusal: str


def inspect(
    source: object,
    *,
    environment: object = None,
    kinds: object = None,
    **said: Unpack[preparing.Steps],
) -> Inspection:
    """What the columns of a table hold; nothing is fitted, and no column stops the others.

    The arguments are those of `read`.
    """
    steps = preparing.Preparation.of(said)
    table = preparing.prepared(tables.frame(source, decimal=steps.decimal), steps)
    if not len(table):
        raise InputError("the table has names of columns and no rows; there is nothing to look at")
    before = tuple(table.columns)
    if environment is not None:
        table, _ = environments.take_out(table, environment)
    logs = preparing.log_columns(steps, tuple(table.columns))
    declared = preparing.declared_for_log(_declared(kinds, tuple(table.columns)), logs)
    looked = [
        _looked(table.iloc[:, j], name, tuple(table.columns), declared.get(name), name in logs)
        for j, name in enumerate(table.columns)
    ]
    advice, refusal = _whole(looked)
    columns = tuple(one.shown for one in looked)
    refused = [column.reason for column in columns if column.kind == REFUSED]
    apart = tuple(name for name in before if name not in table.columns)
    return Inspection(len(table), columns, apart, advice, "; ".join(refused) or refusal)


class _Looked(NamedTuple):
    """A column as shown, and its values with NaN for gaps; None where it is refused."""

    shown: InspectedColumn
    values: Float[np.ndarray, " n"] | None
    kind: Kind


def _declared(said: object, names: tuple[str, ...]) -> dict[str, Declaration]:
    from bayesdag.data import encoding

    declared = kinds.declarations(said)
    encoding.refuse_unknown_columns(declared, names, "kinds")
    return declared


def _looked(
    given: "pandas.Series",
    name: str,
    names: tuple[str, ...],
    declared: Declaration | None,
    takes_log: bool,
) -> _Looked:
    from bayesdag.data import encoding

    fraction = float(given.isna().mean())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", BayesdagWarning)
        try:
            values, kind = encoding.column(given, name, names, declared)
            if takes_log:
                values, kind = preparing.logarithm(values, name)
            _refuse_nothing(values, name)
        except InputError as error:
            distinct = int(given.astype(str).nunique())
            shown = InspectedColumn(
                name, REFUSED, (), str(error), "", "", distinct, fraction, REFUSED, False, ()
            )
            return _Looked(shown, None, kinds.CONTINUOUS)
    words = tuple(str(one.message) for one in said)
    return _Looked(_shown(name, values, kind, words), values, kind)


def _refuse_nothing(values: np.ndarray, name: str) -> None:
    if np.isnan(values).all():
        raise InputError(f"column {name!r} has no value in any row; drop it (--drop {name})")
    whole = np.where(np.isnan(values), 0.0, values)
    validation.refuse_not_finite(whole[:, None], (name,))


def _shown(
    name: str, values: Float[np.ndarray, " n"], kind: Kind, said: tuple[str, ...]
) -> InspectedColumn:
    gap = np.isnan(values)
    present = values[~gap]
    return InspectedColumn(
        name=name,
        kind=kind.name,
        levels=kind.levels,
        reason=kind.reason,
        distribution=_bars(present, kind),
        values=_range(present, kind),
        num_distinct=len(np.unique(present)),
        missing_fraction=float(gap.mean()),
        fit=_fit(kind, bool(gap.any())),
        assumed_root=bool(root_names.assumed_roots([name], [kind])),
        advice=(*said, *_level_advice(present, kind, name)),
    )


def _bars(present: np.ndarray, kind: Kind) -> str:
    """A bar for each level, or for each part of the range; the ends of long tails share one."""
    if kind.is_discrete:
        heights = np.bincount(present.astype(int), minlength=len(kind.levels))[: 2 * NUM_BINS]
    else:
        low, high = np.quantile(present, [0.005, 0.995])
        if not high > low:
            low, high = present.min(), present.max()
        # Without an offset: bins of 1e30 and a little would all have the same ends.
        heights, _ = np.histogram(_places(present, low, high), NUM_BINS, (0, 1))
    steps = np.ceil(heights / max(1, heights.max()) * (len(BARS) - 1)).astype(int)
    return "".join(BARS[step] for step in steps)


def _places(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Where values lie between two others, 0 to 1; halves keep the largest numbers finite."""
    width = max(high / 2 - low / 2, np.finfo(float).tiny)
    return (np.clip(values, low, high) / 2 - low / 2) / width


def _range(present: np.ndarray, kind: Kind) -> str:
    if not kind.is_discrete:
        return f"{present.min():.4g} … {present.max():.4g}"
    counts = np.bincount(present.astype(int), minlength=len(kind.levels))
    most = int(np.argmax(counts))
    return f"{len(kind.levels)} levels; {counts[most] / len(present):.0%} {kind.levels[most]}"


def _fit(kind: Kind, has_gaps: bool) -> str:
    """What a fit does with a column of this kind, in words."""
    imputed = "; gaps are imputed from the model" * has_gaps
    if kind.name == "continuous":
        return f"measured, standardised{imputed}"
    if not models_levels():
        text = kind.is_discrete and kinds.label_numbers(kind) is None and len(kind.levels) > 2
        return "refused: no method takes text" if text else f"taken as a number{imputed}"
    model = f"modelled as {_MODELS[kind.name]} (auto, collapsed); a number to other methods"
    return f"{model}{imputed}"


def models_levels() -> bool:
    """Whether a score has a model for levels; read from the sources, not imported."""
    return bool(plugins.declaring("scores", "takes_kinds"))


def _level_advice(present: np.ndarray, kind: Kind, name: str) -> list[str]:
    if not kind.is_discrete:
        return []
    counts = np.bincount(present.astype(int), minlength=len(kind.levels))
    rare = [kind.levels[k] for k in np.flatnonzero(counts < RARE).tolist()]
    if not rare:
        return []
    shown = ", ".join(rare[:3]) + ", …" * (len(rare) > 3)
    return [f"levels of column {name!r} in fewer than {RARE} rows: {shown}; put rare ones together"]


def _whole(looked: Sequence[_Looked]) -> tuple[tuple[str, ...], str]:
    """What `read` would say of the columns that are not refused, and whether it would refuse."""
    good = [one for one in looked if one.values is not None]
    names = tuple(one.shown.name for one in good)
    if len(good) < 2:
        only = "only one column" if good else "no column"
        return (), f"{only} can be used, and at least 2 are needed"
    values = np.column_stack([one.values for one in good if one.values is not None])
    found = tuple(one.kind for one in good)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", BayesdagWarning)
        try:
            filled, missing = gaps.filled(values, found, names)
            reading.read(Dataset(filled, names, kinds=found, missing=missing))
        except InputError as error:
            return tuple(str(one.message) for one in said), str(error)
    return tuple(str(one.message) for one in said), ""


def to_dict(found: Inspection) -> Mapping[str, Any]:
    """The inspection as plain data."""
    return {**found._asdict(), "columns": [one._asdict() for one in found.columns]}
