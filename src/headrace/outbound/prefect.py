"""Prefect's API: wakes a flow run that suspended itself until a resume handle has ended.

Prefect answers a resume of whatever is not paused in the same way, be it about to suspend itself or over for long, so
the run's state is looked at first. A run whose code begins anew finds its handle ended and needs no waking.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from headrace.model.errors import HeadraceError
from headrace.model.http import HttpError, HttpRequest
from headrace.model.target_list import TargetList
from headrace.model.targets import TargetRules
from headrace.outbound.client import OutboundClient
from headrace.ports.waker import Woken

LOG = logging.getLogger("headrace.prefect")

#: Suspensions for a resume handle have keys that begin with this; those for anything else are not ended here.
PAUSE_PREFIX = "headrace:"
_SETTING = "[events] prefect_api_url"
_TIMEOUT = timedelta(seconds=15)
#: A flow run is answered with its parameters.
_MAX_BYTES = 16 * 1024 * 1024


class PrefectWaker:
    """Resumes suspended flow runs through the API at `api_url`, such as http://127.0.0.1:4200/api.

    `api_key` is sent as a bearer token. Raises InvalidInputError for a URL that cannot be asked.

    >>> PrefectWaker("http://127.0.0.1:4200/api").kind
    'prefect'
    """

    kind = "prefect"

    def __init__(self, api_url: str, api_key: str = "") -> None:
        self._url = api_url.rstrip("/")
        rules = _rules(self._url)
        rules.parse(self._url, field=_SETTING)
        self._client = OutboundClient(rules)
        self._headers = (("Content-Type", "application/json"),) + (
            (("Authorization", f"Bearer {api_key}"),) if api_key else ()
        )
        #: What is wrong with the API, told once until it changes or passes.
        self._trouble = ""

    async def wake(self, target: str) -> Woken:
        """Resume a flow run. AGAIN: it has not suspended itself yet, or nobody answers rightly."""
        run = _run_id(target)
        if run is None:
            LOG.error("the target prefect:%.100r names no flow run, whose id is a UUID: nothing is woken", target)
            return Woken.DONE
        try:
            woken = await self._wake(run)
        except HeadraceError as error:
            self._tell(run, str(error))
            return Woken.AGAIN
        self._trouble = ""
        return woken

    async def close(self) -> None:
        """Do nothing: no connection is kept."""

    async def _wake(self, run: UUID) -> Woken:
        answer = await self._ask("GET", f"/flow_runs/{run}", missing_is_none=True)
        if answer is None:
            LOG.warning("flow run %s is unknown to Prefect: nothing is woken", run)
            return Woken.DONE
        state = _State.of(answer)
        if state.waits_for_us:
            return await self._resume(run)
        if state.type == "PAUSED":
            return Woken.AGAIN  # somebody else's pause, of a run that may wait for us later
        # Whatever is to begin, begins at the top of its code. What runs may suspend itself in a moment.
        return Woken.AGAIN if state.type == "RUNNING" else Woken.DONE

    async def _resume(self, run: UUID) -> Woken:
        answer = await self._ask("POST", f"/flow_runs/{run}/resume")
        # Anything but ACCEPT: its state has changed in between, to which the next look will tell.
        return Woken.DONE if answer is not None and answer.get("status") == "ACCEPT" else Woken.AGAIN

    async def _ask(self, method: str, path: str, *, missing_is_none: bool = False) -> dict[str, Any] | None:
        """Return the object that was answered. Raises HttpError for anything else."""
        body = b"{}" if method == "POST" else None
        request = HttpRequest(
            method, self._url + path, self._headers, body=body, timeout=_TIMEOUT, max_redirects=0, max_bytes=_MAX_BYTES
        )
        answer = await self._client.send(request)
        if answer.status == 404 and missing_is_none:
            return None
        if answer.status not in (200, 201):
            raise HttpError(f"{_SETTING} answers {answer.status} {answer.reason}{_hint(answer.status)}")
        try:
            read = json.loads(answer.body)
        except (ValueError, RecursionError):
            read = None
        if not isinstance(read, dict):
            raise HttpError(f"{_SETTING} answers no JSON object: it must be the URL of Prefect's API, ending with /api")
        return read

    def _tell(self, run: UUID, trouble: str) -> None:
        if trouble != self._trouble:
            LOG.warning("flow run %s is not woken yet, and is tried again: %s", run, trouble)
        self._trouble = trouble


@dataclass(frozen=True, slots=True)
class _State:
    """What matters of the state of a flow run."""

    type: str
    waits_for_us: bool

    @classmethod
    def of(cls, flow_run: dict[str, Any]) -> _State:
        """Return the state that an answer tells. Raises HttpError where it tells none."""
        state = flow_run.get("state")
        details = state.get("state_details") if isinstance(state, dict) else None
        if not isinstance(state, dict) or not isinstance(details, dict):
            raise HttpError(f"{_SETTING} answers a flow run without a state")
        key = details.get("pause_key")
        ours = isinstance(key, str) and key.startswith(PAUSE_PREFIX)
        return cls(str(state.get("type")), state.get("type") == "PAUSED" and ours)


def _rules(url: str) -> TargetRules:
    """Return rules that allow the host of the URL, wherever it is: an operator wrote it."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    named = f"[{host}]" if ":" in host else host
    return TargetRules(TargetList.parse([named] if host else [], field=_SETTING), setting=_SETTING)


def _run_id(target: str) -> UUID | None:
    try:
        return UUID(target)
    except ValueError:
        return None


def _hint(status: int) -> str:
    if status in (401, 403):
        return ": correct [events] prefect_api_key"
    return ": it must be the URL of Prefect's API, ending with /api" if status in (404, 405) or status < 400 else ""
