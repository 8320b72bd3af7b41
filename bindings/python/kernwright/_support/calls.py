"""What is wrong with a call whose arguments do not fit; imported when one fails."""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import kernwright
from kernwright import _core
from kernwright.errors import (
    ArgumentError,
    ArgumentRangeError,
    CaptureError,
    Error,
    InvalidArgument,
    OutOfBounds,
)

_DUMP = "The following argument types are supported"
_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_POSITIONAL_ONLY = inspect.Parameter.POSITIONAL_ONLY
_VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD
_VAR_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
_ANY = inspect.Parameter.POSITIONAL_OR_KEYWORD

_KINDS = {  # pybind11's annotations: words, and what it takes
    "int": ("an int", lambda v: not isinstance(v, float) and _has(v, "__index__", "__int__")),
    "float": ("a number", lambda v: _has(v, "__float__", "__index__")),
    "bool": ("a bool", lambda v: _has(v, "__bool__")),
    "str": ("a str", lambda v: isinstance(v, (str, bytes))),
    "bytes": ("bytes", lambda v: isinstance(v, bytes)),
    "list": ("a list", lambda v: isinstance(v, list)),
    "collections.abc.Callable": ("something to call", callable),
}


class _Parameter(NamedTuple):
    name: str
    kind: Any
    required: bool
    default: str = ""
    annotation: str = ""


def explain_native(
    scope: Any, name: str | None, signature: str | None, args: tuple[Any, ...],
    kwargs: dict[str, Any], error: Exception,
) -> Error | None:  # fmt: skip
    """The error of a call of the extension module; `signature` as pybind11 writes it. None: the
    user's own code raised it."""
    if isinstance(error, CaptureError):
        return _named(error, _call(scope, name) or _method(scope, name))
    if error.__traceback__ is not None:
        return _raised_inside(_call(scope, name), error)
    if signature is None:
        return _typed(error, _head(_call(scope, name)))
    parameters = _parse(signature)
    if isinstance(scope, type) and parameters and parameters[0].name == "self":
        parameters, args = parameters[1:], args[1:]
    return _explain(_call(scope, name), parameters, args, kwargs, error)


