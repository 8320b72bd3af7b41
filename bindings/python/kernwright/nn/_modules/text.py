"""What repr() shows of a module: its tree as torch writes it, and the number of its parameters."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from kernwright._core import Array
from kernwright.nn._modules import tree

if TYPE_CHECKING:
    from kernwright.nn._modules.module import Module


def module_text(module: Module) -> str:
    """The tree of modules; equal neighbours in a list are one line: (0-11): 12 x Block(...)."""
    count = sum(array.size for _, array in tree.first_names(module))
    return f"{_text(module)}  # {count:,} parameters"


def _text(module: Module) -> str:
    name, lines = type(module).__name__, []
    for key, value in vars(module).items():
        if key.startswith("_"):
            continue
        if tree.is_module(value):
            lines.append(f"({key}): {_text(value)}")
        elif key.isdigit() and callable(value):  # a function in a Sequential
            lines.append(f"({key}): {_entry_text(value)}")
        elif _holds_modules(value):
            lines.append(f"({key}): {_list_text(value)}")
    if not lines:
        return f"{name}({module.extra_repr()})"
    body = "\n".join(lines).replace("\n", "\n  ")
    return f"{name}(\n  {body}\n)"


def _holds_modules(value: Any) -> bool:
    each = value.values() if isinstance(value, dict) else value
    return isinstance(value, (dict, list, tuple)) and any(tree.is_module(v) for v in each)


def _entry_text(value: Any) -> str:
    if tree.is_module(value):
        return _text(value)
    if isinstance(value, Array):
        return f"Array({value.shape}, {value.dtype.name})"
    return str(getattr(value, "__name__", value))


def _list_text(value: Any) -> str:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    texts = [(str(key), _entry_text(each)) for key, each in pairs]
    lines = []
    for text, group in groupby(texts, key=lambda pair: pair[1]):
        keys = [key for key, _ in group]
        if len(keys) == 1 or isinstance(value, dict):
            lines += [f"({key}): {text}" for key in keys]
        else:
            lines.append(f"({keys[0]}-{keys[-1]}): {len(keys)} x {text}")
    body = "\n".join(lines).replace("\n", "\n  ")
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}\n  {body}\n{closed}"
