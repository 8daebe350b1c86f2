"""The doors for a test in another process: look at the counts, see and change the quota."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from headrace.model.errors import InvalidInputError
from headrace.testing.provider.quota import Quota, QuotaChange
from headrace.testing.provider.refusals import error_body
from headrace.testing.provider.tally import Stats


class Administered(Protocol):
    """What can be looked at and changed."""

    @property
    def ruling_quota(self) -> Quota: ...

    def set_quota(self, quota: Quota | None = None, **changes: Any) -> Quota: ...

    def schedule_quota(self, change: QuotaChange) -> None: ...

    def stats(self) -> Stats: ...

    def forget_calls(self) -> None: ...


def administer(provider: Administered, method: str, path: str, raw: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to a request for `/scripted/quota` or `/scripted/stats`."""
    action = _ACTIONS.get((method, path.removeprefix("/scripted/")))
    if action is None:
        return 404, error_body(f"no {method} {path} here")
    try:
        return 200, json.dumps(action(provider, _read(raw))).encode()
    except InvalidInputError as error:
        return 400, error_body(str(error))


def _read(raw: bytes) -> dict[str, Any]:
    try:
        values = json.loads(raw or b"{}")
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise InvalidInputError("quota", "must be a JSON object of limits by name", raw[:40])
    return values


def _change(provider: Administered, values: dict[str, Any]) -> Any:
    if "after" in values or "after_calls" in values:
        provider.schedule_quota(QuotaChange.of(values))
        return provider.ruling_quota.to_json()
    return provider.set_quota(**values).to_json()


def _clear(provider: Administered, values: dict[str, Any]) -> Any:
    provider.forget_calls()
    return provider.stats().to_json()


_ACTIONS: dict[tuple[str, str], Callable[[Administered, dict[str, Any]], Any]] = {
    ("GET", "quota"): lambda provider, values: provider.ruling_quota.to_json(),
    ("POST", "quota"): _change,
    ("PUT", "quota"): lambda provider, values: provider.set_quota(Quota().changed(values)).to_json(),
    ("GET", "stats"): lambda provider, values: provider.stats().to_json(),
    ("DELETE", "stats"): _clear,
}
