"""Sentences of the rules in Chinese: each text has its words, and pages in Chinese say nothing in English."""

from __future__ import annotations

import ast
import asyncio
import html
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx2

import headrace
from headrace import App, Backoff
from headrace.apps.details.names import INTAKE_QUEUE
from headrace.dashboard.words import words_of
from headrace.model.parking import ParkRequested
from tests.unit.dashboard_calls import PAGE, pages
from tests.unit.engine_app import quick_app, until_final
from tests.unit.test_service_details import details_served, make
from tests.waiting import wait_until

SOURCE = Path(headrace.__file__).parent
#: Makers of sentences, with which of their arguments are texts.
MAKERS = {"say": slice(0, 1), "counted": slice(1, 3)}
ENGLISH = re.compile(r"[a-z]{2,} [a-z]{2,}", re.IGNORECASE)


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of the sentences that a module makes; each has to stand where its sentence is made."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            for given in node.args[MAKERS[node.func.id]]:
                for text in (given.body, given.orelse) if isinstance(given, ast.IfExp) else (given,):
                    assert isinstance(text, ast.Constant), f"{path}:{node.lineno}: no text that can be found"
                    yield text.value


def modules() -> list[Path]:
    """Return the modules that make sentences, without the one that defines them."""
    found = (path for path in SOURCE.rglob("*.py") if path.name != "sentence.py")
    return [path for path in found if "headrace.model.sentence import" in path.read_text(encoding="utf-8")]


def test_every_sentence_has_its_words() -> None:
    """In Chinese, with the same places for values."""
    texts, words = {text for path in modules() for text in texts_of(path)}, words_of("zh")
    assert "it is next in queue {queue}: a worker with a free slot takes it" in texts
    assert "min_workers is {least}; {work}" in texts
    assert not texts - set(words), f"without Chinese words: {sorted(texts - set(words))}"
    for text in texts:
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", words[text])), text


def said_on(page: str) -> list[str]:
    """Return what a page tells in sentences, without commands, which are the same in every language."""
    found = re.findall(r'<p class="(?:note|hint)[^"]*\btext" dir="auto">(.*?)</p>', page, re.DOTALL)
    return [re.sub(r"`[^`]*`", "", html.unescape(text)) for text in found]


def busy_app(free: asyncio.Event) -> App:
    """Return an app whose worker has one slot a queue, with tasks that keep it, and one that is parked."""
    app = quick_app(concurrency=1)

    @app.task
    async def ask() -> None:
        raise ParkRequested(timedelta(hours=1), "an answer", key="publish")

    @app.task(concurrency=1)
    async def hold() -> None:
        await free.wait()

    @app.task(queue="slow")
    async def dawdle() -> None:
        await free.wait()

    return app


async def tell(client: httpx2.AsyncClient, path: str, words: str) -> None:
    """Wait until a page says something, and see that it says nothing in English."""

    async def told() -> str | None:
        said = said_on((await client.get(path)).text)
        return next((text for text in said if words in text), None)

    found = await wait_until(told, message=f"{words} on {path}")
    assert found and not ENGLISH.search(found), found


async def test_pages_in_chinese_say_nothing_in_english() -> None:
    """Of a job that is parked, that runs, that a cap holds, that is next; of their queues, and of no dead letters."""
    free = asyncio.Event()
    app = busy_app(free)
    async with pages(app, worker=True) as client:
        client.cookies.set("headrace_locale", "zh")
        for task, words in (
            ("ask", "它已挂起：在等待信号 publish，直到 "), ("hold", "它正在运行，开始于 "),
            ("hold", "并发上限 task:hold 已满（运行 1 个，上限 1 个）"), ("dawdle", "它正在运行，开始于 "),
            ("dawdle", "它是队列 slow 中的下一个：有空闲槽位的工作进程会取走它"),
        ):  # fmt: skip
            job = await app.find_task(task).enqueue()
            await tell(client, f"/jobs/{job.id}", words)
        await tell(client, "/queues/default", "没有作业可以启动，1 个在运行")
        await tell(client, "/queues/slow", "1 个作业可以启动，时长未知：连同正在运行的 1 个，它们需要 2 个槽位")
        await tell(client, "/dead-letters", "没有死信。")
        free.set()


async def test_dead_letters_that_do_not_match_are_told_in_chinese() -> None:
    """With those that there are."""
    app = quick_app()

    @app.task(retry=Backoff.none())
    async def fail() -> None:
        raise ValueError

    async with pages(app, worker=True) as client:
        client.cookies.set("headrace_locale", "zh")
        await until_final(app, await fail.enqueue())
        await tell(client, "/dead-letters?kind=KeyError", "1 个死信都不符合条件。现有错误类型：ValueError。")


async def test_what_keeps_details_from_being_made_is_told_in_chinese() -> None:
    """Nobody works, and a queue is paused without a reason."""
    async with details_served(worker=False) as (client, desk):
        await desk.app.pause(INTAKE_QUEUE)
        accepted = (await make(client)).json()
        client.headers["accept"] = PAGE["accept"]
        client.cookies.set("headrace_locale", "zh")
        for words in ("没有存活的工作进程服务 details.intake, ", "details.intake 已暂停（未说明原因）"):
            await tell(client, f"/details/{accepted['batch_id']}", words)
