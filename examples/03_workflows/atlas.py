"""An atlas of rivers: a page for each, written side by side, approved by a person, then bound. See README.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headrace import App, Backoff, Fail, chain, choose, group, map_, ref, run_, wait_signal, when

app = App()

RIVERS = {"europe": ["danube", "volga", "rhine"], "africa": ["nile", "congo"]}


@app.task
async def list_rivers(continent: str) -> list[str] | Fail:
    """Return what the atlas is to have pages of."""
    return RIVERS.get(continent) or Fail(f"no rivers of {continent!r} are known; there are: {', '.join(RIVERS)}")


@app.task(retry=Backoff(max_attempts=1))
async def write_page(river: str) -> str:
    """Write the page of a river; notes in a file beside this one are needed for the volga."""
    if river == "volga":
        return Path(__file__).with_name("volga.txt").read_text(encoding="utf-8").strip()
    return f"The {river} flows to the sea."


@app.task
async def count_words(pages: list[str]) -> int:
    """Return how long the atlas is."""
    return sum(len(page.split()) for page in pages)


@app.task
async def write_preface(pages: list[str]) -> str:
    """Return what stands before the pages."""
    return f"An atlas of {len(pages)} rivers"


@app.task
async def bind(approval: dict[str, Any], preface: str, words: int) -> str:
    """Return the finished atlas."""
    return f"{preface}, {words} words, approved by {approval['by']}"


@app.task
async def put_away(approval: dict[str, Any]) -> str:
    """Return what becomes of an atlas that nobody wants."""
    return f"put away: {approval.get('reason', 'no reason was given')}"


@app.workflow(on_failure="complain")
def atlas(continent: str) -> Any:
    """Write the pages side by side, count and introduce them, wait for an approval, and bind or put away."""
    pages = map_(write_page.s()).options(name="pages")
    approval = wait_signal("approve-", run_["id"], timeout="2h").options(name="approval")
    bound = bind.s(preface=ref("write_preface"), words=ref("count_words"))
    return chain(
        list_rivers.s(continent),
        pages,
        group(write_preface.s(), count_words.s()),
        approval,
        choose(when("by").exists(), bound, otherwise=put_away.s()),
    )


@app.task
async def tell(report: dict[str, Any]) -> str:
    """Tell somebody of a run that failed."""
    message = f"{report['workflow']} failed: {report['error']['message']}"
    print(message)
    return message


app.workflow("complain", tell.s())
