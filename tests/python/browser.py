"""A headless Chromium for tests of pages, by its protocol over a pipe."""

import contextlib
import fcntl
import functools
import json
import os
import pathlib
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless_shell")
# Where playwright keeps its own: playwright install chromium-headless-shell.
DOWNLOADED = "ms-playwright/chromium*/*/*"
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--hide-scrollbars", "--remote-debugging-pipe"),
)
WHY_NONE = "no browser: scripts/browser.sh, or name one in KERNWRIGHT_TEST_BROWSER"


@functools.cache
def find():
    """The path of a working Chromium, or None."""
    return next(filter(runs, candidates()), None)


def runs(program):
    """Not a placeholder: some systems have one with advice to install a browser."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run([program, "--version"], capture_output=True, timeout=60)
        return said.returncode == 0
    return False


def candidates():
    wanted = os.environ.get("KERNWRIGHT_TEST_BROWSER")
    for name in [wanted] if wanted else NAMES:
        found = shutil.which(name)
        # A snap's programs see another folder of temporary files.
        if found and not os.path.realpath(found).startswith(("/snap/", "/usr/bin/snap")):
            yield found
    caches = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    for path in sorted(caches.glob(DOWNLOADED), reverse=True):
        if path.name in ("chrome", "headless_shell", "chrome-headless-shell"):
            yield str(path)


class Browser:
    """One page of a browser. `problems` gets the messages of its console and the failed loads."""

    def __init__(self, program, profile):
        to_browser, self.writes = (self._high(end) for end in os.pipe())
        self.reads, from_browser = (self._high(end) for end in os.pipe())
        self.process = os.posix_spawn(
            program,
            [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, to_browser, 3),
                (os.POSIX_SPAWN_DUP2, from_browser, 4),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setpgroup=0,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.problems, self.requests = [], []
        self._rest, self._number, self._session, self._loaded = b"", 0, None, 0
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self):
        """Leads to a page of its own, and listens to it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    @staticmethod
    def _high(file):
        """The same file with a descriptor outside of the browser's own ones."""
        high = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 10)
        os.close(file)
        return high

    def close(self):
        with contextlib.suppress(OSError, TimeoutError):
            self._send("Browser.close", {})
        os.close(self.writes)
        limit = time.monotonic() + 10
        while os.waitpid(self.process, os.WNOHANG) == (0, 0):
            if time.monotonic() > limit:
                os.killpg(self.process, 9)
            time.sleep(0.02)
        os.close(self.reads)

    def _send(self, method, parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        return self._number

    def call(self, method, **parameters):
        """The result of one command of the protocol."""
        number = self._send(method, parameters)
        while True:
            message = self._receive()
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]

    def _receive(self, timeout=300):
        while b"\0" not in self._rest:
            if not select.select([self.reads], [], [], timeout)[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.reads, 1 << 20)
            if not more:
                raise ConnectionError("the browser has ended")
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event, about):
        if event == "Page.loadEventFired":
            self._loaded += 1
        elif event == "Runtime.exceptionThrown":
            self.problems.append(about["exceptionDetails"].get("text", "exception"))
        elif event == "Runtime.consoleAPICalled" and about["type"] in ("error", "assert"):
            self.problems.append(" ".join(str(each.get("value")) for each in about["args"]))
        elif event == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.problems.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        elif event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])

    def go(self, url):
        """Loads a page with all its parts."""
        self.load(lambda: self.call("Page.navigate", url=url))

    def load(self, action):
        """Does an action leading to another page, and waits for all its parts."""
        before = self._loaded
        action()
        while self._loaded == before:
            self._receive()

    def resize(self, width, height=900):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def ask(self, expression):
        """The value of an expression of JavaScript in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression, seconds=120):
        """The first true value of an expression."""
        limit = time.monotonic() + seconds
        while not (value := self.ask(expression)):
            assert time.monotonic() < limit, f"{expression} stays {value!r}"
            time.sleep(0.02)
        return value

    def too_wide(self):
        """By how many pixels the page scrolls sideways, and the elements wider than it. What is
        on its way (to a place for another width) is looked at where it arrives."""
        return self.ask(TOO_WIDE)


TOO_WIDE = """(() => {
  for (const each of document.getAnimations()) if (each instanceof CSSTransition) each.finish()
  const root = document.documentElement, width = root.clientWidth
  const over = Math.max(root.scrollWidth, document.body.scrollWidth) - width
  if (over <= 0) return null
  const wide = [...document.body.querySelectorAll("*")].filter(
    (each) => each.getBoundingClientRect().right > width + 1)
  return over + " px: " + wide.slice(-3).map((each) => each.outerHTML.slice(0, 80)).join(" | ")
})()"""
