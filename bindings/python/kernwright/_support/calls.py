"""The mistake in a call with wrong arguments; imported when one fails."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

import kernwright
from kernwright import _core
from kernwright._support.culprit import (
    Culprit,
    called,
    described,
    find,
    is_utf8,
    place_of,
    short,
    without_maker,
)
from kernwright._support.signature import (
    ANY,
    KEYWORD_ONLY,
    RECEIVERS,
    Parameter,
    bound,
    nearest,
    parameters_of,
    parse,
    text_of,
    unbound,
)
from kernwright.errors import (
    ArgumentError,
    ArgumentRangeError,
    CaptureError,
    DivisionByZero,
    Error,
    InvalidArgument,
    NameNotFound,
    OutOfBounds,
)

_MARK = "_kernwright_call"  # the C++ side asks for it
_OR_NONE = " | None"
_DUMP = "The following argument types are supported"
Made = TypeVar("Made", bound=Error)
_KINDS = {  # pybind11's annotations: words, and what it takes
    "int": ("an int", lambda v: not isinstance(v, float) and _has(v, "__index__", "__int__")),
    "float": ("a number", lambda v: _has(v, "__float__", "__index__")),
    "bool": ("a bool", lambda v: _has(v, "__bool__")),
    "str": ("a str", lambda v: isinstance(v, bytes) or (isinstance(v, str) and is_utf8(v))),
    "bytes": ("bytes", lambda v: isinstance(v, bytes)),
    "list": ("a list", lambda v: isinstance(v, list)),
    "collections.abc.Callable": ("something to call", callable),
}


class _Said(NamedTuple):
    """The parts of an error, kept in it: the function called by the user can say it again."""

    finding: Culprit
    text: str  # what Python said, "" where the finding is ours

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        """A pickled or copied error leaves the argument behind."""
        return _nothing, ()


def _nothing() -> None:
    return None


def explain_native(
    scope: Any, name: str | None, signature: str | None, args: tuple[Any, ...],
    kwargs: dict[str, Any], error: Exception,
) -> Error | None:  # fmt: skip
    """The error of a call of the extension module; `signature` as pybind11 writes it. None: the
    user's own code raised it."""
    if isinstance(error, AttributeError):  # who asks whether there is an attribute waits for it
        return None
    call = _call(scope, name)
    parameters = None if signature is None else parse(signature)
    if parameters and parameters[0].name == "self":
        parameters, args = parameters[1:], args[1:]
    return _said(call or _method(scope, name), call, parameters, args, kwargs, error)


