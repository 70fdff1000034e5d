"""A browser without a window, driven by the DevTools protocol over two pipes: messages of JSON, each ended by a zero.

The browser reads file descriptor 3 and writes 4. A child in Python puts the pipes there, since `subprocess` keeps the
numbers of descriptors.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60.0  # of a command, on a machine that is busy
_START = ("import os, sys; from fcntl import F_DUPFD, fcntl; "
          "copies = [fcntl(int(text), F_DUPFD, 10) for text in sys.argv[1:3]]; "
          "os.dup2(copies[0], 3); os.dup2(copies[1], 4); os.execv(sys.argv[3], sys.argv[3:])")


def find_chromium() -> str | None:
    """The path of a browser, or None where none is installed."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Browser:
    """A browser with one page. `logged` has the page's errors and the refusals of its policy."""

    def __init__(self, program: str, folder: Path, *, width: int = 1200, height: int = 900) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        arguments = ("--headless", "--no-sandbox", "--remote-debugging-pipe", f"--user-data-dir={folder}",
                     f"--window-size={width},{height}", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                     "--disable-extensions", "--disable-background-networking", "--force-color-profile=srgb",
                     "about:blank")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(to_browser), str(from_browser), program, *arguments],
            pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.logged: list[str] = []
        self._number = 0
        self._session: str | None = None
        self._buffer = b""
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command. Raises AssertionError with the browser's error."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next_message(monotonic() + SECONDS)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next_message(self, deadline: float) -> Mapping[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - monotonic()))
            part = os.read(self._read, 1 << 16) if ready else b""
            assert part, "the browser does not answer"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: Mapping[str, Any] = json.loads(text)
        return message

    def _note(self, event: Mapping[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.logged.append(json.dumps(params["exceptionDetails"]))
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.logged.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def open(self, address: str) -> None:
        self.command("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """The value of an expression, or of its promise."""
        result = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """The first value of an expression that is true."""
        return self.value(f"""new Promise((resolve, reject) => {{
            const end = Date.now() + {SECONDS / 2 * 1000};
            const look = () => {{
                const value = (() => {{ try {{ return {expression}; }} catch {{ return null; }} }})();
                if (value) resolve(value);
                else if (Date.now() > end) reject(new Error("waited in vain: " + document.body.innerText));
                else setTimeout(look, 20);
            }};
            look();
        }})""")

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Send mousePressed, mouseMoved or mouseReleased of the left button."""
        self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1,
                     buttons=int(kind != "mouseReleased"))

    def press(self, key: str, text: str = "", modifiers: int = 0) -> None:
        """Press a key and let it go."""
        for kind in ("keyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers,
                         **({"text": text} if text and kind == "keyDown" else {}))

    def choose_file(self, selector: str, file: Path) -> None:
        """Choose a file in an input of files."""
        root = self.command("DOM.getDocument")["root"]["nodeId"]
        node = self.command("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.command("DOM.setFileInputFiles", nodeId=node, files=[str(file)])

    def emulate(self, *, width: int, height: int, scheme: str = "light") -> None:
        """Set the size of the window, and the colours that the reader's system asks for."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=False)
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, *, whole: bool = False) -> bytes:
        """A PNG of the window, or of the whole page."""
        return base64.b64decode(self.command("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def close(self) -> None:
        os.close(self._write)  # the browser ends with its pipe
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
