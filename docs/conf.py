"""Settings of the documentation site: `make docs` builds it into build/docs."""

from bayesdag import __version__

project = "bayesdag"
author = "the authors of bayesdag"
release = version = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # tests run every snippet, with the tables that the pages mention
html_theme = "sphinx_book_theme"
html_title = "bayesdag"
html_theme_options = {"show_toc_level": 2, "home_page_in_toc": True}
html_static_path: list[str] = []
autodoc_member_order = "bysource"
autodoc_typehints = "description"
# Shapes in annotations are jaxtyping's, and tables of results come from a program.
suppress_warnings = ["myst.header", "ref.python"]
exclude_patterns = ["draw_pictures.py"]


def _links_of_the_site(app, name, source) -> None:
    """Results stand outside this folder; the site has pages of its own that include them."""
    for folder in ("experiments/results/", "benchmarks/results/"):
        source[0] = source[0].replace(f"](../../{folder}", "](../results/")
        source[0] = source[0].replace(f"](../{folder}", "](results/")


def setup(app) -> None:
    """What sphinx calls first."""
    app.connect("source-read", _links_of_the_site)
