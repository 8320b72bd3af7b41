"""Task: the measure for a kernel."""

from __future__ import annotations

import math
import operator
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

import numpy

from kernwright import _core
from kernwright._jit.options import ProgramOptions, make_options
from kernwright._judging.values import Kinds, Packed, from_torch, pack, pack_array
from kernwright.errors import ArgumentError, Error, InvalidArgument

ALLOWED = ("malloc", "printf", "clock", "nan")
_NAME = re.compile(r"(::\s*)?[^\W\d]\w*(\s*::\s*[^\W\d]\w*)*\s*(<[^;{}#]*>)?$")
_LAST_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$")
_TYPED_NAME = re.compile(r"\([^;{}#]*\)\s*[^;{}#()]+$")  # (void (*)(float*))name


class Task:
    """A kernel's call, its inputs and its expected results.

    - `entry`: the kernel's name. `signature`: the parameters in C++, as ``"const float* x, float*
      y, int n"``; None accepts any that take the inputs.
    - ``inputs(seed, case)``: a NumPy array or number for each parameter, equal for the same seed
      and case; `case` counts from 0 to `cases` - 1.
    - ``reference(*inputs)``: a tuple with the expected value of each argument (None: unchanged), or
      one array if only one argument is not const. NumPy arrays or torch tensors, best in float64.
    - `grid`, `block`, `shared_bytes`, `cluster`: numbers, tuples, or functions of the inputs.
      Without `grid`: a thread for each element of the largest written array.
    - `rtol`, `atol`: an element is right if ``|got - expected| <= atol + rtol * |expected|``.
      Defaults are torch.testing's for the dtype; integers must be equal.
    - `bytes`, `flops`: the least work of any implementation, a number or a function of the inputs.
      A time below the device's limit for this work gives the verdict "impossible".
    - `workspace`: scratch arguments, by number or name: not compared, with any contents before a
      launch; the reference returns None for them.
    - `inout`: arguments with contents for the kernel, such as counters at zero, though the
      reference does not read them. Without it a kernel may at most add to an output.
    - `timed`: the case to time; by default the one with the most bytes.
    - `allow`: permits "malloc", "printf", "clock", or "nan" in expected values.
    - `options` and further fields: as for kernel(). A text includes these `headers`, those of CUDA
      and of this package, and no others.

    Outputs hold random bytes, zeros or earlier results before a launch. `inputs` and `reference`
    run in this process, on any thread, one at a time. Up to 256 MiB of cases are kept.

    >>> task = kw.Task(
    ...     entry="twice",
    ...     signature="const float* x, float* y, int n",
    ...     inputs=kw.Inputs(x="float32[n]", y="float32[n]", n="size", most=1000),
    ...     reference=lambda x, y, n: (None, 2 * x, None),
    ... )
    >>> text = '''__global__ void twice(const float* x, float* y, int n) {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) y[i] = 2 * x[i];
    ... }'''
    >>> kw.judge(text, task).status
    'accepted'
    """

    def __init__(
        self,
        *,
        entry: str,
        inputs: Callable[[int, int], Iterable[Any]],
        reference: Callable[..., Any],
        signature: str | None = None,
        grid: Any = None,
        block: Any = None,
        shared_bytes: Any = 0,
        cluster: Any = None,
        cooperative: bool = False,
        rtol: float | None = None,
        atol: float | None = None,
        bytes: float | Callable[..., float] | None = None,
        flops: float | Callable[..., float] | None = None,
        cases: int = 8,
        workspace: int | str | Iterable[int | str] = (),
        inout: int | str | Iterable[int | str] = (),
        timed: int | None = None,
        allow: Iterable[str] = (),
        options: ProgramOptions | None = None,
        **option_fields: Any,
    ) -> None:
        self.entry = _entry(entry)
        self.signature = None if signature is None else _text("signature", signature)
        self.inputs = _function("inputs", inputs)
        self.reference = _function("reference", reference)
        self.grid, self.block, self.cluster = grid, block, cluster
        self.shared_bytes, self.cooperative = shared_bytes, bool(cooperative)
        for name, extents in (("grid", grid), ("block", block), ("cluster", cluster)):
            if extents is not None and not callable(extents):
                _dim3(name, extents)
        self.rtol, self.atol = _number("rtol", rtol), _number("atol", atol)
        self.bytes = bytes if callable(bytes) else _number("bytes", bytes)
        self.flops = flops if callable(flops) else _number("flops", flops)
        self.cases = _whole("cases", cases)
        names = _parameter_names(self.signature, inputs)
        self.workspace = _arguments("workspace", workspace, names)
        self.inout = _arguments("inout", inout, names)
        if both := self.workspace & self.inout:
            raise InvalidArgument(
                f"argument {min(both)} of a task cannot be both workspace and inout: the contents "
                "of a workspace do not matter"
            )
        self.timed = None if timed is None else _whole("timed", timed)
        self.allow = _words(allow)
        self.options = make_options(options, option_fields)
        self._lock = threading.RLock()
        self._drawn = _core._DrawnCases()

    def __repr__(self) -> str:
        signature = "" if self.signature is None else f", signature={self.signature!r}"
        return f"Task(entry={self.entry!r}{signature}, cases={self.cases})"


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ArgumentError(f"a task's {name} is a str, got {type(value).__name__}")
    if not value.strip() or "\0" in value:
        raise InvalidArgument(f"a task's {name} cannot be {value!r}")
    return value


