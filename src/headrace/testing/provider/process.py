"""The scripted provider as a process of its own, started and asked from a test or a benchmark."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import urlencode, urlsplit

from headrace.model.errors import InvalidInputError
from headrace.model.llm import LLMSettings
from headrace.testing.provider.tally import Stats

_PATIENCE_SECONDS = 30


class ProviderProcess:
    """Runs `python -m headrace.testing.provider` with these options until the block ends.

        with ProviderProcess("--quota", "requests_per_minute=600", "--latency", "0.4,100") as provider:
            run_clients(provider.environment)
            provider.set_quota(requests_per_minute=300)
            assert provider.stats().rate_limited == 0

    Its methods block for the moment a request on loopback takes. Raises InvalidInputError where the options are wrong.
    """

    def __init__(self, *options: str) -> None:
        self._options: Sequence[str] = options
        self._process: subprocess.Popen[str] | None = None
        self._ready: Mapping[str, Any] = {}

    def __enter__(self) -> ProviderProcess:
        command = [sys.executable, "-m", "headrace.testing.provider", *self._options]
        # A file, since nobody empties a pipe while the process runs.
        self._complaints = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, stderr=self._complaints, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.communicate()
            self._complaints.seek(0)
            rule = f"must be those of the scripted provider ({self._complaints.read().strip()})"
            self._complaints.close()
            raise InvalidInputError("options", rule, self._options)
        self._ready = json.loads(line)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate(timeout=_PATIENCE_SECONDS)
            self._complaints.close()

    @property
    def pid(self) -> int:
        """Of the process."""
        return int(self._ready["pid"])

    @property
    def base_url(self) -> str:
        """What to give as HEADRACE_LLM_BASE_URL."""
        return str(self._ready["base_url"])

    @property
    def settings(self) -> LLMSettings:
        """Settings that point to this server."""
        return LLMSettings(model=self._ready["model"], base_url=self.base_url, api_key=self._ready["api_key"])

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that point another process to this server."""
        names = {"model": "MODEL", "base_url": "BASE_URL", "api_key": "API_KEY"}
        return {f"HEADRACE_LLM_{word}": str(self._ready[name]) for name, word in names.items()}

    def stats(self) -> Stats:
        """What was let in, refused, answered and used so far."""
        return Stats.read(self._request("GET", "/scripted/stats"))

    def calls(self, containing: str = "") -> list[dict[str, Any]]:
        """`{key, calls, answered, excerpt}` of each content, most often asked first."""
        report = self._request("GET", f"/_calls?{urlencode({'contains': containing})}")
        return list(report["contents"])

    def forget_calls(self) -> None:
        """Start counting anew; what is in the buckets stays."""
        self._request("DELETE", "/scripted/stats")

    def set_quota(self, **changes: Any) -> dict[str, Any]:
        """Change the quota now, or with `after` or `after_calls` later; returns the one that rules.

        Raises InvalidInputError where a value is wrong.
        """
        return self._request("POST", "/scripted/quota", changes)

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        address = urlsplit(self.base_url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=_PATIENCE_SECONDS)
        try:
            headers = {"authorization": f"Bearer {self._ready['api_key']}"}
            connection.request(method, path, json.dumps(body or {}), headers)
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        finally:
            connection.close()
        if response.status == 400:
            raise InvalidInputError("quota", f"must be one the provider takes ({answer['error']['message']})", body)
        return answer
