"""The cases of cases.json for Python: the inputs of the C++ tests, launches, comparison."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

import numpy as np

import kernwright as kw
from kernwright import _core

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip


def load_cases() -> list[dict[str, Any]]:
    return json.loads((HERE / "cases.json").read_text())["cases"]


def load_vectors() -> dict[str, Any]:
    return json.loads((HERE / "vectors.json").read_text())["vectors"]


def random_bits(seed: int, count: int) -> np.ndarray:
    """SplitMix64."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


def make_argument(row: dict[str, Any]) -> np.ndarray:
    """A scalar array of 0 dimensions for a number, else one dimension."""
    dtype = np.dtype(DTYPES[row["type"]])
    if "value" in row:
        return np.array(row["value"], dtype)
    count, fill = row["count"], row.get("fill", "zero")
    low, high = row.get("low", 0.0), row.get("high", 1.0)
    if fill == "zero":
        return np.zeros(count, dtype)
    if fill == "list":
        return np.array(row["values"], dtype)
    if fill == "sequence":
        return (low + np.arange(count)).astype(dtype)
    bits = random_bits(row.get("seed", 1), count)
    if fill == "bits":
        return bits.astype(f"u{dtype.itemsize}").view(dtype)
    unit = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    if fill == "integer":
        return (low + np.floor((high - low + 1) * unit)).astype(np.int64).astype(dtype)
    assert fill == "uniform", fill
    return (low + (high - low) * unit).astype(dtype)


def _is_there(*patterns: str) -> bool:
    """Whether NVRTC brings the headers (from 13.3 on), or a package or a toolkit has the file."""
    version = tuple(int(part) for part in _core.nvrtc_status()["version"].split("."))
    folders = [pathlib.Path(entry) / "nvidia" for entry in sys.path if entry]
    folders += [pathlib.Path("/usr/local/cuda"), pathlib.Path(os.environ.get("CUDA_PATH", "/cuda"))]
    return version >= (13, 3) or any(
        next(folder.glob(pattern), None) for folder in folders for pattern in patterns
    )


def has_mma_header() -> bool:
    return _is_there("*/include/crt/mma.h", "include/crt/mma.h")


def lacks_headers_of(text: str) -> str:
    """The package of the headers needed by a text and missing on this machine; else empty."""
    if "#include <mma.h>" in text and not has_mma_header():
        return "nvidia-cuda-crt"
    if not any(f"#include <{folder}" in text for folder in ("cub/", "cuda/", "cooperative_gro")):
        return ""
    places = ("*/include/cccl/cub", "*/include/cub", "include/cccl/cub", "include/cub")
    return "" if _is_there(*places) else "nvidia-cuda-cccl"


def lacks(source: pathlib.Path) -> str:
    """As lacks_headers_of(), for a file."""
    return lacks_headers_of(source.read_text())


def missing_headers(case: dict[str, Any]) -> str:
    """As lacks(), for the source of a case."""
    return lacks(HERE / "sources" / f"{case.get('source', case['name'])}.cu")


def load(case: dict[str, Any]) -> kw.Kernel:
    """The kernel, from the CUDA source, as the installed NVRTC compiles it."""
    source = HERE / "sources" / f"{case.get('source', case['name'])}.cu"
    name = case.get("expression") or case.get("kernel") or source.stem
    return kw.module(source)[name]


def run(case: dict[str, Any], device: kw.Device) -> list[np.ndarray]:
    """All arguments after the launch."""
    kernel = load(case)
    values = [make_argument(row) for row in case["args"]]
    with device:
        arrays = [kw.asarray(v) if v.ndim else v for v in values]
        config = kw.LaunchConfig(
            grid=tuple(case["grid"]), block=tuple(case["block"]), shared_bytes=case.get("shared", 0)
        )
        kernel.launch(config, *(a if isinstance(a, kw.Array) else a[()] for a in arrays))
        return [a.numpy() if isinstance(a, kw.Array) else a for a in arrays]


def check(case: dict[str, Any], got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Bit for bit, or within the case's tolerance for a GPU's results."""
    for index, row in enumerate(case["args"]):
        if "value" in row or row.get("order_dependent", False):
            continue
        rule = row.get("on_gpu", row.get("compare", "exact"))
        message = f"{case['name']}, argument {index}"
        if rule == "exact":
            same = got[index].tobytes() == expected[index].tobytes()
            assert same, (message, got[index], expected[index])
            continue
        np.testing.assert_allclose(
            got[index],
            expected[index],
            rtol=rule.get("relative", 0),
            atol=rule.get("absolute", 0),
            err_msg=message,
        )


def stored_results(case: dict[str, Any]) -> list[np.ndarray]:
    """A GPU's results; arrays that must stay as they were are the inputs."""
    results = load_vectors()[case["name"]]["results"]
    arrays = [make_argument(row) for row in case["args"]]
    for index, text in results.items():
        array = arrays[int(index)]
        arrays[int(index)] = np.frombuffer(bytes.fromhex(text), array.dtype)
    return arrays
