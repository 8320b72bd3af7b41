"""Messages of the library as records of the logger "kernwright".

With KERNWRIGHT_LOG set they are lines of stderr up to that level, as they are for programs in C++,
and none of this is used. Otherwise the level of the logger is the library's level, and what it has
no handler for is a line of stderr.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from typing import Any

from kernwright import _core

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_logger = logging.getLogger("kernwright")


def _follow() -> None:
    """The library says what the logger is enabled for."""
    least = max(_logger.getEffectiveLevel(), _logger.manager.disable + 1)
    _core._set_log_level(next((name for name, n in _LEVELS.items() if n >= least), "off"))


class _Enabled(dict[int, bool]):
    """Which levels a logger is enabled for: `logging` empties it whenever a level has changed, of
    this logger or of one above."""

    def clear(self) -> None:
        super().clear()
        _follow()


def _thread_name(ident: int) -> str:
    known: dict[int, Any] = getattr(threading, "_active", {})  # enumerate() takes a lock
    thread = known.get(ident)
    return thread.name if thread is not None else "kernwright"


def _record(level: int, text: str, seconds: float, thread: int) -> logging.LogRecord:
    """A record with the time and the thread of the message, which may be another's."""
    record = _logger.makeRecord(_logger.name, level, "kernwright", 0, text, (), None)
    record.relativeCreated += (seconds - record.created) * 1000
    record.created, record.msecs = seconds, int(seconds * 1000) % 1000 + 0.0
    record.thread, record.threadName = thread, _thread_name(thread)
    return record


def _receive(level: str, text: str, seconds: float, thread: int) -> None:
    if _logger.disabled:
        return
    if _logger.hasHandlers():
        _logger.handle(_record(_LEVELS[level], text, seconds, thread))
    else:
        _core._write_log_line(level, text)


def begin() -> None:
    """Messages go to the logger from now on. Once, when the package is imported."""
    if os.environ.get("KERNWRIGHT_LOG"):
        return
    _logger._cache = _Enabled()  # type: ignore[attr-defined]
    _follow()
    _core._log_to(_receive)


atexit.register(_core._close_log)
