"""write_report(): a tuning session as one page of HTML, which loads nothing from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from kernwright._support.files import write_whole
from kernwright.errors import ArgumentError
from kernwright.tune._report._page import page
from kernwright.tune._report._read import read_record


def write_report(
    rows: Iterable[Mapping[str, Any]] | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    session: str | None = None,
    source: str | None = None,
) -> None:
    """Writes the report of one session to `path`: a page that needs no network and no server.

    `rows` are a store's rows, or the path of a store; `session` is the id of one of its sessions,
    the last one with trials where it is left out. `source` is the kernel's text, which the page
    shows below the winner's defines. Raises InvalidArgument where there is no trial,
    StoreError where a file cannot be read or written; what was at `path` is replaced only by a
    whole page.

    With the session of the example of kw.tune.Session:

    >>> kw.tune.write_report("tuned.jsonl", "tuned.html")
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"a path to write is wanted, got {type(path).__name__}")
    if source is not None and not isinstance(source, str):
        raise ArgumentError(f"source is the text of a kernel, got {type(source).__name__}")
    write_whole(path, page(read_record(rows, session), source), "backslashreplace")
