"""T1 files: spaces as Kernel Tuner and BAT write them, read without eval()."""

from __future__ import annotations

import ast
import json
import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any

from kernwright._support.arithmetic import ARITHMETIC
from kernwright._support.files import read_text, write_whole
from kernwright.errors import InvalidArgument
from kernwright.tune._config import Value

_MOST_VALUES = 1 << 20
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class _Values:
    """Evaluates lists of numbers: literals, range(), list(), sorted(), comprehensions, + and the
    arithmetic of numbers. Nothing else, and nothing that could become huge."""

    def __init__(self, text: str) -> None:
        self.text = text

    def fail(self, node: ast.AST, what: str) -> InvalidArgument:
        column = getattr(node, "col_offset", 0) + 1
        return InvalidArgument(f'the values "{self.text}": {what} (column {column})')

    def number(self, node: ast.AST, value: Any) -> Any:
        if isinstance(value, int) and abs(value) >= 2**63:
            raise self.fail(node, "a number does not fit 64 bits")
        return value

    def items(self, node: ast.AST, value: Any) -> Any:
        if len(value) > _MOST_VALUES:
            raise self.fail(node, f"more than {_MOST_VALUES} values")
        return value

    def evaluate(self, node: ast.AST, names: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str)):
            return self.number(node, node.value)
        if isinstance(node, ast.Name) and node.id in names:
            return names[node.id]
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.evaluate(item, names) for item in node.elts]
        if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            return self.arithmetic(node, _UNARY[type(node.op)], self.scalar(node.operand, names))
        if isinstance(node, ast.BinOp):
            return self.binary(node, names)
        if isinstance(node, ast.Compare):
            return self.compare(node, names)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.comprehension(node, names)
        if isinstance(node, ast.Call):
            return self.call(node, names)
        raise self.fail(node, "only lists of numbers, range() and comprehensions are known")

    def scalar(self, node: ast.AST, names: Mapping[str, Any]) -> Any:
        value = self.evaluate(node, names)
        if isinstance(value, (list, range)):
            raise self.fail(node, "a number is wanted here")
        return value

    def arithmetic(self, node: ast.AST, function: Any, *operands: Any) -> Any:
        if any(isinstance(operand, str) for operand in operands):
            raise self.fail(node, "strings have no arithmetic")
        try:
            return self.number(node, function(*operands))
        except (ArithmeticError, ValueError, TypeError) as error:
            raise self.fail(node, str(error)) from None

    def binary(self, node: ast.BinOp, names: Mapping[str, Any]) -> Any:
        left, right = self.evaluate(node.left, names), self.evaluate(node.right, names)
        lists = [isinstance(value, (list, range)) for value in (left, right)]
        if any(lists):
            if not all(lists) or not isinstance(node.op, ast.Add):
                raise self.fail(node, "lists can only be joined with +")
            return self.items(node, [*left, *right])
        kind = type(node.op)
        large = isinstance(right, int) and abs(right) > 64
        if kind in (ast.LShift, ast.Pow) and large and left not in (0, 1, -1):
            raise self.fail(node, "a number does not fit 64 bits")
        if kind is ast.Pow:
            return self.arithmetic(node, operator.pow, left, right)
        if kind not in ARITHMETIC:
            raise self.fail(node, "this operator is not known here")
        return self.arithmetic(node, ARITHMETIC[kind], left, right)

    def compare(self, node: ast.Compare, names: Mapping[str, Any]) -> bool:
        left = self.scalar(node.left, names)
        for kind, operand in zip(node.ops, node.comparators, strict=True):
            right = self.scalar(operand, names)
            if type(kind) not in _COMPARE:
                raise self.fail(node, "this comparison is not known here")
            try:
                if not _COMPARE[type(kind)](left, right):
                    return False
            except TypeError as error:
                raise self.fail(node, str(error)) from None
            left = right
        return True

    def comprehension(
        self, node: ast.ListComp | ast.GeneratorExp, names: Mapping[str, Any]
    ) -> list[Any]:
        found: list[Any] = []
        steps = 0

        def walk(generators: Sequence[ast.comprehension], scope: Mapping[str, Any]) -> None:
            nonlocal steps
            if not generators:
                found.append(self.evaluate(node.elt, scope))
                return
            first, *rest = generators
            if not isinstance(first.target, ast.Name) or first.is_async:
                raise self.fail(node, "a comprehension has one name for each 'for'")
            for item in self.list_of(first.iter, scope):
                steps += 1
                if steps > _MOST_VALUES:
                    raise self.fail(node, f"more than {_MOST_VALUES} values")
                inner = {**scope, first.target.id: item}
                if all(self.scalar(condition, inner) for condition in first.ifs):
                    walk(rest, inner)

        walk(node.generators, names)
        return found

    def list_of(self, node: ast.AST, names: Mapping[str, Any]) -> Any:
        value = self.evaluate(node, names)
        if not isinstance(value, (list, range)):
            raise self.fail(node, "a list is wanted here")
        return value

    def call(self, node: ast.Call, names: Mapping[str, Any]) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if node.keywords or name not in ("range", "list", "tuple", "sorted"):
            raise self.fail(node, "only range(), list(), tuple() and sorted() are known")
        if name == "range":
            numbers = [self.scalar(argument, names) for argument in node.args]
            try:
                return self.items(node, range(*numbers))
            except (TypeError, ValueError, OverflowError) as error:
                raise self.fail(node, str(error)) from None
        if len(node.args) != 1:
            raise self.fail(node, f"{name}() takes one list")
        values = self.list_of(node.args[0], names)
        try:
            return sorted(values) if name == "sorted" else list(values)
        except TypeError as error:
            raise self.fail(node, str(error)) from None


