"""A real Chromium without a window, told what to do through its debugging pipe: JSON messages that
end with NUL, on its descriptors 3 and 4. See chromedevtools.github.io/devtools-protocol."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.waiting import PATIENCE_S, Late

CHROMIUM = shutil.which("chromium")

_READS, _WRITES = 3, 4  # of Chromium
_ABOVE_THESE = 10
_ENDS_WITHIN_S = 5.0
# Nothing here is about Chromium itself: what it does on its own only disturbs.
_OPTIONS = """
    --headless=new --remote-debugging-pipe --no-first-run --no-default-browser-check
    --disable-background-networking --disable-component-update --disable-default-apps
    --disable-extensions --disable-sync --disable-breakpad --disable-crash-reporter
    --disable-dev-shm-usage --disable-gpu --hide-scrollbars --mute-audio --no-zygote
    --allow-pre-commit-input
""".split()
_KEYS = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Tab": (9, ""),
    " ": (32, " "),
    "ArrowLeft": (37, ""),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    "Home": (36, ""),
    "End": (35, ""),
}


class Browser:
    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        theirs_in, self._out = _pipe()
        self._in, theirs_out = _pipe()
        options = [*_OPTIONS, f"--user-data-dir={folder}"]
        if os.getuid() == 0:
            options.append("--no-sandbox")  # it refuses to be root with one
        silence = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._pid = os.posix_spawn(
            CHROMIUM,
            [CHROMIUM, *options, "about:blank"],
            {**os.environ, "HOME": str(folder), "TMPDIR": "/tmp"},  # short, for its socket
            file_actions=[
                *((os.POSIX_SPAWN_DUP2, silence, fd) for fd in (0, 1, 2)),
                (os.POSIX_SPAWN_DUP2, theirs_in, _READS),
                (os.POSIX_SPAWN_DUP2, theirs_out, _WRITES),
            ],
            setsid=True,
        )
        for fd in (theirs_in, theirs_out, silence):
            os.close(fd)
        self._pidfd = os.pidfd_open(self._pid)
        self._unread = b""
        self._last_id = 0
        self._tabs: dict[str, Tab] = {}

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(Late, OSError):
            self.tell("Browser.close")
        ended = select.poll()
        ended.register(self._pidfd, select.POLLIN)
        ended.poll(_ENDS_WITHIN_S * 1000)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        for fd in (self._in, self._out, self._pidfd):
            os.close(fd)

    def tab(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> Tab:
        target = self.tell("Target.createTarget", {"url": "about:blank"})["targetId"]
        asked = {"targetId": target, "flatten": True}
        tab = Tab(self, self.tell("Target.attachToTarget", asked)["sessionId"])
        self._tabs[tab.session_id] = tab
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.tell(f"{domain}.enable")
        tab.emulate(width, height, dark=dark)
        return tab

    def tell(
        self, method: str, params: dict[str, Any] | None = None, session_id: str = ""
    ) -> dict[str, Any]:
        """What it answers; what it says meanwhile is kept for the tab that it is about."""
        self._last_id += 1
        number = self._last_id
        message: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session_id:
            message["sessionId"] = session_id
        deadline = time.monotonic() + PATIENCE_S
        self._write(json.dumps(message).encode() + b"\0", method, deadline)
        while True:
            said = self._message(method, deadline)
            if said.get("id") == number:
                if "error" in said:
                    raise AssertionError(f"{method}: {said['error']}")
                result: dict[str, Any] = said["result"]
                return result
            tab = self._tabs.get(said.get("sessionId", ""))
            if tab is not None and "method" in said:
                tab.hear(said["method"], said["params"])

    def _write(self, data: bytes, method: str, deadline: float) -> None:
        poll = select.poll()
        poll.register(self._out, select.POLLOUT)
        while data:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise Late(f"Chromium does not take {method}")
            data = data[os.write(self._out, data[: select.PIPE_BUF]) :]

    def _message(self, method: str, deadline: float) -> dict[str, Any]:
        poll = select.poll()
        poll.register(self._in, select.POLLIN)
        parts = [self._unread]
        while b"\0" not in parts[-1]:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise Late(f"Chromium has not answered {method}")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise Late(f"Chromium has ended before it answered {method}")
            parts.append(data)
        message, _, self._unread = b"".join(parts).partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@dataclass(slots=True)
class Tab:
    browser: Browser
    session_id: str
    complaints: list[str] = field(default_factory=list)  # errors, and whatever is logged
    requests: list[str] = field(default_factory=list)

    def tell(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.tell(method, params, self.session_id)

    def hear(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.complaints.append(json.dumps(params))
            case "Page.javascriptDialogOpening":
                self.complaints.append(f"dialog: {params}")
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])

    def emulate(self, width: int, height: int, *, dark: bool = False, media: str = "") -> None:
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def open(self, url: str) -> None:
        self.tell("Page.navigate", url=url)
        # Navigating within the same page starts nothing anew; both are there at once.
        self.until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        answer = self.tell(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Looked at before each frame that is drawn."""
        wait = f"""new Promise((done) => {{
            const look = () => ({expression}) ? done(true) : requestAnimationFrame(look); look();
        }})"""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.value(wait)
                return
            except AssertionError as error:
                # What it was evaluated in went with the page before.
                is_gone = "context" in str(error) or "navigat" in str(error)
                if isinstance(error, Late):
                    raise Late(f"never became true: {expression}") from error
                if not is_gone or time.monotonic() > deadline:
                    raise

    def press(self, *keys: str) -> None:
        for key in keys:
            # The codes of other characters are those of keys such as PageDown.
            code, text = _KEYS.get(key) or (ord(key.upper()) if key.isalnum() else 0, key)
            pressed = {"key": key, "windowsVirtualKeyCode": code}
            self.tell("Input.dispatchKeyEvent", type="keyDown", text=text, **pressed)
            self.tell("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def type(self, words: str) -> None:
        self.press(*words)

    def click(self, selector: str) -> None:
        """As a person does: where it is seen, whatever lies on top of it."""
        found = self.value(
            f"""(() => {{
                const found = document.querySelector({json.dumps(selector)});
                if (!found) return null;
                found.scrollIntoView({{ block: "center" }});
                const box = found.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        assert found, f"there is no {selector}"
        self.click_at(*found)

    def click_at(self, x: float, y: float) -> None:
        where = {"x": x, "y": y, "button": "left", "clickCount": 1}
        self.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.tell("Input.dispatchMouseEvent", type="mousePressed", **where)
        self.tell("Input.dispatchMouseEvent", type="mouseReleased", **where)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        shot = self.tell("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


def _pipe() -> tuple[int, int]:
    """Both ends where posix_spawn's own descriptors don't run over them."""
    ends = os.pipe()
    reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _ABOVE_THESE) for end in ends)
    for end in ends:
        os.close(end)
    return reading, writing
