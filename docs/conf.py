"""How `make site` builds the documents: Markdown as it stands in the repository, in the theme Furo, with no network.

The source is the whole repository, so that the links of a page lead where they lead on any forge: to a page of the
site, or to the file itself, which is taken along. Navigation: see tools/site/pages.py.
"""

import sys
import tomllib
from pathlib import Path

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.site import pages  # noqa: E402  (found by the line above)

project = "Headrace"
author = "the authors of Headrace"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = ["myst_parser"]
root_doc = pages.HOME.removesuffix(".md")
include_patterns = list(pages.PATTERNS)
# Nothing else is looked through: environments are large.
exclude_patterns = [".*", "build", "dist", "docs/_*", "requirements", "src", "tests", "tools"]
myst_heading_anchors = 6
nitpicky = True
highlight_language = "text"
# Quotes stand as they are written: many are part of what one types.
smartquotes = False

html_theme = "furo"
html_title = f"Headrace {release}"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "index.html"}
templates_path = ["_site/templates"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_use_index = False
pygments_style = "tango"
pygments_dark_style = "github-dark"


def tell_of_unlisted(_app: Sphinx) -> None:
    """Warn, and so fail, where a reader would not find a page."""
    for page in pages.unlisted(ROOT):
        logging.getLogger(__name__).warning("no list names %s: add a line to %s", page, pages.INDEX)


def add_navigation(_app: Sphinx, name: str, source: list[str]) -> None:
    """Give a page the navigation that begins at it."""
    source[0] = pages.with_navigation(ROOT, f"{name}.md", source[0])


def lead_into_the_repository(app: Sphinx, page: nodes.document) -> None:
    """Make links to files that are no page take the file along; a folder stands as text, unless it has a page."""
    for link in list(page.findall(addnodes.pending_xref)):
        path = (ROOT / app.env.docname).parent / link["reftarget"].rstrip("/")
        if link.get("refdomain") == "doc" and link["reftarget"] not in app.env.found_docs:
            named = f"/{link['reftarget']}.md"
            link.replace_self(
                addnodes.download_reference("", "", *link.children, **{**link.attributes, "reftarget": named})
            )
        elif link.get("refdomain") is None and path.is_dir():
            name = (path / "README").resolve().relative_to(ROOT).as_posix()
            if name in app.env.found_docs:
                link.attributes.update(refdomain="doc", reftarget=name, reftargetid=None)
            else:
                link.replace_self(link.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Teach Sphinx the blocks that have no colours, the navigation, and what a link may lead to."""
    for name in ("output", "mermaid", "promql"):
        app.add_lexer(name, TextLexer)
    app.connect("builder-inited", tell_of_unlisted)
    app.connect("source-read", add_navigation)
    # Before Sphinx collects what a page takes along.
    app.connect("doctree-read", lead_into_the_repository, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
