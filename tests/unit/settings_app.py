"""Apps by a headrace.toml, for tests of what each key does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from headrace import App
from headrace.settings import Settings, load_settings

#: A store in memory, and everything that waits waits briefly.
QUICK = {
    "queue.type": "memory",
    "worker.poll_interval": "20ms",
    "worker.heartbeat_interval": "30ms",
    "recovery.check_interval": "30ms",
    "recovery.aggregate_interval": "30ms",
}


def write_settings(folder: Path, keys: Mapping[str, object]) -> Settings:
    """Write keys such as "scheduler.hybrid.default_mode" to a headrace.toml, table by table, and read it."""
    file, tables = folder / "headrace.toml", dict[str, list[str]]()
    for name, value in keys.items():
        table, _, key = name.rpartition(".")
        tables.setdefault(table, []).append(f"{key} = {json.dumps(value)}")
    # Keys of no table come first.
    text = "\n".join("\n".join([f"[{table}]" if table else "", *tables[table]]) for table in sorted(tables))
    file.write_text(text, encoding="utf-8")
    return load_settings(environ={}, file=file)


def app_by(folder: Path, keys: Mapping[str, object]) -> App:
    """Return an app whose headrace.toml has the keys of `QUICK`, with these over them."""
    return App(settings=write_settings(folder, {**QUICK, **keys}))
