"""read_record(): the rows of a store for the session to be shown."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kernwright._support.files import read_bytes
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.tune._report._record import Record, Row, TrialRow, table

# Sessions that agree in these go on with each other's trials.
_SAME = ("kernel", "source", "space", "device", "nvrtc", "problem", "policy", "objective")
_ALSO_SAME = ("arguments", "launch")


def _rows_of(path: str | os.PathLike[str]) -> Iterator[Row]:
    """The JSON objects of a store's lines; other lines, torn ones too, are left out."""
    for line in read_bytes(path).splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def _ended(trial: TrialRow) -> float:
    return math.inf if trial.ended_s is None else trial.ended_s


def _identity(row: Row) -> str:
    return json.dumps(
        [row.get(name) for name in (*_SAME, *_ALSO_SAME)], sort_keys=True, default=str
    )


def _last(rows: Sequence[Row], kind: str, session: Any) -> dict[str, Any]:
    own = (r for r in reversed(rows) if r.get("kind") == kind and r.get("session") == session)
    return table(next(own, None))


def _continued(rows: Sequence[Row], chosen: Any) -> list[Any]:
    """The ids of the sessions continued by `chosen`, oldest first, and its own."""
    identities = {}
    for row in rows:
        if row.get("kind") == "session" and isinstance(row.get("session"), str):
            identities[row["session"]] = _identity(row)
    if not isinstance(chosen, str) or chosen not in identities:
        return [chosen]
    same = [name for name, what in identities.items() if what == identities[chosen]]
    return same[: same.index(chosen) + 1]


def _joined(trials: Sequence[Row], sessions: Sequence[Any]) -> tuple[list[TrialRow], int]:
    """The trials of the sessions, one session after the other; how many sessions have trials."""
    made: list[TrialRow] = []
    begin, count = 0.0, 0
    for session in sessions:
        rows = [row for row in trials if row.get("session") == session]
        own = [TrialRow.of(row, place) for place, row in enumerate(rows)]
        if own and count:
            own = [trial.later(begin, len(made) + place) for place, trial in enumerate(own)]
        count += bool(own)
        made += sorted(own, key=_ended)
        begin = max([begin, *(trial.ended_s for trial in own if trial.ended_s is not None)])
    return made, count


def read_record(rows: Iterable[Row] | str | os.PathLike[str], session: str | None = None) -> Record:
    """The record of a session in `rows` or in a store's file.

    `session` is the id of one session, which is read alone. Else it is the last session with
    trials, together with the sessions that it continues. Rows of other kinds are left out. Raises
    InvalidArgument where there is no trial, StoreError for a file that cannot be read.
    """
    store = os.fspath(rows) if isinstance(rows, (str, os.PathLike)) else None
    if store is None and not isinstance(rows, Iterable):
        raise ArgumentError(f"rows, or the path of a store, are wanted, got {type(rows).__name__}")
    given: Any = rows if store is None else _rows_of(store)
    known = [row for row in given if isinstance(row, Mapping)]
    trials = [row for row in known if row.get("kind") == "trial"]
    if session is not None:
        trials = [row for row in trials if row.get("session") == session]
    if not trials:
        where = f"in {store!r}" if store is not None else "among the rows"
        of = f" of session {session!r}" if session is not None else ""
        raise InvalidArgument(f"there is no trial{of} {where}: nothing to report")
    chosen = trials[-1].get("session")
    made, count = _joined(trials, [chosen] if session is not None else _continued(known, chosen))
    result = _last(known, "result", chosen)
    if count > 1:  # its own seconds are those of the last session alone
        result.pop("seconds", None)
    return Record(_last(known, "session", chosen), tuple(made), result, store, count)
