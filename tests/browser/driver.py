"""A real browser, spoken to in the W3C WebDriver protocol; the standard library is enough.

Needed: Debian's `chromium` and `chromium-driver`. As root the browser has no sandbox.
"""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name of a reference
PHONE, DESKTOP = (390, 844), (1280, 900)
KEYS = {
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
    "End": "\ue010",
}


def what_is_missing() -> str:
    """Words about programs that are not installed; empty when all are there."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if not lacking:
        return ""
    return f"{' and '.join(lacking)} not found: sudo apt-get install chromium chromium-driver"


class Browser:
    """One headless window; everything the page logs and asks for is recorded."""

    def __init__(self, size: tuple[int, int] = DESKTOP, *, dark: bool = False) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._server = subprocess.Popen(
            ["chromedriver", f"--port={port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._root = f"http://127.0.0.1:{port}"
        self._wait_for_server()
        arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        wanted = {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{made['sessionId']}"
        self.resize(size)
        self.devtools("Emulation.setEmulatedMedia", features=[_scheme(dark)])

    def close(self) -> None:
        """End the browser and its server."""
        try:
            self._call("DELETE", self._session)
        finally:
            self._server.terminate()
            self._server.wait(timeout=20)

    def resize(self, size: tuple[int, int]) -> None:
        width, height = size
        numbers = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.devtools("Emulation.setDeviceMetricsOverride", mobile=width < 600, **numbers)

    def open(self, page: Path) -> float:
        """Seconds until the page is there and its graph is drawn."""
        start = time.monotonic()
        self._call("POST", f"{self._session}/url", {"url": page.resolve().as_uri()})
        while not self.run("return window.cy !== undefined && window.cy.nodes().length > 0"):
            assert time.monotonic() - start < 30, "the graph was not drawn"
            time.sleep(0.02)
        return time.monotonic() - start

    def run(self, script: str, *arguments: Any) -> Any:
        """What a piece of JavaScript returns."""
        body = {"script": script, "args": list(arguments)}
        return self._call("POST", f"{self._session}/execute/sync", body)

    def find(self, selector: str) -> str:
        body = {"using": "css selector", "value": selector}
        return self._call("POST", f"{self._session}/element", body)[ELEMENT]

    def click(self, selector: str) -> None:
        self.run(
            "document.querySelector(arguments[0])"
            ".scrollIntoView({block: 'center', behavior: 'instant'})",
            selector,
        )
        self._call("POST", f"{self._session}/element/{self.find(selector)}/click", {})

    def click_at(self, x: float, y: float) -> None:
        """A real click at a place of the window."""
        moves = [
            {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)},
            {"type": "pointerDown", "button": 0},
            {"type": "pause", "duration": 40},
            {"type": "pointerUp", "button": 0},
        ]
        pointer = {"type": "pointer", "id": "mouse", "actions": moves}
        self._call("POST", f"{self._session}/actions", {"actions": [pointer]})

    def press(self, *keys: str) -> None:
        """Keys, one after the other, to whatever has the focus."""
        actions = [
            {"type": kind, "value": KEYS.get(key, key)}
            for key in keys
            for kind in ("keyDown", "keyUp")
        ]
        body = {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}
        self._call("POST", f"{self._session}/actions", body)

    def type_into(self, selector: str, text: str) -> None:
        place = f"{self._session}/element/{self.find(selector)}"
        self._call("POST", f"{place}/clear", {})
        self._call("POST", f"{place}/value", {"text": text})

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def screenshot(self, path: Path) -> None:
        image = self._call("GET", f"{self._session}/screenshot")
        path.write_bytes(base64.b64decode(image))

    def print(self, path: Path) -> None:
        """The page as a PDF file, as a printer would get it."""
        body = {"background": True, "page": {"width": 21.0, "height": 29.7}}
        path.write_bytes(base64.b64decode(self._call("POST", f"{self._session}/print", body)))

    def console(self) -> list[str]:
        """What the page has logged since the last call: errors, warnings, refused content."""
        found = self._call("POST", f"{self._session}/se/log", {"type": "browser"})
        return [f"{one['level']}: {one['message']}" for one in found]

    def requests(self) -> list[str]:
        """Addresses that the page has asked for since the last call."""
        found = self._call("POST", f"{self._session}/se/log", {"type": "performance"})
        events = [json.loads(one["message"])["message"] for one in found]
        sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in sent]

    def devtools(self, command: str, **params: Any) -> Any:
        body = {"cmd": command, "params": params}
        return self._call("POST", f"{self._session}/goog/cdp/execute", body)

    def _wait_for_server(self) -> None:
        for _ in range(400):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        raise RuntimeError("chromedriver does not answer")

    def _call(self, verb: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._root + path, data=data, method=verb)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            said = json.load(error)["value"]
            raise AssertionError(f"{said['error']}: {said['message']}") from None


def _scheme(dark: bool) -> dict[str, str]:
    return {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
