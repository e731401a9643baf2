"""Predictive checks: silent on data from the model, loud on the classical violations."""

import json
import re

import numpy as np
import pytest

from bayesdag.data import Dataset
from bayesdag.errors import InputError
from tests.posteriors import linear

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)


def rows(rng, num_rows=500, noise=None, bend=0.0, fan=0.0, hidden=0.0):
    """a -> b -> c, with the named violation in c (hidden: a common cause of a and c)."""
    cause = hidden * rng.normal(size=num_rows)
    a = rng.normal(size=num_rows) + cause
    b = a + rng.normal(size=num_rows)
    e = rng.normal(size=num_rows) if noise is None else noise(num_rows)
    c = b + bend * b**2 + e * (1 + fan * np.abs(b)) + cause
    return Dataset(np.c_[a, 10 + 5 * b, 100 * c], ("a", "b", "c"))


def checked(data, graph=CHAIN):
    return linear(np.broadcast_to(graph, (1, 40, 3, 3)), data).check(data)


def test_data_from_the_model_pass(seed):
    rng = np.random.default_rng(seed)
    alarms = [checked(rows(rng)).warnings for _ in range(5)]
    assert sum(map(len, alarms)) == 0


@pytest.mark.parametrize(
    ("violation", "words"),
    [
        ({"noise": lambda n: np.random.default_rng(1).exponential(size=n) * 2}, "skewness"),
        ({"noise": lambda n: np.random.default_rng(1).standard_t(2.2, size=n)}, "kurtosis"),
        ({"bend": 0.5}, "depend on b.*wrong kind"),
        ({"fan": 2.0}, "depend on b.*wrong kind"),
        ({"hidden": 2.0}, "depend on .*missing or reversed, or a common cause is hidden"),
    ],
)
def test_violations_are_named_and_not_to_be_trusted(seed, violation, words):
    found = checked(rows(np.random.default_rng(seed), **violation))
    assert not found.passed
    about_c = [w for w in found.warnings if w.startswith("c:") or w.startswith("a:")]
    assert any(re.search(words, w) for w in about_c), found.warnings
    assert all(w.endswith("Do not trust this.") for w in found.warnings)


def test_a_missing_edge_is_noticed(seed):
    empty = np.zeros((3, 3), dtype=np.int8)
    found = checked(rows(np.random.default_rng(seed)), empty)
    assert any("an edge is missing" in w for w in found.warnings)


def test_cells_that_were_set_have_no_residual(seed):
    rng = np.random.default_rng(seed)
    data = rows(rng)
    values, mask = data.values.copy(), np.zeros(data.values.shape, dtype=bool)
    # Set by an experimenter, who looked at a: no residual, though it would depend on a.
    values[250:, 2] = 100 * (values[250:, 0] ** 2 + rng.exponential(size=250))
    mask[250:, 2] = True
    assert checked(Dataset(values, data.names, mask)).passed
    assert not checked(Dataset(values, data.names)).passed
    bent = rows(rng, bend=0.5).values.copy()
    bent[250:, 2] = values[250:, 2]
    found = checked(Dataset(bent, data.names, mask))
    assert any(w.startswith("c: residuals depend on b") for w in found.warnings)


def test_the_answer_has_a_row_for_every_variable_and_is_plain(seed):
    found = checked(rows(np.random.default_rng(seed)))
    assert found.table()["variable"].tolist() == ["a", "b", "c"]
    assert json.loads(json.dumps(found.summary()))["passed"] is True


def test_other_data_are_refused(seed):
    data = rows(np.random.default_rng(seed))
    posterior = linear(CHAIN[None, None], data)
    with pytest.raises(InputError, match="pass the data that were fitted"):
        posterior.check(Dataset(data.values, ("x", "y", "z")))
