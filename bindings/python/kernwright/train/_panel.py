"""A training run in the terminal: a panel drawn by rich, or plain lines."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
import time
from typing import Any, Protocol, TextIO

from kernwright._support.words import printable
from kernwright.train._log_file import number_of

_QUIET = 10.0  # seconds between plain lines
_FRAMES = 4  # a second
_HISTORY = 4096


class View(Protocol):
    """What shows a run."""

    def changed(self, row: dict[str, Any]) -> None: ...
    def stop(self) -> None: ...


def view_of(title: str, live: bool | None, file: TextIO | None = None) -> View | None:
    """A panel on a terminal with rich, else plain lines; None where there is no stderr."""
    target = sys.stderr if file is None else file
    if target is None:
        return None
    draws = bool(getattr(target, "isatty", lambda: False)()) if live is None else live
    if draws:
        try:
            return _RichView(title, target)
        except ImportError:
            pass
    return _PlainView(title, target) if live is not None or draws else None


def value_text(name: str, value: Any) -> str:
    """3.2817, 544.5 k, 38.0 %, unknown"""
    number = number_of(value)
    if value is None:
        return "unknown"
    if number is None:
        return str(value)
    if name == "mfu":
        return f"{100 * number:.1f} %"
    if name == "seconds":
        minutes, seconds = divmod(int(number), 60)
        return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    if name in ("step", "tokens") and number == int(number):
        return f"{int(number)}"
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= factor and abs(number) < float("inf"):
            return f"{number / factor:.4g} {unit}"
    return f"{number:.5g}"


def row_text(row: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value_text(name, row[name])}" for name in row)


class _PlainView:
    """A line at once, then at most every 10 seconds, and the last one."""

    def __init__(self, title: str, file: TextIO) -> None:
        self._title, self._file = title, file
        self._last = float("-inf")
        self._row: dict[str, Any] | None = None

    def changed(self, row: dict[str, Any]) -> None:
        self._row = row
        if time.monotonic() - self._last >= _QUIET:
            self._last = time.monotonic()
            self._write()

    def stop(self) -> None:
        self._write()

    def _write(self) -> None:
        row, self._row = self._row, None
        if row is not None:
            with contextlib.suppress(OSError, ValueError):
                print(printable(f"{self._title}: {row_text(row)}"), file=self._file, flush=True)


class _RichView:
    """Drawn by a thread of its own."""

    def __init__(self, title: str, file: TextIO) -> None:
        self._table = importlib.import_module("rich.table").Table
        self._text = importlib.import_module("rich.text").Text
        self._box = importlib.import_module("rich.panel").Panel
        console = importlib.import_module("rich.console").Console(file=file)
        live = importlib.import_module("rich.live").Live
        self._title, self._lock = title, threading.Lock()
        self._row: dict[str, Any] = {}
        self._losses: list[float] = []
        self._live = live(get_renderable=self.draw, console=console, refresh_per_second=_FRAMES)
        self._live.start()

    def changed(self, row: dict[str, Any]) -> None:
        with self._lock:
            self._row = row
            loss = number_of(row.get("loss"))
            if loss is not None and loss == loss and abs(loss) < float("inf"):
                self._losses.append(loss)
                if len(self._losses) > _HISTORY:
                    del self._losses[::2]

    def stop(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
            self._live.stop()

    def draw(self) -> Any:
        """The last row, in texts that are never read as markup."""
        from kernwright.tune._sessions.panel_state import sparkline

        grid = self._table.grid(padding=(0, 2))
        with self._lock:
            for name, value in self._row.items():
                shown = self._text(printable(value_text(name, value)), style="green")
                grid.add_row(self._text(printable(name.replace("_", " ")), style="bold"), shown)
                if name == "loss" and self._losses:
                    curve = self._text(sparkline(self._losses), style="cyan")
                    grid.add_row(self._text(""), curve)
        title = self._text(printable(self._title))
        return self._box(grid, title=title, title_align="left")
