"""The page of verdicts: by one rule, from cells alone, and nothing hidden."""

import numpy as np

from bayesdag.bench import Cell, Store, write_comparison
from bayesdag.bench.comparison import comparison, paired_verdict, printed_verdict
from bayesdag.bench.published import SYSTEMS, figures

RNG = np.random.default_rng(0)


def measured(method, values, setting, commit="a" * 40, part="er70", first=1000):
    shd = [float(value) for value in values]
    return [
        Cell(
            part,
            setting,
            method,
            first + k,
            measures={"expected_shd": v},
            stamp=stamp(commit),
        )
        for k, v in enumerate(shd)
    ]


def stamp(commit):
    return {"commit": commit, "device": "2 cores, x86_64"}


def rows_of(text, word):
    return [line for line in text.splitlines() if line.startswith("| ") and word in line]


def test_verdicts_follow_the_interval_of_paired_differences():
    ours = [1.0, 5.0, 9.0, 3.0]
    more = [2.0, 6.2, 9.9, 4.1]
    assert paired_verdict(ours, more, less=True) == "better"
    assert paired_verdict(ours, more, less=False) == "worse"
    assert paired_verdict(ours, [4.0, 2.0, 11.0, 1.0], less=True) == "equal"
    assert paired_verdict(ours, ours, less=True) == "equal"
    assert paired_verdict([1.0], [9.0], less=True) == "not judged"


def test_verdicts_beside_printed_figures_use_both_intervals():
    ours = [10.0, 12.0, 11.0]  # 11 ± 2.5
    assert printed_verdict(ours, 15.0, 1.0, less=True) == "better"
    assert printed_verdict(ours, 15.0, 4.0, less=True) == "equal"
    assert printed_verdict(ours, 15.0, 1.0, less=False) == "worse"
    assert printed_verdict([11.0], 15.0, 1.0, less=True) == "not judged"


def test_cells_are_set_beside_the_figures_that_measure_the_same():
    cells = measured("auto", [20.0, 22.0, 21.0], {"graph": "ER", "d": 70})
    other = measured("auto", [300.0, 301.0, 302.0], {"graph": "SF", "d": 70}, part="sf70")
    text = comparison({"paper_nonlinear": [*cells, *other]})
    (row,) = rows_of(text, "nonlinear ER, d = 70")
    assert "21.00 ± 2.48 (3)" in row
    assert "BCD 217.05 ± 9.58, BGES 355.77 ± 18.02, BayesDAG 143.70 ± 11.61 |" in row
    assert "aaaaaaa | 2 cores, x86_64 | `bayesdag bench paper_nonlinear --size paper" in row
    assert "--methods 'auto' --part 'er70' --seeds 1000-1002`" in row


def test_everyone_on_the_same_data_sets_is_named_once_and_no_row_mixes_commits():
    setting = {"graph": "ER", "d": 20}
    good = RNG.normal(size=6)
    cells = [
        *measured("auto", good, setting),
        *measured("cam", good + 2 + 0.1 * RNG.normal(size=6), setting),
        *measured("dds", good - 2 + 0.1 * RNG.normal(size=6), setting, commit="b" * 40),
        *measured("empty", good + RNG.normal(size=6), setting),
        *measured("auto", good[:1], setting, commit="c" * 40, first=1006),
        *measured("cam", good[:1], setting, first=1006),
    ]
    first, second = rows_of(comparison({"paper_nonlinear": cells}), "| auto |")
    assert "| cam (6) | empty (6) | dds (6) [bbbbbbb] | – | aaaaaaa |" in first
    assert "| – | – | – | cam (1) [aaaaaaa] | ccccccc |" in second


def test_lost_cells_win_nothing():
    lost = [Cell("er70", {"graph": "ER", "d": 70}, "auto", 1, "failed", error="no")]
    assert "No cell measures the same yet." in comparison({"paper_nonlinear": lost})


def test_the_page_is_written_from_packed_and_loose_cells(tmp_path):
    store = Store(tmp_path / "paper_nonlinear")
    for cell in measured("auto", [20.0, 22.0], {"graph": "ER", "d": 70}):
        store.write(cell)
    write_comparison(tmp_path)
    loose = (tmp_path / "comparison.md").read_text()
    store.pack()
    write_comparison(tmp_path)
    assert (tmp_path / "comparison.md").read_text() == loose
    assert "nonlinear ER, d = 70" in loose


def test_every_printed_figure_names_a_system_and_cells():
    found = list(figures())
    assert len(found) == 6 + 20 + 17
    assert {one.system for one in found} == set(SYSTEMS)
    assert all(one.cells for one in found)
