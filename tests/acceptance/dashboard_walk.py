"""A walk through all pages of a dashboard in a real browser: what each complains of, asks for, weighs, looks like."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from headrace.dashboard.page import Page
from tests.unit.browser import Tab

#: Findings of axe-core that may not be.
SERIOUS = ("serious", "critical")
#: Another version of axe-core than the one of the package.
AXE = "TEST_AXE"
_LINKS = "[...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href'))"
_AXE = """axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
  .map((one) => ({id: one.id, impact: one.impact,
    nodes: one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))})))"""
_TIMING = """(() => { const one = performance.getEntriesByType("navigation")[0];
  return {first: one.responseStart - one.requestStart, whole: one.responseEnd - one.requestStart}; })()"""
_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@dataclass(frozen=True, slots=True)
class Visit:
    """What came of one page."""

    page: str
    path: str
    #: milliseconds until the first byte, as the browser counts them
    first_byte: float
    #: bytes of the page with all that it asked for, uncompressed, as a browser that knows nothing gets it
    weight: int
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    #: pixels that it is wider than a narrow window
    too_wide: int = 0

    @property
    def faults(self) -> list[str]:
        """Return what is wrong, in words."""
        found = [f"complains: {one}" for one in self.complaints] + [f"asks elsewhere: {one}" for one in self.elsewhere]
        found += [f"axe {one['impact']}: {one['id']} {one['nodes']}" for one in self.findings]
        found += [f"weighs {self.weight:,} bytes"] if self.weight > 300_000 else []
        found += [f"is {self.too_wide} pixels too wide in a narrow window"] if self.too_wide > 0 else []
        return [f"{self.path}: {one}" for one in found]


class Walk:
    """Follows links from page to page until each kind of page was seen."""

    def __init__(self, tab: Tab, base: str, pages: Iterable[Page], *, pictures: Path | None = None) -> None:
        self._tab, self._base, self._pictures = tab, base, pictures
        self._kinds = {page.name: _pattern(page.path) for page in pages}
        self._waiting: list[str] = ["/"]
        self._known = {"/"}
        self.visits: list[Visit] = []

    def run(self, *, most_of_a_kind: int = 2, start: Iterable[str] = ()) -> list[Visit]:
        """Visit pages, so many of each kind at most, and return what came of each."""
        self._note(start)
        counts = dict.fromkeys(self._kinds, 0)
        while self._waiting:
            path = self._waiting.pop(0)
            kind = self.kind_of(path)
            if kind is None or counts[kind] >= most_of_a_kind:
                continue
            counts[kind] += 1
            self.visits.append(self._visit(kind, path, first=counts[kind] == 1))
            self._note(self._tab.ask(_LINKS))
        return self.visits

    @property
    def unseen(self) -> set[str]:
        """Names of pages that no link led to."""
        return set(self._kinds) - {visit.page for visit in self.visits}

    def kind_of(self, path: str) -> str | None:
        """Return the name of the page at a path."""
        bare = urlsplit(path).path
        return next((name for name, pattern in self._kinds.items() if pattern.fullmatch(bare)), None)

    def _note(self, links: Iterable[str]) -> None:
        for link in links:
            if link.startswith("/") and not link.startswith(("/api/", "/live", "//")) and link not in self._known:
                self._known.add(link)
                self._waiting.append(link)

    def _visit(self, kind: str, path: str, *, first: bool) -> Visit:
        tab = self._tab
        tab.size(1280, 900)
        tab.prefer("light")
        tab.call("Network.setCacheDisabled", cacheDisabled=True)
        tab.complaints.clear()
        tab.requests.clear()
        tab.bytes = 0
        tab.visit(self._base + path)
        timing = tab.ask(_TIMING)
        settle(tab, 0.3)
        weight = tab.bytes
        complaints, asked = list(tab.complaints), list(tab.requests)
        findings = check_access(tab)
        tab.size(420, 800)
        settle(tab, 0.1)
        too_wide = int(tab.ask(_WIDE))
        if first and self._pictures is not None:
            self._take(kind)
        elsewhere = [url for url in asked if not url.startswith((self._base + "/", "data:"))]
        return Visit(kind, path, timing["first"], weight, complaints, elsewhere, findings, too_wide)

    def _take(self, kind: str) -> None:
        assert self._pictures is not None
        for width, height, size in ((1280, 900, "wide"), (420, 800, "narrow")):
            for scheme in ("light", "dark"):
                self._tab.size(width, height)
                self._tab.prefer(scheme)
                settle(self._tab, 0.2)
                self._tab.picture(self._pictures / f"{kind}-{size}-{scheme}.png")
        self._tab.size(1280, 900)
        self._tab.prefer("light")


def settle(tab: Tab, seconds: float) -> None:
    """Let a page go on for a while, and hear what it says meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        tab.ask("new Promise((done) => setTimeout(done, 30))")


def check_access(tab: Tab) -> list[dict[str, Any]]:
    """Return what axe-core finds that is serious."""
    tab.call("Runtime.evaluate", expression=axe_source())
    found: list[dict[str, Any]] = tab.ask(_AXE)
    return [one for one in found if one["impact"] in SERIOUS]


def axe_source() -> str:
    """Return the script of axe-core."""
    path = os.environ.get(AXE)
    if path is None:
        spec = find_spec("axe_core_python")
        assert spec is not None and spec.submodule_search_locations is not None
        path = str(Path(spec.submodule_search_locations[0]) / "axe.min.js")
    return Path(path).read_text(encoding="utf-8")


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{\w+(:path)?\}", path)
    return re.compile("[^/]+".join(re.escape(part) for part in parts if part not in (None, ":path")))
