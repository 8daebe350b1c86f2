"""A small service on loopback that flows ask: countries, weather, orders, and what stumbles or is down."""

from __future__ import annotations

import json
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

COUNTRIES = {"at": "Austria", "de": "Germany", "it": "Italy"}
WEATHER = {"graz": [11, 4, 15], "rome": [21, 23], "oslo": [-8, 2]}


class Web:
    """The service, while the block runs; it counts what it is asked."""

    def __enter__(self) -> Web:
        self.calls = Counter[str]()
        self._lock = Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def target(self) -> str:
        """Return its address as `[flows] allow_targets` has it."""
        return f"127.0.0.1:{self._server.server_port}"

    def answer(self, method: str, url: str, run: str, body: bytes) -> tuple[int, Any]:
        """Return the status and the JSON of an answer."""
        parts = urlsplit(url)
        with self._lock:
            self.calls[f"{method} {parts.path} {run}"] += 1
            times = self.calls[f"{method} {parts.path} {run}"]
        match parts.path.strip("/").split("/"):
            case ["countries", code] if code in COUNTRIES:
                return 200, {"name": COUNTRIES[code]}
            case ["weather"]:
                days = WEATHER[parse_qs(parts.query)["city"][0]]
                return 200, {
                    "city": parse_qs(parts.query)["city"][0],
                    "days": [{"day": day, "c": degrees} for day, degrees in enumerate(days)],
                }
            case ["orders"] if method == "POST":
                return 201, {"receipt": f"r-{json.loads(body)['id']}"}
            case ["flaky", _]:
                return (503, {"ok": False}) if times <= 2 else (200, {"ok": True})
            case ["down"]:
                return 503, {"ok": False}
        return 404, {"message": f"nothing is at {parts.path}"}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._serve("GET")

            def do_POST(self) -> None:
                self._serve("POST")

            def _serve(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                status, said = web.answer(method, self.path, self.headers.get("x-run", ""), body)
                data = json.dumps(said).encode()
                self.send_response_only(status)  # without a date, which would be another each time
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        return Handler
