"""Runs that are found by the key they were started under, and repeated under one."""

from __future__ import annotations

import pytest

from headrace import App, ConflictError, chain, input_


async def test_a_run_is_found_and_repeated_by_key() -> None:
    """Repeated twice under one key, a run is repeated once; from another node, that is another thing."""
    app = App("memory://")
    worked: list[int] = []

    @app.task
    async def double(number: int) -> int:
        worked.append(number)
        return 2 * number

    app.workflow("twice", chain(double.s(input_), double.s()))
    async with app.worker():
        assert await app.find_run_by_key("twice", "a/0") is None
        first = await app.start("twice", 3, key="a/0")
        assert await first.result("20s") == 12
        found = await app.find_run_by_key("twice", "a/0")
        assert found is not None
        assert found.id == first.id
        assert await app.find_run_by_key("thrice", "a/0") is None

        again = await first.rerun("double", key="a/1")
        assert await again.result("20s") == 12
        assert (await first.rerun("double", key="a/1")).id == again.id
        found = await app.find_run_by_key("twice", "a/1")
        assert found is not None
        assert found.id == again.id
        with pytest.raises(ConflictError):
            await first.rerun("double-2", key="a/1")
    assert worked == [3, 6, 3]
