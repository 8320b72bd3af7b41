"""The first call of each family of library kernels in a new process: compiled, and from a pack.

Compiled: no cache is used, and NVRTC's own is off. Operands are there, and NVRTC has compiled a
small kernel before, which takes it "ready" seconds once in a process. From a pack: kw.pack() has
compiled the kernels that those calls asked for, and one more process makes the first call of each
family in turn. A time ends when the device has done the call. Processes that compile run one after
the other, or `--side-by-side` at a time; a call compiles its kernels at the same time.
bench/first_call_parts.py measures where the time goes, bench/pack_size.py the size of other packs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import harness

Call = Callable[[], object]
EXTENT = 4096  # of a large operand on a GPU


def extents(*gpu_extents: int) -> tuple[int, ...]:
    """The same on a GPU, small ones on the simulated device."""
    import kernwright as kw

    small = kw.current_device().is_simulated
    return tuple(min(extent, 128) if small else extent for extent in gpu_extents)


def empty(*shape: int, dtype: str = "bfloat16") -> Any:
    import kernwright as kw

    return kw.empty(shape, dtype)


def product(dtype: str, *gpu_extents: int) -> Call:
    import kernwright as kw

    m, n, k = extents(*gpu_extents)
    a, b = empty(m, k, dtype=dtype), empty(n, k, dtype=dtype)
    return lambda: kw.matmul(a, b.T)


def layer(rows: int) -> Call:
    import kernwright as kw

    n, k = extents(14336, EXTENT)
    x, weight = empty(rows, k), empty(n, k)
    return lambda: kw.nn.linear(x, weight)


def scaled(dtype: str, blocks: bool = False) -> Call:
    import kernwright as kw

    (n,) = extents(EXTENT)
    a, b = empty(n, n, dtype=dtype), empty(n, n, dtype=dtype)
    parts = n // 128
    left, right = ((n, parts), (parts, parts)) if blocks else ((n, 1), (1, n))
    a_scale, b_scale = empty(*left, dtype="float32"), empty(*right, dtype="float32")
    return lambda: kw.nn.scaled_matmul(a, b.T, a_scale, b_scale)


def tf32() -> Call:
    import kernwright as kw

    (n,) = extents(EXTENT)
    a, b = empty(n, n, dtype="float32"), empty(n, n, dtype="float32")
    return lambda: kw.nn.fused_matmul(a, b.T, "x", precision="tf32")


def packed(rows: int) -> Call:
    import gemv_formats

    import kernwright as kw

    n, k = (256, 256) if kw.current_device().is_simulated else (14336, 4096)
    x, weight = empty(rows, k), gemv_formats.packed("q4_k", n, k)
    return lambda: kw.nn.linear(x, weight)


def grouped() -> Call:
    import kernwright as kw

    tokens, n, k = extents(4096, 2048, 2048)
    x, weights = empty(tokens, k), empty(8, n, k)
    offsets = kw.arange(0, tokens + 1, tokens // 8, dtype="int32")
    return lambda: kw.nn.grouped_linear(x, weights, offsets)


def attention(dim: int, causal: bool = True) -> Call:
    import kernwright as kw

    (tokens,) = extents(2048)
    q, k, v = (empty(1, 8, tokens, dim) for _ in range(3))
    return lambda: kw.nn.attention(q, k, v, is_causal=causal)


def attention_backward(dim: int) -> Call:
    import kernwright as kw

    (tokens,) = extents(2048)
    arrays = [empty(1, 8, tokens, dim) for _ in range(5)]
    lse = empty(1, 8, tokens, dtype="float32")
    return lambda: kw.nn.attention_backward(*arrays, lse, is_causal=True)


def decoding() -> Call:
    import kernwright as kw

    (tokens,) = extents(EXTENT)
    query, k, v = empty(1, 32, 1, 128), empty(1, 8, tokens, 128), empty(1, 8, tokens, 128)
    lengths = kw.full(1, tokens, dtype="int32")
    return lambda: kw.nn.decode_attention(query, k, v, lengths)


def named(name: str, dtype: str = "bfloat16") -> Call:
    """An operation of kw.warmup()."""
    import kernwright as kw
    from kernwright._jit.library import Prepared

    return Prepared(name, dtype, extents(EXTENT, EXTENT), kw.current_device()).make()


FAMILIES: dict[str, Call] = {
    "gemm, bfloat16": functools.partial(product, "bfloat16", EXTENT, EXTENT, EXTENT),
    "gemm, ragged bfloat16": functools.partial(product, "bfloat16", 4095, 4097, 4093),
    "gemm, float8 with scales of rows (promoted)": functools.partial(scaled, "float8_e4m3fn"),
    "gemm, float8 with scales of blocks": functools.partial(scaled, "float8_e4m3fn", True),
    "gemm, int8": functools.partial(scaled, "int8"),
    "gemm, tf32": tf32,
    "fma gemm, float32": functools.partial(product, "float32", EXTENT, EXTENT, EXTENT),
    "fma gemm, float64": functools.partial(product, "float64", EXTENT, EXTENT, EXTENT),
    "skinny product, 1 row": functools.partial(layer, 1),
    "skinny product, 8 rows": functools.partial(layer, 8),
    "skinny product, 64 rows": functools.partial(layer, 64),
    "packed q4_k, 1 row": functools.partial(packed, 1),
    "packed q4_k, 64 rows": functools.partial(packed, 64),
    "grouped product": grouped,
    **{f"attention, D{dim}": functools.partial(attention, dim) for dim in (64, 128, 256)},
    **{
        f"attention backward, D{dim}": functools.partial(attention_backward, dim)
        for dim in (64, 128, 256)
    },
    "decode attention": decoding,
    **{
        name: functools.partial(named, name)
        for name in ("rms_norm", "rms_norm_backward", "layer_norm", "softmax", "cross_entropy")
    },
    **{
        name: functools.partial(named, name, "float32")
        for name in ("add", "sum", "cumulative_sum", "transpose", "sort")
    },
}


# ---------------------------------------------------------------------------------- one process


def processors() -> int:
    return len(os.sched_getaffinity(0))


def read_lines(path: str) -> list[str]:
    return pathlib.Path(path).read_text().splitlines() if os.path.exists(path) else []


def compiled(family: str, record: str) -> dict[str, Any]:
    """The first call without a cache; what it compiles is in the file KERNWRIGHT_RECORD."""
    import kernwright as kw

    call = FAMILIES[family]()
    start = time.perf_counter()
    kw.kernel('extern "C" __global__ void nothing(int n) {}').compile()
    kw.synchronize()
    ready = time.perf_counter() - start
    before = len(read_lines(record))
    taken = timed(call)
    return {"s": taken, "ready": ready, "compiles": len(read_lines(record)) - before}


def from_pack(families: str, pack: str) -> dict[str, Any]:
    import kernwright as kw

    kw.use_pack(pack)
    times = {}
    for family in families.split("|"):
        call = FAMILIES[family]()
        kw.synchronize()
        times[family] = timed(call)
    return times


def timed(call: Call) -> float:
    import kernwright as kw

    start = time.perf_counter()
    call()
    kw.synchronize()
    return time.perf_counter() - start


CHILDREN = {"compiled": compiled, "from_pack": from_pack}


run = functools.partial(harness.child, "first_call")


# ------------------------------------------------------------------------------------- the whole


def distinct(path: pathlib.Path) -> list[str]:
    """The requests of a record without those of user kernels (they have no headers of ours)."""
    lines = dict.fromkeys(read_lines(str(path)))
    return [line for line in lines if json.loads(line)["options"]["headers"]]


def measure_pack(record: pathlib.Path, arch: str, pack: pathlib.Path) -> dict[str, Any]:
    """Packs the requests for one architecture: the size of it, and of its object code."""
    import kernwright as kw

    record.write_text("".join(f"{line}\n" for line in distinct(record)))
    start = time.perf_counter()
    rows = kw.pack(pack, archs=[arch], records=[record])
    taken = time.perf_counter() - start
    code = sum(row["bytes"] for row in rows)
    content = pack.read_bytes()
    return {
        "codes": len(rows),
        "code bytes": code,
        "pack bytes": len(content),
        "compressed bytes": len(zlib.compress(content, 9)),
        "s": round(taken, 2),
    }


def measure_all(
    names: Sequence[str], folder: pathlib.Path, arch: str, side_by_side: int
) -> dict[str, Any]:
    off = {"KERNWRIGHT_CACHE": "off"}
    records = [folder / f"{number}.jsonl" for number in range(len(names))]

    def first(name: str, record: pathlib.Path) -> dict[str, Any]:
        made = run("compiled", name, str(record), **off, KERNWRIGHT_RECORD=str(record))
        print(f"{name}: {made['s']:.2f} s, {made['compiles']} compiles", flush=True)
        return {key: round(value, 4) for key, value in made.items()}

    with concurrent.futures.ThreadPoolExecutor(side_by_side) as pool:
        results = dict(zip(names, pool.map(first, names, records), strict=True))
    whole = folder / "all.jsonl"
    whole.write_text("".join(record.read_text() for record in records if record.exists()))
    size = measure_pack(whole, arch, folder / "all.kwpack")
    times = run("from_pack", "|".join(names), str(folder / "all.kwpack"), **off)
    for name, taken in times.items():
        results[name]["from a pack, s"] = round(taken, 5)
    return {"results": results, "pack": {"arch": arch, **size}}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=[*FAMILIES], help="of families; default: all")
    output = harness.RESULTS / "first_call.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=output)
    parser.add_argument("--side-by-side", type=int, default=1, help="processes that compile")
    options = parser.parse_args()
    machine = harness.machine()
    import kernwright as kw

    device = kw.current_device()
    major, minor = device.compute_capability
    arch = "sim" if device.is_simulated else f"sm_{major}{minor}{'a' if major >= 9 else ''}"
    document: dict[str, Any] = {"subject": "first_call", "machine": machine}
    document["machine"]["processors"] = processors()
    document["processes at a time"] = options.side_by_side
    with tempfile.TemporaryDirectory() as folder:
        document |= measure_all(options.names, pathlib.Path(folder), arch, options.side_by_side)
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
