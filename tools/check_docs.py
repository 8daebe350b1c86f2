"""Check that what the documents point to exists: relative links, their anchors, and the tests named as proof.

usage: python tools/check_docs.py     (looks at every Markdown file git tracks; exit code 1 when something is missing)
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
TEST = re.compile(r"\b(tests/[\w/.-]+\.py)::(\w+)(?:::(\w+))?")
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", re.MULTILINE)


def documents(root: Path) -> list[Path]:
    """Return the Markdown files that git tracks or would track, without those an application reads as its input."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    listing = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True).stdout
    names = [name for name in listing.split("\0") if name and not name.startswith("src/")]
    return [root / name for name in names if (root / name).is_file()]


def problems(document: Path, root: Path) -> list[str]:
    """Return one line per link or test of `document` that does not exist."""
    text = document.read_text(encoding="utf-8")
    where = document.relative_to(root)
    links = [link for link in LINK.findall(FENCE.sub("", text)) if not re.match(r"[a-z]+:", link)]
    broken = [f"{where}: the link {link} leads nowhere" for link in links if not link_resolves(document, link)]
    tests = {match.group(0): match.groups() for match in TEST.finditer(text)}
    return broken + [
        f"{where}: there is no test {name}"
        for name, (file, *names) in tests.items()
        if not test_exists(root / file, [part for part in names if part])
    ]


def link_resolves(document: Path, link: str) -> bool:
    """Return whether a relative link leads to a file, and its anchor to a heading of it."""
    file, _, anchor = link.partition("#")
    target = (document.parent / file) if file else document
    if not target.exists():
        return False
    return not anchor or target.suffix != ".md" or anchor in anchors(target.read_text(encoding="utf-8"))


def anchors(text: str) -> set[str]:
    """Return the anchors of a Markdown text's headings, made as the usual forges make them."""
    headings = HEADING.findall(FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_exists(file: Path, names: list[str]) -> bool:
    """Return whether `file` defines the test function, or the class with that method."""
    if not file.is_file():
        return False
    body: list[ast.stmt] = ast.parse(file.read_text(encoding="utf-8")).body
    for name in names:
        found = [node for node in body if getattr(node, "name", None) == name]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def main() -> int:
    """Print what is missing; return the exit code."""
    missing = [line for document in documents(ROOT) for line in problems(document, ROOT)]
    for line in missing:
        print(line)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
