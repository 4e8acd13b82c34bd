"""A headless Chromium, driven through a pipe: pages opened, scripts run in them, pictures taken."""

import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
LIMIT_S = 30.0


class Browser:
    """One browser with one page; see the protocol of Chromium's DevTools for what it can do."""

    def __init__(self, profile: Path):
        browser = next(filter(None, map(shutil.which, NAMES)), None)
        assert browser, f"none of {', '.join(NAMES)} is installed; `make test` installs chromium"
        from_browser, self._reader_end = os.pipe()
        self._writer_end, to_browser = os.pipe()
        self._read, self._write = from_browser, to_browser
        command = [
            *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-dev-shm-usage", "--disable-background-networking"),
            *("--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"),
        ]
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        shell = f'exec "$@" 3<&{self._writer_end} 4>&{self._reader_end}'
        self._log = (profile.parent / f"{profile.name}.log").open("wb")
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(self._writer_end, self._reader_end),
            start_new_session=True,
        )
        os.close(self._writer_end)
        os.close(self._reader_end)
        self._ids = itertools.count(1)
        self._buffer = b""
        self._session: str | None = None
        self.complaints: list[str] = []
        """Errors of scripts, and what the content security policy stopped, since `open`."""
        (page,) = [
            target
            for target in self.call("Target.getTargets")["targetInfos"]
            if target["type"] == "page"
        ]
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setScrollbarsHidden", hidden=True)

    def call(self, method: str, **params: Any) -> Any:
        """Send a command and return its result."""
        number = next(self._ids)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + LIMIT_S
        while True:
            answer = self._next(deadline)
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer)

    def open(self, address: str, width: int = 1400, dark: bool = False, height: int = 8000) -> None:
        """Open an address in a window of this width, and wait until its page says it is ready."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        # From another address that differs after the # only, the page would not be loaded anew.
        self.call("Page.navigate", url="about:blank")
        self.complaints = []
        self.call("Page.navigate", url=address)
        self.until("document.documentElement?.dataset.ready")

    def ask(self, script: str) -> Any:
        """Run the body of an async function in the page; return what it returns."""
        result = self.call(
            "Runtime.evaluate",
            expression=f"(async () => {{{script}}})()",
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, condition: str, limit_s: float = 15.0) -> None:
        """Wait until an expression is true in the page."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if self.ask(f"return Boolean({condition})"):
                return
            time.sleep(0.05)
        raise AssertionError(f"{condition} did not become true; complaints: {self.complaints}")

    def picture(self, out: Path, height: int | None = None) -> None:
        """Save a picture of the whole page, or of its upper part."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"]}
        taken = self.call(
            "Page.captureScreenshot",
            format="png",
            clip={**clip, "scale": 1},
            captureBeyondViewport=True,
        )
        out.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        """End the browser and its helpers."""
        for descriptor in (self._write, self._read):
            os.close(descriptor)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            text = details.get("exception", {}).get("description") or details["text"]
            self.complaints.append(text)
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] == "error":
            values = [one.get("description") or one.get("value") for one in params["args"]]
            self.complaints.append(" ".join(map(str, values)))


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """Open a browser for a while."""
    browser = Browser(profile)
    try:
        yield browser
    finally:
        browser.close()