def explain_python(
    function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Error | None:
    """The error of a call of `function`, or None: the user's own code raised it."""
    parameters, owner = parameters_of(function), None
    if parameters and parameters[0].name in RECEIVERS:
        owner = _class_of(args[0]) if args else None
        parameters, args = parameters[1:], args[1:]
    call = f"{_path(function, owner)}()"
    return _said(call, call, parameters, args, kwargs, error)


def _said(
    special: str, call: str, parameters: list[Parameter] | None, args: tuple[Any, ...],
    kwargs: dict[str, Any], error: Exception,
) -> Error | None:  # fmt: skip
    if isinstance(error, CaptureError):
        return _named(error, special)
    given = bound(parameters or [], args, kwargs)
    if isinstance(error, Error):
        return _said_again(error, call, given)
    if error.__traceback__ is not None:
        return _raised_inside(call, given, error)
    if parameters is not None:
        return _explain(call, parameters, args, kwargs, error)
    return _typed(error, call, given)


def _class_of(value: Any) -> type | None:
    """The class of this package that the user made or derived from; methods may be inherited."""
    classes = (value if isinstance(value, type) else type(value)).__mro__
    return next((each for each in classes if each.__module__.startswith("kernwright.")), None)


def _path(function: FunctionType, owner: type | None) -> str:
    """How users spell it: kw.nn.softmax of kernwright.nn._softmax."""
    parts = (owner or function).__module__.split(".")[1:]
    private = [i for i, part in enumerate(parts) if part.startswith("_")]
    parts = parts[: private[0]] if private else parts
    name = f"{owner.__qualname__}.{function.__name__}" if owner else function.__qualname__
    name = without_maker(name)
    if not private and parts[-1:] == [name.split(".")[0]]:  # kw.checks() is kw.checks.checks()
        parts = parts[:-1]
    return ".".join(["kw", *parts, name])


def _explain(
    call: str, parameters: list[Parameter], args: tuple[Any, ...], kwargs: dict[str, Any],
    error: Exception,
) -> Error:  # fmt: skip
    takes = f"; it takes ({text_of(parameters)})"
    problem = unbound(parameters, args, kwargs)
    if problem:
        return ArgumentError(f"{_head(call)}{problem}{takes}")
    given = bound(parameters, args, kwargs)
    for name, value in given.items():
        if (place := _lone_surrogate(value)) is not None:
            return InvalidArgument(
                f"{_head(call)}{name} has a lone surrogate at index {place}, which is no character"
            )
    if _DUMP not in str(error):
        return _typed(error, call, given)
    wrong = _misfit(parameters, given)
    if wrong is None:
        return _typed(TypeError("these arguments do not fit"), call, given)
    parameter, words = wrong
    value = given[parameter.name]
    if words is None:
        found = Culprit(parameter.name, f"of {short(value)} is out of range", value)
        return _kept(ArgumentRangeError(f"{_head(call)}{found}"), found)
    found = Culprit(parameter.name, f"is {words}, got {described(value)}", value)
    return _kept(ArgumentError(f"{_head(call)}{found}"), found)


def _lone_surrogate(value: Any) -> int | None:
    """Where a str, or one of a list of them, has half of a surrogate pair."""
    for text in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(text, str):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                return error.start
    return None


def _raised_inside(call: str, given: dict[str, Any], error: Exception) -> Error | None:
    """The same of an error in code of this package, or in a library for it."""
    if not _is_ours(error):
        return None
    inner = called(str(error), error) if type(error) is TypeError else None
    if inner is not None and getattr(inner, "__module__", "").startswith("kernwright."):
        made: Error = _misbound(call, parameters_of(inner), given, error)
    else:
        made = _typed(error, call, given)
    made.__cause__ = error
    return made


def _misbound(
    call: str, parameters: list[Parameter], given: dict[str, Any], error: Exception
) -> Error:
    """The error of a function with its arguments passed on by name."""
    names = [p.name for p in parameters if p.kind in (ANY, KEYWORD_ONLY)]
    named = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    lacking = re.search(r"missing .* arguments?: '(\w+)'", str(error))
    if named and named[1] in given:
        problem = f"there is no parameter {named[1]}{nearest(named[1], names)}"
    elif lacking:
        problem = f"{lacking[1]} is missing"
    else:
        problem = str(error).partition("() ")[2]
    taken = [p for p in parameters if p.name not in RECEIVERS]
    return ArgumentError(f"{_head(call)}{problem}; it takes ({text_of(taken)})")


def _said_again(error: Error, call: str, given: dict[str, Any]) -> Error | None:
    """The same error in the words of the user's own, outer call."""
    said: _Said | None = getattr(error, _MARK, None)
    if said is None or not call or not _is_ours(error):
        return None
    found = said.finding
    if said.text:
        found = find(said.text, given)
    elif found.name not in given:
        name = place_of(found.value, given)
        private = re.fullmatch(r"argument \d+", found.name)
        found = found._replace(name=name or ("an argument" if private else found.name))
    error.args = (f"{_head(call)}{found}", *error.args[1:])
    return _kept(error, found, said.text)


def misfit(name: str, words: str, value: Any) -> ArgumentError:
    """The error for a parameter that "is {words}". The function that the user called puts its own
    name in front."""
    found = Culprit(name, f"is {words}, got {described(value)}", value)
    return _kept(ArgumentError(str(found)), found)


def _kept(error: Made, finding: Culprit, text: str = "") -> Made:
    setattr(error, _MARK, _Said(finding, text))
    return error


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
    """The same error; the user's own, outermost call of this package stands first."""
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
    if special and scope.__name__.startswith("_"):
        return ""
    return f"{_public(scope.__name__)}.{name}()" if special else ""


def _misfit(
    parameters: list[Parameter], given: dict[str, Any]
) -> tuple[Parameter, str | None] | None:
    """The first parameter with a value of a wrong type, and the right one in words; None instead
    of words: an int that is out of range."""
    for parameter in parameters:
        if parameter.name in given:
            words, fits = _expected(parameter.annotation.removesuffix(_OR_NONE))
            value = given[parameter.name]
            takes_none = parameter.default == "None" or parameter.annotation.endswith(_OR_NONE)
            if not fits(value) and not (value is None and takes_none):
                return parameter, words
    for low in (-(2**31), 0):
        for parameter in parameters:
            value = given.get(parameter.name)
            is_int = parameter.annotation.removesuffix(_OR_NONE) == "int"
            if is_int and isinstance(value, int) and not low <= value < 2**31:
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


def _typed(error: Exception, call: str, given: dict[str, Any]) -> Error:
    kinds: tuple[tuple[type[Exception], type[Error]], ...] = (
        (OverflowError, ArgumentRangeError),
        (IndexError, OutOfBounds),
        (KeyError, NameNotFound),
        (ValueError, InvalidArgument),
        (ZeroDivisionError, DivisionByZero),
        (ArithmeticError, InvalidArgument),
    )
    kind = next((ours for plain, ours in kinds if isinstance(error, plain)), ArgumentError)
    text = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    if isinstance(error, IndexError):
        return kind(_head(call) + text)
    found = find(text, given)
    return _kept(kind(f"{_head(call)}{found}"), found, text)


def _call(scope: Any, name: str | None) -> str:
    """How the user called it; "" for calls of this package alone, and for operators."""
    if not isinstance(scope, type):
        return f"kw.{name}()" if name and not name.startswith("_") else ""
    if scope.__name__.startswith("_") or ((name or "").startswith("__") and name != "__init__"):
        return ""
    own = _public(scope.__name__)
    return f"{own}()" if name in (None, "", "__init__") else f"{own}.{name}()"


def _head(call: str) -> str:
    return f"{call}: " if call else ""


def _public(name: str) -> str:
    return f"kw.memory.{name}" if name in kernwright.memory.__all__ else f"kw.{name}"


def _has(value: Any, *names: str) -> bool:
    """Whether its type has one of these methods, and it is no array of several elements."""
    try:
        if getattr(value, "shape", ()) not in ((), None):
            return False
    except Error:  # an array that was never made
        return False
    return any(hasattr(type(value), name) for name in names)
