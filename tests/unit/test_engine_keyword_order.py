"""An idempotency key stands for a call, however its keyword arguments were written."""

from __future__ import annotations

from typing import Any

import pytest

from headrace import App, ConflictError
from headrace.model.payload import hash_text


def make_app() -> tuple[App, Any]:
    """Return an app with a task that takes keywords of any name."""
    app = App("memory://")

    @app.task
    async def send(to: str, copy: str = "", **more: int) -> None: ...

    return app, send


async def test_the_order_of_keywords_does_not_matter() -> None:
    """The same key and arguments give the same job; other values are still a conflict."""
    app, send = make_app()
    async with app:
        call = send.options(key="k")
        first = await call.enqueue(to="ann", copy="ben", a=1, b=2)
        for kwargs in ({"copy": "ben", "b": 2, "to": "ann", "a": 1}, {"b": 2, "a": 1, "copy": "ben", "to": "ann"}):
            assert (await call.enqueue(**kwargs)).id == first.id
        for kwargs in ({"copy": "ann", "to": "ben", "a": 1, "b": 2}, {"to": "ann", "copy": "ben", "a": 2, "b": 1}):
            with pytest.raises(ConflictError):
                await call.enqueue(**kwargs)


@pytest.mark.parametrize(
    ("kwargs", "unusual"),
    [
        ({"to": "ann", "copy": "ben"}, False),
        ({"copy": "ben", "to": "ann"}, True),
        ({"to": "ann", "b": 1, "a": 2}, True),
    ],
)
def test_keys_of_the_release_before_are_known(kwargs: dict[str, Any], unusual: bool) -> None:
    """It took the hash of the text as it was written: where keywords stand in the order of the parameters, as they
    mostly do, that is the hash still; elsewhere the job carries it along. Arguments are stored as they were written."""
    job = make_app()[1].options(key="k").new_job((), kwargs)
    before = hash_text("send", job.args)
    assert job.has_body(before)
    assert (job.body_hash != before) is unusual
    assert job.former_hash == (before if unusual else "")
    names = list(kwargs)
    assert [job.args.index(f'"{name}"') for name in names] == sorted(job.args.index(f'"{name}"') for name in names)


def test_jobs_without_a_key_pay_nothing() -> None:
    """Nothing is hashed for them."""
    job = make_app()[1].options(priority="high").new_job((), {"copy": "ben", "to": "ann"})
    assert (job.body_hash, job.former_hash) == ("", "")
