"""The log of a training run: lines of JSON, a panel in the terminal, a page with curves."""

from __future__ import annotations

import importlib
import json
import math
import os
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import kernwright
from kernwright._core import Array
from kernwright._files.opening import path_of
from kernwright._support.files import told_of, write_whole
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.optim._functions import not_negative
from kernwright.train._log_file import cut_to_whole_lines, read_log
from kernwright.train._peak import peak_flops, peak_source

__all__ = ["Log", "write_page"]

_RESERVED = ("step", "seconds", "tokens_per_second", "mfu", "run")
_PAGE_EVERY = 30.0  # seconds


class Log:
    """Numbers of each step as lines of JSON at the end of the file `path`; call it with a step.

    - `page`: a page of HTML with curves is written there every 30 seconds and by close().
    - `live`: a panel in the terminal, drawn by rich (``pip install 'kernwright[live]'``); without
      rich or a terminal, plain lines every 10 seconds. False: neither; None: the panel on a
      terminal.
    - `tensorboard`: a folder for TensorBoard (``pip install 'kernwright[tensorboard]'``).
    - `tokens` of a step give tokens per second; with `flops_per_token` also the part of the
      device's peak (MFU). `peak` is peak_flops() unless given; where neither is known, the part is
      null in the file and "unknown" on the panel and the page.
    - `notes`: of this run, for the page.

    A file that is there goes on: a line that was cut off by the end of a process is removed. Raises
    StoreError for files that cannot be written.

    >>> with kw.train.Log("run.jsonl", live=False) as log:
    ...     for step in (1, 2):
    ...         row = log(step, loss=4.0 / step, tokens=4096)
    >>> row["step"], row["loss"]
    (2, 2.0)
    """

    def __init__(
        self, path: str | os.PathLike[str], *, page: str | os.PathLike[str] | None = None,
        live: bool | None = None, tensorboard: str | os.PathLike[str] | None = None,
        flops_per_token: float | None = None, peak: float | None = None, title: str = "training",
        notes: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        for name, value in (("flops_per_token", flops_per_token), ("peak", peak)):
            if value is not None and not not_negative(value, name) > 0:
                raise InvalidArgument(f"{name} is above 0, got {value!r:.40}")
        self.path = path_of(path)
        self.title, self.flops_per_token = title, flops_per_token
        looked_up = peak is None and flops_per_token is not None
        self.peak = peak_flops() if looked_up else peak
        self._page = None if page is None else path_of(page)
        self._begin = self._last = self._page_written = time.monotonic()
        self._last_step: int | None = None
        self._board = None if tensorboard is None else _board(path_of(tensorboard))
        with told_of(self.path, "written"):
            cut_to_whole_lines(self.path)
            self._file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115
        self._view = _view(title, live)
        device = kernwright.current_device()
        self._write({"run": {
            "title": title, "device": device.name, "peak_flops": self.peak,
            "peak_source": peak_source() if looked_up else None if peak is None else "given",
            "flops_per_token": flops_per_token, "kernwright": kernwright.__version__,
            "begun": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "notes": dict(notes or {}),
        }})  # fmt: skip

    def __call__(self, step: int, *, tokens: int | None = None, **values: Any) -> dict[str, Any]:
        """Writes a line, and returns it as a dict.

        `values` are numbers, texts, or arrays of one element, which are read: that waits for the
        device. Log every tenth step where a step is short. `tokens` are those since the line
        before. Raises ArgumentError for other values, InvalidArgument for a step below the one
        before.
        """
        number = _step_number(step, self._last_step)
        row: dict[str, Any] = {"step": number}
        for name, value in values.items():
            if name in _RESERVED:
                raise ArgumentError(f"{name} is a column of the log itself: take another name")
            row[name] = _plain(name, value)
        now = time.monotonic()
        row["seconds"] = round(now - self._begin, 3)
        if tokens is not None:
            row["tokens"] = _tokens(tokens)
            self._rate(row, row["tokens"], now - self._last)
        self._last, self._last_step = now, number
        self._write(row)
        if self._board is not None:
            for name, value in row.items():
                if isinstance(value, (int, float)) and name != "step":
                    self._board.add_scalar(name, value, number)
        if self._view is not None:
            self._view.changed(row)
        if self._page is not None and now - self._page_written > _PAGE_EVERY:
            self._write_page()
        return row

    def _rate(self, row: dict[str, Any], tokens: int, seconds: float) -> None:
        """Tokens a second since the line before, and their part of the peak."""
        if self._last_step is None or seconds <= 0:
            return
        row["tokens_per_second"] = round(tokens / seconds, 1)
        if self.flops_per_token is not None:
            flops = self.flops_per_token * tokens / seconds
            row["mfu"] = None if self.peak is None else round(flops / self.peak, 4)

    def _write(self, row: Mapping[str, Any]) -> None:
        text = json.dumps({name: _for_json(value) for name, value in row.items()})
        with told_of(self.path, "written"):
            self._file.write(text + "\n")
            self._file.flush()

    def _write_page(self) -> None:
        self._page_written = time.monotonic()
        if self._page is not None:
            write_page(self.path, self._page)

    def close(self) -> None:
        """Ends the panel, writes the page and closes the file. A second call does nothing.

        >>> log = kw.train.Log("run.jsonl", page="run.html", live=False)
        >>> log.close()
        """
        if self._file.closed:
            return
        if self._view is not None:
            self._view.stop()
        if self._board is not None:
            self._board.close()
        self._file.close()
        self._write_page()

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def __repr__(self) -> str:
        return f"<kw.train.Log of {self.path!r}, at step {self._last_step}>"


def write_page(log: str | os.PathLike[str], page: str | os.PathLike[str]) -> None:
    """Writes a page of HTML with the curves of a log, which loads nothing from elsewhere. What was
    at `page` is replaced only by a whole one. Raises StoreError for a log that cannot be read, or
    has a line that is none of a log, with the line's number.

    >>> with kw.train.Log("run.jsonl", live=False) as log:
    ...     _ = log(1, loss=2.0), log(2, loss=1.0)
    >>> kw.train.write_page("run.jsonl", "run.html")
    """
    from kernwright.train._log_page import page_of

    write_whole(page, page_of(read_log(path_of(log))))


def _step_number(step: Any, before: int | None) -> int:
    if isinstance(step, bool) or not hasattr(step, "__index__"):
        raise ArgumentError(f"a step is an int, got {step!r:.60}")
    number = int(step)
    if before is not None and number < before:
        raise InvalidArgument(f"steps do not go back: {number} comes after {before}")
    return number


def _tokens(tokens: Any) -> int:
    if isinstance(tokens, Array):
        tokens = _plain("tokens", tokens)
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
        raise ArgumentError(f"tokens are a number from 0 on, got {tokens!r:.60}")
    return tokens


def _plain(name: str, value: Any) -> Any:
    """A number or a text."""
    if getattr(value, "size", None) == 1 and hasattr(value, "item"):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ArgumentError(
        f"{name} is a number, a text or an array of one element, got "
        f"{getattr(value, 'shape', type(value).__name__)!r:.60}"
    )


def _for_json(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become texts."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _view(title: str, live: bool | None) -> Any:
    if live is False:
        return None
    from kernwright.train._panel import view_of

    return view_of(title, live)


def _board(folder: str) -> Any:
    for module in ("torch.utils.tensorboard", "tensorboardX"):
        try:
            return importlib.import_module(module).SummaryWriter(folder)
        except ImportError:
            continue
    raise ArgumentError(
        "tensorboard= needs tensorboardX: pip install 'kernwright[tensorboard]', or torch with "
        "tensorboard"
    )