def _entry(value: Any) -> str:
    """Raises for what can name no kernel, so that no text is blamed for it."""
    text = _text("entry", value).strip()
    if not _NAME.match(text) and not _TYPED_NAME.match(text):
        raise InvalidArgument(
            f'a task\'s entry is the name of a kernel, such as "saxpy", "space::saxpy" or '
            f'"saxpy<float>", not {text!r}'
        )
    return text


def _function(name: str, value: Any) -> Callable[..., Any]:
    if not callable(value):
        raise ArgumentError(f"a task's {name} is a function, got {type(value).__name__}")
    return value  # type: ignore[no-any-return]


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        if isinstance(value, str):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"a task's {name} is a number, got {value!r}") from None
    except OverflowError:
        number = math.inf
    if not 0 <= number < math.inf:
        raise InvalidArgument(f"a task's {name} is a finite number from 0 on, got {value!r}")
    return number


def _whole(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"a task's {name} is an int, got {value!r}") from None
    if not 0 <= number < 1 << 31:
        raise InvalidArgument(f"a task's {name} cannot be {number}")
    return number


def _words(allow: Any) -> frozenset[str]:
    if isinstance(allow, str) or not isinstance(allow, Iterable):
        raise ArgumentError('a task\'s allow is a list of words, as ["malloc"]')
    words = frozenset(allow)
    for word in words:
        if word not in ALLOWED:
            raise InvalidArgument(f"a task can allow {', '.join(ALLOWED)}, not {word!r}")
    return words


def _parameter_names(signature: str | None, inputs: Any) -> list[str]:
    """As the signature has them, else as kw.Inputs has; empty where neither tells."""
    if signature is not None:
        inside = signature.rpartition(")")[0].partition("(")[2] or signature
        found = [_LAST_NAME.search(part) for part in _top_level_parts(inside)]
        return [match[1] if match else "" for match in found]
    return list(getattr(inputs, "names", ()))


