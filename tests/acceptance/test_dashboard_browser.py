"""The dashboard in a real browser: every page that links lead to, light and dark, wide and narrow, and its actions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from headrace.dashboard.table import pages_of
from tests.acceptance.command_runs import place
from tests.acceptance.dashboard_fill import fill, model
from tests.acceptance.dashboard_walk import Walk, settle
from tests.acceptance.dashboard_world import app
from tests.unit.browser import NEEDED, Tab

pytestmark = [pytest.mark.acceptance, NEEDED]
WORLD = Path(__file__).with_name("dashboard_world.py")
#: A folder for pictures of all pages, where somebody wants to look at them.
PICTURES = "TEST_PICTURES"
#: When the page was loaded: another moment once it was loaded anew.
LOADED = "performance.timeOrigin"
#: Pages of the app, without those of applications that it is none of.
PAGES = pages_of(app)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a dashboard of a process of its own, with work of every kind."""
    with model() as more, place(tmp_path_factory.mktemp("served")) as here:
        here = replace(here, more=more)
        url = here.start("serve", f"{WORLD}:app", "--worker", "--port", 0, "--json").line()["url"]
        with httpx2.Client(base_url=url, timeout=30) as client:
            fill(client)
        yield url


def test_every_page(base: str, tab: Tab) -> None:
    """None complains, asks elsewhere, weighs too much, shuts anybody out, or is too wide; links lead to all of them."""
    pictures = os.environ.get(PICTURES)
    walk = Walk(tab, base, PAGES, pictures=Path(pictures) if pictures else None)
    faults = [fault for visit in walk.run() for fault in visit.faults]
    for visit in walk.visits:
        print(f"{visit.page:16} {visit.first_byte:7.1f} ms {visit.weight:9,} bytes  {visit.path}")
    assert not faults, "\n".join(faults)
    assert not walk.unseen


def test_a_button_asks_acts_and_tells(base: str, tab: Tab) -> None:
    """A queue is paused in a dialog by keys alone, the page shows it, and Escape leaves a question unanswered."""
    tab.size(1280, 900)
    tab.visit(f"{base}/queues/mail")
    tab.ask("document.querySelector('[data-opens=pause]').click()")
    tab.ask("document.querySelector('#pause input[name=reason]').focus()")
    for key in "tea":
        tab.press(key)
    tab.press("Enter")
    tab.wait_for("document.querySelector('#main').textContent.includes('Paused: tea')")
    assert tab.ask("document.querySelector('.toast').textContent") == "The queue is paused."
    tab.ask("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Resume').click()")
    tab.wait_for("!document.querySelector('#main').textContent.includes('Paused: tea')")
    tab.ask("[...document.querySelectorAll('button')].find((one) => one.dataset.confirm).click()")
    tab.wait_for("document.querySelector('#confirm').open")
    tab.press("Escape")
    tab.wait_for("!document.querySelector('#confirm').open")
    settle(tab, 0.2)
    assert tab.complaints == []


def test_what_is_live_moves_without_a_reload(base: str, tab: Tab) -> None:
    """A job that ends elsewhere is counted on the open page; a failed request is told."""
    tab.visit(base + "/")
    tab.wait_for("document.querySelector('#pulse').dataset.state === 'on'")
    loaded, before = tab.ask(LOADED), tab.ask("document.querySelector('[data-part=live_queues]').textContent")
    with httpx2.Client(base_url=base) as client:
        client.post("/api/v1/jobs", json={"task": "send", "args": ["fail once more"]}).raise_for_status()
    tab.wait_for(f"document.querySelector('[data-part=live_queues]').textContent !== {before!r}")
    assert tab.ask(LOADED) == loaded
    assert tab.complaints == []


def test_news_wait_until_a_question_is_answered(base: str, tab: Tab) -> None:
    """What a question is about is still there for the answer, whatever the page hears meanwhile; then it shows that."""
    with httpx2.Client(base_url=base) as client:
        client.put("/api/v1/limits/caps/queue:spare", json={"cap": 1, "force": True}).raise_for_status()
    tab.visit(f"{base}/limits")
    tab.wait_for("document.querySelector('#pulse').dataset.state === 'on'")
    tab.ask("""(() => {
      window.asks = document.querySelector("[hx-delete$='queue:spare'], [hx-delete$='queue%3Aspare']");
      asks.click();
      live.source.dispatchEvent(new MessageEvent(asks.closest("[data-part]").dataset.part, {data: "<p>nothing</p>"}));
    })()""")
    tab.wait_for("document.querySelector('#confirm').open")
    assert tab.ask("document.contains(asks)")
    tab.ask("document.querySelector('#confirm [value=yes]').click()")
    tab.wait_for("document.querySelector('.toast')?.textContent === 'It is forgotten.'")
    tab.wait_for("!document.querySelector('#main').textContent.includes('queue:spare')")
    assert tab.complaints == []


