"""The size of packs for a wheel: every operation of kw.warmup() by name, for several devices.

Two element types and one shape of each operation, planned for simulated devices of compute
capability 8.0 and 9.0: what a pack would hold that answers first calls of such arrays. Devices of
8.6 and 8.9 have the kernels of 8.0. Needs no GPU. Results: codes, bytes of the pack, and its bytes
as a wheel compresses them.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zlib
from typing import Any

import harness

DTYPES = ("float32", "bfloat16")
SHAPE, HEADS = (256, 4096), (1, 8, 512, 128)
DEVICES = {"8.0": ("sm_80",), "9.0": ("sm_90a",)}


def child(folder: str, archs: str) -> dict[str, Any]:
    """In a process whose simulated device has the compute capability of these architectures."""
    import kernwright as kw
    from kernwright._jit.library import OPERATIONS, prepared, record

    heads = [name for name in OPERATIONS if "attention" in name]
    others = [name for name in OPERATIONS if name not in heads]
    calls = prepared(others, DTYPES, [SHAPE], None, "pack_size")
    calls += prepared(heads, DTYPES[1:], [HEADS], None, "pack_size")
    path = os.path.join(folder, "record.jsonl")
    record(path, calls)
    results = {}
    for arch in archs.split():
        pack = pathlib.Path(folder) / f"{arch}.kwpack"
        start = time.perf_counter()
        rows = kw.pack(pack, archs=[arch], records=[path])
        taken, content = time.perf_counter() - start, pack.read_bytes()
        results[arch] = {
            "calls": len(calls),
            "codes": len(rows),
            "pack bytes": len(content),
            "compressed bytes": len(zlib.compress(content, 9)),
            "s": round(taken, 1),
        }
    return results


def run(capability: str, archs: tuple[str, ...]) -> dict[str, Any]:
    here = str(pathlib.Path(__file__).parent)
    with tempfile.TemporaryDirectory() as folder:
        code = f"import sys, json; sys.path.insert(0, {here!r}); import pack_size\n"
        code += f"print(json.dumps(pack_size.child({folder!r}, {' '.join(archs)!r})))"
        given = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": capability}
        given["KERNWRIGHT_CACHE"] = "off"
        ended = subprocess.run(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE, text=True, env={**os.environ, **given},
        )  # fmt: skip
    if ended.returncode != 0:
        raise SystemExit(f"packs for {archs} were not made")
    return json.loads(ended.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    output = harness.RESULTS / "pack_size.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=output)
    options = parser.parse_args()
    document: dict[str, Any] = {
        "subject": "pack_size", "machine": harness.machine(), "dtypes": DTYPES, "shape": SHAPE,
        "heads": HEADS, "results": {},
    }  # fmt: skip
    for capability, archs in DEVICES.items():
        document["results"] |= run(capability, archs)
        harness.save(options.output, document)
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
