"""The report in a real browser: what a person sees, clicks and types."""

import pytest

from tests.browser.conftest import HOSTILE
from tests.browser.driver import DESKTOP, PHONE, Browser

pytestmark = pytest.mark.filterwarnings("ignore:300 rows are few")

VISIBLE = "return window.cy.edges().filter(e => e.style('display') !== 'none').length"


def set_slider(browser: Browser, value: float) -> None:
    browser.run(
        "const s = document.getElementById('threshold'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input', {bubbles: true}))",
        value,
    )


def focused(browser: Browser) -> str:
    return browser.run(
        "const e = document.activeElement;"
        "return e.id || e.getAttribute('href') || e.tagName + ':' + e.textContent.trim()"
    )


def test_a_hundred_variables_open_quickly_and_quietly(browser, large_page):
    browser.requests()
    browser.console()
    assert browser.open(large_page) < 3
    assert large_page.stat().st_size < 10_000_000
    outside = [url for url in browser.requests() if not url.startswith(("file:", "data:"))]
    assert outside == []
    assert browser.console() == []


def test_the_slider_changes_the_visible_arrows(large, hundred):
    edge = hundred[0].edge_matrix()
    counts = []
    for value in (0.05, 0.5, 0.95):
        set_slider(large, value)
        counts.append(large.run(VISIBLE))
        assert abs(counts[-1] - int((edge >= value).sum())) <= 2  # digits are rounded
        assert large.text("#visible-count").startswith(f"{counts[-1]} arrow")
        assert large.text("#threshold-value") == f"{value:.2f}"
    assert counts[0] > counts[1] > counts[2] > 0


def test_the_keyboard_moves_the_slider(large):
    large.run("document.getElementById('threshold').focus()")
    before = large.run(VISIBLE)
    large.press(*["ArrowRight"] * 20)
    assert large.text("#threshold-value") == "0.70"
    assert large.run(VISIBLE) <= before


def test_search_finds_a_variable(large):
    large.type_into("#search", "gene04")
    assert large.run("return window.cy.nodes('.found').length") == 10
    large.type_into("#search", "gene042")
    assert large.run("return window.cy.nodes('.chosen').data('label')") == "gene042"
    assert large.text("#details h3") == "gene042"
    large.type_into("#search", "no such variable")
    assert large.run("return window.cy.nodes('.found').length") == 0


def test_a_click_on_a_variable_shows_its_causes_and_effects(large):
    place = large.run(
        "document.getElementById('cy').scrollIntoView({block: 'center', behavior: 'instant'});"
        "const n = window.cy.getElementById('n7'); window.cy.zoom(1); window.cy.center(n);"
        "const b = document.getElementById('cy').getBoundingClientRect();"
        "const p = n.renderedPosition(); return [b.left + p.x, b.top + p.y]"
    )
    large.click_at(*place)
    assert large.text("#details h3") == "gene007"
    words = large.text("#details")
    assert "Direct causes" in words
    assert "Markov blanket" in words


def test_a_click_on_an_arrow_shows_its_function_over_the_data(large):
    place = large.run(
        "document.getElementById('cy').scrollIntoView({block: 'center', behavior: 'instant'});"
        "const e = window.cy.edges().filter(x => !x.hasClass('away') && !x.hasClass('bent')"
        " && x.data('p') > 0.99)[0];"
        "window.cy.zoom(1); window.cy.center(e);"
        "window.cy.elements().difference(e.union(e.connectedNodes())).remove();"
        "const b = document.getElementById('cy').getBoundingClientRect();"
        "const p = e.renderedMidpoint(); return [b.left + p.x, b.top + p.y]"
    )
    large.click_at(*place)
    assert " → " in large.text("#details h3")
    assert "credible band" in large.text("#details")
    assert large.run("return document.querySelectorAll('#details .band').length") == 1
    assert large.run("return document.querySelectorAll('#details circle').length") == 200
    assert "no arrow between them" in large.text("#details")


def test_arrow_keys_move_through_the_graph_and_enter_leads_to_its_details(large):
    large.run("document.getElementById('cy').focus()")
    large.press("ArrowDown")
    first = large.text("#details h3")
    large.press("ArrowDown")
    assert large.text("#details h3") != first
    large.press("Enter")
    assert large.run("return document.activeElement.closest('#details') !== null")
    large.run("document.getElementById('cy').focus()")
    large.press("Escape")
    assert "Nothing is chosen" in large.text("#details")


def test_tab_reaches_every_control(large):
    large.run("document.body.focus(); window.scrollTo(0, 0)")
    wanted = {
        *("theme", "threshold", "search", "layout", "zoom-in", "zoom-out", "fit", "picture"),
        *("cy", "tab-edges", "table-search", "cause", "outcome", "more", "#graph", "#provenance"),
    }
    seen = set()
    for _ in range(400):
        large.press("Tab")
        seen.add(focused(large))
        if wanted <= seen:
            break
    assert wanted - seen == set()


def test_tables_are_sorted_searched_and_paged(large):
    numbers = (
        "return [...document.querySelectorAll('#table-panel tbody tr')]"
        ".map(r => Number(r.children[2].textContent.replace(/[<>] /, '')))"
    )
    found = large.run(numbers)
    assert len(found) == 25
    assert found == sorted(found, reverse=True)
    large.click("#table-panel th:nth-child(3) button")
    found = large.run(numbers)
    assert found == sorted(found)
    large.click("#more")
    assert len(large.run(numbers)) == 125
    large.type_into("#table-search", "gene012")
    rows = large.run(
        "return [...document.querySelectorAll('#table-panel tbody tr')].map(r => r.innerText)"
    )
    assert rows
    assert all("gene012" in row for row in rows)
    large.click("#tab-paths")
    assert "path" in large.text("#table-panel thead")


