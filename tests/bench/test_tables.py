"""The writer of tables: means, intervals, pairs, and what must never be hidden."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bayesdag.bench.cells import Cell
from bayesdag.bench.fits import FitRunner
from bayesdag.bench.suite import Part, Suite, Table, Trial
from bayesdag.bench.table_entries import interval
from bayesdag.bench.tables import page


def cells(**by_method: list[float]) -> list[Cell]:
    return [
        Cell("part", {"d": 5}, method, seed, measures={"shd": value, "above": value - 2})
        for method, values in by_method.items()
        for seed, value in enumerate(values)
    ]


def rows(table: Table, found: list[Cell]) -> list[str]:
    text = page("name", Suite("Title", "", (), (table,)), found)
    return [line for line in text.splitlines() if line.startswith("|")][2:]


def test_one_value_has_no_interval_and_none_is_a_dash():
    assert interval([1.234], ".2f") == "1.23"
    assert interval([], ".2f") == "–"


def test_the_interval_is_students():
    values = [1.0, 2.0, 4.0]
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert interval(values, ".3f") == f"{np.mean(values):.3f} ± {(high - low) / 2:.3f}"


def test_a_row_is_a_setting_and_a_method_and_baselines_come_last():
    table = Table("", ("d", "method"), {"SHD": "shd .1f"})
    found = rows(table, cells(empty=[5.0], zeal=[1.0, 3.0]))
    assert found == ["| 5 | zeal | 2 | 2.0 ± 12.7 |", "| 5 | empty | 1 | 5.0 |"]


def test_methods_that_the_suite_has_not_are_marked():
    runners = {"a": FitRunner("exact"), "empty": FitRunner("empty")}
    part = Part("part", (Trial({"d": 5}, 0, None),), runners)
    table = Table("", ("method",), {"SHD": "shd .1f"})
    text = page("name", Suite("Title", "", (part,), (table,)), cells(a=[1.0], gone=[2.0]))
    assert "| a | 1 | 1.0 |" in text
    assert "| gone † | 1 | 2.0 |" in text
    assert "† not among the columns of the suite" in text
    text = page("name", Suite("Title", "", (part,), (table,)), cells(a=[1.0], empty=[2.0]))
    assert "†" not in text


def test_a_measure_that_one_cell_lacks_is_not_averaged_over_the_others():
    found = cells(a=[1.0, 3.0])
    found[0].measures.pop("shd")
    assert rows(Table("", ("method",), {"SHD": "shd .1f"}), found) == ["| a | 2 | – |"]


def test_lost_cells_are_counted_beside_the_others():
    found = [*cells(a=[1.0]), Cell("part", {"d": 5}, "a", 9, "failed", error="why")]
    assert rows(Table("", ("method",), {"SHD": "shd .1f"}), found)[0] == "| a | 1 (1 lost) | 1.0 |"


def test_differences_are_taken_data_set_by_data_set():
    table = Table("", ("method",), {"SHD": "shd .1f"}, less="base")
    assert rows(table, cells(base=[1.0, 10.0], a=[2.0, 11.0])) == ["| a | 2 | 1.0 ± 0.0 |"]


def test_a_table_of_the_data_sets_of_one_part_has_cells_of_all_parts_on_them():
    found = [*cells(a=[1.0, 5.0]), replace(cells(b=[3.0])[0], part="others")]
    table = Table("", ("method",), {"SHD": "shd .1f"}, datasets_of="others")
    assert rows(table, found) == ["| a | 1 | 1.0 |", "| b | 1 | 3.0 |"]


def test_only_data_sets_that_all_have_are_compared():
    table = Table("", ("method",), {"SHD": "shd .1f"}, common=("a", "b"))
    found = rows(table, cells(a=[1.0, 50.0], b=[2.0], c=[3.0]))
    assert found == ["| a | 1 | 1.0 |", "| b | 1 | 2.0 |"]


def test_a_ratio_says_how_many_times_faster():
    table = Table("", ("method",), {"s": "shd .1f"}, ratio=("times faster", "shd", "slow"))
    assert rows(table, cells(slow=[8.0], fast=[2.0])) == [
        "| fast | 1 | 2.0 | 4.0 |",
        "| slow | 1 | 8.0 | 1.0 |",
    ]


@pytest.mark.parametrize(
    ("how", "expected"),
    [("alike", "1"), ("above", "1"), ("below", "2"), ("reached", "2 of 4"), ("max .1f", "3.0"),
     ("mean-above .1f", "3.0"), ("mean-below .1f", "1.5")],
)  # fmt: skip
def test_shortfalls_are_counted_by_their_side(how, expected):
    found = rows(Table("", ("method",), {"x": f"above {how}"}), cells(a=[1.0, 0.0, 2.1, 5.0]))
    assert found == [f"| a | 4 | {expected} |"]


def test_calibration_and_reliability_pool_the_pairs_of_all_data_sets():
    sums = [[10.0, 3.0, 1.0], [0.0, 0.0, 0.0]]
    found = [Cell("part", {}, "a", seed, measures={"bins": sums}) for seed in (1, 2)]
    columns = {"c": "bins calibration", "r": "bins reliability"}
    assert rows(Table("", ("method",), columns), found) == [
        "| a | 2 | 0.20 (20 pairs) | 0.30→0.10 (20) |"
    ]


def test_a_series_is_one_row_for_each_of_its_entries():
    series = [{"epoch": 0, "shd": 4.0}, {"epoch": 8, "shd": 2.0}]
    found = [Cell("part", {"data": "x"}, "a", 1, measures={"series": series})]
    assert rows(Table("", ("data", "epoch"), {"SHD": "shd .1f"}), found) == [
        "| x | 0 | 1 | 4.0 |",
        "| x | 8 | 1 | 2.0 |",
    ]


def test_the_page_says_where_the_cells_ran():
    stamp = {"commit": "abc", "device": "2 cores", "seconds": 3.0}
    found = [Cell("part", {}, "a", seed, stamp=stamp) for seed in (1, 2)]
    assert "- commit abc, device 2 cores: 2 cells, 6 s in all" in page(
        "name", Suite("Title", "", ()), found
    )


def test_times_of_a_shared_machine_have_a_row_of_their_own():
    quiet, shared = (replace(one, stamp={"device": "2 cores"}) for one in cells(a=[1.0, 2.0]))
    shared.stamp["note"] = "other programs"
    found = rows(Table("T", ("method", "device"), {"s": "shd .0f"}), [quiet, shared])
    assert found == ["| a | 2 cores | 1 | 1 |", "| a | 2 cores, shared | 1 | 2 |"]


def test_a_share_is_pooled_over_data_sets_with_its_interval():
    found = [
        Cell("part", {}, "a", seed, measures={"pairs": pair, "curve": [[4.0, 1.0, 1.0]] * 6})
        for seed, pair in enumerate([[10, 9], [10, 9]])
    ]
    columns = {"share": "pairs fraction", "low": "curve bin0", "none": "absent fraction"}
    assert rows(Table("", ("method",), columns), found) == [
        "| a | 2 | 0.90 (0.70–0.97; 18 of 20) | 0.25 (0.07–0.59; 2 of 8) | – |"
    ]


def test_rows_may_be_bins_of_the_misfit_in_their_order():
    found = [
        Cell("part", {}, "a", seed, measures={"shd": 1.0, "misfit": misfit})
        for seed, misfit in enumerate([3.0, 0.0, 0.07, 0.02, None])
    ]
    shown = [row.split(" | ")[0] for row in rows(Table("", ("misfit",), {"SHD": "shd"}), found)]
    assert shown == ["| 0.00–0.01", "| 0.01–0.05", "| 0.05–0.20", "| 0.20 or more", "| –"]


def test_how_often_one_method_is_better_is_counted():
    table = Table("", ("method",), {"above 0": "shd positive"}, less="a")
    assert rows(table, cells(a=[1.0, 2.0, 3.0], b=[2.0, 1.0, 4.0])) == ["| b | 3 | 2 of 3 |"]


def test_no_row_mixes_commits():
    found = [replace(c, stamp={"commit": "abcdefghij"}) for c in cells(a=[1.0, 3.0], b=[5.0])]
    found[1] = replace(found[1], stamp={"commit": "zyxwvut", "changed": True})
    table = Table("", ("method",), {"SHD": "shd .1f"})
    assert rows(table, found) == [
        "| a | 1 | 1.0 | abcdefg |",
        "| a | 1 | 3.0 | zyxwvut* |",
        "| b | 1 | 5.0 | abcdefg |",
    ]
    # Nor is a difference taken between two of them.
    assert rows(replace(table, less="a"), found) == ["| b | 1 | 4.0 | abcdefg |"]


def test_exponents_are_slopes_of_logarithms():
    def grown(power, sizes):
        measures = [{"s": 3.0 * size**power} for size in sizes]
        pairs = zip(sizes, measures, strict=True)
        return [Cell("part", {"d": size}, "a", 0, measures=m) for size, m in pairs]

    table = Table("", ("method",), {"power": "s exponent:d .2f"})
    assert rows(table, grown(2.5, (5, 10, 40))) == ["| a | 3 | 2.50 ± 0.00 |"]
    assert rows(table, grown(2.5, (5, 10))) == ["| a | 2 | 2.50 |"]
    assert rows(table, grown(2.5, (5,))) == ["| a | 1 | – |"]
