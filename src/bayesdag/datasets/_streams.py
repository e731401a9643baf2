"""Random streams of the parts of a data set."""

import zlib

import numpy as np

from bayesdag.errors import InputError


def stream(seed: int, *labels: object) -> np.random.Generator:
    """A generator of its own for each seed and each list of labels.

    Seed and labels are hashed together, so neighbouring seeds, and the parts of one data set
    (graph, functions, training rows, test rows), share nothing.
    """
    if seed < 0:
        raise InputError(f"seed is {seed}; seeds are whole numbers from 0 on")
    words = [zlib.crc32(repr(label).encode()) for label in labels]
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))
