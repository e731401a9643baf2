"""The page: whole, self-contained, escaped, and true to the posterior."""

import base64
import hashlib
import html
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from bayesdag.data import read
from bayesdag.errors import InputError
from bayesdag.fitting import fit
from bayesdag.posterior import Posterior
from bayesdag.report import columns, page, render, write
from bayesdag.report.glossary import TERMS
from bayesdag.report.numbers import script_json
from tests.toys import NAMES, toy_frame

HOSTILE = ("<script>alert(1)</script>", "a\"b'c", "glucose [mg/dl]", "</script><!--")


class Elements(HTMLParser):
    """Tags with their attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.lasttag in ("script", "style") and self.cdata_elem:
            self.raw.append((self.lasttag, data))


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return fit(toy_frame(150), "exact", num_samples=100, progress=False)


@pytest.fixture(scope="module")
def text(posterior) -> str:
    return render(posterior, data=toy_frame(150), title="Crops", table="crops.csv")


def payload(text: str) -> dict:
    found = re.search(r'id="payload">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


def test_nothing_is_loaded_from_elsewhere(text):
    for tag, attributes in Elements(text).tags:
        assert "src" not in attributes, tag
        assert not any(name.startswith("on") for name in attributes), tag
        assert "style" not in attributes, tag
        if tag in ("a", "link"):
            assert attributes["href"].startswith(("#", "data:")), tag


def test_the_policy_allows_exactly_the_scripts_and_the_style_of_the_page(text):
    found = Elements(text)
    policy = next(str(a["content"]) for t, a in found.tags if "http-equiv" in a and t == "meta")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    inline = [data for tag, data in found.raw if not data.startswith("{")]
    assert len(inline) == 3  # a style, the library, the page's own script
    for data in inline:
        digest = base64.b64encode(hashlib.sha256(data.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_page_carries_the_probabilities_of_the_posterior(posterior, text):
    found = payload(text)
    assert found["names"] == list(NAMES)
    edge = np.zeros((4, 4))
    for i, j, p in found["edge"]:
        edge[i, j] = p
    np.testing.assert_allclose(edge, posterior.edge_matrix(), atol=6e-5)
    assert len(found["places"]) == 4
    assert len(found["rows"]) == 4
    assert len(found["rows"][0]) == 150
    assert {(one["source"], one["target"]) for one in found["functions"]} == {
        (i, j) for i, j in np.argwhere(posterior.edge_matrix() >= 0.05).tolist()
    }
    one = found["effects"][0]
    same = posterior.effect(NAMES[one["cause"]], NAMES[one["outcome"]])
    assert one["mean"] == pytest.approx(same.mean, rel=1e-3)
    assert sum(ranks is not None for ranks in found["chains"]["traces"]) >= 1


def test_rows_stay_out_unless_they_are_given(posterior, text):
    without = render(posterior)
    assert payload(without)["rows"] is None
    assert "carries no rows" in without
    assert render(posterior, data=toy_frame(150), num_rows=0) == without
    few = payload(render(posterior, data=toy_frame(150), num_rows=7))
    assert len(few["rows"][0]) == 7
    with pytest.raises(InputError, match="not the data"):
        render(posterior, data=toy_frame(149))


def test_the_same_result_gives_the_same_page(posterior, text):
    again = render(posterior, data=toy_frame(150), title="Crops", table="crops.csv")
    assert again == text


def test_every_section_and_every_term_is_there(text):
    for section in (
        *("answer", "graph", "heatmap", "tables", "classes", "effects", "experiment"),
        *("diagnostics", "columns", "glossary", "provenance"),
    ):
        assert f'<section id="{section}"' in text
    for term in ("nats", "HDI", "R-hat", "compelled", "Markov blanket"):
        assert term in TERMS
    for meaning in TERMS.values():
        assert html.escape(meaning, quote=True).replace("&#x27;", "&#39;") in text
    targets = set(re.findall(r'href="#([^"]+)"', text))
    assert targets <= set(re.findall(r'id="([^"]+)"', text))


def test_environments_are_told_apart_from_variables():
    rng = np.random.default_rng(0)
    place = rng.choice(["north", "south"], 150)
    frame = toy_frame(150).assign(rain=lambda t: t["rain"] + 30 * (place == "south"), place=place)
    posterior = fit(read(frame, environment="place"), "exact", num_samples=60, progress=False)
    text = render(posterior, data=frame, table="crops.csv")
    assert payload(text)["contexts"] == [4]
    assert "4 variables" in text
    assert '<section id="environments"' in text
    assert re.search(r"--environment place=(north|south)", text)
    words = text[: text.index('id="graph"')]
    assert "place=" not in words  # the answer is about variables


def test_names_titles_and_values_are_escaped(posterior):
    facts = dict(zip(HOSTILE, posterior.summary["columns"].values(), strict=True))
    unchecked = {k: v for k, v in posterior.provenance.items() if k != "check"}
    hostile = replace(
        posterior,
        names=HOSTILE,
        summary=posterior.summary | {"columns": facts},
        provenance=unchecked | {"notes": ["<b>note</b>"], "model": "<i>m</i>"},
    )
    text = render(hostile, title="<img src=x>", result="<u>r.nc")
    tags = [tag for tag, _ in Elements(text).tags]
    assert not {"b", "i", "u", "img"} & set(tags)
    assert tags.count("script") == 3
    assert payload(text)["names"] == list(HOSTILE)
    assert "alert(1)</script>" not in text


def test_json_in_a_script_cannot_end_it():
    text = script_json({"name": "</script><!-- & \u2028"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"name": "</script><!-- & \u2028"}


def test_a_plain_installation_is_enough_and_a_file_is_written_whole(
    posterior, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write(posterior, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == render(posterior)
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]


def test_columns_with_the_least_decided_arrows_are_candidates():
    edge = np.zeros((30, 30))
    edge[0, 1] = 0.5
    edge[2, 3] = 1.0
    names = tuple(f"v{i}" for i in range(30))
    assert page.undecided(edge, names) == ["v0", "v1"]
    assert len(page.undecided(np.full((30, 30), 0.3), names)) == page.MOST_CANDIDATES


def test_levels_and_gaps_of_columns_are_shown(posterior):
    known = posterior.summary["columns"]
    facts = {**known, "soil": {**known["soil"], "kind": "ordinal", "levels": ["poor", "<b>good"]}}
    facts["soil"] |= {"reason": "declared", "missing_fraction": 0.1}
    whole = replace(posterior, summary=posterior.summary | {"columns": facts})
    text = render(whole)
    assert "ordinal: poor, &lt;b&gt;good<br><small>declared</small>" in text
    assert "10 % missing, imputed" in text
    line = next(line for line in columns.columns(whole) if line.name == "soil")
    assert line.num_missing == 15
    assert line.mean is None
