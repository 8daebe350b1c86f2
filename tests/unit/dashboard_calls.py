"""Requests to pages of the dashboard as a browser sends them, and what stands in the answers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser

import httpx2

from headrace import App
from headrace.model.api_token import NewApiToken, Scope, digest_of, new_token
from headrace.model.ids import uuid7
from headrace.service.access import Access
from headrace.service.application import make_service

PAGE = {"accept": "text/html,application/xhtml+xml", "sec-fetch-site": "none"}
URL = "http://localhost:8400"
#: What runs or shows something that is within the page itself: the policy would refuse it.
_INLINE = re.compile(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son[a-z]+=\"|javascript:|https?://", re.IGNORECASE)


@asynccontextmanager
async def pages(app: App, access: Access | None = None, *, worker: bool = False) -> AsyncIterator[httpx2.AsyncClient]:
    """Open an app with its service, asked as a browser asks for pages; redirects are not followed."""
    async with app.worker() if worker else app:
        service = make_service(app, access)
        transport = httpx2.ASGITransport(service, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url=URL, headers=PAGE) as client:
            yield client
        await service.state.gate.close()


async def token_for(app: App, *scopes: Scope) -> str:
    """Store a token and return it."""
    token = new_token()
    made = NewApiToken(uuid7(), "somebody", digest_of(token), token[:10], frozenset(scopes))
    await app.runtime.stores.tokens.insert_token(made)
    return token


def csrf_in(page: str) -> str:
    """Return what the buttons of a page prove themselves with."""
    found = re.search(r'data-csrf="([0-9a-f]{64})"', page)
    assert found, "the page has no token against forgery"
    return found[1]


def check_page(html: str) -> None:
    """Hold a page to what all pages keep: nothing inline, nothing from elsewhere, ids once, labels for fields."""
    assert (found := _INLINE.search(html)) is None, html[max(found.start() - 80, 0) : found.end() + 80]
    reader = _Reader()
    reader.feed(html)
    twice = {name for name in reader.ids if reader.ids.count(name) > 1}
    assert not twice, f"ids that stand twice: {twice}"
    assert not reader.unlabelled, f"fields without a label: {reader.unlabelled}"
    assert reader.headings == 1, f"a page has one h1, this one {reader.headings}"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.unlabelled: list[str] = []
        self.headings = self._labels = 0
        self._named: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element has."""
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.headings += tag == "h1"
        self._labels += tag == "label"
        self._named |= {given.get("for") or ""} if tag == "label" else set()
        is_field = tag in ("input", "select", "textarea") and given.get("type") != "hidden"
        has_name = self._labels or "aria-label" in given or given.get("id", "") in self._named
        if is_field and not has_name:
            self.unlabelled.append(str(given.get("name")))

    def handle_endtag(self, tag: str) -> None:
        """Note that a label ends."""
        self._labels -= tag == "label"
