"""Small worlds with a known truth, shared by the tests."""

import dataclasses

import numpy as np
import pandas as pd

from bayesdag import plugins
from bayesdag.scores.neural import NeuralScore

NAMES = ("rain", "soil", "crop", "price")
# rain -> soil -> crop -> price, and rain -> crop.
TRUTH = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=np.int8)
WEIGHTS = np.array([[0, 1.2, -0.8, 0], [0, 0, 1.0, 0], [0, 0, 0, 0.9], [0, 0, 0, 0]])

# Small enough for tests that train many networks.
SMALL_NETWORKS = NeuralScore(width=3, num_folds=2, num_starts=2, rough_steps=6, fine_steps=6)
NETWORK_ROWS = 240


def toy_frame(num_rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Linear Gaussian rows from TRUTH, in odd units."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(num_rows, 4)) * [1.0, 0.7, 0.9, 0.6]
    values = noise @ np.linalg.inv(np.eye(4) - WEIGHTS)
    return pd.DataFrame(values * [10, 1, 0.1, 3] + [50, 2, 0, 9], columns=list(NAMES))


def quick(name: str):
    """A method that answers in seconds: its preset "quick" where it has one."""
    method = plugins.load("methods", name)
    found = getattr(method, "PRESETS", {}).get("quick") or method()
    # Eight chains tell as much in a test as sixty-four, fifteen bootstrap samples as fifty.
    fewer = {"num_chains": 8} if getattr(found, "num_chains", 0) > 8 else {}
    if name in ("bootstrap_ges", "cam"):
        fewer["num_samples"] = 15
    if name in ("bcd", "dds"):  # with fewer steps particles of dibs hardly heed a belief
        fewer["num_steps"] = 150
    return dataclasses.replace(found, **fewer)
