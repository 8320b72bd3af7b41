"""Panel: a running session on the terminal, or as plain lines where there is none."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TextIO

from kernwright._support.words import counted, headline, printable
from kernwright.tune._sessions.panel_state import (
    Lanes,
    PanelState,
    config_text,
    duration,
    sparkline,
    value_text,
)

_FRAMES = 4  # a second
_QUIET = 1.0  # seconds between two plain lines, unless the session ends


def best_text(state: PanelState) -> str:
    if state.best is None:
        return "none yet"
    return printable(f"{value_text(state.best)}  ({config_text(state.best)})")


def counts_text(state: PanelState) -> str:
    return ", ".join(f"{count} {status}" for status, count in state.counts.most_common())


def plain_line(state: PanelState) -> str:
    left = state.left()
    parts = [
        duration(state.seconds),
        counted(state.trials, "trial"),
        f"best {best_text(state)}",
        f"compile {100 * state.compile.use(state.seconds):.0f} %",
        f"device {100 * state.device.use(state.seconds):.0f} %",
    ]
    failed = state.trials - state.counts["correct"]
    if failed:
        parts.insert(2, f"{failed} failed")
    if left is not None:
        parts.append(f"{duration(left)} left")
    return ", ".join(parts)


class _PlainView:
    """Lines, at most one a second; what could not be written is not tried again."""

    def __init__(self, file: TextIO, title: str) -> None:
        self._file, self._title, self._last = file, title, float("-inf")

    def changed(self, state: PanelState) -> None:
        now = time.monotonic()
        if now - self._last >= _QUIET:
            self._last = now
            self._write(plain_line(state))

    def stop(self, state: PanelState) -> None:
        self._write(plain_line(state))

    def _write(self, text: str) -> None:
        try:
            print(printable(f"{self._title}: {text}"), file=self._file, flush=True)
        except (OSError, ValueError):
            self._last = float("inf")


class _RichView:
    """Drawn by a thread of its own, which takes the panel's lock for as long as it reads."""

    def __init__(self, file: TextIO, state: PanelState, lock: threading.Lock) -> None:
        self._table = importlib.import_module("rich.table").Table
        self._text = importlib.import_module("rich.text").Text
        self._box = importlib.import_module("rich.panel").Panel
        self._bar = importlib.import_module("rich.progress_bar").ProgressBar
        console = importlib.import_module("rich.console").Console(file=file)
        self._state, self._lock = state, lock
        live = importlib.import_module("rich.live").Live
        self._live = live(get_renderable=self.draw, console=console, refresh_per_second=_FRAMES)
        self._live.start()

    def changed(self, state: PanelState) -> None:
        pass

    def stop(self, state: PanelState) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
            self._live.stop()

    def _lane(self, name: str, lanes: Lanes, now: float) -> tuple[Any, Any]:
        use = lanes.use(now)
        grid = self._table.grid(padding=(0, 2))
        active = f"{len(lanes.running)} of {lanes.count} at work"
        bar = self._bar(total=100, completed=100 * use, width=24)
        grid.add_row(bar, self._text(f"{100 * use:3.0f} %"), self._text(active, style="dim"))
        return self._text(name, style="bold"), grid

    def draw(self) -> Any:
        """The state as it is now, in texts that are never read as markup."""
        with self._lock:
            state, now = self._state, self._state.seconds
            grid = self._table.grid(padding=(0, 2))
            bold = {"style": "bold"}
            grid.add_row(self._text("best", **bold), self._text(best_text(state), style="green"))
            if state.bests:
                grid.add_row(self._text(""), self._text(sparkline(state.bests), style="cyan"))
            grid.add_row(*self._lane("compile", state.compile, now))
            grid.add_row(*self._lane("device", state.device, now))
            said = (
                f"{counted(state.trials, 'trial')}: {counts_text(state)}" if state.trials else "0"
            )
            grid.add_row(self._text("trials", **bold), self._text(said))
            left = state.left()
            spent = duration(now) + (f", {duration(left)} left" if left is not None else "")
            grid.add_row(self._text("time", **bold), self._text(spent))
            for trial in state.failures:
                why = self._text(
                    f"trial {trial.number}: {printable(headline(str(trial.error or '')))}",
                    no_wrap=True,
                )
                grid.add_row(self._text(str(trial.status), style="red"), why)
            title = self._text(printable(f"tuning {state.title}"))
        return self._box(grid, title=title, title_align="left")


class Panel:
    """Shows a session while it runs; ``with Panel("saxpy", budget={"seconds": 60}) as panel``.

    On a terminal with rich it draws the best so far, the use of the compile and device lanes, the
    counts of statuses, the time left and the last failures; else it writes plain lines. All goes
    to stderr, or to `file`. trial() and lane() never wait for the drawing, and a terminal that
    goes away ends the showing, never the session.
    """

    def __init__(
        self,
        title: str,
        *,
        budget: Mapping[str, Any] | None = None,
        compile_lanes: int = 0,
        device_lanes: int = 1,
        file: TextIO | None = None,
        live: bool | None = None,
    ) -> None:
        """`live`: whether to draw; None: where `file` is a terminal and rich is installed."""
        self._state = PanelState(title, budget, compile_lanes, device_lanes)
        self._lock = threading.Lock()
        self._file = sys.stderr if file is None else file
        self._live = live
        self._view: _RichView | _PlainView | None = None

    @property
    def state(self) -> PanelState:
        return self._state

    def trial(self, trial: Any) -> None:
        """A trial has ended: number, config, status, score or time, error are read."""
        with self._lock:
            self._state.trial(trial)
        if self._view is not None:
            self._view.changed(self._state)

    def lane(self, kind: str, begins: bool, number: int, seconds: float) -> None:
        """A lane, "compile" or "gpu", began or ended its work on a trial, in seconds of the
        session."""
        with self._lock:
            self._state.lane(kind, begins, number, seconds)

    def __enter__(self) -> Panel:
        if self._file is None:  # no stderr, as under pythonw
            return self
        live = self._live
        if live is None:
            live = bool(getattr(self._file, "isatty", lambda: False)())
        if live:
            try:
                self._view = _RichView(self._file, self._state, self._lock)
            except ImportError:
                live = False
        if not live:
            self._view = _PlainView(self._file, self._state.title)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        view, self._view = self._view, None
        if view is not None:
            view.stop(self._state)
