"""Draws the pictures of README and documentation again: `python docs/draw_pictures.py`.

Needs chromium and chromium-driver.
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.driver import Browser  # noqa: E402

from bayesdag.cli import demo  # noqa: E402
from bayesdag.plot import save  # noqa: E402
from bayesdag.report import write  # noqa: E402

PICTURES = Path(__file__).parent / "pictures"
SIZE = (1280, 1640)


def main() -> None:
    """Fit the example, draw its graph, and photograph its report."""
    posterior = demo.run()
    save(posterior.plot(), PICTURES / "graph.svg", "svg")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        write(posterior, page, **demo.report_facts("greenhouse.nc"))
        window = Browser(SIZE)
        try:
            window.open(page)
            window.run("choose({node: names.indexOf('growth')})")
            window.run("document.documentElement.style.overflow = 'hidden'")
            window.screenshot(PICTURES / "report.png")
        finally:
            window.close()


if __name__ == "__main__":
    main()
