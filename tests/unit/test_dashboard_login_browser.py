"""The way in and out of the pages in a real browser."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headrace.engine.tokens import make_token, revoke_token
from headrace.model.api_token import Scope
from headrace.service import known_tokens
from tests.unit.browser import NEEDED, Tab
from tests.unit.listening import listening
from tests.unit.service_calls import shop

pytestmark = NEEDED


def log_in(tab: Tab, base: str, token: str) -> None:
    """Log in at a place that names one of elsewhere, then open a page."""
    tab.visit(f"{base}/login?next=/{{id}}/elsewhere.example")
    tab.ask(f"document.getElementById('token').value = {token!r}")
    tab.press("Enter")
    tab.wait_for("location.pathname !== '/login'")
    assert tab.ask("location.href") == f"{base}/%7Bid%7D/elsewhere.example"
    tab.visit(f"{base}/queues?name=mail")
    tab.wait_for("document.querySelector('#pulse').dataset.state === 'on'")


def follow_a_link(tab: Tab, base: str, page: Path) -> None:
    """Follow a link of another site: the browser sends no cookie with it."""
    page.write_text("<title>elsewhere</title>")
    tab.open(page)
    tab.requests.clear()
    tab.ask(f"location.assign('{base}/queues?name=mail')")
    tab.wait_for("location.pathname === '/queues' && document.querySelector('#pulse').dataset.state === 'on'")
    assert any("/login?next=" in url for url in tab.requests)


@pytest.mark.slow
async def test_whoever_is_logged_out_is_shown_the_way_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tab: Tab
) -> None:
    """A page that is open goes there by itself once its token opens nothing, and knows where to come back to."""
    monkeypatch.setattr(known_tokens, "FRESH_SECONDS", 0.2)
    app = shop()
    async with app:
        token, made = await make_token(app.runtime.stores, "somebody", [Scope.READ])
        async with listening(app, require_token=True) as base:
            await asyncio.to_thread(log_in, tab, base, token)
            await asyncio.to_thread(follow_a_link, tab, base, tmp_path / "page.html")
            await revoke_token(app.runtime.stores, made.id)
            await asyncio.to_thread(tab.wait_for, "location.pathname === '/login'", 30)
            assert "next=%2Fqueues%3Fname%3Dmail" in tab.ask("location.search")
