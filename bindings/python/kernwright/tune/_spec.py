"""A tuning session from a file: its own JSON, a T1 file, or a Python file."""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernwright._support.files import read_text
from kernwright.errors import Error, InvalidArgument
from kernwright.tune._expression import Expression
from kernwright.tune._kernel_tuner.options import compile_fields
from kernwright.tune._sessions.text_check import KernelText
from kernwright.tune._space import Space
from kernwright.tune._t1 import values_of

_KEYS = {
    *("source", "kernel_file", "kernel_name", "options", "parameters", "restrictions"),
    *("device_restrictions", "problem", "arguments", "grid", "block", "shared_bytes", "default"),
    *("objective", "strategy", "budget", "seed", "rtol", "atol", "store", "verify", "constants"),
}
_ARGUMENT_KEYS = {"name", "dtype", "shape", "fill", "value"}
# What a Session takes under the same name.
_PASSED = (
    *("grid", "block", "shared_bytes", "default", "objective", "strategy", "budget", "seed"),
    *("rtol", "atol", "store", "problem", "verify", "isolation", "resume", "proposals"),
    *("constants", "policy", "samples", "devices", "workers", "cluster"),
)
_MOST_BYTES = 2**36
_C_TYPES = {
    "float": "float32", "double": "float64", "half": "float16", "int": "int32",
    "unsigned int": "uint32", "uint": "uint32", "long": "int64", "size_t": "uint64",
    "char": "int8", "unsigned char": "uint8", "short": "int16", "bool": "bool",
}  # fmt: skip


