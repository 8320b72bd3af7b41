"""What a checkpoint holds of an object: arrays by name, and notes for JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kernwright._core import Array
from kernwright._support.cycles import require_no_cycle
from kernwright._support.modules import is_module
from kernwright.errors import ArgumentError
from kernwright.optim._nest import leaves


class Contents(NamedTuple):
    """`arrays` are the object's own memory; `random` are generators within it by their paths."""

    arrays: dict[str, Array]
    notes: dict[str, Any]
    metadata: dict[str, str] | None = None
    random: Mapping[str, Any] = {}


def contents_of(name: str, value: Any) -> Contents | None:
    """None for a plain value. Raises ArgumentError for what cannot be kept."""
    if is_module(value):
        return _of_module(value)
    if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
        notes = {"settings": value.settings()} if hasattr(value, "settings") else {}
        return Contents(leaves(value.state_dict(), name), notes)
    if hasattr(value, "state") and hasattr(value, "restore"):
        return Contents({}, {"state": value.state()})
    if _has_array(name, value):
        return Contents(leaves(value, name), {})
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"{name} cannot be kept in a checkpoint: it is a module, a nest of arrays, an object "
            f"with state_dict() and load_state_dict() or with state() and restore(), or a value "
            f"for JSON, got {type(value).__name__} ({error})"
        ) from None
    return None


def _has_array(name: str, value: Any) -> bool:
    try:
        return isinstance(value, Array) or any(isinstance(each, Array) for each in _members(value))
    except RecursionError:
        require_no_cycle(value, name)
        raise


def _members(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for each in value:
            yield each
            yield from _members(each)


def _of_module(module: Any) -> Contents:
    from kernwright.nn._modules.state import aliases_of
    from kernwright.nn._modules.tree import refuse_quantised

    refuse_quantised(module, "a checkpoint")
    tied = {alias: name for name, others in aliases_of(module).items() for alias in others}
    random = {
        f"{path}.{name}".strip("."): value
        for path, each in module.named_modules()
        for name, value in vars(each).items()
        if hasattr(value, "state") and hasattr(value, "restore")
    }
    states = {path: value.state() for path, value in random.items()}
    notes = {"random": states, "class": type(module).__name__}
    metadata = {"tied": json.dumps(tied)} if tied else None
    return Contents(dict(module.named_parameters()), notes, metadata, random)


def restorable(value: Any, contents: Contents) -> dict[str, tuple[Callable[[Any], Any], Any]]:
    """For each note that is set back: what sets it, and how it is now."""
    found: dict[str, tuple[Callable[[Any], Any], Any]] = {}
    if "settings" in contents.notes:
        found["settings"] = value.load_settings, contents.notes["settings"]
    if "state" in contents.notes:
        found["state"] = value.restore, contents.notes["state"]
    if "random" in contents.notes:

        def restore(states: Mapping[str, Any]) -> None:
            for path, each in contents.random.items():
                each.restore(states[path])

        found["random"] = restore, contents.notes["random"]
    return found