def test_lost_news_are_told_in_words(base: str, tab: Tab) -> None:
    """And that they come again; what is on the page stays."""
    word = "document.querySelector('#pulse .word').textContent"
    tab.visit(f"{base}/queues")
    tab.wait_for(f"{word} === 'live' && document.querySelector('#pulse').dataset.state === 'on'")
    tab.ask("live.source.dispatchEvent(new MessageEvent('trouble', {data: 'the store is away'}))")
    assert tab.ask(f"[{word}, document.querySelector('#pulse').title]") == ["no news", "the store is away"]
    tab.ask("live.source.dispatchEvent(new MessageEvent('trouble', {data: ''}))")
    assert tab.ask(f"[{word}, document.querySelector('#pulse').title]") == ["live", "This page is live"]
    tab.ask("live.source.dispatchEvent(new Event('error'))")
    assert tab.ask(word) == "no news"
    assert "does not answer" in tab.ask("document.querySelector('#pulse').title")


def test_a_graph_moves_when_its_run_does(base: str, tab: Tab) -> None:
    """A signal is sent by the form of the node that waits; the boxes of the open run change their states and titles."""
    with httpx2.Client(base_url=base) as client:
        runs = client.get("/api/v1/runs", params={"workflow": "publishing"}).json()["runs"]
    tab.size(1280, 900)
    tab.visit(f"{base}/runs/{runs[0]['id']}/nodes/ask")
    tab.ask("document.querySelector('textarea[name=payload]').value = '{\"by\": \"ann\"}'")
    tab.ask("document.querySelector('form[data-whole] button').click()")
    tab.wait_for("document.querySelector('h1').textContent.includes('success')")
    assert '"by": "ann"' in tab.ask("document.querySelector('[data-part=live_output]').textContent")
    with httpx2.Client(base_url=base) as client:
        run = client.post("/api/v1/runs", json={"workflow": "approval", "input": 1}).json()["run"]
        tab.visit(f"{base}/runs/{run}")
        tab.wait_for("document.querySelectorAll('.box.s-parked.critical').length === 1")
        tab.wait_for("document.querySelector('#pulse').dataset.state === 'on'")
        loaded, key = tab.ask(LOADED), tab.ask("document.querySelector('#main .note').textContent").split()[-1]
        client.post(f"/api/v1/signals/{key}", json=True).raise_for_status()
    tab.wait_for("document.querySelectorAll('.box.s-success').length === 2")
    assert tab.ask("document.querySelector('.box:last-of-type title').textContent").startswith("approve: success")
    assert tab.ask(LOADED) == loaded
    assert tab.complaints == []


def test_flows_are_imported_from_a_file(base: str, tab: Tab) -> None:
    """What is wrong is told by its field; a preview stores nothing."""
    tab.visit(f"{base}/flows")
    tab.ask("document.querySelector('[data-opens=import]').click()")
    document = '{"name": "New", "nodes": [{"name": "Go", "type": "headrace.%s"}], "connections": {}}'
    put = """(() => { const file = new File([%r], "flow.json"), given = new DataTransfer(); given.items.add(file);
      const field = document.querySelector("[data-reads]"); field.files = given.files;
      field.dispatchEvent(new Event("change", {bubbles: true})); })()"""
    tab.ask(put % (document % "nothing"))
    tab.wait_for("document.querySelector('#import-flow').value.includes('nothing')")
    tab.ask("document.querySelector('#import .primary').click()")
    tab.wait_for("!!document.querySelector('.toast.bad')?.textContent.includes('flow.nodes has no trigger')")
    tab.complaints.clear()
    tab.ask(put % (document % "manual"))
    tab.wait_for("document.querySelector('#import-flow').value.includes('manual')")
    tab.ask("document.querySelector('#import [data-shows]').click()")
    tab.wait_for("document.querySelector('#import-preview').textContent.includes('would be imported')")
    tab.ask("document.querySelector('#import .primary').click()")
    tab.wait_for("document.querySelectorAll('a[href=\"/flows/flow.new\"]').length === 1")
    assert tab.complaints == []


