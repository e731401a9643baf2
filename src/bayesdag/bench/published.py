"""Figures of the paper, as printed, and where stored cells measure the same.

Annadani, Pawlowski, Jennings, Bauer, Zhang, Gong (2023), BayesDAG: Gradient-based posterior
inference for causal discovery, NeurIPS. Most of its figures are drawn and have no numbers; these
are all that are printed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from bayesdag.types import Facts

# Their name: ours, and its settings as published.
SYSTEMS = {
    "BayesDAG": ("bayesdag, published",),
    "BGES": ("bootstrap_ges",),
    "BCD": ("bcd",),
    "DIBS": ("dibs, published", "dibs"),
    "DDS": ("dds",),
}


@dataclass(frozen=True)
class PublishedFigure:
    """One printed number.

    Attributes:
        table: of the paper.
        data: in words.
        measure: as cells name it.
        system: as the paper names it.
        value: as printed; minutes are seconds here.
        half: of its 95 % interval; None where there is none.
        cells: suite: setting of the cells that measure the same.
    """

    table: str
    data: str
    measure: str
    system: str
    value: float
    half: float | None = None
    cells: Facts = field(default_factory=dict)


def figures() -> Iterator[PublishedFigure]:
    """All printed numbers that something here can be set beside."""
    yield from _scaling()
    yield from _real()
    yield from _times()


def _scaling() -> Iterator[PublishedFigure]:
    printed = {
        70: {"BayesDAG": (143.70, 11.61), "BCD": (217.05, 9.58), "BGES": (355.77, 18.02)},
        100: {"BayesDAG": (295.92, 24.67), "BCD": (362.66, 29.18), "BGES": (563.02, 27.21)},
    }
    for d, systems in printed.items():
        where = {
            "paper_nonlinear": {"graph": "ER", "d": d},
            "nonlinear": {"graph": "er", "d": d, "mechanism": "mlp", "scaling": "raw"},
        }
        for system, (value, half) in systems.items():
            about = ("1 (higher dimensions)", f"nonlinear ER, d = {d}", "expected_shd")
            yield PublishedFigure(*about, system, value, half, where)


def _real() -> Iterator[PublishedFigure]:
    printed = {
        "SynTReN": {
            "BGES": ((66.18, 9.47), (0.21, 0.05)),
            "DDS": ((134.37, 4.58), (0.13, 0.02)),
            "BCD": ((38.38, 7.12), (0.15, 0.07)),
            "DIBS": ((46.43, 4.12), (0.16, 0.02)),
            "BayesDAG": ((34.21, 2.82), (0.20, 0.02)),
        },
        "Sachs": {
            "BGES": ((16.61, 0.44), (0.22, 0.02)),
            "DDS": ((34.90, 0.73), (0.21, 0.02)),
            "BCD": ((17.05, 1.93), (0.20, 0.08)),
            "DIBS": ((22.3, 0.31), (0.20, 0.01)),
            "BayesDAG": ((18.92, 1.0), (0.26, 0.04)),
        },
    }
    # The text of the paper speaks of bootstraps, the caption of the table of restarts.
    where = {
        "SynTReN": {"paper_measured": {"data": "SynTReN"}, "nonlinear": {"graph": "syntren"}},
        "Sachs, restarts": {
            "paper_measured": {"data": "Sachs, restarts"},
            "nonlinear": {"graph": "sachs"},
        },
        "Sachs, bootstraps": {"paper_measured": {"data": "Sachs, bootstraps"}},
    }
    for data, cells in where.items():
        for system, pair in printed[data.partition(",")[0]].items():
            for measure, (value, half) in zip(("expected_shd", "edge_f1"), pair, strict=True):
                yield PublishedFigure(
                    "2 (SynTReN and Sachs)", data, measure, system, value, half, cells
                )


def _times() -> Iterator[PublishedFigure]:
    printed = {
        "BayesDAG": (171, 238, 261, 448),
        "DIBS": (187, 350, None, None),
        "BGES": (2, 3, 6, 11),
        "BCD": (252, 328, 418, 600),
        "DDS": (92, 130, 174, None),
    }
    for system, minutes in printed.items():
        for d, value in zip((30, 50, 70, 100), minutes, strict=True):
            if value is not None:
                where = {
                    "paper_nonlinear": {"d": d},
                    "nonlinear": {"d": d, "mechanism": "mlp", "rows": 5000},
                }
                about = ("walltime (one A100)", f"nonlinear, d = {d}", "seconds", system)
                yield PublishedFigure(*about, 60.0 * value, None, where)
