"""Our cold time of ten kernels, 2 us to 10 ms, and by nvbench's method, Triton's and a plain loop.

measure_recipes.cpp measures ours, nvbench's order of calls (rebuilt there), the loop, and used and
fresh workers. Triton's do_bench runs here over the same kernel text; CuPy launches it on torch's
stream. Needs a GPU.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import pathlib
import subprocess
import sysconfig
import warnings
from typing import Any

import documents

HERE = pathlib.Path(__file__).parent


def do_bench(document: dict[str, Any]) -> dict[str, float]:
    """Milliseconds of each subject: the median from do_bench."""
    import cupy
    import torch
    from triton.testing import do_bench as triton_do_bench

    kernel = cupy.RawKernel(document["kernel"], "subject")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # CuPy 14 has another name for it
        stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)
    times = {}
    for row in document["subjects"]:
        x = torch.zeros(row["n"], dtype=torch.float32, device="cuda")
        pointer = cupy.uint64(x.data_ptr())
        arguments = (pointer, *(cupy.uint32(row[name]) for name in ("n", "work", "stride")))

        def run(row: dict = row, arguments: tuple = arguments) -> None:
            with stream:
                kernel((row["grid"],), (256,), arguments)

        times[row["subject"]] = triton_do_bench(run, return_mode="median")
    return times


def add_triton(document: dict[str, Any]) -> None:
    try:
        times = do_bench(document)
    except ImportError as missing:
        document["triton"] = f"not measured: {missing}"
        return
    document["triton"] = importlib.metadata.version("triton")
    for row in document["subjects"]:
        row["do_bench_ms"] = times[row["subject"]]
        row["do_bench_ratio"] = times[row["subject"]] / row["nvbench_ms"]


def agree(row: dict[str, Any], first: str, second: str) -> bool:
    """Whether both are within 1 %, or the intervals of their medians overlap."""
    low, high = row[f"{first}_interval_ms"]
    other_low, other_high = row[f"{second}_interval_ms"]
    return abs(row["ratio"] - 1) <= 0.01 or (low <= other_high and other_low <= high)


def summarize(document: dict[str, Any]) -> None:
    for row in document["subjects"]:
        row["agrees"] = agree(row, "ours", "nvbench")
    for row in document.get("workers", []):
        row["agrees"] = agree(row, "persistent", "fresh")
    document["disagreements"] = [
        row["subject"]
        for row in document["subjects"] + document.get("workers", [])
        if not row["agrees"]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    build = HERE.parent / "build" / "release"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=HERE / "results/measure.json")
    parser.add_argument("--build", type=pathlib.Path, default=build)
    options = parser.parse_args()
    command = [
        options.build / "bench/measure_recipes",
        "--program",
        options.build / "bindings/worker/kernwright-worker",
        "--site-packages",
        sysconfig.get_paths()["purelib"],
    ]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    document = json.loads(found.stdout)
    add_triton(document)
    summarize(document)
    documents.write(options.output, document)
    print(documents.text(document))


if __name__ == "__main__":
    main()