def test_the_heat_map_is_read_with_the_keyboard(large):
    large.run("document.querySelector('#heat svg').focus()")
    before = large.text("#heat-readout")
    large.press("ArrowDown", "ArrowRight")
    assert large.text("#heat-readout") != before
    assert large.run("return document.querySelectorAll('#heat .cell').length") > 200
    edges = large.run("return document.querySelectorAll('#heat .cell').length")
    large.click("input[value='path']")
    assert large.run("return document.querySelectorAll('#heat .cell').length") > edges


def test_effects_are_chosen_on_the_page(large):
    assert "raises" in large.text("#effect") or "lowers" in large.text("#effect")
    large.run(
        "const s = document.getElementById('outcome');"
        "s.selectedIndex = s.options.length - 1; s.dispatchEvent(new Event('change'))"
    )
    assert "bayesdag effect RESULT.nc" in large.text("#effect")


def test_every_layout_keeps_the_nodes_apart_and_the_page_silent(large):
    large.console()
    for kind in ("circle", "force", "layers"):
        large.run(
            "const s = document.getElementById('layout'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('change'))",
            kind,
        )
        places = large.run(
            "return window.cy.nodes().map(n => n.position('x') + ',' + n.position('y'))"
        )
        assert len(set(places)) == 100
    assert large.console() == []


def test_markup_in_names_and_titles_stays_text(browser, hostile_page):
    browser.console()
    browser.open(hostile_page)
    assert (
        browser.run("return document.querySelectorAll('main b, main img, main script').length") == 0
    )
    assert browser.text("h1") == "<img src=x onerror=alert(2)>"
    shown = browser.run(
        "return [...document.querySelectorAll('#columns tbody th')].map(e => e.textContent)"
    )
    assert sorted(shown)[:3] == sorted([*HOSTILE[:5], "é\\u202egnp"])[:3]
    labels = browser.run("return window.cy.nodes().map(n => n.data('label'))")
    assert "glucose [mg/dl]" in labels
    browser.run("choose({node: 0})")
    assert browser.text("#details h3") == HOSTILE[0]
    assert browser.console() == []


def test_the_policy_refuses_scripts_that_are_not_the_page_s_own(browser, hostile_page):
    browser.open(hostile_page)
    browser.console()
    browser.run(
        "const s = document.createElement('script'); s.textContent = 'window.broken = 1';"
        "document.body.append(s)"
    )
    assert browser.run("return window.broken") is None
    assert any("Content Security Policy" in line for line in browser.console())


def test_nothing_shifts_and_everything_is_labelled(browser, large_page):
    browser.open(large_page)
    shift = browser.run(
        "return performance.getEntriesByType('layout-shift').reduce((a, e) => a + e.value, 0)"
    )
    assert shift < 0.1
    unlabelled = browser.run(
        "return [...document.querySelectorAll('button, input, select')].filter(e =>"
        " !e.textContent.trim() && !e.getAttribute('aria-label') && !e.labels?.length)"
        ".map(e => e.outerHTML)"
    )
    assert unlabelled == []
    images = browser.run(
        "return [...document.querySelectorAll('svg')].filter(e => !e.getAttribute('aria-label'))"
        ".length"
    )
    assert images == 0
    repeated = browser.run(
        "const ids = [...document.querySelectorAll('[id]')].map(e => e.id);"
        "return ids.filter((x, k) => ids.indexOf(x) !== k)"
    )
    assert repeated == []
    dead = browser.run(
        "return [...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.hash.slice(1))"
        ".filter(id => !document.getElementById(id))"
    )
    assert dead == []


CONTRAST = """
const gamma = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = c => gamma(c / 255);
const parse = s => s.match(/[\\d.]+/g).map(Number);
const lum = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
const behind = e => { for (; e; e = e.parentElement) {
  const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c; }
  return [255, 255, 255]; };
const bad = [];
for (const e of document.querySelectorAll('main *, header *')) {
  if (e.closest('svg') || !e.getClientRects().length) continue;
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
  const [a, b] = [lum(parse(getComputedStyle(e).color)), lum(behind(e))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const words = e.textContent.slice(0, 30);
  if (ratio < 4.5) bad.push(`${e.tagName}.${e.className} ${ratio.toFixed(2)} ${words}`);
}
return bad;
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_stand_out_from_their_background(browser, large_page, theme):
    browser.open(large_page)
    browser.run("setTheme(arguments[0]); choose({node: 3})", theme)
    assert browser.run(CONTRAST) == []


def test_pictures_of_all_views(large_page, pictures):
    for name, size, dark in (
        ("desktop", DESKTOP, False),
        ("phone", PHONE, False),
        ("dark", DESKTOP, True),
    ):
        window = Browser(size, dark=dark)
        try:
            window.open(large_page)
            wider = window.run("return document.documentElement.scrollWidth - window.innerWidth")
            assert wider <= 0, f"{name}: the page is {wider} pixels wider than the window"
            paper = window.run("return getComputedStyle(document.body).backgroundColor")
            assert (paper != "rgb(255, 255, 255)") == dark
            for section in ("answer", "graph", "heatmap", "effects"):
                window.run(
                    "document.getElementById(arguments[0]).scrollIntoView({behavior: 'instant'})",
                    section,
                )
                window.screenshot(pictures / f"{name}-{section}.png")
            if name == "dark":
                window.print(pictures / "print.pdf")
                assert (pictures / "print.pdf").read_bytes().startswith(b"%PDF")
        finally:
            window.close()
