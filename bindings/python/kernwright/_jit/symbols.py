"""Variables of the device as arrays: of numbers, and of structs with NumPy's structured dtypes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._jit.structs import Layout
from kernwright.errors import ArgumentError, InvalidArgument

_TYPES = {
    "bool": "bool",
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    "int": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "long": "int64",
    "unsigned long": "uint64",
    "long long": "int64",
    "unsigned long long": "uint64",
    "size_t": "uint64",
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "__half": "float16",
    "__nv_bfloat16": "bfloat16",
    "__nv_fp8_e4m3": "float8_e4m3fn",
    "__nv_fp8_e5m2": "float8_e5m2",
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_QUALIFIERS = {"static", "const", "volatile", "extern", "constexpr", "inline", "__managed__"}
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def declared_type(text: str, name: str) -> tuple[str | None, tuple[int, ...] | None]:
    """(dtype, shape) of the variable, None for what the declaration does not tell plainly.

    Extents that are no literals leave the shape to the variable's size.
    """
    plain = re.sub(r"<.*", "", name).rsplit("::", 1)[-1]
    pattern = re.compile(
        rf"__(?:device|constant|managed)__\s+([\w\s]+?)\s+{re.escape(plain)}"
        r"\s*((?:\[[^\]]*\]\s*)*)[;={]"
    )
    match = pattern.search(_COMMENTS.sub(" ", text))
    if match is None:
        return None, None
    words = [
        word
        for word in match[1].split()
        if word not in _QUALIFIERS and word not in ("__device__", "__constant__")
    ]
    dtype = _TYPES.get(" ".join(words))
    extents = re.findall(r"\[([^\]]*)\]", match[2])
    if dtype is None or not all(extent.strip().isdigit() for extent in extents):
        return dtype, None
    return dtype, tuple(int(extent) for extent in extents)


def variable(
    program: _core._Program,
    name: str,
    dtype: Any,
    shape: tuple[int, ...] | None,
    device: Any,
) -> _core.Array | StructArray:
    """The variable with its own type, or the given one."""
    layout = None
    if dtype is None:
        known, extents, nbytes = program.symbol_type(name, device)
        if isinstance(known, Layout):
            layout, known = known, known.dtype
        told: tuple[Any, tuple[int, ...] | None] = known, extents
        if told[0] is None:
            told = declared_type(program.text, name)
        if told[0] is None:  # nothing is known but the size
            told = np.dtype(f"V{nbytes}"), ()
        dtype = told[0]
        shape = told[1] if shape is None else shape
    structured = isinstance(dtype, (np.dtype, list)) and np.dtype(dtype)
    if structured and structured.kind == "V" and _is_opaque(structured):
        if layout is None and structured.names:
            layout = _checked_layout(program, name, structured, device)
        return StructArray(program, name, structured, shape, device, layout)
    return program.symbol(name, dtype, shape, device)


def _checked_layout(
    program: _core._Program, name: str, dtype: np.dtype[Any], device: Any
) -> Layout | None:
    """The layout of elements of a dtype for a variable; refuses a wrong one."""
    known = program.symbol_type(name, device)[0]
    if not isinstance(known, Layout):
        return None
    count, rest = divmod(dtype.itemsize, known.size)
    layout = known if rest or count < 2 else known.repeated(count)
    problem = layout.mismatch(dtype)
    if problem:
        raise ArgumentError(
            f'{name} has another layout than the given dtype: {problem}; symbol("{name}").dtype is '
            "its layout, and .bytes are its bytes"
        )
    return layout


def _is_opaque(dtype: np.dtype[Any]) -> bool:
    """Whether elements are structs or mere bytes; bfloat16 and its kin have kind V too."""
    return dtype.fields is not None or dtype.type is np.void


def _holds_structs(value: Any) -> bool:
    """Not numbers: NumPy would spread each over all members."""
    if isinstance(value, list):
        return all(map(_holds_structs, value))
    return isinstance(value, tuple) or (
        isinstance(value, (np.void, np.ndarray)) and value.dtype.names is not None
    )


class StructArray:
    """Structs in a variable of the device. A view: writes go there.

    ``a.numpy()`` copies to the host, ``a[...] = values`` from it, ``a["member"]`` is an Array of
    one member of all structs. `dtype` is NumPy's, with the offsets of the device's compiler, also
    of members that are structs; `opaque` names what the compiler does not tell.
    """

    __slots__ = ("_device", "_layout", "_name", "_program", "bytes", "dtype", "shape")

    def __init__(
        self,
        program: _core._Program,
        name: str,
        dtype: np.dtype[Any],
        shape: tuple[int, ...] | None,
        device: Any,
        layout: Layout | None = None,
    ) -> None:
        self._program, self._name, self._device = program, name, device
        self._layout = layout or Layout.of(dtype)
        self.bytes = program.symbol(name, "uint8", None, device)
        if shape is None:
            shape = (self.bytes.size // dtype.itemsize,)
        self.dtype, self.shape = dtype, tuple(shape)
        if self.size * dtype.itemsize != self.bytes.size:
            raise ArgumentError(
                f"{name} has {self.bytes.size} bytes, not {self.shape} elements of "
                f"{dtype.itemsize} bytes"
            )

    @property
    def opaque(self) -> tuple[str, ...]:
        """Members, by path, and bytes of a struct the compiler tells no more of."""
        return self._layout.opaque

    @property
    def size(self) -> int:
        """The number of structs."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of the variable in bytes."""
        return self.bytes.size

    @property
    def ptr(self) -> int:
        """The address on the device."""
        return self.bytes.ptr

    def __dlpack__(self, **options: Any) -> Any:
        """Its bytes, for kernels that take a pointer to such structs."""
        return self.bytes.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.bytes.__dlpack_device__()

    def __eq__(self, other: object) -> bool:
        raise ArgumentError(
            f"structs of {self._name} are not compared on the device: compare copies (.numpy()), "
            'or members (a["member"])'
        )

    __hash__ = None  # type: ignore[assignment]

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        return self.bytes.numpy().view(self.dtype).reshape(self.shape)

    def item(self) -> Any:
        """The one struct as a Python tuple."""
        return self.numpy().item()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)

    def __getitem__(self, key: Any) -> _core.Array:
        fields: Any = self.dtype.fields or {}
        if not isinstance(key, str) or key not in fields:
            known = ", ".join(map(repr, fields)) or "none"
            raise ArgumentError(
                f"{self._name}[{key!r}]: a member of the struct is wanted, and there are: {known}; "
                "x.numpy() gives all on the host"
            )
        member, offset = fields[key][:2]
        base, extents = member.subdtype or (member, ())
        if _is_opaque(base):
            raise ArgumentError(
                f"{self._name}[{key!r}] is a struct of {base.itemsize} bytes: use x.numpy(), or "
                f"x.bytes from {offset} on"
            )
        strides = [self.dtype.itemsize]
        for extent in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * extent)
        inner = [base.itemsize]
        for extent in reversed(extents[1:]):
            inner.insert(0, inner[0] * extent)
        all_strides = (*strides[: self.ndim], *inner[: len(extents)])
        return self._program.symbol(
            self._name, base, (*self.shape, *extents), self._device, offset, all_strides
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str):
            self[key][...] = value
            return
        if key is not Ellipsis and key != () and key != slice(None):
            raise ArgumentError(f"{self._name}[{key!r}] = ...: assign to [...] or to a member")
        values = self._as_structs(value)
        self.bytes[...] = np.frombuffer(values.tobytes(), np.uint8)

    def _as_structs(self, value: Any) -> np.ndarray[Any, Any]:
        if isinstance(value, (bytes, bytearray, memoryview)):
            given = np.frombuffer(value, np.uint8)
        elif isinstance(value, (tuple, list)):
            given = self._of_tuples(value)
        else:
            given = np.asarray(value)
        if given.dtype == np.uint8 and given.nbytes == self.nbytes:
            return given
        problem: str | None = "it is no struct"
        if given.dtype.kind == "V":
            same = given.dtype.itemsize == self.dtype.itemsize
            problem = self._layout.mismatch(given.dtype) if same else "it has another size"
        if problem:
            raise self._refusal(problem)
        if given.dtype.fields is not None and self.dtype.fields is not None:
            given = given.view(self.dtype) if given.dtype != self.dtype else given
        try:
            return np.broadcast_to(given, self.shape)
        except ValueError:
            raise InvalidArgument(
                f"values of shape {given.shape} do not broadcast to shape {self.shape} of "
                f"{self._name}"
            ) from None

    def _of_tuples(self, value: Any) -> np.ndarray[Any, Any]:
        if not _holds_structs(value):
            raise self._refusal("it is no struct")
        try:
            return np.array(value, self.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(
                f"{value!r} is no value of {self._name}, with elements of {self.dtype}: {error}"
            ) from None

    def _refusal(self, problem: str) -> ArgumentError:
        return ArgumentError(
            f"{self._name} has {self.nbytes} bytes of {self._what()}, and what is assigned is "
            f"another: {problem}; assign NumPy values of its dtype, a tuple of all members, or "
            f"{self.nbytes} bytes{self._advice()}"
        )

    def _what(self) -> str:
        return "structs" if self.dtype.fields else "a type that is not known"

    def _advice(self) -> str:
        if self.dtype.fields:
            return ""
        return f'; or say what it is: symbol("{self._name}", dtype=...)'

    def __repr__(self) -> str:
        return f"<StructArray {self._name}: shape {self.shape}, {self.dtype}>"
