"""The page of verdicts: by one rule, from cells alone, and nothing hidden."""

from dataclasses import replace

import numpy as np

from bayesdag.bench import Cell, Store, comparison, write_comparison
from bayesdag.bench.published import SYSTEMS, figures
from bayesdag.bench.verdicts import paired_verdict, printed_verdict

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


def short(cells):
    return comparison.comparison(*comparison.verdicts(cells))


def long(cells):
    return comparison.rows(*comparison.verdicts(cells))


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
    text = long({"paper_nonlinear": [*cells, *other]})
    (row,) = rows_of(text, "nonlinear ER, d = 70")
    assert "21.00 ± 2.48 (3)" in row
    assert "BCD 217.05 ± 9.58, BGES 355.77 ± 18.02, BayesDAG 143.70 ± 11.61 |" in row
    assert "aaaaaaa | 2 cores, x86_64 | `bayesdag bench paper_nonlinear --size paper" in row
    assert "--methods 'auto' --part 'er70' --seeds 1000-1002`" in row


def test_sachs_is_set_beside_the_printed_row_as_bootstraps_and_as_restarts():
    some = {name: {"data": f"Sachs, {name}"} for name in ("bootstraps", "restarts")}
    cells = [c for setting in some.values() for c in measured("auto", [20.0, 22.0], setting)]
    text = long({"paper_measured": cells})
    for name in some:
        (row,) = rows_of(text, f"Sachs, {name}")
        assert "BayesDAG 18.92 ± 1.00" in row


def test_other_systems_of_the_paper_stand_beside_its_figures_of_themselves_and_are_no_loss():
    cells = measured("bcd", [300.0, 301.0, 302.0], {"graph": "ER", "d": 70})
    text = short({"paper_nonlinear": cells})
    (row,) = rows_of(text, "| bcd |")
    assert "worse (BCD 217.05 ± 9.58)" in row
    assert "In no setting that was judged." in text
    assert "Not run yet: nonlinear ER, d = 70 (E-SHD)" in text  # by none of ours


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
    first, second = rows_of(long({"paper_nonlinear": cells}), "| auto |")
    assert "| cam (6) | empty (6) | dds (6) [bbbbbbb] | – | aaaaaaa |" in first
    assert "| – | – | – | cam (1) [aaaaaaa] | ccccccc |" in second


def test_lost_cells_win_nothing():
    lost = [Cell("er70", {"graph": "ER", "d": 70}, "auto", 1, "failed", error="no")]
    for page in (short, long):
        assert "No cell measures the same yet." in page({"paper_nonlinear": lost})


def test_the_short_page_says_where_we_are_better_equal_and_worse():
    setting = {"graph": "ER", "d": 70}
    good = np.array([20.0, 22.0, 21.0])
    cells = [
        *measured("auto", good, setting),
        *measured("cam", good + [2.0, 2.1, 2.2], setting),
        *measured("dds", good - [5.0, 5.1, 5.2], setting),
        *measured("collapsed, BGe", good + [-1.0, 1.0, 0.1], setting),
        *measured("empty", good[:1] + 9, setting),
    ]
    text = short({"paper_nonlinear": cells})
    assert "| auto | the paper's printed figures | 3 / 0 / 0 |" in text
    assert "| auto | published systems | 0 / 0 / 1 |" in text
    assert "| auto | rivals | 1 / 0 / 0 |" in text
    assert "| auto | our other engines | 0 / 1 / 0 |" in text
    assert "| auto | trivial methods | 0 / 0 / 0 (1) |" in text
    (row,) = rows_of(text, "nonlinear ER, d = 70")
    assert "better (BayesDAG 143.70 ± 11.61) | better (BCD 217.05 ± 9.58) |" in row
    assert "Not run yet: nonlinear ER, d = 100 (E-SHD), SynTReN (E-SHD)" in text
    assert "| rivals | cam | 1 / 0 / 0 |" in text
    worse = text.partition("## Where we are worse")[2]
    assert worse.count("\n| auto |") == 1
    assert "| E-SHD | 21.00 ± 2.48 (3) | dds (3) |" in worse


def fitted(plugin, cells):
    return [
        replace(cell, stamp=cell.stamp | {"settings": {"method": {"plugin": plugin}}})
        for cell in cells
    ]


def test_variants_of_our_engines_are_no_rivals_whatever_they_are_called():
    setting = {"graph": "ER", "d": 20}
    variants = {"not so sure": "methods/collapsed", "cam, told": "methods/cam"}
    variants |= {"dibs, told": "methods/dibs", "empty, told": "methods/empty"}
    cells = measured("auto", [1.0, 2.0], setting)
    for name, plugin in variants.items():
        cells += fitted(plugin, measured(name, [3.0, 5.0], setting))
    cells += measured("regression", [3.0, 5.0], setting)
    text = short({"paper_nonlinear": cells})
    kinds = ("our other engines", "rivals", "published systems", "trivial methods", "rivals")
    for kind, name in zip(kinds, (*variants, "regression"), strict=True):
        assert f"| {kind} | {name} |" in text


def test_ablations_of_our_engines_are_not_compared():
    cells = measured("collapsed, neural", [1.0, 2.0], {"data": "mixture"})
    cells += measured("not coarsened", [3.0, 5.0], {"data": "mixture"})
    assert "not coarsened" not in long({"certainty_ablations": cells})


def test_errors_of_effects_and_likelihoods_under_interventions_have_verdicts():
    cells = []
    for method, shift in (("auto", 0.0), ("dds", 1.0)):
        values = {"effect_error": 0.1 + shift, "interventional_nll": 5.0 - shift}
        cells += [
            replace(cell, measures={k: v + 0.01 * cell.seed for k, v in values.items()})
            for cell in measured(method, [0.0, 0.0], {"d": 10})
        ]
    rows = rows_of(long({"effects": cells}), "| auto |")
    assert [row.split(" | ")[2] for row in rows] == ["error of effects", "interventional NLL"]
    assert "| dds (2) | – | – | – |" in rows[0]
    assert "| – | – | dds (2) | – |" in rows[1]


def test_the_page_is_written_from_packed_and_loose_cells(tmp_path):
    store = Store(tmp_path / "paper_nonlinear")
    for cell in measured("auto", [20.0, 22.0], {"graph": "ER", "d": 70}):
        store.write(cell)
    write_comparison(tmp_path)
    names = ("comparison.md", "comparison_rows.md")
    loose = [(tmp_path / name).read_text() for name in names]
    store.pack()
    write_comparison(tmp_path)
    assert [(tmp_path / name).read_text() for name in names] == loose
    assert all("nonlinear ER, d = 70" in text for text in loose)


def test_cells_that_no_suite_asks_for_any_more_are_not_compared(tmp_path):
    setting = {"graph": "ER", "d": 70}
    for name, part in (("paper_nonlinear", "gone"), ("no_suite", "er70")):
        store = Store(tmp_path / name)
        for cell in measured("auto", [20.0, 22.0], setting, part=part):
            store.write(cell)
    write_comparison(tmp_path)
    assert "auto" not in (tmp_path / "comparison_rows.md").read_text()


def test_every_printed_figure_names_a_system_and_cells():
    found = list(figures())
    assert len(found) == 6 + 30 + 17
    assert {one.system for one in found} == set(SYSTEMS)
    assert all(one.cells for one in found)
