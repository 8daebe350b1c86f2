"""The grid of a batch in a real browser: what is under the pointer, the keys, and what a change draws."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from headrace import App
from headrace.dashboard.rendering import STATIC
from tests.unit.browser import NEEDED, Tab
from tests.unit.dashboard_calls import pages

pytestmark = NEEDED
GRID = "document.getElementById('grid')"
SAID = "document.getElementById('grid-said').textContent"


async def page_of(items: int) -> str:
    """Return the page of a batch whose items wait."""
    app = App("memory://")

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with pages(app) as client:
        batch = (await app.submit(double, list(range(items)))).id
        return (await client.get(f"/batches/{batch}")).text


async def open_grid(tab: Tab, folder: Path, items: int) -> None:
    """Open the page of a batch as a file: with its scripts, and nobody who sends it anything."""
    page = re.sub(r"/static/[0-9a-f]+/", f"{STATIC.as_uri()}/", await page_of(items))
    path = folder / "page.html"
    path.write_text(re.sub(r' data-live="[^"]*"', "", page), encoding="utf-8")
    tab.size(1280, 900)
    tab.open(path)
    tab.complaints.clear()


def change(tab: Tab, detail: dict[str, Any]) -> None:
    """Tell the grid of a change, as the live connection does."""
    tab.ask(f"{GRID}.dispatchEvent(new CustomEvent('headrace:text', {{detail: {detail}}}))")


def cells(tab: Tab) -> list[str]:
    """Return the colour of each cell."""
    code = f"""(() => {{
      const grid = {GRID}, side = Math.round(18 * devicePixelRatio), columns = grid.width / side;
      const middle = (place) => place * side + Math.floor(side / 2), brush = grid.getContext('2d');
      const read = (x, y) => [...brush.getImageData(middle(x), middle(y), 1, 1).data].slice(0, 3).join();
      return Array.from(grid.dataset.letters, (_, index) => read(index % columns, Math.floor(index / columns)));
    }})()"""
    found: list[str] = tab.ask(code)
    return found


async def test_a_change_draws_the_cells_that_it_is_of(tab: Tab, tmp_path: Path) -> None:
    """In the colours of their states, light and dark; all others stay as they are."""
    await open_grid(tab, tmp_path, 100)
    before = cells(tab)
    assert len(set(before)) == 1
    change(tab, {"set": [[3, "oo"], [99, "f"]]})
    after = cells(tab)
    assert {index for index in range(100) if after[index] != before[index]} == {3, 4, 99}
    assert after[3] == after[4] != after[99]
    green = tab.ask("getComputedStyle(document.querySelector('rect.f-succeeded')).fill")
    assert green == f"rgb({after[3].replace(',', ', ')})"
    change(tab, {"all": "o" * 100})
    assert set(cells(tab)) == {after[3]}
    tab.ask("document.querySelector('[data-theme-switch]').click()")
    dark = tab.ask("getComputedStyle(document.querySelector('rect.f-succeeded')).fill")
    assert dark != green and {f"rgb({cell.replace(',', ', ')})" for cell in cells(tab)} == {dark}
    change(tab, {"all": "o" * 140})
    assert tab.ask(f"{GRID}.height") > 0
    assert not tab.complaints


async def test_pointer_and_keys_tell_items(tab: Tab, tmp_path: Path) -> None:
    """A cell says which item it is and what that is, and leads to it."""
    await open_grid(tab, tmp_path, 200)
    change(tab, {"set": [[1, "r"]]})
    tab.ask(f"{GRID}.focus()")
    assert tab.ask(SAID) == "Item 0: ready"
    tab.press("ArrowRight")
    assert tab.ask(SAID) == "Item 1: running"
    change(tab, {"set": [[1, "f"]]})
    assert tab.ask(SAID) == "Item 1: failed"
    columns = tab.ask(f"{GRID}.width / Math.round(18 * devicePixelRatio)")
    tab.press("ArrowDown")
    assert tab.ask(SAID) == f"Item {columns + 1}: ready"
    tab.press("ArrowUp")
    tab.press("ArrowUp")
    tab.press("ArrowLeft")
    tab.press("ArrowLeft")
    assert tab.ask(SAID) == "Item 0: ready"
    tab.press("End")
    assert tab.ask(SAID) == "Item 199: ready"
    link = html.unescape(tab.ask("document.querySelector('#grid-said a').getAttribute('href')"))
    assert re.fullmatch(r"/batches/[0-9a-f-]{36}/items/199", link)
    tab.ask(
        f"(() => {{ const box = {GRID}.getBoundingClientRect(); {GRID}.dispatchEvent(new PointerEvent('pointermove', "
        "{clientX: box.left + 18 * 2 + 9, clientY: box.top + 9, bubbles: true})); })()"
    )
    assert tab.ask(SAID) == "Item 2: ready"
    assert not tab.complaints
