"""`assert_enqueued`, and the fixture of the plugin."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from headrace import App, ConfigError, Context, InvalidInputError, Task
from headrace.testing import assert_enqueued, drain, in_memory


class Address(BaseModel):
    """Where a letter goes."""

    street: str
    number: int = 1


@pytest.fixture
def app() -> Iterator[App]:
    """An app in memory."""
    with in_memory() as app:
        yield app


@pytest.fixture
async def send(app: App) -> Task[..., None]:
    """A task of which three jobs were enqueued."""

    @app.task(queue="mail")
    async def send(to: str, ctx: Context, text: str = "hello") -> None: ...

    @app.task
    async def other() -> None: ...

    async with app:
        await send.enqueue("ann")
        await send.options(priority="high", run_at="1h").enqueue(text="bye", to="ben")
        await send.enqueue(to="ben", text="hello")
        await other.enqueue()
    return send


async def test_jobs_are_found_by_what_is_given(app: App, send: Task[..., None]) -> None:
    """However the arguments were written, defaults included; what is not given may be anything."""
    assert len(assert_enqueued(app, send)) == 3
    [ann] = assert_enqueued(app, send, "ann", "hello", count=1)
    assert (ann.queue, ann.state) == ("mail", "ready")
    assert len(assert_enqueued(app, send, to="ben", count=2)) == 2
    [bye] = assert_enqueued(app, send, text="bye")
    assert bye.priority == 3
    assert bye.run_at is not None
    assert assert_enqueued(app, send, "eve", count=0) == []
    await drain(app)
    assert len(assert_enqueued(app, send, text="hello", count=2)) == 2


async def test_values_are_compared_as_json(app: App) -> None:
    """A model is what it is stored as."""

    @app.task
    async def visit(address: Address, tags: tuple[str, ...] = ()) -> None: ...

    async with app:
        await visit.enqueue(Address(street="Mill Lane"), tags=("a",))
    assert_enqueued(app, visit, Address(street="Mill Lane", number=1), ["a"])
    with pytest.raises(AssertionError, match="address is"):
        assert_enqueued(app, visit, Address(street="Mill Lane", number=2))


async def test_the_error_shows_the_nearest(app: App, send: Task[..., None]) -> None:
    """The most similar first, with what is other; where there is none of the task, what else there is."""
    with pytest.raises(AssertionError) as caught:
        assert_enqueued(app, send, to="ben", text="hi")
    assert str(caught.value).splitlines() == [
        "no job send(to='ben', text='hi') was enqueued; there are:",
        "  send(to='ben', text='bye'): text is 'bye'",
        "  send(to='ben', text='hello'): text is 'hello'",
        "  send(to='ann', text='hello'): to is 'ann', text is 'hello'",
    ]
    with pytest.raises(AssertionError, match=r"^2 jobs send\(to='ben'\) were enqueued, and not 1; there are:\n"):
        assert_enqueued(app, send, to="ben", count=1)
    with pytest.raises(AssertionError, match=r"^1 job send\(to='ann'\) was enqueued, and not 0"):
        assert_enqueued(app, send, to="ann", count=0)

    @app.task
    async def never(word: str) -> None: ...

    with pytest.raises(AssertionError, match=r"^no job never\(word='x'\) was enqueued; there are: 3 send, 1 other$"):
        assert_enqueued(app, never, "x")
    with in_memory() as empty, pytest.raises(AssertionError, match=r"never\(\) was enqueued; none is$"):
        assert_enqueued(empty, never)


async def test_long_texts_and_many_jobs_are_cut(app: App) -> None:
    """Five jobs are shown, and the beginning of a value."""

    @app.task
    async def note(text: str) -> None: ...

    async with app:
        await note.enqueue_many(["x" * 1_000] * 7)
    with pytest.raises(AssertionError) as caught:
        assert_enqueued(app, note, "y")
    assert str(caught.value).count("note(") == 6
    assert str(caught.value).endswith("… and 2 more")
    assert len(str(caught.value)) < 1_500


async def test_what_does_not_fit_is_refused(app: App, send: Task[..., None]) -> None:
    """Arguments that the task does not have, something that is no task, and an app that is elsewhere."""
    with pytest.raises(InvalidInputError, match="do not fit send"):
        assert_enqueued(app, send, too="ann")
    with pytest.raises(InvalidInputError, match="task must be a function"):
        assert_enqueued(app, "send")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="not in memory"):
        assert_enqueued(App("memory://"), send)


async def test_jobs_of_a_function_that_has_changed_are_shown_as_they_are(app: App) -> None:
    """A job that no longer fits its task is a near miss, too."""

    @app.task(name="old")
    async def before(left: int, right: int) -> None: ...

    async with app:
        await before.enqueue(1, right=2)
    other = App()

    @other.task(name="old")
    async def after(left: int) -> None: ...

    with pytest.raises(AssertionError, match=r"old\(0=1, right=2\): it has no left"):
        assert_enqueued(app, after, left=1)


def test_the_plugin_gives_an_app_to_each_test(tmp_path: Path) -> None:
    """Listed in a conftest.py, it needs no other plugin; each test has an empty store, and the app is put back."""
    (tmp_path / "shop.py").write_text(
        "from headrace import App\napp = App('postgresql://127.0.0.1:9/nowhere')\n\n"
        "@app.task\nasync def tidy(text): ...\n"
    )
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["headrace.testing.plugin"]\n')
    (tmp_path / "test_shop.py").write_text(
        "import asyncio\nimport pytest\nimport shop\nfrom headrace.testing import assert_enqueued, drain\n"
        "@pytest.mark.parametrize('word', ['a', 'b'])\n"
        "def test_each(headrace_app, word):\n"
        "    app = headrace_app(shop.app)\n"
        "    async def work():\n"
        "        async with app:\n"
        "            await shop.tidy.enqueue(word)\n"
        "    asyncio.run(work())\n"
        "    assert_enqueued(app, shop.tidy, word, count=1)\n"
        "    assert_enqueued(app, shop.tidy, count=1)\n"
        "    assert len(asyncio.run(drain(app))) == 1\n"
        "def test_none(headrace_app):\n"
        "    assert shop.app.settings.queue.type == 'postgres'\n"
        "    assert headrace_app() is not shop.app\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:asyncio", "-p", "no:cacheprovider", "-p", "no:schemathesis"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_pytest_alone_loads_nothing_of_it() -> None:
    """Whoever has Headrace installed and does not list the plugin pays nothing in other projects' runs."""
    from importlib.metadata import distribution

    assert [entry.name for entry in distribution("headrace").entry_points if entry.group == "pytest11"] == []
