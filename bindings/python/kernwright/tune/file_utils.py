"""Kernel Tuner's module of this name: results and the device as files of the T4 format (JSON)."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._support.files import write_whole
from kernwright.errors import InvalidArgument
from kernwright.tune._kernel_tuner.results import CompilationFailedConfig, InvalidConfig

__all__ = ["get_t4_metadata", "get_t4_results", "store_metadata_file", "store_output_file"]

_TIMES = {
    "compilation": "compile_time", "benchmark": "benchmark_time", "framework": "framework_time",
    "search_algorithm": "strategy_time", "validation": "verification_time",
}  # fmt: skip
_VERSION = "1.0.0"


def _plain(value: Any) -> Any:
    """For json: NumPy's numbers and arrays."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} is no JSON")


def _invalidity(row: Mapping[str, Any]) -> str:
    error = row.get("__error__")
    if error is None:
        return "correct"
    if isinstance(error, CompilationFailedConfig):
        return "compile"
    return "constraints" if isinstance(error, InvalidConfig) else "runtime"


def get_t4_results(
    results: Sequence[Mapping[str, Any]], tune_params: Iterable[str], objective: str = "time"
) -> dict[str, Any]:
    """The document of store_output_file().

    >>> from kernwright.tune.file_utils import get_t4_results
    >>> document = get_t4_results([{"BLOCK": 64, "time": 0.5, "times": [0.5]}], ["BLOCK"])
    >>> document["results"][0]["configuration"]
    {'BLOCK': 64}
    """
    if not isinstance(objective, str):
        raise InvalidArgument("a T4 file has one objective: give its name")
    parameters = list(tune_params)
    others = {*parameters, *_TIMES.values(), "timestamp", "times", "__error__"}
    rows = []
    for row in results:
        times = {name: row.get(ours, 0) for name, ours in _TIMES.items()}
        measured = [
            {"name": name, "value": value, "unit": "ms" if name.startswith("time") else ""}
            for name, value in row.items()
            if name not in others
        ]
        invalidity = _invalidity(row)
        rows.append(
            {
                "configuration": {name: row[name] for name in parameters},
                "times": {**times, "runtimes": list(row.get("times", ()))},
                "invalidity": invalidity,
                "correctness": 1 if invalidity == "correct" else 0,
                "measurements": measured if invalidity == "correct" else [],
                "objectives": [objective],
            }
        )
    return {
        "results": rows,
        "schema_version": _VERSION,
        "metadata": {"timeunit": "milliseconds"},
    }


def get_t4_metadata() -> dict[str, Any]:
    """The document of store_metadata_file().

    >>> from kernwright.tune.file_utils import get_t4_metadata
    >>> sorted(get_t4_metadata()["metadata"])
    ['environment', 'hardware', 'operating_system']
    """
    device = _core.current_device()
    packages = {}
    for name in ("kernwright", "numpy"):
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    metadata = {
        "operating_system": platform.system() or "unidentified OS",
        "hardware": {
            "hardware_description": [{"machine": platform.machine(), "cpus": os.cpu_count()}]
        },
        "environment": {
            "device_query": {
                "name": device.name,
                "compute_capability": "{}.{}".format(*device.compute_capability),
                "driver_version": device.driver_version,
            },
            "requirements": [f"{name}=={version}" for name, version in packages.items()],
        },
    }
    return {"metadata": metadata, "schema_version": _VERSION}


def _write(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    name = os.fspath(path)
    if not name.endswith(".json"):
        name += ".json"
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    write_whole(name, json.dumps(document, indent=1, default=_plain) + "\n")


def store_output_file(
    output_filename: str | os.PathLike[str],
    results: Sequence[Mapping[str, Any]],
    tune_params: Iterable[str],
    objective: str = "time",
) -> None:
    """Writes the results of tune_kernel() as a T4 file, which kw.tune.Table and Kernel Tuner read.
    The name gets the ending .json where it has another one; missing folders are made.

    >>> from kernwright.tune.file_utils import store_output_file
    >>> store_output_file("rows", [{"BLOCK": 64, "time": 0.5, "times": [0.5]}], ["BLOCK"])
    >>> len(kw.tune.Table.from_t4("rows.json"))
    1
    """
    _write(output_filename, get_t4_results(results, tune_params, objective))


def store_metadata_file(metadata_filename: str | os.PathLike[str]) -> None:
    """Writes the device, its driver and this machine as T4's file of metadata.

    >>> from kernwright.tune.file_utils import store_metadata_file
    >>> store_metadata_file("metadata.json")
    """
    _write(metadata_filename, get_t4_metadata())
