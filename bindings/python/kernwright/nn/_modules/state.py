"""Parameters of modules in files: one name a tensor, tied ones once."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kernwright._array.creation import asarray
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument, StoreError
from kernwright.nn._modules import tree

if TYPE_CHECKING:
    from kernwright.nn._modules.module import Module

_SHOWN = 20  # names of each list in a message


class _Source(NamedTuple):
    """Named arrays whose shapes and dtypes are known before they are read."""

    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]
    read: Callable[[str], Array]


def load(module: Module, source: Any, strict: bool) -> tuple[list[str], list[str]]:
    """See Module.load()."""
    tree.refuse_quantised(module, "load()")
    parameters = tree.first_names(module)
    aliases = aliases_of(module)
    with _opened(source) as arrays:
        names = {
            name: [each for each in (name, *aliases[name]) if each in arrays.shapes]
            for name, _ in parameters
        }
        known = {each for name, _ in parameters for each in (name, *aliases[name])}
        missing = [name for name, _ in parameters if not names[name]]
        unexpected = sorted(set(arrays.shapes) - known)
        wrong = [
            f"{each} has {arrays.shapes[each]} in place of {array.shape}"
            for name, array in parameters
            for each in names[name]
            if arrays.shapes[each] != array.shape
        ]
        no_reals = [
            f"{each} is {arrays.dtypes[each]} in place of {array.dtype.name}"
            for name, array in parameters
            for each in names[name]
            if arrays.dtypes[each].startswith("complex") and array.dtype.kind != "c"
        ]
        problems = {"wrong shapes": wrong, "wrong dtypes": no_reals}
        if strict:
            problems |= {"missing": missing, "unexpected": unexpected}
        if any(problems.values()):
            raise InvalidArgument(
                f"the arrays do not fit {type(module).__name__}, which is unchanged: "
                + "; ".join(f"{title}: {_listed(each)}" for title, each in problems.items() if each)
            )
        for each in names.values():
            _require_equal(arrays, each)
        for name, array in parameters:
            if names[name]:
                array[...] = arrays.read(names[name][0]).astype(array.dtype)
    return missing, unexpected


def _require_equal(arrays: _Source, names: list[str]) -> None:
    """Raises where the names of one parameter hold different numbers; NaN equals NaN."""
    for name in names[1:]:
        first, other = arrays.read(names[0]), arrays.read(name)
        if not bool(((first == other) | ((first != first) & (other != other))).all()):
            raise InvalidArgument(
                f"{names[0]} and {name} are one parameter of the module, which is unchanged, and "
                "differ in the file"
            )


def save(module: Module, path: Any, metadata: Mapping[str, str] | None) -> None:
    """See Module.save()."""
    from kernwright._files.safetensors import save_safetensors

    tree.refuse_quantised(module, "save()")
    tied = {alias: name for name, others in aliases_of(module).items() for alias in others}
    notes = dict(metadata or {})
    if tied:
        notes["tied"] = json.dumps(tied)
    save_safetensors(path, dict(tree.first_names(module)), metadata=notes or None)


def aliases_of(module: Module) -> dict[str, list[str]]:
    """For the first name of each parameter, its other names."""
    first: dict[int, str] = {}
    others: dict[str, list[str]] = {}
    for name, array in tree.all_names(module):
        if id(array) in first:
            others[first[id(array)]].append(name)
        else:
            first[id(array)] = name
            others[name] = []
    return others


@contextlib.contextmanager
def _opened(source: Any) -> Iterator[_Source]:
    """The arrays of a mapping or a file by name."""
    from kernwright._files.gguf import Gguf
    from kernwright._files.opening import path_of
    from kernwright._files.safetensors import SafeTensors, index_parts

    with contextlib.ExitStack() as files:
        if isinstance(source, Mapping):
            arrays = {str(name): asarray(value) for name, value in source.items()}
            shapes = {name: array.shape for name, array in arrays.items()}
            dtypes = {name: array.dtype.name for name, array in arrays.items()}
            yield _Source(shapes, dtypes, arrays.__getitem__)
            return
        if not isinstance(source, (str, os.PathLike)):
            raise ArgumentError(
                f"load() takes a path or a mapping of names to arrays, got {type(source).__name__}"
            )
        name = path_of(source)
        if name.endswith(".gguf"):
            file = files.enter_context(Gguf(source))
            shapes = {each: file.shape(each) for each in file}
            yield _Source(shapes, dict.fromkeys(shapes, "float32"), file.numbers)
        elif name.endswith(".index.json"):
            parts = index_parts(name)
            folder = os.path.dirname(name)
            opened = {
                part: files.enter_context(SafeTensors(os.path.join(folder, part)))
                for part in dict.fromkeys(parts.values())
            }
            for each, part in parts.items():
                if each not in opened[part]:
                    raise StoreError(f"{name} says that {part} has {each!r}, which it has not")
            shapes = {each: opened[part].shape(each) for each, part in parts.items()}
            dtypes = {each: opened[part].dtype(each) for each, part in parts.items()}
            yield _Source(shapes, dtypes, lambda each: opened[parts[each]][each])
        else:
            plain = files.enter_context(SafeTensors(source))
            shapes = {each: plain.shape(each) for each in plain}
            dtypes = {each: plain.dtype(each) for each in plain}
            yield _Source(shapes, dtypes, plain.__getitem__)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
