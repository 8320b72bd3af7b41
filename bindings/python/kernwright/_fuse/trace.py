"""Running a function, or the statements of a string, with recording values."""

from __future__ import annotations

import ast
import types as python_types
from collections.abc import Callable
from typing import Any

import numpy as np

from kernwright._fuse.namespace import NAMESPACE
from kernwright.errors import ArgumentError, Error, InvalidArgument

_FREE = {"abs": NAMESPACE.abs, "max": NAMESPACE.max, "min": NAMESPACE.min, "sum": NAMESPACE.sum,
         "round": NAMESPACE.round, "any": NAMESPACE.any, "all": NAMESPACE.all,
         "pow": NAMESPACE.pow}  # fmt: skip


def recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with this package's names bound to what records, as far as it calls others
    that are written in Python."""
    made: Callable[..., Any] = _Binder().function(function)
    return made


class _Binder:
    """Copies functions; copied ones are known by their identity."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def function(self, function: Any) -> Any:
        if not isinstance(function, python_types.FunctionType):
            return function
        if id(function) in self._made:
            return self._made[id(function)]
        code = function.__code__
        space = dict(function.__globals__)
        cells = tuple(python_types.CellType() for _ in function.__closure__ or ())
        made = python_types.FunctionType(
            code, space, function.__name__, function.__defaults__, cells or None
        )
        made.__kwdefaults__ = function.__kwdefaults__
        self._made[id(function)] = made
        for name in _names(code):
            if name in space:
                space[name] = self.value(space[name])
        for cell, own in zip(cells, function.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self.value(own.cell_contents)
            except ValueError:  # a variable that has no value yet
                continue
        return made

    def value(self, value: Any) -> Any:
        import kernwright as kw

        if value is kw:
            return NAMESPACE
        if isinstance(value, python_types.ModuleType):
            nn = value.__name__ == "kernwright.nn"
            return NAMESPACE.nn if nn else value
        if isinstance(value, Fusible):
            return self.function(value.function)
        home = getattr(value, "__module__", None) or ""
        if home.startswith("kernwright._grad.table."):  # rules, whose gradients are fused
            return self.function(value)
        if home.split(".", 1)[0] == "kernwright" and callable(value):
            name = getattr(value, "__name__", "")
            for space in (NAMESPACE, NAMESPACE.nn):
                if name in vars(space):
                    return vars(space)[name]
            return value
        return value if home.split(".", 1)[0] == "numpy" else self.function(value)


class Fusible:
    """A fused function as its callers see it: its own function."""

    function: Callable[..., Any]


def _names(code: python_types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, python_types.CodeType):
            names |= _names(constant)
    return names


class Statements:
    """``"z = a * x + y; w = sqrt(z)"``, or an expression alone, as a function of its names."""

    def __init__(self, text: str) -> None:
        self.text = text
        tree = self._parse(text)
        assigned: list[str] = []
        read: set[str] = set()
        self.parameters: list[str] = []
        for statement in tree.body:
            used = _used(statement)
            for name in used:
                if name not in assigned and name not in self.parameters and not _known(name):
                    self.parameters.append(name)
            read |= set(used) & set(assigned)
            if isinstance(statement, ast.Assign):
                target = statement.targets[0].id  # type: ignore[attr-defined]
                if target in self.parameters:
                    raise InvalidArgument(f"{text!r} assigns to {target}, which it has read")
                if target not in assigned:
                    assigned.append(target)
                read.discard(target)
        self.results = [n for n in assigned if n not in read]
        self._code = compile(tree, "<fused expression>", "exec")

    def _parse(self, text: str) -> ast.Module:
        try:
            tree = ast.parse(text.strip().rstrip(";"))
        except SyntaxError as error:
            hint = " (write a ? b : c as where(a, b, c))" if "?" in text else ""
            raise InvalidArgument(
                f"{text!r} is no expression of Python: {error.msg}{hint}"
            ) from None
        if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
            target = ast.Name("result", ast.Store())
            assign = ast.Assign([target], tree.body[0].value)
            tree.body = [ast.fix_missing_locations(ast.copy_location(assign, tree.body[0]))]
        for statement in tree.body:
            plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1
            if not plain or not isinstance(statement.targets[0], ast.Name):  # type: ignore
                raise InvalidArgument(
                    f"{text!r}: write an expression, or statements name = expression; ..."
                )
        if not tree.body:
            raise InvalidArgument("an empty string is no expression")
        return tree

    def __call__(self, **values: Any) -> Any:
        space = {**vars(NAMESPACE), **vars(NAMESPACE.nn), **_FREE, "kw": NAMESPACE, "np": np}
        return self._run(space, values)

    def computed(self, values: dict[str, Any]) -> Any:
        """The results for arrays, one operation after another."""
        import kernwright as kw

        names = [*vars(NAMESPACE), *_FREE]
        space = {name: getattr(kw.nn, name) for name in vars(NAMESPACE.nn) if hasattr(kw.nn, name)}
        space |= {name: getattr(kw, name) for name in names if hasattr(kw, name)}
        return self._run({**space, "kw": kw, "np": np}, values)

    def _run(self, space: dict[str, Any], values: dict[str, Any]) -> Any:
        space |= {"__builtins__": {}, **_dtypes(), **values}
        try:
            exec(self._code, space)
        except TypeError as error:
            if isinstance(error, Error):
                raise
            raise ArgumentError(f"an expression of these arguments: {error}") from error
        results = tuple(space[name] for name in self.results)
        return results[0] if len(results) == 1 else results


def _used(statement: ast.stmt) -> list[str]:
    """The names in a statement's reads, in the order of the text."""
    found = [n for n in ast.walk(statement)
             if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]  # fmt: skip
    return list(dict.fromkeys(n.id for n in sorted(found, key=lambda n: (n.lineno, n.col_offset))))


def _dtypes() -> dict[str, Any]:
    import kernwright as kw

    return {name: getattr(kw, name) for name in vars(kw)["_DTYPES"]}


def _known(name: str) -> bool:
    import kernwright as kw

    spaces = (vars(NAMESPACE), vars(NAMESPACE.nn), _FREE, vars(kw)["_DTYPES"], ("kw", "np"))
    return name != "e" and any(name in space for space in spaces)
