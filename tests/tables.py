"""Tables in which columns determine one another, and noisy ones in which they do not."""

import numpy as np


def _sum(rng, n):
    a, b = rng.normal(size=(2, n))
    return {"a": a, "b": b, "s": a + b}, ["a", "b", "s"], "s = a + b"


def _rounded_sum(rng, n):
    columns, members, words = _sum(rng, n)
    return {name: column.round(2) for name, column in columns.items()}, members, words


def _product(rng, n):
    a, b = rng.normal(size=(2, n))
    return {"a": a, "b": b, "p": a * b}, ["a", "b", "p"], "p = a * b"


def _body_mass(rng, n, decimals=(12, 12, 12)):
    weight, height = rng.normal(75, 12, n), rng.normal(1.75, 0.1, n)
    columns = {"weight": weight, "height": height, "bmi": weight / height**2}
    rounded = {k: v.round(d) for (k, v), d in zip(columns.items(), decimals, strict=True)}
    return rounded, list(columns), "bmi = weight / height^2"


def _shares(rng, n):
    columns = dict(zip("abcd", rng.dirichlet([2, 3, 4, 5], n).T, strict=True))
    return columns, list("abcd"), "a + b + c + d = 1"


def _per_cent(rng, n):
    columns, members, _ = _shares(rng, n)
    whole = {name: (100 * column).round() for name, column in columns.items()}
    return whole, members, "a + b + c + d = 100"


def _counts(rng, n):
    men, women = rng.poisson(5, n), rng.poisson(7, n)
    return (
        {"men": men, "women": women, "all": men + women},
        ["men", "women", "all"],
        ("all = men + women"),
    )


def _levels(rng, n):
    level = rng.integers(0, 3, n)
    columns = {name: level == k for k, name in enumerate("uvw")}
    return columns, list("uvw"), "u + v + w = 1"


def _weighted(rng, n):
    a, b, c = rng.normal(size=(3, n))
    return (
        {"a": a, "b": b, "c": c, "y": 2 * a - 0.5 * b + c + 3},
        list("abcy"),
        ("y = 2 a - 0.5 b + c + 3"),
    )


def _product_and_more(rng, n):
    a, b, c = rng.normal(size=(3, n))
    return {"a": a, "b": b, "c": c, "y": a * b + c}, list("abcy"), "y = c + a * b"


def _distance(rng, n):
    a, b = rng.normal(size=(2, n))
    return {"a": a, "b": b, "r": np.hypot(a, b)}, list("abr"), "r^2 = a^2 + b^2"


def _of_one(function, words):
    def table(rng, n):
        x = rng.normal(size=n)
        return {"x": x, "y": function(x)}, ["x", "y"], words

    return table


# Name: a function of a generator and a number of rows that gives columns, those that determine
# one another, and how.
EXACT = {
    "sum": _sum,
    "sum, two decimals": _rounded_sum,
    "weighted sum": _weighted,
    "shares": _shares,
    "shares in whole per cent": _per_cent,
    "counts": _counts,
    "levels, one column each": _levels,
    "product": _product,
    "product and more": _product_and_more,
    "body mass index": _body_mass,
    "body mass index, rounded": lambda rng, n: _body_mass(rng, n, (1, 2, 1)),
    "distance": _distance,
    "square": _of_one(np.square, "y = x^2"),
    "absolute value": _of_one(np.abs, "y^2 = x^2"),
    "sine": _of_one(lambda x: np.sin(2 * x), "y is a function of x"),
    "exponential": _of_one(np.exp, "y is a function of x"),
    "bins": _of_one(lambda x: np.digitize(x, [-1, 0, 1]), "y is a function of x"),
}


def noisy_table(rng, curved):
    """A random world with up to 99 % of a variance explained, in numbers rounded or not."""
    num_rows, d = int(rng.choice([30, 60, 120, 500])), int(rng.integers(3, 16))
    values = np.zeros((num_rows, d))
    for j in range(d):
        parents = [k for k in range(j) if rng.random() < 0.4]
        mean = _mean(rng, values, parents, curved)
        explained = rng.uniform(0.3, 0.99) if parents else 0.0
        noise = rng.choice([rng.normal(size=num_rows), rng.standard_t(4, size=num_rows)])
        values[:, j] = np.sqrt(explained) * mean + np.sqrt(1 - explained) * noise
    rounded = [values, values.round(1), (3 * values).round(), np.exp(values / 2).round(2)]
    values = rounded[rng.integers(len(rounded))]
    return values[:, values.std(axis=0) > 0]


def _mean(rng, values, parents, curved):
    curves = [np.sin, np.tanh, np.square, np.abs]
    mean = np.zeros(len(values))
    for k in parents:
        curve = curves[rng.integers(4)] if curved else np.asarray
        mean = mean + rng.normal() * curve(values[:, k])
    if curved and len(parents) > 1:
        mean = mean + values[:, parents[0]] * values[:, parents[1]]
    return mean / (mean.std() or 1.0)
