"""Walks over the attributes of modules: names, nests, replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kernwright._core import Array
from kernwright.errors import InvalidArgument
from kernwright.nn._packed_weight import PackedWeight
from kernwright.nn._scaled_weight import ScaledWeight

if TYPE_CHECKING:
    from kernwright.nn._modules.module import Module

Named = list[tuple[str, Array]]


class ModuleNode:
    """The base of Module, by which the walks know a module."""


def is_module(value: Any) -> bool:
    return isinstance(value, ModuleNode)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The keys and values of a module's attributes, of a dict, of a list or tuple."""
    if is_module(value):
        for name, each in vars(value).items():
            if not name.startswith("_"):
                yield name, each
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(key, str) and key and "." not in key:
                yield key, each
            elif isinstance(each, Array) or is_module(each):
                raise InvalidArgument(
                    f"a dict of modules or arrays has keys without dots, got {key!r:.60}"
                )
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            yield str(i), each


def _walk(value: Any, path: str, above: tuple[int, ...]) -> Iterator[tuple[str, Any, Any, str]]:
    """The path of each array and module below `value`, itself, what holds it, and under which key.
    A module comes before what is in it."""
    if id(value) in above:
        raise InvalidArgument(f"{path or 'the module'} contains itself: a module has no cycles")
    for key, each in _parts(value):
        name = f"{path}.{key}" if path else key
        if isinstance(each, Array):
            yield name, each, value, key
        elif is_module(each) or isinstance(each, (dict, list, tuple)):
            if is_module(each):
                yield name, each, value, key
            yield from _walk(each, name, (*above, id(value)))


def all_names(module: Module) -> Named:
    """Every name of every array; a tied one has several."""
    return [(name, each) for name, each, _, _ in _walk(module, "", ()) if isinstance(each, Array)]


def first_names(module: Module) -> Named:
    """Each array once, with the first of its names."""
    found: dict[int, tuple[str, Array]] = {}
    for name, array in all_names(module):
        found.setdefault(id(array), (name, array))
    return list(found.values())


def own_arrays(module: Module) -> Named:
    """The arrays of a module that are not those of a module below it, by their paths from it."""
    found = list(_walk(module, "", ()))
    below = tuple(f"{name}." for name, each, _, _ in found if is_module(each))
    return [(n, a) for n, a, _, _ in found if isinstance(a, Array) and not n.startswith(below)]


def modules(module: Module) -> list[tuple[str, Module]]:
    """The module and all below it, each once, by the first of their names."""
    found: dict[int, tuple[str, Any]] = {id(module): ("", module)}
    for name, each, _, _ in _walk(module, "", ()):
        if is_module(each):
            found.setdefault(id(each), (name, each))
    return list(found.values())


def modules_upwards(module: Module) -> list[Module]:
    """modules() in another order: each behind those in it."""
    found: dict[int, Any] = {}

    def visit(value: Any) -> None:
        for _, each in _parts(value):
            if is_module(each) or isinstance(each, (dict, list, tuple)):
                visit(each)
        if is_module(value):
            found.setdefault(id(value), value)

    modules(module)  # raises where it contains itself
    visit(module)
    return list(found.values())


def trainable(module: Module) -> Named:
    """first_names() without the arrays that freeze() took out, under whichever of their names."""
    frozen = set()
    for _, each in modules(module):
        if each._frozen:
            frozen |= {id(array) for name, array in all_names(each) if name in each._frozen}
    return [(name, array) for name, array in first_names(module) if id(array) not in frozen]


def nest(named: Named) -> dict[str, Any]:
    """Nested dicts whose keys are the parts of the names."""
    made: dict[str, Any] = {}
    for name, array in named:
        *outer, last = name.split(".")
        place = made
        for key in outer:
            place = place.setdefault(key, {})
        place[last] = array
    return made


def replace(module: Module, change: Callable[[Array], Array]) -> None:
    """Puts change(array) in the place of each array; tied ones stay one. When `change` raises,
    nothing has changed."""
    made: dict[int, Array] = {}
    places = []
    for _, each, holder, key in _walk(module, "", ()):
        if isinstance(each, Array):
            if isinstance(holder, tuple):
                raise InvalidArgument(
                    "a tuple of arrays cannot change; put parameters into a list or a dict"
                )
            if id(each) not in made:
                made[id(each)] = change(each)
            places.append((holder, key, made[id(each)]))
    for holder, key, array in places:
        _set(module, holder, key, array)


def _set(module: Module, holder: Any, key: str, array: Array) -> None:
    if is_module(holder):
        vars(holder)[key] = array
    elif isinstance(holder, dict):
        holder[key] = array
    else:
        holder[int(key)] = array


def refuse_elsewhere(module: Module, call: str) -> None:
    """Raises InvalidArgument where parameters of a module are not in its attributes."""
    for path, each in modules(module):
        if each._elsewhere:
            raise InvalidArgument(f"{call} takes modules with all of their parameters, and {path}: "
                                  f"{each._elsewhere}")  # fmt: skip


def refuse_quantised(module: Module, call: str) -> None:
    """Raises InvalidArgument where a weight is no array any more: its bits belong to no name."""
    refuse_elsewhere(module, call)
    for path, each in modules(module):
        for name, value in vars(each).items():
            if isinstance(value, (PackedWeight, ScaledWeight)):
                raise InvalidArgument(
                    f"{path}.{name} is quantised: {call} takes modules whose weights are numbers; "
                    "call it before quantize()"
                )