def values_of(text: str) -> list[Value]:
    """The list that a text like "[2**i for i in range(6)]" means. Raises InvalidArgument."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidArgument(f'the values "{text}" are no list: {error}') from None
    reader = _Values(text)
    try:
        value = reader.evaluate(tree.body, {})
    except RecursionError:
        raise InvalidArgument(f'the values "{text[:80]}" are nested too deep') from None
    if not isinstance(value, (list, range)):
        raise InvalidArgument(f'the values "{text}" are no list')
    return list(value)


def read_t1(path: str | os.PathLike[str]) -> tuple[dict[str, list[Value]], list[str]]:
    """Parameters and conditions. Raises InvalidArgument with the name of the file, StoreError for
    one that cannot be read."""
    try:
        document = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidArgument(f"{os.fspath(path)} is no JSON: {error}") from None
    try:
        space = document["ConfigurationSpace"]
        rows = space["TuningParameters"]
        named = [(row["Name"], row["Values"]) for row in rows]
        conditions = [row["Expression"] for row in space.get("Conditions") or []]
    except KeyError as error:
        raise InvalidArgument(f"{os.fspath(path)} is no T1 file: {error} is missing") from None
    except (TypeError, AttributeError):
        raise InvalidArgument(
            f"{os.fspath(path)} is no T1 file: ConfigurationSpace is an object with a list "
            "TuningParameters of objects, and Conditions a list of objects with an Expression"
        ) from None
    parameters: dict[str, list[Value]] = {}
    for name, values in named:
        if name in parameters:
            raise InvalidArgument(f"{os.fspath(path)}: there are two parameters named {name}")
        if isinstance(values, str):
            try:
                parameters[name] = values_of(values)
            except InvalidArgument as error:
                raise InvalidArgument(f"{os.fspath(path)}: {name}: {error}") from None
        else:
            parameters[name] = values
    return parameters, conditions


def _kind(values: Sequence[Value]) -> str:
    """T1's word for the type of values."""
    kinds = {type(value).__name__ for value in values}
    if "str" in kinds:
        return "string"
    return kinds.pop() if len(kinds) == 1 else "float"


def write_t1(
    path: str | os.PathLike[str],
    name: str,
    parameters: Mapping[str, Sequence[Value]],
    conditions: Sequence[str],
) -> None:
    from kernwright.tune._expression import Expression

    document = {
        "General": {"BenchmarkName": name, "OutputFormat": "JSON"},
        "ConfigurationSpace": {
            "TuningParameters": [
                {
                    "Name": key,
                    "Type": _kind(values),
                    "Values": repr(list(values)),
                    "Default": values[0],
                }
                for key, values in parameters.items()
            ],
            "Conditions": [
                {
                    "Expression": text,
                    "Parameters": [n for n in Expression(text).names if n in parameters],
                }
                for text in conditions
            ],
        },
        "KernelSpecification": {"KernelName": name},
    }
    write_whole(path, json.dumps(document, indent=4) + "\n")
