"""A line for each request, as text or as JSON; prompts are never in it."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import sys
from collections.abc import Iterator
from typing import TextIO

from kernwright.serve.calls import Call

__all__ = ["log", "log_call", "log_lines"]

log = logging.getLogger("kernwright.serve")
_QUIET = ("/health", "/metrics")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
        made = {"time": time.isoformat(timespec="milliseconds"), "level": record.levelname.lower()}
        made |= getattr(record, "fields", {"message": record.getMessage()})
        if record.exc_info:
            made["exception"] = self.formatException(record.exc_info)
        return json.dumps(made)


@contextlib.contextmanager
def log_lines(form: str, level: str = "info", stream: TextIO | None = None) -> Iterator[None]:
    """Within it, lines of the library, this server and uvicorn go to stderr; `form` is "text" or
    "json". `level` is that of the server."""
    handler = logging.StreamHandler(stream or sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(_JsonLines() if form == "json" else text)
    loggers = [logging.getLogger(name) for name in ("kernwright", log.name, "uvicorn")]
    before = [(each, each.handlers, each.propagate, each.level) for each in loggers]
    for each in loggers:
        each.handlers, each.propagate = [handler], False
    log.setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, handlers, propagate, least in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(least)


def log_call(call: Call) -> None:
    """The line of a request that has ended. Successful looks at health and metrics have none."""
    if not log.isEnabledFor(logging.INFO):
        return
    if call.status == 200 and call.path.startswith(_QUIET):
        return
    fields = call.record()
    shown = " ".join(f"{name}={value}" for name, value in fields.items() if value is not None)
    log.info("%s", shown, extra={"fields": {"message": "request", **fields}})
