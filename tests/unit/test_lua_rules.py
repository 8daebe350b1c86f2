"""The rules of Lua, and that their check finds what breaks them."""

from __future__ import annotations

from pathlib import Path

from tools import check_lua

HEADER = "-- Why. Arguments: id. Returns it. Keys: job. Complexity: O(1).\n"
GOOD = f"#!lua flags=allow-oom\n{HEADER}-- include keys\nreturn ARGV[2]\n"


def test_the_rules_of_lua_are_kept() -> None:
    """Headers, no script or piece unused, no name without a file."""
    assert check_lua.main() == 0


def test_the_check_finds_what_it_is_for(tmp_path: Path) -> None:
    """Each rule of tools/check_lua.py is broken once, each is reported, and nothing else is."""
    (tmp_path / "scripts" / "lib").mkdir(parents=True)
    scripts = {
        "good.lua": GOOD,
        "unused.lua": GOOD,
        "Loud.lua": GOOD,
        "no_flags.lua": GOOD.replace(" flags=", " may="),
        "no_header.lua": "#!lua\n-- include keys\nreturn 1\n",
        "no_keys.lua": GOOD.replace("Keys:", ""),
        "no_cost.lua": GOOD.replace("Complexity:", ""),
        "no_arguments.lua": GOOD.replace("Arguments:", ""),
        "no_answer.lua": GOOD.replace("Returns", ""),
        "says_little.lua": "#!lua\n-- Why. Keys: none. Complexity: O(1).\nlocal made = 1 -- ARGV\n",
        "lost_piece.lua": GOOD.replace("include keys", "include keys, gone"),
        "lib/keys.lua": "-- Names.\nlocal call = redis.call\n",
        "lib/idle.lua": "-- Nothing.\n",
        "lib/bare.lua": "-- include keys\nlocal a = 1\n",
    }
    for name, text in scripts.items():
        (tmp_path / "scripts" / name).write_text(text)
    verbs = [
        name.removesuffix(".lua") for name in scripts if "/" not in name and name not in ("unused.lua", "good.lua")
    ]
    lines = [f'    await self.run("{verb}", 1)' for verb in [*verbs, "missing"]]
    (tmp_path / "store.py").write_text("\n".join(["async def f(self):", *lines, '    read("scripts", "good.lua")']))

    assert sorted([*check_lua.check_headers(tmp_path), *check_lua.check_names(tmp_path)]) == sorted(
        [
            "scripts/Loud.lua: a script is named verb_noun.lua",
            "scripts/lib/bare.lua: has 1 to 6 comment lines on its purpose before anything else",
            "scripts/no_flags.lua: begins with `#!lua`, or `#!lua flags=…`",
            "scripts/no_header.lua: has 1 to 6 comment lines on its purpose before anything else",
            "scripts/no_keys.lua: its header has to say `Keys:`",
            "scripts/no_cost.lua: its header has to say `Complexity:`",
            "scripts/no_arguments.lua: its header has to say `Arguments:`",
            "scripts/no_answer.lua: its header has to say `Return`",
            "lost_piece.lua: there is no scripts/lib/gone.lua",
            f"store.py:{len(verbs) + 2}: there is no scripts/missing.lua",
            "scripts/unused.lua: nothing names it; remove it",
            "scripts/lib/idle.lua: nothing names it; remove it",
            "scripts/lib/bare.lua: nothing names it; remove it",
        ]
    )
