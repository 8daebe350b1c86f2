"""The site of the documents: its navigation comes from the lists, and its check finds what is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_docs
from tools.site import check, pages

ROOT = check_docs.ROOT


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files below a folder and return it."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


DOCUMENTS = {
    "README.md": "# Home\n",
    "CHANGELOG.md": "# Changes\n",
    "docs/README.md": "# All\n\n**Learn**: by doing\n\n- [b](b.md), [a](a.md#x) and [b](b.md)\n"
    "- [one](../examples/1/README.md)"
    "\n\n**Decide**\n\n- [list](d/README.md), [a](a.md), [file](../x.py)\n",
    "docs/a.md": "# A\n",
    "docs/b.md": "# B\n",
    "docs/d/README.md": "[1](0001.md) [a](../a.md)\n```\n[2](0002.md)\n```\n",
    "docs/d/0001.md": "# 1\n",
    "docs/_site/x.md": "no page\n",
    "examples/1/README.md": "# One\n",
    "src/x.md": "no page\n",
}


def test_the_index_is_the_navigation(tmp_path: Path) -> None:
    """Parts and their order are those of the index, a page stands in one of them, and the root's own pages follow."""
    root = write(tmp_path, DOCUMENTS)
    assert pages.navigation(root) == [
        pages.Part("Learn", ("docs/b.md", "docs/a.md", "examples/1/README.md")),
        pages.Part("Decide", ("docs/d/README.md",)),
        pages.Part("Project", ("CHANGELOG.md",)),
    ]
    assert pages.below(root, "docs/d/README.md") == ["docs/d/0001.md"]
    assert pages.unlisted(root) == []
    home = pages.with_navigation(root, "README.md", "# Home\n")
    assert home.startswith("# Home\n")
    assert ":caption: Decide\n\n/docs/d/README\n" in home
    assert pages.with_navigation(root, "docs/a.md", "# A\n") == "# A\n"


def test_a_page_that_no_list_names_is_told(tmp_path: Path) -> None:
    """A link inside a block of code is no link, and the home page is no list."""
    root = write(tmp_path, {**DOCUMENTS, "docs/d/0002.md": "# 2\n", "docs/c.md": "# C\n"})
    (root / "README.md").write_text("[c](docs/c.md)")
    assert pages.unlisted(root) == ["docs/c.md", "docs/d/0002.md"]


def test_every_page_of_the_documents_is_reached_from_the_index() -> None:
    """What is added later and is in no list is named here, and by `make site`."""
    assert pages.unlisted(ROOT) == [], f"add a line to {pages.INDEX}"
    captions = [part.caption for part in pages.navigation(ROOT)]
    assert {"Tutorial", "How-to", "Reference", "Explanation", "Decisions"} <= set(captions)
    assert captions[0] == "Tutorial" and captions[-1] == "Project"
    assert all(part.pages for part in pages.navigation(ROOT))


SITE = {
    "searchindex.js": 'Search.setIndex({"docnames": ["a", "b/c"]})',
    "index.html": '<a href="a.html">a</a>',
    "a.html": '<link rel="next" href="b/c.html"><h1 id="top">A</h1><a href="b/c.html#there">c</a> <a href="#top">a</a>'
    '<a href="https://example.org/x">out</a><img src="data:image/png;base64,AA==">',
    "b/c.html": '<link rel="stylesheet" href="../s.css?v=1"><p id="there"><a href="../a.html#top">a</a>'
    '<a href="../f.py">f</a>',
    "s.css": "p { background: url(data:image/svg+xml,x) }",
    "f.py": "",
}


def test_a_sound_site_passes(tmp_path: Path) -> None:
    """Links, anchors, files that were taken along and pictures within the page are fine."""
    assert check.problems(write(tmp_path, SITE)) == []


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("a.html", '<a href="lost.html">x</a>', "a.html: the link lost.html leads nowhere"),
        ("a.html", '<a href="b/c.html#lost">x</a>', "a.html: the link b/c.html#lost leads nowhere"),
        ("a.html", '<a href="#lost">x</a>', "a.html: the link #lost leads nowhere"),
        ("a.html", '<a href="htps://example.org">x</a>', "a.html: htps://example.org is no address"),
        ("a.html", '<a href="https://nowhere/x">x</a>', "a.html: https://nowhere/x is no address"),
        ("a.html", '<script src="https://example.org/x.js"></script>', "a.html: fetches https://example.org/x.js"),
        ("a.html", '<link rel="preload" href="//example.org/x">', "a.html: fetches //example.org/x"),
        ("a.html", '<img src="lost.png">', "a.html: fetches lost.png, which is not there"),
        ("a.html", '<p style="background: url(https://example.org/x)">', "a.html: fetches https://example.org/x"),
        ("s.css", '@import "https://example.org/x.css";', "s.css: fetches https://example.org/x.css"),
        ("s.css", "@font-face { src: url('//example.org/x') }", "s.css: fetches //example.org/x"),
        ("s.js", "fetch('https://example.org')", "s.js: fetches fetch('https://example.org"),
        ("new.html", "<p>", "new.html: the search does not know it"),
    ],
)  # fmt: skip
def test_what_a_visitor_would_stumble_on_is_found(tmp_path: Path, file: str, text: str, told: str) -> None:
    """Each kind of dead link, of source from elsewhere, and of page that cannot be searched."""
    site = write(tmp_path, SITE)
    with (site / file).open("a", encoding="utf-8") as page:
        page.write(text)
    assert check.problems(site) == [told]
