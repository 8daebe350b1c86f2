"""Refuse what ties the repository to one machine: home directories, the checkout's own path, package indexes.

usage: python tools/check_words.py     (looks at every file git tracks; exit code 1 when it finds something)
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve()
RULES = {
    "a home or build directory of one machine": re.compile(
        r"(?<![\w.~<}-])/(?:root|work|workspace|home/\w+|Users/\w+)/[\w.]"
    ),
    "an option that names a package index": re.compile(r"--(?:extra-)?index-url|--find-links|--trusted-host"),
    "the host of a package index": re.compile(
        r"(?:pypi|pythonhosted)\.org|registry\.npmjs|https?://\S*/simple/?(?:\s|$)"
    ),
    "a path as URL": re.compile(r"\bfile:///"),
}


def tracked_files(root: Path) -> list[Path]:
    """Return the files git tracks under `root` that still exist."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True).stdout
    return [root / name for name in listing.split("\0") if name and (root / name).is_file()]


def findings(path: Path, text: str, checkout: str) -> list[str]:
    """Return one line per breach in `text`."""
    rules = {**RULES, "the path of this checkout": re.compile(re.escape(checkout) + r"(?![\w-])")}
    return [
        f"{path}:{number}: {what}: {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), start=1)
        for what, pattern in rules.items()
        if pattern.search(line)
    ]


def main() -> int:
    """Print every breach; return the exit code."""
    root = HERE.parent.parent
    found = []
    for path in tracked_files(root):
        if path == HERE:
            continue  # it must name what it forbids
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a binary file
        found += findings(path.relative_to(root), text, str(root))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
