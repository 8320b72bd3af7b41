"""Nests that contain themselves, told in place of Python's limit of recursion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kernwright.errors import InvalidArgument


def require_no_cycle(nest: Any, what: str) -> None:
    """Raises InvalidArgument with the place where a dict, list or tuple contains itself.

    It is called where a walk over a nest ended in a RecursionError, which is raised again where
    there is no such place: so a walk that succeeds pays nothing.
    """
    path = _cycle(nest)
    if path is not None:
        raise InvalidArgument(f"{what}{path} contains itself: a nest has no cycles") from None


def _cycle(nest: Any) -> str | None:
    """The path of a member that is one of the nests around it."""
    paths, walks, around = [""], [_members(nest)], [nest]
    while walks:
        for key, member in walks[-1]:
            if not isinstance(member, (Mapping, list, tuple)):
                continue
            path = f"{paths[-1]}[{key!r}]"
            if any(member is each for each in around):
                return path
            paths.append(path)
            walks.append(_members(member))
            around.append(member)
            break
        else:
            paths.pop(), walks.pop(), around.pop()
    return None


def _members(nest: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(nest, Mapping):
        return iter(nest.items())
    return enumerate(nest) if isinstance(nest, (list, tuple)) else iter(())
