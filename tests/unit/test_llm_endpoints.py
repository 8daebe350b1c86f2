"""Models of one name at two servers: which answers they share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace import App
from headrace.settings import load_settings
from headrace.testing.provider import ScriptedProvider


@pytest.mark.parametrize(("memo_name", "calls"), [("", 1), ("ours", 0)])
async def test_an_answer_of_one_server_is_not_taken_for_the_others(memo_name: str, calls: int) -> None:
    """Two servers that call their models the same are asked each; with one `memo_name` they are one."""
    async with ScriptedProvider(answer=lambda _: "one") as one, ScriptedProvider(answer=lambda _: "two") as two:
        settings = load_settings(environ={**one.environment, "HEADRACE_URL": "memory://"})
        first = replace(settings.llm, memo_name=memo_name)
        second = replace(first, base_url=two.environment["HEADRACE_LLM_BASE_URL"])
        async with App(settings=replace(settings, llm=first, models={"second": second})) as app:
            assert await app.llm.complete("Which are you?") == "one"
            assert await app.llm.using("second").complete("Which are you?") == ("two" if calls else "one")
            assert (one.count(), two.count()) == (1, calls)