def test_what_was_wrong_once_can_be_sent_when_it_is_right(base: str, tab: Tab) -> None:
    """What is refused is told within the dialog, where it is seen; a preview goes as soon as it no longer fits."""

    def write(name: str, text: str) -> None:
        field = f"document.querySelector('#redrive [name={name}]')"
        tab.ask(f"{field}.value = {text!r}; {field}.dispatchEvent(new Event('input', {{bubbles: true}}))")

    preview = "document.querySelector('#redrive-preview')"
    tab.visit(f"{base}/dead-letters?task=send")
    tab.ask("document.querySelector('[data-opens=redrive]').click()")
    tab.wait_for("document.querySelector('#redrive').open")
    write("patch", "{bad")
    tab.ask("document.querySelector('#redrive [data-shows]').click()")
    tab.wait_for("!document.querySelector('#redrive [name=patch]').checkValidity()")
    write("patch", "[1]")
    tab.ask("document.querySelector('#redrive [data-shows]').click()")
    tab.wait_for("document.querySelector('#redrive .toast[role=alert]') !== null")
    tab.complaints.clear()
    write("patch", "")
    tab.ask("document.querySelector('#redrive [data-shows]').click()")
    tab.wait_for(f"!{preview}.hidden")
    assert tab.ask("document.querySelector('#redrive .toast')") is None
    write("limit", "1")
    assert tab.ask(f"{preview}.hidden")
    tab.ask("document.querySelector('#redrive .danger').click()")
    tab.wait_for("document.querySelector('#confirm').open")
    assert tab.ask("document.querySelector('#confirm-text').textContent") == "Run 1 failed jobs again?"
    tab.press("Escape")
    tab.wait_for("!document.querySelector('#confirm').open")
    assert tab.complaints == []


def test_a_double_click_is_one_click(base: str, tab: Tab) -> None:
    """And so is a key that is held: one job is made by each."""
    button = "[...document.querySelectorAll('main button')].find((one) => one.textContent === 'Run now')"
    tab.visit(f"{base}/schedules")
    tab.requests.clear()
    tab.click(button, times=2)
    tab.wait_for("document.querySelectorAll('.toast').length === 1")
    tab.ask(f"{button}.focus()")
    tab.press("Enter", held=5)
    tab.wait_for("document.querySelectorAll('.toast').length === 2")
    settle(tab, 0.2)
    assert len([url for url in tab.requests if url.endswith("/run-now")]) == 2
    assert tab.complaints == []


def test_keys_lead_to_pages_and_choose_light_or_dark(base: str, tab: Tab) -> None:
    """As the list of keys says, which one of them shows."""
    tab.visit(base + "/")
    tab.press("?")
    tab.wait_for("document.querySelector('#keys').open")
    tab.press("Escape")
    tab.wait_for("!document.querySelector('#keys').open")
    tab.press("t")
    tab.wait_for("['light', 'dark'].includes(document.documentElement.dataset.theme)")
    tab.press("g")
    tab.press("q")
    tab.wait_for("location.pathname === '/queues'")
    tab.ask("localStorage.clear()")


def test_a_dialog_knows_what_it_changes(base: str, tab: Tab) -> None:
    """A budget's dialog begins with what is set, its form goes to the address of the scope, and it can be removed."""

    def press(text: str) -> None:
        tab.ask(f"[...document.querySelectorAll('button')].find((one) => one.textContent === {text!r}).click()")

    tab.visit(f"{base}/models")
    row = "[...document.querySelectorAll('[data-part=live_budgets] tbody tr')].find((one) => one.textContent.includes"
    tab.ask(f"{row}('tenant:acme')).querySelector('[data-opens=budget]').click()")
    fields = "[...document.querySelectorAll('#budget input')].map((one) => one.value)"
    assert tab.ask(fields) == ["tenant:acme", "0.01", "100000"]
    tab.ask("document.querySelector('#budget [name=dollars]').value = '7'")
    tab.ask("document.querySelector('#budget .primary').click()")
    tab.wait_for("document.querySelector('[data-part=live_budgets]').textContent.includes('of $7.00')")
    tab.ask(f"{row}('tenant:acme')).querySelector('.danger').click()")
    tab.wait_for("document.querySelector('#confirm').open")
    tab.ask("document.querySelector('#confirm [value=yes]').click()")
    tab.wait_for("!document.querySelector('[data-part=live_budgets]').textContent.includes('tenant:acme')")
    tab.visit(f"{base}/limits")
    press("Set a weight…")
    for field, value in (("[data-fills=queue]", "llm"), ("[data-fills=key]", "a/b c"), ("[name=weight]", "3")):
        tab.ask(f"document.querySelector('#weight {field}').value = {value!r}")
    tab.ask("document.querySelector('#weight .primary').click()")
    tab.wait_for("document.querySelector('#main').textContent.includes('a/b c')")
    assert tab.complaints == []
