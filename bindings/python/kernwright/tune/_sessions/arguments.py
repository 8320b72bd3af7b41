"""Arguments of a tuned kernel: buffers and values for the worker, and their results."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from kernwright import _core
from kernwright.errors import ArgumentError, ArgumentRangeError, InvalidArgument
from kernwright.tune._store import _fingerprint

Parameter = tuple[str, str, bool, Any, int, int]  # name, type, is a pointer, dtype, lanes, size


def _host_array(value: Any, place: int) -> np.ndarray[Any, Any] | None:
    """The contents of an array of any library; None for a value."""
    if isinstance(value, _core.HostArgument):
        value = value.array
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value) if value.ndim else value.copy()
    if isinstance(value, (np.generic, bytes)) or value is None:
        return None
    if isinstance(value, _core.Array):
        return np.ascontiguousarray(value.numpy())
    if hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__"):
        from kernwright import asarray

        try:
            return np.ascontiguousarray(np.from_dlpack(value))
        except (BufferError, RuntimeError, TypeError, AttributeError, ValueError):
            return np.ascontiguousarray(asarray(value).numpy())
    if isinstance(value, _core.Pointer):
        raise ArgumentError(
            f"argument {place} is an address, which means nothing in the process that runs trials: "
            "pass an array"
        )
    return None


def _integer(value: Any, dtype: np.dtype[Any]) -> bytes:
    if not hasattr(value, "__index__"):
        raise ArgumentError(f"a {type(value).__name__} where {dtype} is wanted")
    number = value.__index__()
    limits = np.iinfo(dtype)
    if not limits.min <= number <= limits.max:
        raise ArgumentRangeError(f"{number} does not fit {dtype}")
    return np.array(number, dtype).tobytes()


def _scalar(value: Any, dtype: np.dtype[Any]) -> bytes:
    if dtype.kind in "iu":
        return _integer(value, dtype)
    if dtype.kind == "b":
        return np.array(bool(value), dtype).tobytes()
    if isinstance(value, (str, bytes)):
        raise ArgumentError(f"a {type(value).__name__} where {dtype} is wanted")
    number = complex(value) if dtype.kind == "c" else float(value)
    return np.array(number).astype(dtype).tobytes()


def value_bytes(value: Any, parameter: Parameter) -> bytes:
    """The bytes of a parameter other than an array."""
    _, type_name, is_pointer, dtype, lanes, size = parameter
    if is_pointer:
        if value is None:
            return bytes(size)
        raise ArgumentError(f"a {type(value).__name__} where {type_name} wants an array or None")
    if hasattr(value, "value") and not isinstance(value, np.generic):  # ctypes
        value = value.value
    if isinstance(value, (bytes, np.void)) or (
        isinstance(value, np.ndarray) and (dtype is None or value.dtype.fields)
    ):
        data = value if isinstance(value, bytes) else value.tobytes()
    elif dtype is None:
        if not hasattr(value, "__index__"):
            raise ArgumentError(
                f"a {type(value).__name__} where {type_name} wants {size} bytes: pass bytes or a "
                "NumPy value of that size"
            )
        data = int(value.__index__()).to_bytes(size, "little", signed=value < 0)
    elif lanes > 1 or isinstance(value, (tuple, list, np.ndarray)):
        items = list(np.ravel(value)) if isinstance(value, np.ndarray) else list(value)
        if len(items) != lanes:
            raise ArgumentError(f"{len(items)} values where {type_name} has {lanes}")
        data = b"".join(_scalar(item, np.dtype(dtype)) for item in items)
    else:
        data = _scalar(value, np.dtype(dtype))
    if len(data) != size:
        raise ArgumentError(f"{len(data)} bytes where {type_name} has {size}")
    return data


def _fits(array: np.ndarray[Any, Any], dtype: Any, lanes: int) -> bool:
    if dtype is None or _is_opaque(array.dtype):
        return True
    wanted = np.dtype(dtype)
    if wanted.fields or wanted == array.dtype:
        return True
    if wanted.itemsize == 1 and wanted.kind in "iu":
        return bool(array.dtype.itemsize == 1)
    pairs = array.dtype.kind == "c" and lanes in (2, 4)
    return bool(pairs and wanted == np.dtype(f"f{array.dtype.itemsize // 2}"))


def wrong_count(names: Sequence[str], given: int) -> ArgumentError:
    """The error for a kernel with parameters of these names."""
    count = "1 argument" if len(names) == 1 else f"{len(names)} arguments"
    listed = f" ({', '.join(names)})" if any(names) else ""
    return ArgumentError(f"the kernel takes {count}{listed}, the session has {given}")


class Arguments:
    """Copies of the arguments, made once: later changes of them do not reach a session.

    `values[i]` is a NumPy array or the value itself; `places[i]` the buffer of argument i or None.
    """

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.values: list[Any] = []
        self.places: list[int | None] = []
        self.buffers: list[np.ndarray[Any, Any]] = []
        self.poisoned: list[bool] = []
        if isinstance(arguments, (str, bytes, np.ndarray)) or not hasattr(arguments, "__iter__"):
            raise ArgumentError(
                f"args= is a tuple or list of arguments, got {type(arguments).__name__}"
            )
        known: dict[int, int] = {}
        for place, given in enumerate(arguments):
            array = _host_array(given, place)
            if array is not None and array.dtype.hasobject:
                raise ArgumentError(f"argument {place} is an array of Python objects")
            if array is None:
                self.values.append(given)
                self.places.append(None)
                continue
            identity = id(given.array if isinstance(given, _core.HostArgument) else given)
            if identity not in known:
                known[identity] = len(self.buffers)
                self.buffers.append(np.array(array, order="C", copy=True))
                self.poisoned.append(isinstance(given, _core.Out))
            self.values.append(self.buffers[known[identity]])
            self.places.append(known[identity])

    def pack(self, parameters: Sequence[Parameter]) -> list[Any]:
        """For a kernel with these parameters: bytes, or (buffer, offset). ArgumentError."""
        if len(parameters) != len(self.values):
            raise wrong_count([parameter[0] for parameter in parameters], len(self.values))
        packed: list[Any] = []
        for i, (parameter, value, place) in enumerate(
            zip(parameters, self.values, self.places, strict=True)
        ):
            name, type_name, is_pointer, dtype, lanes = parameter[:5]
            try:
                if place is None or not is_pointer:
                    packed.append(value_bytes(value, parameter))
                    continue
                if not _fits(value, dtype, lanes):
                    raise ArgumentError(f"an array of {value.dtype} where {type_name} is wanted")
            except (ArgumentError, ArgumentRangeError, TypeError, OverflowError) as error:
                raise ArgumentError(f"argument {i} ({name}): {error}") from None
            packed.append((place, 0))
        return packed

    def contents(self, compared: Collection[int]) -> list[tuple[np.ndarray[Any, Any], bool, bool]]:
        """The bytes of each buffer, whether it is poisoned, and whether it is in `compared`."""
        views = [buffer.reshape(-1).view(np.uint8) for buffer in self.buffers]
        looked_at = [place in compared for place in range(len(views))]
        return list(zip(views, self.poisoned, looked_at, strict=True))

    def inputs(self) -> list[Any]:
        """Fresh copies for a reference."""
        return [np.array(v) if isinstance(v, np.ndarray) else v for v in self.values]

    def describe(self) -> list[str]:
        """Shapes, dtypes and values, by which sessions are told apart."""
        return [
            f"{value.dtype}{list(value.shape)}"
            if isinstance(value, np.ndarray)
            else (value.hex() if isinstance(value, bytes) else repr(value))
            for value in self.values
        ]


# A trial's verified launches. Trials of a store with fewer are measured again.
_LAUNCHES = 5
_CHUNK = 1 << 15  # elements compared at once, so that what is made of them stays in the cache
_RTOL = {"float16": 1e-2, "bfloat16": 2e-2, "float32": 1e-4, "complex64": 1e-4}


def _is_opaque(dtype: np.dtype[Any]) -> bool:
    """A struct or bytes; the types of ml_dtypes are numbers, whose kind is "V" as well."""
    return dtype.fields is not None or issubclass(dtype.type, np.void)


def _default_rtol(dtype: np.dtype[Any]) -> float:
    if dtype.kind in "iub":
        return 0.0
    return _RTOL.get(dtype.name, 0.1 if dtype.itemsize == 1 else 1e-8)


class Expected:
    """The expected values of an array of `dtype`, and the allowed error of an element. Immutable.

    Integers are equal where no tolerance is given; NaN is right only where NaN is wanted.
    """

    def __init__(
        self,
        wanted: np.ndarray[Any, Any],
        dtype: np.dtype[Any],
        rtol: float | None,
        atol: float | None,
    ) -> None:
        self.wanted = np.array(wanted, order="C")
        self._kind: Any = None  # in which elements are compared; None: as they are
        if _is_opaque(dtype):
            return
        exact = rtol is None and atol is None
        if rtol is None:
            rtol = max(_default_rtol(dtype), _default_rtol(wanted.dtype))
        if exact and rtol == 0:
            atol = 0.0
        else:
            self._kind = np.complex128 if "c" in (wanted.dtype.kind, dtype.kind) else np.float64
        rtol = float(rtol)
        if atol is None:
            values = self.wanted.astype(self._kind)
            with np.errstate(invalid="ignore", over="ignore"):
                finite = np.abs(values[np.isfinite(values)])
                atol = rtol * float(finite.mean()) if finite.size else 0.0
        self._rtol, self._atol = rtol, float(atol)

    def _wrong(
        self, got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any] | None:
        """Which elements; None for none."""
        if got.dtype == wanted.dtype and (got == wanted).all():
            return None
        if self._kind is None:
            return np.asarray(got != wanted)
        a, b = got.astype(self._kind), wanted.astype(self._kind)
        close = np.abs(a - b) <= self._atol + self._rtol * np.abs(b)
        if close.all():
            return None
        return np.asarray(~(close | (a == b) | (np.isnan(a) & np.isnan(b))))

    def difference(self, got: np.ndarray[Any, Any]) -> str | None:
        """Where `got`, of the same shape, is wrong."""
        if _is_opaque(got.dtype):
            same = got.tobytes() == self.wanted.astype(got.dtype).tobytes()
            return None if same else ": bytes differ"
        flat, wanted = got.reshape(-1), self.wanted.reshape(-1)
        first, count = 0, 0
        with np.errstate(invalid="ignore", over="ignore"):
            for begin in range(0, flat.size, _CHUNK):
                chunk = slice(begin, begin + _CHUNK)
                wrong = self._wrong(flat[chunk], wanted[chunk])
                if wrong is None or not wrong.any():
                    continue
                first = first if count else begin + int(np.argmax(wrong))
                count += int(wrong.sum())
        if not count:
            return None
        index = ", ".join(str(int(i)) for i in np.unravel_index(first, got.shape))
        return (
            f"[{index}] is {flat[first]}, not {wanted[first]}; {count} of {flat.size} differ "
            f"(rtol={self._rtol:.3g}, atol={self._atol:.3g})"
        )


def _identity_of(value: Any) -> str:
    """Of an expected value: equal texts mean equal values."""
    array = None if value is None else _host_array(value, 0)
    if array is None:
        return repr(value)
    return f"{array.dtype}{array.shape}:{hashlib.sha256(array.tobytes()).hexdigest()[:16]}"


class Verifier:
    """Compares the results of launches in the arguments with the expected ones."""

    def __init__(
        self,
        arguments: Arguments,
        verify: Any,
        rtol: float | None,
        atol: float | None,
        compare: Any = None,
    ) -> None:
        for name, value in (("rtol", rtol), ("atol", atol)):
            if value is not None and (
                isinstance(value, (bool, str)) or not hasattr(value, "__float__") or not value >= 0
            ):
                raise InvalidArgument(f"{name}= is a number of at least 0, got {value!r}")
        self._arguments = arguments
        self._rtol, self._atol, self._compare = rtol, atol, compare
        self._expected: dict[int, Expected] | None = None
        # The last bytes that were right, by argument: equal ones are, too.
        self._right: dict[int, bytes | None] = {}
        self.wants_default = isinstance(verify, str)
        if compare is not None:  # it alone decides, and the shape of an answer is its business
            self._answer = [None] * len(arguments.values) if verify is None else verify
            self._expected = {}
            return
        if isinstance(verify, str):
            if verify != "default":
                raise InvalidArgument(
                    f'verify= is a callable, expected values or "default", got {verify!r}'
                )
            return
        self._expected = self._read(verify(*arguments.inputs()) if callable(verify) else verify)

    def identity(self, default: Any) -> str:
        """The measure for results: equal texts mean equal checks. `default` is the
        configuration whose results are expected with verify="default"."""
        parts = [f"rtol={self._rtol}", f"atol={self._atol}", f"launches={_LAUNCHES}"]
        if self._compare is not None:
            parts.append(f"compare={_fingerprint(self._compare)}")
            parts += [_identity_of(value) for value in self._answer]
        if self.wants_default:
            parts.append(f"default={default!r}")
        for i, expected in sorted((self._expected or {}).items()):
            parts.append(f"{i}:{hashlib.sha256(expected.wanted.tobytes()).hexdigest()[:16]}")
        return ", ".join(parts)

    @property
    def compared(self) -> set[int]:
        """The buffers that are looked at."""
        places = self._arguments.places
        if self._expected is None or self._compare is not None:
            return {place for place in places if place is not None}
        return {place for i in self._expected if (place := places[i]) is not None}

    def _expect(self, i: int, wanted: np.ndarray[Any, Any]) -> Expected:
        return Expected(wanted, self._arguments.values[i].dtype, self._rtol, self._atol)

    def _read(self, given: Any) -> dict[int, Expected]:
        count = len(self._arguments.values)
        arrays = [i for i, place in enumerate(self._arguments.places) if place is not None]
        if isinstance(given, (str, bytes, Mapping, set)):
            raise ArgumentError(
                f"verify= gave a {type(given).__name__}: a tuple of expected values is wanted, one "
                "for each argument, None where none is compared"
            )
        if isinstance(given, np.ndarray) or not isinstance(given, (list, tuple)):
            outs = [i for i in arrays if self._arguments.poisoned[self._arguments.places[i] or 0]]
            if len(outs) != 1 and len(arrays) != 1:
                raise InvalidArgument(
                    f"verify= gave a {type(given).__name__}: a tuple of {count} is wanted, one "
                    "expected value for each argument, None where none is compared"
                )
            only = (outs or arrays)[0]
            given = [given if i == only else None for i in range(count)]
        if len(given) != count:
            raise InvalidArgument(
                f"verify= gave {len(given)} expected values for {count} arguments: one for each, "
                "None where none is compared"
            )
        expected = {}
        for i, value in enumerate(given):
            if value is None:
                continue
            if self._arguments.places[i] is None:
                continue  # a value is not changed by a launch
            own = self._arguments.values[i]
            wanted = _host_array(value, i)
            wanted = np.asarray(value) if wanted is None else wanted
            if wanted.shape != own.shape:
                raise InvalidArgument(
                    f"the expected value of argument {i} has the shape {wanted.shape}, the "
                    f"argument has {own.shape}"
                )
            if wanted.dtype.kind == "c" and own.dtype.kind != "c":
                raise InvalidArgument(
                    f"the expected value of argument {i} is complex, the argument is {own.dtype}"
                )
            expected[i] = self._expect(i, wanted)
        if not expected:
            raise InvalidArgument("verify= expects no value of any argument: nothing is compared")
        return expected

    def __call__(self, outputs: Sequence[tuple[int, bytes]]) -> str | None:
        """The mistake, or None. The first outputs are expected from then on where verify= is
        "default"."""
        contents = dict(outputs)
        got = {
            i: np.frombuffer(contents[place], own.dtype).reshape(own.shape)
            for i, (own, place) in enumerate(
                zip(self._arguments.values, self._arguments.places, strict=True)
            )
            if place is not None and place in contents
        }
        if self._expected is None:
            if not got:
                raise InvalidArgument(
                    'verify="default": the kernel writes none of its arguments, so that there is '
                    "nothing to compare"
                )
            self._expected = {i: self._expect(i, value) for i, value in got.items()}
            return None
        if self._compare is not None:
            return self._ask_caller(got)
        right = dict(self._right)
        for i, expected in self._expected.items():
            place = self._arguments.places[i]
            # None: what the kernel takes as const is as it was.
            data = None if place is None else contents.get(place)
            if i in right and right[i] == data:
                continue
            difference = expected.difference(got.get(i, self._arguments.values[i]))
            if difference is not None:
                return f"argument {i}{difference}"
            right[i] = data
        self._right = right
        return None

    def _ask_caller(self, got: dict[int, np.ndarray[Any, Any]]) -> str | None:
        results = [got.get(i, value) for i, value in enumerate(self._arguments.values)]
        is_right = self._compare(self._answer, results, self._atol)
        return None if is_right else "verify= says it is wrong"
