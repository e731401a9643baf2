"""One small fit as a process of its own, to be killed: `python -m tests.interrupted FOLDER KIND`.

Writes `FOLDER/result.nc`; the checkpoint is `FOLDER/partial`. Everything is kept at once, so that
a kill at any moment finds something to resume from.
"""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from bayesdag import fitting
from bayesdag.methods.auto import Auto
from bayesdag.methods.averaged import Averaged
from bayesdag.methods.bcd import BCD
from bayesdag.methods.bootstrap_ges import BootstrapGES
from bayesdag.methods.cam import CAM
from bayesdag.methods.collapsed import Collapsed
from bayesdag.methods.dds import DDS
from bayesdag.methods.dibs import DiBS
from bayesdag.methods.imputed import Imputed
from bayesdag.runs.checkpoint import Checkpoint
from tests.toys import NETWORK_ROWS, SMALL_NETWORKS

NEURAL = Collapsed(
    score=SMALL_NETWORKS,
    num_chains=2,
    num_warmup=10,
    num_samples=30,
    num_ladders=2,
    num_temperatures=4,
    num_starts=2,
    max_candidates=3,
    max_rounds=2,
)
ONE_NOISE_MODEL = replace(NEURAL, score=replace(SMALL_NETWORKS, average_noise_models=False))
LINEAR = Collapsed(num_chains=2, num_warmup=20, num_samples=40, num_ladders=2, num_starts=8)


def curved_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, e = rng.normal(size=(2, NETWORK_ROWS))
    b = np.sin(2 * a) + 0.3 * rng.normal(size=NETWORK_ROWS)
    c = a * b + 0.3 * rng.normal(size=NETWORK_ROWS)
    d = np.abs(c) + e + 0.2 * rng.normal(size=NETWORK_ROWS)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d})


def gappy_frame() -> pd.DataFrame:
    frame = curved_frame()
    return frame.mask(np.random.default_rng(2).random(frame.shape) < 0.1)


def wide_frame(num_columns: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    mixing = np.triu(rng.normal(size=(num_columns, num_columns)), 1)
    mixing *= rng.random(mixing.shape) < 2 / num_columns
    values = rng.normal(size=(200, num_columns)) @ np.linalg.inv(np.eye(num_columns) - mixing)
    return pd.DataFrame(values, columns=[f"v{i}" for i in range(num_columns)])


KINDS = {
    "neural": (curved_frame, NEURAL),
    "one noise model": (curved_frame, ONE_NOISE_MODEL),
    "auto": (curved_frame, Auto(nonlinear=NEURAL)),
    "averaged": (curved_frame, Averaged((NEURAL, NEURAL))),
    "linear": (wide_frame, LINEAR),
    "cam": (wide_frame, CAM(num_samples=6)),
    "dibs": (curved_frame, DiBS.PRESETS["quick"]),
    "marginal dibs": (curved_frame, replace(DiBS.PRESETS["marginal"], num_steps=400)),
    "bcd": (curved_frame, BCD.PRESETS["quick"]),
    "dds": (curved_frame, DDS.PRESETS["quick"]),
    "imputed": (gappy_frame, Imputed(LINEAR, num_completions=2)),
    "bootstrap_ges": (wide_frame, BootstrapGES(num_samples=8)),
}


def main(folder: Path, kind: str) -> None:
    make, method = KINDS[kind]
    fitting.running.Checkpoint = partial(Checkpoint, every=0.0, results_every=0.0)  # pyright: ignore
    fitted = fitting.fit(make(), method, seed=3, checkpoint=folder / "partial")
    fitted.save(folder / "result.nc")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
