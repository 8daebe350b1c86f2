"""configuration.md: every key of `headrace.toml` and the environment, from the settings."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from headrace import settings
from headrace.flow_settings import CredentialSettings
from headrace.model.durations import format_duration
from headrace.queue_settings import QueueTable
from headrace.ray_settings import RayResources
from tools.reference.text import NOTE, comments

CONFIGURATION = f"""{NOTE}
# Configuration

Every key may stand in `headrace.toml` in the working directory (`HEADRACE_CONFIG` names another file) or in the
environment, which wins. Durations are written `"90s"`, `"2m"`, `"1h30m"`, `"7d"`. An unknown key or a wrong type
stops the start with the key and the fix.
"""


VARS = """## `[flows.vars]`

Values that expressions of flows see as `$vars.NAME`: texts, numbers, truth values, lists and tables.
"""

MODELS = """## `[llm.models.NAME]`

A further model, for `app.llm.using("NAME")` and `escalate_to`: the keys of `[llm]`. What is not given of its endpoint
is that of `[llm]`; its model, pool, quotas and prices are its own. Models of one `pool` (by its name, or by provider,
account and model where none is given) have its limits in common: a limit stands in one of their tables, or alike in
several.
"""


def configuration() -> str:
    """Return the page of all keys, with their defaults."""
    parts = [CONFIGURATION]
    root = settings.Settings()
    parts.append(table("", root, "Keys above the first table"))
    for item in dataclasses.fields(root):
        section = getattr(root, item.name)
        if dataclasses.is_dataclass(section):
            parts += tables(item.name, section)
    parts.append(named_table(QueueTable()))
    parts.append(named_table(RayResources()))
    parts += [VARS, named_table(CredentialSettings())]
    parts.append(MODELS)
    return "\n".join(parts)


def tables(name: str, section: Any) -> Iterator[str]:
    """Yield a table, unless it holds nothing but tables, and those within it."""
    within = {item.name: getattr(section, item.name) for item in dataclasses.fields(section)}
    if not all(dataclasses.is_dataclass(value) for value in within.values()):
        yield table(name, section, (type(section).__doc__ or "").strip())
    for key, value in within.items():
        if dataclasses.is_dataclass(value):
            yield from tables(f"{name}.{key}", value)


def named_table(values: Any) -> str:
    """Return the section of tables that a file may have many of: no defaults, and nothing of the environment."""
    about = comments(inspect.getsource(type(values)))
    heading, _, rest = (type(values).__doc__ or "").strip().partition(": ")
    rows = [f"| `{item.name}` | {about[item.name]} |" for item in dataclasses.fields(values)]
    lines = [f"## {heading}", "", rest[0].upper() + rest[1:], "", "| key | meaning |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def table(section: str, values: Any, title: str) -> str:
    """Return one section: a heading, and a row per key."""
    about = comments(inspect.getsource(type(values)))
    heading, _, rest = title.partition(": ")
    lines = [f"## {heading}", "", *([rest[0].upper() + rest[1:], ""] if rest else [])]
    lines += ["| key | default | environment | meaning |", "|---|---|---|---|"]
    for item in dataclasses.fields(values):
        default = getattr(values, item.name)
        if not dataclasses.is_dataclass(default) and (section, item.name) not in settings._NAMED_TABLES:
            names = ", ".join(f"`{name}`" for name in variables(section, item.name))
            meaning = about.get(item.name, "").replace("|", "\\|")
            lines.append(f"| `{item.name}` | {shown(default)} | {names} | {meaning} |")
    return "\n".join(lines) + "\n"


def variables(section: str, key: str) -> list[str]:
    """Return the environment variables of a key, the strongest first."""
    return list(dict.fromkeys([settings._variable(section, key), *settings._ALIASES.get((section, key), ())]))


def shown(value: Any) -> str:
    """Return a default as one would write it in TOML; an empty text shows as nothing."""
    if isinstance(value, timedelta):
        return f'`"{format_duration(value)}"`'
    if isinstance(value, bool | int | float):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if value not in (None, ()) and str(value) else ""
