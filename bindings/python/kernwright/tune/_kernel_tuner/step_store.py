"""The store of a tuning that measures one configuration after the other."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from kernwright._support.warn import warn_caller
from kernwright.errors import ArgumentError, StoreError
from kernwright.tune._config import Config
from kernwright.tune._sessions.arguments import _host_array
from kernwright.tune._sessions.session import Session
from kernwright.tune._sessions.trial import Trial
from kernwright.tune._space import Space
from kernwright.tune._store import Store, space_hash

_ALIKE = ("launch", "arguments", "checked", "limits")  # of a session's row
_SIMPLE = (str, int, float, bool)


def _settings(observer: Any) -> str:
    """The class of an observer with its public settings."""
    own = {name: value for name, value in vars(observer).items() if not name.startswith("_")}
    plain = {
        name: value
        for name, value in own.items()
        if isinstance(value, _SIMPLE)
        or (isinstance(value, (list, tuple)) and all(isinstance(v, _SIMPLE) for v in value))
    }
    return f"{type(observer).__qualname__}{sorted(plain.items())}"


def _contents(values: Sequence[Any]) -> str:
    """A hash of arrays and values."""
    made = hashlib.blake2b(digest_size=16)
    for value in values:
        array = None if value is None else _host_array(value, 0)
        made.update(repr(value).encode() if array is None else array.tobytes())
    return made.hexdigest()


class StepStore:
    """Trials of earlier tunings of the same kernel, space, arguments, device and observers, and new
    ones. What the disk refuses is told once, and the tuning goes on."""

    def __init__(
        self, path: str, session: Session, space: Space, arguments: Sequence[Any],
        observers: Sequence[str], answer: Any,
    ) -> None:  # fmt: skip
        self._store, self._id, self._is_refused = Store(path), secrets.token_hex(8), False
        key = {**session.key, "space": space_hash(space)}
        told = {name: session._about.get(name) for name in _ALIKE}
        if observers:  # they may look at what arrays hold
            told["observers"] = sorted(observers)
            told["contents"] = _contents([*arguments, *(answer or ())])
        text = json.dumps([key, told], sort_keys=True)
        self._alike = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        known = {
            row["session"]
            for row in self._store.rows("session")
            if row.get("alike") == self._alike and key["source"]
        }
        self._known = {
            Config(row["config"]): row
            for row in self._store.rows("trial")
            if row["session"] in known
        }
        parameters = {name: list(values) for name, values in space.parameters.items()}
        restricted = {"restrictions": list(space.restrictions), "hash": key["space"]}
        self._append(
            {
                **session._about,
                **key,
                "kind": "session",
                "alike": self._alike,
                "space": {"parameters": parameters, **restricted},
            }
        )

    def find(self, config: Config) -> tuple[Trial, dict[str, Any]] | None:
        """The trial of an earlier tuning, and what was observed."""
        row = self._known.get(config)
        if row is None:
            return None
        ordered = {name: row["config"][name] for name in config}
        return Trial({**row, "config": ordered, "resumed": True}), row.get("observed", {})

    def add(self, trial: Trial, observed: Mapping[str, Any]) -> None:
        """ArgumentError for observed values that are no data for JSON. NaN and infinity, which JSON
        lacks, are observed again."""
        try:
            json.dumps(observed, allow_nan=False)
        except ValueError:
            return
        except TypeError as error:
            raise ArgumentError(f"cache= keeps numbers, texts and lists of them: {error}") from None
        self._append({**trial.row, "observed": dict(observed)})

    def _append(self, row: Mapping[str, Any]) -> None:
        try:
            self._store.append({**row, "session": self._id})
        except StoreError as error:
            if not self._is_refused:
                warn_caller(f"the tuning goes on, its trials are not kept: {error}")
            self._is_refused = True


def identities(observers: Sequence[Any]) -> list[str]:
    """What tells observers apart, before they have observed anything."""
    return [_settings(observer) for observer in observers]