def _top_level_parts(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "<([{") - (c in ">)]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def _arguments(word: str, value: Any, names: list[str]) -> frozenset[int]:
    """Numbers of arguments, given as such or by name."""
    alone = isinstance(value, (int, str)) and not isinstance(value, bool)
    chosen = [value] if alone else value
    if isinstance(chosen, (bool, bytes, Mapping)) or not isinstance(chosen, Iterable):
        raise ArgumentError(f"a task's {word} is a list of arguments, as [2] or ['scratch']")
    numbers = set()
    for each in chosen:
        if isinstance(each, str):
            if each not in names:
                there = ", ".join(filter(None, names)) or "none has a name here: give its number"
                raise InvalidArgument(f"a task's {word} names no argument {each!r}: {there}")
            numbers.add(names.index(each))
        else:
            number = _whole(word, each)
            if names and number >= len(names):
                raise InvalidArgument(
                    f"a task's {word} names argument {number}: there are {len(names)}, from 0 on"
                )
            numbers.add(number)
    return frozenset(numbers)


def _is_row(made: Any) -> bool:
    """Whether it has an order: a dict or a set has none that the kernel's parameters know."""
    unordered = (Mapping, Set, str, bytes)
    return isinstance(made, Iterable) and not isinstance(made, unordered)


def _dim3(name: str, value: Any) -> tuple[int, int, int]:
    extents = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    try:
        numbers = [operator.index(extent) for extent in extents]
    except TypeError:
        raise ArgumentError(f"a task's {name} is up to three ints, got {value!r}") from None
    if not 1 <= len(numbers) <= 3 or not all(0 <= number < 1 << 32 for number in numbers):
        raise InvalidArgument(f"a task's {name} is one to three numbers from 0 on, got {value!r}")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


class Functions:
    """A task as the extension takes it: its functions take and return packed values, and what they
    raise names them."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._kinds: Kinds | None = None
        self.entry, self.signature = task.entry, task.signature or ""
        self.rtol, self.atol = task.rtol, task.atol
        self.cases, self.timed_case = task.cases, task.timed
        self.drawn = task._drawn
        self.allow = set(task.allow)
        self.workspace, self.inout = set(task.workspace), set(task.inout)
        self.bytes = None if task.bytes is None else self._amount("bytes", task.bytes)
        self.flops = None if task.flops is None else self._amount("flops", task.flops)

    def _call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            with self._task._lock:
                return function(*arguments)
        except Error:
            raise
        except Exception as error:
            text = f"the task's {what} raised {type(error).__name__}: {error}"
            raise InvalidArgument(text) from error

    def inputs(self, seed: int, case: int) -> list[Packed]:
        what = f"inputs({seed}, {case})"
        made = self._call(what, self._task.inputs, seed, case)
        if isinstance(made, numpy.ndarray) or not _is_row(made):
            raise ArgumentError(
                f"the task's {what} returned a {type(made).__name__}, not a tuple with a value "
                "for each parameter, in their order"
            )
        values = list(made)
        self._kinds = Kinds(values)
        return [pack(value, f"{what}, argument {i}") for i, value in enumerate(values)]

    def _unpack(self, packed: list[Packed]) -> list[Any]:
        assert self._kinds is not None
        return self._kinds.unpack(packed)

    def reference(self, packed: list[Packed]) -> list[Packed | None]:
        values = self._unpack(packed)
        # Outputs may hold any bytes, signaling NaN among them.
        with numpy.errstate(invalid="ignore", over="ignore"):
            made = from_torch(self._call("reference", self._task.reference, *values))
        written = [i for i, value in enumerate(packed) if value[0] == "array"]
        if isinstance(made, numpy.ndarray):
            made = self._one_written(made, packed, written)
        if not _is_row(made):
            raise ArgumentError(
                f"the task's reference returned a {type(made).__name__}, not a tuple with an "
                "expected value (or None) for each parameter, in their order"
            )
        return [self._expected(each, i, packed) for i, each in enumerate(made)]

    def _one_written(
        self, made: numpy.ndarray[Any, Any], packed: list[Packed], arrays: list[int]
    ) -> list[Any]:
        """A single array is for the only writable argument."""
        parts = self.signature.rpartition(")")[0].partition("(")[2] or self.signature
        declared = parts.split(",") if parts else []
        if len(declared) == len(packed):
            arrays = [i for i in arrays if "const" not in declared[i]]
        arrays = [i for i in arrays if i not in self.workspace]
        if len(arrays) != 1:
            raise InvalidArgument(
                "the task's reference returned one array, and more than one argument may be "
                "written: return a tuple with a value (or None) for each argument"
            )
        expected: list[Any] = [None] * len(packed)
        expected[arrays[0]] = made
        return expected

    @staticmethod
    def _expected(value: Any, index: int, packed: list[Packed]) -> Packed | None:
        value = from_torch(value)
        if value is None:
            return None
        what = f"the reference's value for argument {index}"
        try:
            array = numpy.asarray(value)
        except ValueError as error:
            raise InvalidArgument(f"{what} is no array: {error}") from error
        if array.dtype == object:
            raise ArgumentError(f"{what} is a {type(value).__name__}, not an array of numbers")
        if index < len(packed) and packed[index][0] == "array":
            is_plain = not isinstance(value, (numpy.ndarray, numpy.generic))
            if is_plain and array.dtype.kind in "iu" and "int" not in packed[index][1]:
                array = array.astype(numpy.float64)  # Python's own numbers have no dtype
            if array.ndim == 0:
                array = numpy.broadcast_to(array, packed[index][2])  # one number for all elements
        return pack_array(array, what)

    def launch(self, packed: list[Packed]) -> tuple[Any, ...]:
        task = self._task
        values = self._unpack(packed)

        def extents(name: str, value: Any) -> tuple[int, int, int] | None:
            if callable(value):
                value = self._call(name, value, *values)
            return None if value is None else _dim3(name, value)

        shared = task.shared_bytes
        if callable(shared):
            shared = self._call("shared_bytes", shared, *values)
        return (
            extents("grid", task.grid),
            extents("block", task.block),
            _whole("shared_bytes", shared),
            extents("cluster", task.cluster),
            task.cooperative,
        )

    def _amount(self, name: str, value: Any) -> Callable[[list[Packed]], float]:
        def amount(packed: list[Packed]) -> float:
            made = value
            if callable(value):
                made = self._call(name, value, *self._unpack(packed))
            return _number(name, made) or 0.0

        return amount