def explain_python(
    function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Error | None:
    """The error of a call of `function`, or None: the user's own code raised it."""
    name = function.__qualname__.removesuffix(".__init__")
    package, _, module = function.__module__.partition(".")[2].rpartition(".")
    is_private = any(part.startswith("_") for part in (*package.split("."), module))
    public = "" if is_private or module == name.split(".")[0] else f"{module}."
    call = f"kw.{public}{name}()"
    if isinstance(error, CaptureError):
        return _named(error, call)
    if error.__traceback__ is not None:
        return _raised_inside(call, error)
    parameters = [
        _Parameter(p.name, p.kind, p.default is p.empty, repr(p.default))
        for p in inspect.signature(function).parameters.values()
    ]
    if parameters and parameters[0].name == "self":
        parameters, args = parameters[1:], args[1:]
    return _explain(call, parameters, args, kwargs, error)


def _explain(
    call: str, parameters: list[_Parameter], args: tuple[Any, ...], kwargs: dict[str, Any],
    error: Exception,
) -> Error:  # fmt: skip
    takes = f"; it takes ({_text(parameters)})"
    problem = _unbound(parameters, args, kwargs)
    if problem:
        return ArgumentError(f"{_head(call)}{problem}{takes}")
    given = dict(zip((p.name for p in parameters), args, strict=False)) | kwargs
    for name, value in given.items():
        if (place := _lone_surrogate(value)) is not None:
            return InvalidArgument(
                f"{_head(call)}{name} has a lone surrogate at index {place}, which is no character"
            )
    if _DUMP not in str(error):
        return _typed(error, _head(call))
    wrong = _misfit(parameters, given)
    if wrong is None:
        kinds = ", ".join(f"{name}: {_kind(value)}" for name, value in given.items())
        return ArgumentError(f"{_head(call)}got ({kinds}), which does not fit{takes}")
    parameter, words = wrong
    value = given[parameter.name]
    if words is None:
        return ArgumentRangeError(
            f"{_head(call)}{parameter.name} of {_short(value)} is out of range"
        )
    return ArgumentError(
        f"{_head(call)}{parameter.name} is {words}, got {_kind(value)} {_short(value)}"
    )


def _lone_surrogate(value: Any) -> int | None:
    """Where a str, or one of a list of them, has half of a surrogate pair."""
    for text in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(text, str):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                return error.start
    return None


def _raised_inside(call: str, error: Exception) -> Error | None:
    """The same of an error that code of this package, or a library for it, ran into."""
    if not _is_ours(error):
        return None
    made = _typed(error, _head(call))
    made.__cause__ = error
    return made


def _is_ours(error: Exception) -> bool:
    """Whether no code of the user stands between the call and the error."""
    trace = error.__traceback__
    while trace is not None:
        home = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if home not in ("kernwright", "numpy") and home not in sys.stdlib_module_names:
            return False
        trace = trace.tb_next
    return True


def _named(error: CaptureError, call: str) -> CaptureError | None:
    """The same error; the outermost call of this package, which the user wrote, stands first."""
    if not _is_ours(error):
        return None
    text = re.sub(r"^kw\.[\w.]+\(\): ", "", str(error))
    if call and not text.startswith(call.rpartition(".")[2]):
        text = f"{call}: {text}"
    error.args = (text, *error.args[1:])
    return error


def _method(scope: Any, name: str | None) -> str:
    """A special method, such as those of indexing and conversion."""
    special = isinstance(scope, type) and (name or "").startswith("__")
    return f"{_public(scope.__name__)}.{name}()" if special else ""


def _unbound(
    parameters: list[_Parameter], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """What keeps the arguments from being one for each parameter."""
    positional = [p for p in parameters if p.kind in (_ANY, _POSITIONAL_ONLY)]
    named = [p.name for p in parameters if p.kind in (_ANY, _KEYWORD_ONLY)]
    if not any(p.kind == _VAR_KEYWORD for p in parameters):
        for name in kwargs:
            if name not in named:
                return f"there is no parameter {name}{_nearest(name, named)}"
    filled = {p.name for p in positional[: len(args)]}
    for name in kwargs:
        if name in filled:
            return f"{name} is given twice, by position and by name"
    if len(args) > len(positional) and not any(p.kind == _VAR_POSITIONAL for p in parameters):
        return f"got {len(args)} arguments by position, {len(positional)} at most"
    missing = [p.name for p in parameters if p.required and p.name not in filled | kwargs.keys()]
    return f"{missing[0]} is missing" if missing else None


def _misfit(
    parameters: list[_Parameter], given: dict[str, Any]
) -> tuple[_Parameter, str | None] | None:
    """The first parameter whose value has a wrong type, with the right one in words; None instead
    of words: an int that is out of range."""
    for parameter in parameters:
        if parameter.name in given:
            words, fits = _expected(parameter.annotation)
            value = given[parameter.name]
            if not fits(value) and not (value is None and parameter.default == "None"):
                return parameter, words
    for parameter in parameters:
        value = given.get(parameter.name)
        if (
            parameter.annotation == "int"
            and isinstance(value, int)
            and not -(2**31) <= value < 2**31
        ):
            return parameter, None
    return None


def _expected(annotation: str) -> tuple[str, Callable[[Any], bool]]:
    if annotation in _KINDS:
        return _KINDS[annotation]
    if annotation.startswith("collections.abc.Sequence"):
        return "a list", lambda v: hasattr(v, "__len__") and not isinstance(v, (str, bytes))
    kind = getattr(_core, annotation.rpartition(".")[2], None)
    if isinstance(kind, type) and annotation.startswith("kernwright"):
        return f"a {_public(kind.__name__)}", lambda v: isinstance(v, kind)
    return "", lambda v: True


def _parse(signature: str) -> list[_Parameter]:
    """'(self: A, n: int = 0, *, b: object = None) -> None' as parameters."""
    found, kind = [], _ANY
    for part in _split(signature[1 : signature.rindex(") ->")]):
        if part == "*":
            kind = _KEYWORD_ONLY
        elif part == "/":
            found = [p._replace(kind=_POSITIONAL_ONLY) for p in found]
        elif part.startswith("*"):
            star = _VAR_KEYWORD if part.startswith("**") else _VAR_POSITIONAL
            found.append(_Parameter(part.strip("*").partition(":")[0], star, False))
        else:
            head, _, default = part.partition(" = ")
            name, _, annotation = head.partition(": ")
            annotation = re.sub(r"typing\.Supports(Int|Float) \| typing\.SupportsIndex",
                                lambda m: m[1].lower(), annotation)  # fmt: skip
            found.append(_Parameter(name, kind, not default, default, annotation))
    return found


def _split(text: str) -> list[str]:
    """Parts between the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def _text(parameters: list[_Parameter]) -> str:
    """'n=0, *, device=None'"""
    parts, starred = [], False
    for p in parameters:
        star = {_VAR_POSITIONAL: "*", _VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind == _KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or p.kind in (_VAR_POSITIONAL, _KEYWORD_ONLY)
        parts.append(star + p.name + ("" if p.required or star else f"={p.default}"))
    return ", ".join(parts)


def _nearest(name: str, names: list[str]) -> str:
    close = [known for known in names if known.startswith(name) or name.startswith(known)]
    close = close or difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f" (did you mean {close[0]}?)" if close else ""


def _typed(error: Exception, prefix: str) -> Error:
    kinds: dict[type[Exception], type[Error]] = {
        ValueError: InvalidArgument,
        OverflowError: ArgumentRangeError,
        IndexError: OutOfBounds,
    }
    text = str(error).replace("kernwright._core.", "kw.")
    return kinds.get(type(error), ArgumentError)(prefix + text)


def _call(scope: Any, name: str | None) -> str:
    """How the user called it; "" for what only this package calls, and for operators."""
    if not isinstance(scope, type):
        return f"kw.{name}()" if name and not name.startswith("_") else ""
    if scope.__name__.startswith("_") or ((name or "").startswith("__") and name != "__init__"):
        return ""
    own = _public(scope.__name__)
    return f"{own}()" if name in (None, "", "__init__") else f"{own}.{name}()"


def _head(call: str) -> str:
    return f"{call}: " if call else ""


def _public(name: str) -> str:
    return f"kw.{name}" if name in kernwright.__all__ else f"kw.memory.{name}"


def _has(value: Any, *names: str) -> bool:
    return any(hasattr(type(value), name) for name in names)


def _kind(value: Any) -> str:
    module, name = type(value).__module__, type(value).__qualname__
    if module.startswith("kernwright."):
        return f"kw.{name}"
    return name if module == "builtins" else f"{module}.{name}"


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        return ""
    return text if len(text) <= 60 else text[:60] + "..."
