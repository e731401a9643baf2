"""The border: from what people have to a `Dataset`.

A DataFrame, an array or a file is prepared as its owner wishes, the kind of each column is
found or taken as declared, what no method could use is refused, and what a careful analyst
would ask about is said.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import numpy as np

from bayesdag.data import environments, gaps, kinds, preparing, validation
from bayesdag.data.dataset import Dataset
from bayesdag.data.preparing import Preparation
from bayesdag.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import pandas


def read(
    source: object,
    *,
    interventions: object = None,
    scaling: str | None = None,
    environment: object = None,
    kinds: object = None,
    **steps: Unpack[preparing.Steps],
) -> Dataset:
    """The table in `source`, checked; refusals and warnings name the column and the remedy.

    Args:
        source: a DataFrame, a 2-D array (columns are called x0, x1, …), the path of a CSV
            (.csv.gz, too), Parquet or Excel file, or a Dataset. Cells may be missing.
        interventions: which cells were set by an experimenter: True/False (or 0/1) in the
            shape of the table, or one entry a row with the names of the variables set
            (none for an observational row, several separated by ";" or ","); as an array,
            a DataFrame, a list, the path of a CSV file, or the name of a column in `source`.
        scaling: "standardise" (the default), "centre" or "none". A Dataset keeps its own
            unless another is named. Codes and counts keep their unit.
        environment: where rows come from: the name of a column in `source` of numbers, text or
            yes and no ("column=label" to compare with that label, otherwise with the most
            frequent one), a list of such names, or one label for each row. Its labels become
            context variables, which may act on any variable and which nothing acts on.
        kinds: what columns hold, where looking at them would not tell: for each column
            "continuous", "count", "ordinal", "binary" or "categorical", or its levels in order
            (["low", "mid", "high"]); a mapping, or the path of a YAML file.
        steps: how the table is prepared before it is looked at: `drop` and `only` (columns),
            `na_values` (what stands for a missing cell), `log` (columns of which to take the
            logarithm) and `decimal` (","); see `preparing.Steps`.
    """
    prepare = preparing.Preparation.of(steps)
    if not isinstance(source, Dataset):
        data = _parse(source, interventions, environment, kinds, prepare)
    else:
        _refuse_preparing(prepare, kinds)
        data = _with_interventions(_with_environment(source, environment), interventions)
    if not data.is_checked or interventions is not None or environment is not None:
        _check(data)
    by_default = scaling == "standardise" and not isinstance(source, Dataset)
    if scaling is not None and not by_default:  # a copy would look for relations again
        data = replace(data, scaling=data.scaling_called(scaling))
        if scaling != "standardise":
            data = replace(data, preparation={**data.preparation, "scaling": scaling})
    object.__setattr__(data, "is_checked", True)
    return data


def _check(data: Dataset) -> None:
    """Refuses and warns; indicators of environments are beyond doubt."""
    own = ~data.contexts
    names = tuple(name for name, kept in zip(data.names, own, strict=True) if kept)
    mask = None if data.interventions is None else data.interventions[:, own]
    missing = None if data.missing is None else data.missing[:, own]
    validation.check(data.values[:, own], names, mask, missing, data.kinds)
    validation.warn_of_dependences(data.dependences)
    if missing is not None:
        gaps.refuse_set(missing, mask, names)
        gaps.warn_of_gaps(missing, names)
    if data.environment:
        environments.warn_of_fixed(data.values[:, own], names, data.values[:, ~own])


def _refuse_preparing(prepare: Preparation, said: object) -> None:
    if said is not None or prepare != Preparation():
        raise InputError(
            "a Dataset is prepared and has its kinds already; pass the table that it was made "
            "of, with kinds, drop, only, na_values, log and decimal"
        )


def _with_interventions(data: Dataset, interventions: object) -> Dataset:
    if interventions is None:
        return data
    variables = data.names[: data.num_variables - data.num_contexts]
    mask = _mask(interventions, variables, data.num_rows)
    indicators = np.ones((data.num_rows, data.num_contexts), dtype=bool)
    return replace(data, interventions=np.hstack([mask, indicators]))


def _with_environment(data: Dataset, environment: object) -> Dataset:
    """A Dataset whose rows come from somewhere; a column that says it is no variable any more."""
    if environment is None:
        return data
    if data.environment:
        known = ", ".join(one.column for one in data.environment)
        raise InputError(f"these data have environments already ({known}); name them once, all")
    table, labels = environments.take_out(labelled(data), environment)
    kept = [data.names.index(name) for name in table.columns]
    return Dataset(
        data.values[:, kept],
        tuple(table.columns),
        None if data.interventions is None else data.interventions[:, kept],
        data.scaling.of_columns(kept),
        labels,
        tuple(data.kinds[j] for j in kept),
        None if data.missing is None else data.missing[:, kept],
        data.preparation,
    )


def labelled(data: Dataset) -> "pandas.DataFrame":
    """The values, labels in the place of codes, with gaps as they were."""
    import pandas

    table = pandas.DataFrame(data.values, columns=list(data.names))
    for j, kind in enumerate(data.kinds):
        if kind.is_discrete:
            labels = np.array(kind.levels, dtype=object)[data.values[:, j].astype(int)]
            table[data.names[j]] = labels
    return table if data.missing is None else table.mask(data.missing)


def _parse(
    source: object,
    interventions: object,
    environment: object,
    said: object,
    prepare: Preparation,
) -> Dataset:
    """The table as it is written in the sources."""
    from bayesdag.data import tables

    table = tables.frame(source, decimal=prepare.decimal)
    prepare = preparing.resolved(prepare, tuple(table.columns))
    table = preparing.prepared(table, _sparing(prepare, interventions, environment, table))
    if isinstance(interventions, str) and interventions in table.columns:
        interventions, table = table[interventions], table.drop(columns=interventions)
    if environment is not None:
        table, environment = environments.take_out(table, environment)
    names = tuple(table.columns)
    validation.refuse_bad_names(names)
    values, found, names_now = _encoded(table, kinds.declarations(said), prepare)
    mask = None if interventions is None else _mask(interventions, names, len(values))
    whole, missing = gaps.filled(values, found, names)
    return Dataset(
        whole,
        names_now,
        mask,
        environment=environment,
        kinds=found,
        missing=missing,
        preparation=prepare.to_dict(),
    )


def _sparing(
    prepare: Preparation,
    interventions: object,
    environment: object,
    table: "pandas.DataFrame",
) -> Preparation:
    """`only` keeps what says which cells were set and where rows come from, too."""
    if not prepare.only:
        return prepare
    named = environment if isinstance(environment, list | tuple | Mapping) else [environment]
    texts = [text for text in (interventions, *named) if isinstance(text, str)]
    columns = [text if text in table.columns else text.partition("=")[0] for text in texts]
    kept = tuple(name for name in columns if name in table.columns)
    return prepare._replace(only=(*prepare.only, *kept))


def _encoded(
    table: "pandas.DataFrame",
    declared: dict[str, kinds.Declaration],
    prepare: Preparation,
) -> tuple[np.ndarray, tuple[kinds.Kind, ...], tuple[str, ...]]:
    """Values with NaN for gaps, kinds, and names; logarithms taken."""
    from bayesdag.data import encoding

    names = tuple(table.columns)
    logs = preparing.log_columns(prepare, names)
    columns = encoding.columns(table, preparing.declared_for_log(declared, logs))
    values = np.empty(table.shape)
    found: list[kinds.Kind] = []
    for j, (name, (column, kind)) in enumerate(zip(names, columns, strict=True)):
        if name in logs:
            column, kind = preparing.logarithm(column, name)
        values[:, j] = column
        found.append(kind)
    now = tuple(preparing.log_name(name) if name in logs else name for name in names)
    return values, tuple(found), now


def _mask(interventions: object, names: tuple[str, ...], num_rows: int) -> np.ndarray:
    from bayesdag.data import intervention_mask, tables

    if isinstance(interventions, str) and not os.path.exists(interventions):
        raise InputError(
            f"interventions={interventions!r} is neither a column of the data "
            f"({did_you_mean(interventions, names)}) nor a file; check the name"
        )
    if isinstance(interventions, str | os.PathLike):
        interventions = tables.frame(interventions, keep_blank_rows=True)
    return intervention_mask.mask(interventions, names, num_rows)
