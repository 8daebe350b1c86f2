"""docs/reference/metrics.md names every figure that the code has, of the kind that it is, and no other."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from headrace import App
from headrace.apps.details import desk
from headrace.apps.memory.exposition import expose as expose_memory
from headrace.apps.memory.figures import Figures, KindFigures
from headrace.model.cache import CacheStats
from headrace.service.audit_log import AuditLog
from headrace.service.http_figures import HttpFigures
from headrace.service.metrics import PARTS
from headrace.settings import Settings
from headrace.wiring.ray_figures import expose_ray

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src" / "headrace"
PAGE = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
#: Names of the page that are no figures: an option, the name of a group, a version.
OTHERS = {"batch_size", "headrace.agent.worldbuilder", "headrace.version"}
NAME = re.compile(r"headrace\.[a-z]+\.[a-z_.]+")
#: What is neither a metric of a worker nor a name of OpenTelemetry, though it looks like one.
NO_FIGURES = ("headrace.agent.", "headrace.apps.", "headrace.papers.")


async def exposed() -> dict[str, str]:
    """Return every metric of `/metrics` with its kind, of a service that has all of them."""
    app = App("memory://")
    desk.register(app)
    async with app:
        parts = [await part(app) for part in PARTS]
    memory = Figures(datetime(2026, 1, 1, tzinfo=UTC), (KindFigures("buffer"),), CacheStats(), {"idle": 1})
    parts += [expose_memory(memory, Settings().memory), expose_ray([]), HttpFigures().expose()]
    parts.append(AuditLog(lambda: app.runtime.stores.audit).expose())
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", "".join(parts), re.MULTILINE))


def named() -> set[str]:
    """Return the metrics that the page names."""
    return set(re.findall(r"`((?:headrace|batch|memory)_[a-z0-9_]+)(?:\{[^}]*\})?`", PAGE)) - OTHERS


async def test_the_page_has_every_metric_and_no_other() -> None:
    """What `/metrics` writes is told, and what is told is written."""
    assert named() == set(await exposed())


async def test_the_page_tells_the_kind_of_each() -> None:
    """Where a table has a column for it."""
    kinds = await exposed()
    rows = re.findall(r"^\| (`[^|]+`) \| (\w+) \| ", PAGE, re.MULTILINE)
    told = {
        name: kind
        for names, kind in rows
        for name in re.findall(r"`([a-z0-9_]+)", names)
        if name in kinds
    }  # fmt: skip
    assert len(told) > 20
    assert {name: kind for name, kind in told.items() if kinds[name] != kind} == {}


def test_the_page_has_every_figure_of_workers_and_no_other() -> None:
    """Counters, gauges and tables that go with the heartbeat, and names in what OpenTelemetry gets."""
    names = set(re.findall(r"`(headrace\.[a-z_.]+)`", PAGE)) - OTHERS
    whole, begun = set(written_names()), set(written_beginnings())
    assert whole - names == set()
    assert {name for name in names - whole if not name.startswith(tuple(begun))} == set()
    assert {beginning for beginning in begun if not any(name.startswith(beginning) for name in names)} == set()


def written_names() -> Iterator[str]:
    """Yield the names that stand in the source as a whole, but for those of modules."""
    for tree in sources():
        logs = {id(one) for call in calls_of(tree, "getLogger") for one in call.args}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
                is_module = (SOURCE.parent / node.value.replace(".", "/")).with_suffix(".py").exists()
                if not is_module and id(node) not in logs and not node.value.startswith(NO_FIGURES):
                    yield node.value


def written_beginnings() -> Iterator[str]:
    """Yield how names begin whose end is put in."""
    for tree in sources():
        for call in [*calls_of(tree, "count"), *calls_of(tree, "gauge")]:
            if call.args and isinstance(call.args[0], ast.JoinedStr):
                yield ast.literal_eval(call.args[0].values[0])


@functools.cache
def sources() -> tuple[ast.Module, ...]:
    """Return the modules that may have figures."""
    texts = [
        file.read_text(encoding="utf-8")
        for file in SOURCE.rglob("*.py")
        if file.relative_to(SOURCE).parts[0] not in ("bench", "testing")
    ]
    return tuple(ast.parse(text) for text in texts if re.search(r"""["']headrace\.""", text))


def calls_of(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a function or method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == name:
            yield node