def _table(value: Any, what: str, keys: set[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"{what} is a JSON object, got {json.dumps(value)[:60]}")
    unknown = sorted(set(value) - keys) if keys is not None else []
    if unknown:
        raise InvalidArgument(
            f"{what} has no key {unknown[0]!r}; it knows {', '.join(sorted(keys or ()))}"
        )
    return dict(value)


def _list(value: Any, what: str) -> list[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidArgument(f"{what} is a list, got {json.dumps(value)[:60]}")
    return list(value)


def _number(value: Any, problem: Mapping[str, Any], what: str) -> Any:
    """A number, or an expression over the problem's names."""
    if isinstance(value, str):
        try:
            return Expression(value)(problem)
        except Error as error:
            raise InvalidArgument(f"{what}: {error}") from None
    if isinstance(value, (bool, int, float)):
        return value
    raise InvalidArgument(f"{what} is a number or an expression, got {json.dumps(value)[:60]}")


def _dtype(name: Any, what: str) -> np.dtype[Any]:
    if isinstance(name, str) and name == "bfloat16":
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found
    try:
        if isinstance(name, str):
            return np.dtype(name)
    except TypeError:
        pass
    raise InvalidArgument(f"{what}: {json.dumps(name)} is no dtype; write float32, int32, ...")


def _filled(shape: tuple[int, ...], dtype: np.dtype[Any], fill: Any, seed: int, what: str) -> Any:
    """An array with the same values in each run."""
    if fill == "random":
        draw = np.random.default_rng(seed)
        if dtype.kind in "iu":
            return draw.integers(0, 100, shape).astype(dtype)
        return draw.random(shape, np.float32).astype(dtype)
    if fill == "arange":
        return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    if isinstance(fill, (bool, int, float)):
        return np.full(shape, fill).astype(dtype)
    raise InvalidArgument(f'{what}: fill is a number, "random" or "arange", got {fill!r}')


def _argument(given: Any, place: int, problem: Mapping[str, Any], what: str = "argument") -> Any:
    """An array, or a scalar of its dtype."""
    what = f"{what} {place + 1}"
    keys = _table(given, what, _ARGUMENT_KEYS)
    what += f" ({keys['name']})" if isinstance(keys.get("name"), str) else ""
    dtype = _dtype(keys.get("dtype", "float32"), what)
    if ("value" in keys) == ("shape" in keys):
        raise InvalidArgument(f"{what}: give a shape for an array, or a value for a scalar")
    if "value" in keys:
        value = _number(keys["value"], problem, what)
        try:
            return dtype.type(value)
        except (OverflowError, ValueError) as error:
            raise InvalidArgument(f"{what}: {value} is no {dtype}: {error}") from None
    sizes = keys["shape"]
    sizes = sizes if isinstance(sizes, list) else [sizes]
    shape = tuple(_number(size, problem, f"{what}: shape") for size in sizes)
    if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape):
        raise InvalidArgument(f"{what}: a shape of {list(shape)}: whole numbers, at least 0")
    if dtype.itemsize * int(np.prod(shape, dtype=object)) > _MOST_BYTES:
        raise InvalidArgument(f"{what}: an array of {list(shape)} is more than 64 GiB")
    return _filled(shape, dtype, keys.get("fill", 0), place, what)


def _source(keys: Mapping[str, Any], folder: pathlib.Path) -> str:
    if ("source" in keys) == ("kernel_file" in keys):
        raise InvalidArgument("give the kernel's text as source, or its file as kernel_file")
    text = keys.get("source")
    if text is None:
        file = keys["kernel_file"]
        if not isinstance(file, str):
            raise InvalidArgument(f"kernel_file is a path, got {json.dumps(file)[:60]}")
        return read_text(folder / file)
    if not isinstance(text, str):
        raise InvalidArgument(f"source is the kernel's text, got {json.dumps(text)[:60]}")
    return text


def _space(keys: Mapping[str, Any]) -> Space:
    parameters = {
        name: values_of(values) if isinstance(values, str) else _list(values, name)
        for name, values in _table(keys.get("parameters"), "parameters").items()
    }
    space = Space(parameters)
    if keys.get("problem"):
        space = space.with_problem(_table(keys["problem"], "problem"))
    restrictions = _list(keys.get("restrictions", []), "restrictions")
    if restrictions:
        space.require(*restrictions)
    limits = keys.get("device_restrictions")
    if limits is not None:
        space.require_device(
            **_table(
                limits,
                "device_restrictions",
                {"threads", "shared_bytes", "static_shared_bytes", "registers"},
            )
        )
    return space


def _own(document: Mapping[str, Any], folder: pathlib.Path) -> dict[str, Any]:
    keys = _table(document, "the specification", _KEYS)
    problem = _table(keys.get("problem", {}), "problem")
    arguments = _list(keys.get("arguments", []), "arguments")
    import kernwright as kw

    options = _table(keys.get("options", {}), "options")
    found: dict[str, Any] = {
        "kernel": kw.kernel(_source(keys, folder), keys.get("kernel_name"), **options),
        "space": _space(keys),
        "args": tuple(_argument(given, i, problem) for i, given in enumerate(arguments)),
    }
    if "constants" in keys:
        named = _table(keys["constants"], "constants")
        keys["constants"] = {
            name: _argument(given, i, problem, "constant")
            for i, (name, given) in enumerate(named.items())
        }
    if keys.get("verify", "default") != "default":
        raise InvalidArgument('verify is "default" here: a Python file may give a function')
    if isinstance(keys.get("store"), str):
        keys["store"] = str(folder / keys["store"])
    found.update((name, keys[name]) for name in _PASSED if name in keys)
    for name in ("grid", "block"):
        if isinstance(found.get(name), list):
            found[name] = tuple(found[name])
    return found


def _t1_extent(size: Any) -> int:
    if isinstance(size, str) and size.isdecimal():
        size = int(size)
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    raise InvalidArgument(f"ProblemSize has {size!r} where a whole number above 0 is wanted")


def _t1_size(text: Any, space: Mapping[str, Sequence[Any]], sizes: Sequence[int]) -> Any:
    """T1's sizes: expressions over ProblemSize[i] and max(parameter)."""
    if not isinstance(text, str):
        return text

    def size(match: re.Match[str]) -> str:
        place = int(match[1])
        return str(sizes[place]) if place < len(sizes) else match[0]

    plain = re.sub(r"ProblemSize\[(\d+)\]", size, text)
    return re.sub(
        r"\bmax\((\w+)\)", lambda m: str(max(space[m[1]])) if m[1] in space else m[0], plain
    )


def _t1_argument(row: Any, space: Mapping[str, Sequence[Any]], sizes: Sequence[int]) -> Any:
    keys = _table(row, "an argument")
    name = str(keys.get("Name"))
    kind = str(keys.get("Type"))
    known_values = {
        "MemoryType": ("Vector", "Scalar", "Symbol"),
        "FillType": ("Constant", "Random"),
    }
    for key, known in known_values.items():
        if keys.get(key) not in (None, *known):
            raise InvalidArgument(
                f"the argument {name} has the {key} {keys[key]!r}; known are {', '.join(known)}"
            )
    found: dict[str, Any] = {"name": name, "dtype": _C_TYPES.get(kind, kind)}
    fill = keys.get("FillValue", 0)
    if keys.get("MemoryType") == "Scalar":
        return {**found, "value": fill}
    random = keys.get("FillType") == "Random"
    return {
        **found, "shape": _t1_size(keys.get("Size"), space, sizes),
        "fill": "random" if random else fill,
    }  # fmt: skip


def _is_constant(row: Mapping[str, Any]) -> bool:
    """Whether an argument of a T1 file is the contents of a __constant__ variable."""
    return row.get("MemType") == "Constant" or row.get("MemoryType") == "Symbol"


def _t1(document: Mapping[str, Any], path: pathlib.Path) -> dict[str, Any]:
    space = Space.from_t1(path)
    spec = _table(document.get("KernelSpecification"), "KernelSpecification")
    if spec.get("Language", "CUDA") != "CUDA":
        raise InvalidArgument(f"the kernel is written in {spec['Language']}: only CUDA runs here")
    given = spec.get("ProblemSize", [])
    sizes = [_t1_extent(size) for size in (given if isinstance(given, list) else [given])]
    if not sizes:
        raise InvalidArgument("KernelSpecification has no ProblemSize of whole numbers")
    local = _table(spec.get("LocalSize"), "LocalSize")
    grid = []
    for axis, size in zip("XYZ", sizes, strict=False):
        factors = " * ".join(
            f"({f})" for f in _list(spec.get(f"GridDiv{axis}") or ["1"], "GridDiv")
        )
        grid.append(f"-(-{size} // ({factors}))")
    rows = _list(spec.get("Arguments", []), "Arguments")
    file = path.parent / str(spec.get("KernelFile"))
    if not file.is_file():  # the hub keeps kernels beside the folder of the T1 files, or by name
        file = path.parent / file.name
    import kernwright as kw

    options = compile_fields(_list(spec.get("CompilerOptions") or [], "CompilerOptions"))
    made = [
        (row, _argument(_t1_argument(row, space.parameters, sizes), i, {}))
        for i, row in enumerate(rows)
    ]
    kernel = kw.kernel(read_text(file), spec.get("KernelName"), **options)
    # Kernel Tuner also passes an array of constant memory to a kernel that has a parameter for it.
    parameters = KernelText.of(kernel).parameters()
    is_passed = parameters is not None and len(parameters) == len(rows)
    return {
        "kernel": kernel,
        "space": space,
        "args": tuple(value for row, value in made if is_passed or not _is_constant(row)),
        "constants": {str(row["Name"]): value for row, value in made if _is_constant(row)} or None,
        "grid": tuple(grid),
        "block": tuple(str(local.get(axis, "1")) for axis in "XYZ"),
        "shared_bytes": spec.get("SharedMemory") or 0,
    }


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Arguments of a Session, from a JSON file. Raises InvalidArgument with the file's name, and
    StoreError for an unreadable file."""
    place = pathlib.Path(path)
    try:
        document = json.loads(read_text(place))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidArgument(f"{os.fspath(path)} is no JSON: {error}") from None
    try:
        keys = _table(document, "a specification")
        return _t1(keys, place) if "ConfigurationSpace" in keys else _own(keys, place.parent)
    except Error as error:
        raise InvalidArgument(f"{os.fspath(path)}: {error}") from error


def session_of(names: Mapping[str, Any], path: str | os.PathLike[str]) -> Any:
    """Of the variables of an executed Python file: its `session` (a session, or a function that
    makes one), or a Session's arguments from the variables of their names. InvalidArgument where it
    has neither."""
    if "session" in names:
        return names["session"]
    if "kernel" not in names or "space" not in names:
        raise InvalidArgument(
            f"{os.fspath(path)} defines neither `session`, nor `kernel` and `space`"
        )
    wanted = ("kernel", "space", "args", *_PASSED)
    return {name: names[name] for name in wanted if name in names}
