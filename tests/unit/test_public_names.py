"""The public surface: names, types, and what importing it costs."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import headrace
from headrace.budgets import Budgets
from headrace.llm import dedupe
from headrace.llm.dedupe import Claimed, NameBook, Unique
from headrace.llm.forecasting import Forecast
from headrace.llm.gateway import LLM
from headrace.llm.items import ItemResult, Items
from headrace.llm.results import Completion, Extraction, Provenance
from headrace.model import errors, provider_errors
from headrace.model.budget import Budget, BudgetView
from headrace.model.errors import HeadraceError
from headrace.model.usage import Usage

ROOT = Path(__file__).resolve().parent.parent.parent
PUBLIC = [
    *("App", "Backoff", "BadOutputError", "Batch", "BatchItem", "BlobStoreError", "Breaker", "BreakerOpenError"),
    *("BrokerUnavailableError", "Budget", "BudgetUsedUpError", "BudgetView"),
    *("BusUnavailableError", "Cache", "Cancel", "Canvas", "ClosePolicy", "Completion", "ConfigError"),
    *("ConflictError", "Context", "ContextTooLongError", "DeadRequest", "Done", "DrainStoppedError", "ErrorClass"),
    *("ExecutorCrashedError", "ExecutorLostError"),
    *("Extraction", "Fail", "Feed", "FeedEntry", "FenceLostError", "Forecast", "GatherContext"),
    *("HandleCancelledError", "HandleExpiredError", "HeadraceError", "InvalidInputError", "InvalidNameError"),
    *("InvalidRequestError", "ItemResult", "Items", "JobCancelledError", "JobFailedError", "JobHandle", "KeyHeldError"),
    *("Limit", "LimitTimeoutError", "ModelPace", "NodeState", "NotAllowedError", "NotFoundError", "OverloadedError"),
    "PayloadTooLargeError",
    *("Priority", "Progress", "Provenance", "ProviderAuthError", "ProviderError", "ProviderTimeoutError"),
    *("ProviderUnavailableError", "QueueClosedError", "QueueFullError", "QueuePausedError", "Rate"),
    *("RateLimitedError", "Reference", "RefusedError", "ResultTimeoutError", "ResumeHandle", "Resumed", "Retry"),
    *("Run", "RunCancelledError", "RunFailedError", "RunInfo", "RunState", "SignalTimeoutError", "Signature"),
    *("Snooze", "StorageResetError", "StoreUnavailableError", "StoreVersionError", "Task", "TaskTimeoutError"),
    *("Usage", "Workflow", "WorkflowNotActiveError", "WrongAnswerError", "chain", "choose", "chord", "group"),
    *("index_", "input_", "loop", "map_", "new_token", "pause", "ref", "run_", "signature", "sub", "wait_signal"),
    "when",
]
#: What calls of models, budgets and books of names return.
RESULTS = (BudgetView, Claimed, Completion, Extraction, Forecast, ItemResult, Items, Unique, Usage)
#: What `import headrace` may load besides the standard library.
OWN = {"headrace"}


def test_the_public_names_are_these() -> None:
    """A name is added to, or taken from, the public surface on purpose: here and in the changelog."""
    assert headrace.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC
    assert [name for name in PUBLIC if not hasattr(headrace, name)] == []
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", headrace.__version__)


def test_every_public_error_can_be_imported_from_the_package() -> None:
    """What a docstring or page names is there by `from headrace import …`: every error of ours and of providers."""
    defined = {
        name
        for module in (errors, provider_errors)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, HeadraceError)
    }
    assert defined <= set(PUBLIC)
    assert headrace.RateLimitedError is provider_errors.RateLimitedError
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchError'"):
        headrace.NoSuchError  # noqa: B018


def test_what_calls_of_models_return_can_be_named_in_annotations() -> None:
    """Whoever writes down the type of a result, or compares a provenance, imports it from the package."""
    own = {kind.__name__: kind for kind in (*RESULTS, Provenance, Budget) if kind not in (Claimed, Unique)}
    assert {name: getattr(headrace, name) for name in own} == own


def test_every_public_name_says_what_it_is() -> None:
    """Public classes, their public methods and properties have docstrings."""
    silent = [
        f"{name}.{member}"
        for name in PUBLIC
        for member, value in {"": getattr(headrace, name), **_members(getattr(headrace, name))}.items()
        if not member.startswith("_") and (callable(value) or isinstance(value, property)) and not value.__doc__
    ]
    assert silent == []


def _members(value: object) -> dict[str, object]:
    """Return what a class has; functions and values have nothing of their own."""
    return dict(vars(value)) if isinstance(value, type) else {}


def test_importing_headrace_loads_nothing_that_is_installed() -> None:
    """`import headrace` needs the standard library alone: neither pydantic nor any driver, web or model package.

    Of its own modules it leaves those aside that only who asks a model needs.
    """
    code = "import sys, headrace; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, check=True, text=True, cwd=ROOT
    ).stdout.split()
    foreign = {
        name
        for name in {module.partition(".")[0] for module in loaded} - OWN - set(sys.stdlib_module_names)
        # Start-up files of the environment (editable installs, build identifiers), which load without us too.
        if not name.startswith(("__", "_virtualenv", "_distutils", "sitecustomize", "_sysconfigdata"))
    }
    assert foreign == set()
    assert [name for name in loaded if name.startswith(("headrace.llm", "headrace.model.provider_errors"))] == []


def test_enqueueing_plain_values_needs_no_pydantic() -> None:
    """A client whose tasks take and return plain JSON types never pays for pydantic."""
    code = """
import asyncio, sys
from headrace import App
app = App("memory://")
@app.task
async def double(number: int) -> int:
    return 2 * number
async def main():
    async with app.worker():
        print(await (await double.enqueue(4)).result(10))
asyncio.run(main())
print("pydantic" in sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert said == ["8", "False"]


def test_the_public_types_are_what_users_rely_on() -> None:
    """mypy accepts `tests/typing`, with each of its assertions and none of the errors it must show."""
    files = [str(path) for path in sorted((ROOT / "tests" / "typing").glob("*.py"))]
    assert files
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--follow-imports=silent", *files],
        capture_output=True,
        check=False,
        text=True,
        cwd=ROOT,
    )
    assert (checked.stdout, checked.returncode) == ("", 0), checked.stderr


def test_the_reference_has_every_public_name() -> None:
    """Each name is on the page, and each error with its code and whether it may pass."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    assert [name for name in PUBLIC if f"`{name}`" not in page] == []
    rows = dict(re.findall(r"^\| `(\w+Error)` (\| `\w+` \| \w+ \|)", page, re.MULTILINE))
    kinds = {name: getattr(headrace, name) for name in PUBLIC if name.endswith("Error")}
    assert rows == {name: f"| `{kind.code}` | {'yes' if kind.transient else 'no'} |" for name, kind in kinds.items()}


def test_the_reference_has_every_verb_of_models_budgets_and_names() -> None:
    """Public methods and properties of what an app hands out are on the page, and the names of public modules."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    verbs = {name for kind in (LLM, Budgets, NameBook) for name in vars(kind) if not name.startswith("_")}
    parts = {part.name for kind in RESULTS for part in fields(kind)} - {"results"}
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", page))))
    assert sorted((verbs | parts | {*dedupe.__all__}) - words) == []
