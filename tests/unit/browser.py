"""A real browser on a page, spoken to over pipes: no driver, no port, no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until_sync

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: The browser reads what it is told from 3 and answers to 4.
_START = """
import os, sys
near, far = (os.dup(os.dup(int(number))) for number in sys.argv[1:3])
os.dup2(near, 3)
os.dup2(far, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--remote-debugging-pipe",
)  # fmt: skip
_LOADED = "new Promise((done) => document.readyState === 'complete' ? done() : addEventListener('load', () => done()))"


def installed() -> str | None:
    """Return a browser of this machine, if there is one."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


#: For tests of what a browser shows; their `tab` is that of `tests/conftest.py`.
NEEDED = pytest.mark.skipif(installed() is None, reason="this machine has no browser")


@dataclass
class Tab:
    """One open page."""

    to: int
    back: Any
    #: What the page logged, refused or failed with.
    complaints: list[str] = field(default_factory=list)
    #: Addresses that it asked for.
    requests: list[str] = field(default_factory=list)
    #: Bytes that came, as they were sent.
    bytes: int = 0
    session: str | None = None
    _ids: Iterator[int] = field(default_factory=lambda: count(1))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the browser and return its answer."""
        number = next(self._ids)
        told: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self.session is not None:
            told["sessionId"] = self.session
        os.write(self.to, json.dumps(told).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        content = bytearray()
        while not content.endswith(b"\0"):
            byte = self.back.read(1)
            assert byte, "the browser ended"
            content += byte
        answer: dict[str, Any] = json.loads(bytes(content[:-1]))
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Network.dataReceived":
                self.bytes += params["dataLength"]
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(params["exceptionDetails"]))
            case "Log.entryAdded":
                self.complaints.append(params["entry"]["text"])
            case "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(params["args"]))

    def open(self, path: Path, address: str = "") -> None:
        """Open a file and wait until its script has run."""
        self.call("Page.navigate", url=f"{path.as_uri()}{address}")
        self.ask(_LOADED)

    def visit(self, url: str) -> None:
        """Open an address and wait until it has loaded."""
        before = self.ask("performance.timeOrigin")
        self.call("Page.navigate", url=url)
        # The answer may come while the page before is still there.
        self.wait_for(f"performance.timeOrigin !== {before!r} && document.readyState === 'complete'", 30)

    def size(self, width: int, height: int) -> None:
        """Make the window as wide and high as this."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        """Let the system be "light" or "dark"."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        path.write_bytes(b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def ask(self, expression: str) -> Any:
        """Evaluate an expression in the page and return its value."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 10.0) -> None:
        """Wait until an expression of the page is true; also over a change of the page."""
        wait_until_sync(lambda: self._is(expression), timedelta(seconds=seconds), message=f"the page: {expression}")

    def _is(self, expression: str) -> bool:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return bool(answer["result"].get("value"))

    def press(self, key: str, *, held: int = 0) -> None:
        """Press a key as a person does; `held`: so often it comes again, as it does while it is held down."""
        for number, kind in enumerate(("keyDown", *["keyDown"] * held, "keyUp")):
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            code = {"Enter": 13, "Escape": 27}.get(key, 0)
            typed = text if kind == "keyDown" else ""
            again = kind == "keyDown" and number > 0
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, text=typed, windowsVirtualKeyCode=code, autoRepeat=again
            )

    def click(self, element: str, *, times: int = 1) -> None:
        """Click on what an expression finds, so often in a row, as a person does."""
        at = self.ask(
            f"(() => {{ const box = {element}.getBoundingClientRect();"
            " return {x: box.left + box.width / 2, y: box.top + box.height / 2}; })()"
        )
        for number in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=number, **at)


@contextmanager
def browser(program: str, folder: Path) -> Iterator[Tab]:
    """Start a browser without a window and yield its one tab."""
    to_read, to_write = os.pipe()
    back_read, back_write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", _START, str(to_read), str(back_write), program, *_OPTIONS, f"--user-data-dir={folder}"],
        pass_fds=(to_read, back_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(to_read)
    os.close(back_write)
    try:
        with os.fdopen(back_read, "rb", buffering=0) as back:
            tab = Tab(to_write, back)
            target = tab.call("Target.createTarget", url="about:blank")["targetId"]
            tab.session = tab.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                tab.call(f"{domain}.enable")
            yield tab
    finally:
        with suppress(OSError):
            os.close(to_write)
        process.terminate()
        process.wait()
