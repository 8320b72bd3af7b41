"""Files of language models for llm.py: how fast they load, and how soon a process has a token."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import kernwright as kw
from kernwright import llm

_SHARD_BYTES = 4 << 30
_LOAD_MARK = 20.0  # GB/s
_START_MARKS = {"cold": 5.0, "warm": 2.5}  # seconds
_FIRST_TOKEN = """
import sys, time
from kernwright import llm
imported = time.time()
model = llm.load(sys.argv[1], quantize=sys.argv[2] or None)
loaded = time.time()
next(model.stream(list(range(1, 17)), max_tokens=2, ignore_eos=True))
print("times", imported, loaded, time.time(), flush=True)
"""


def shapes(config: dict[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors of a Llama or Qwen3-MoE of Hugging Face's layout."""
    made = llm.Config.from_fields(config)
    hidden, width = made.hidden_size, made.intermediate_size
    heads, kv = made.num_heads * made.head_dim, made.num_kv_heads * made.head_dim
    experts = config.get("num_experts", 0)
    yield "model.embed_tokens.weight", (made.vocab_size, hidden)
    for number in range(made.num_layers):
        base = f"model.layers.{number}."
        yield f"{base}input_layernorm.weight", (hidden,)
        yield f"{base}post_attention_layernorm.weight", (hidden,)
        for name, rows in (("q", heads), ("k", kv), ("v", kv)):
            yield f"{base}self_attn.{name}_proj.weight", (rows, hidden)
        yield f"{base}self_attn.o_proj.weight", (hidden, heads)
        if "Qwen3" in made.architecture:
            yield f"{base}self_attn.q_norm.weight", (made.head_dim,)
            yield f"{base}self_attn.k_norm.weight", (made.head_dim,)
        parts = [f"{base}mlp."]
        if experts:
            yield f"{base}mlp.gate.weight", (experts, hidden)
            parts = [f"{base}mlp.experts.{i}." for i in range(experts)]
            width = config["moe_intermediate_size"]
        for part in parts:
            yield f"{part}gate_proj.weight", (width, hidden)
            yield f"{part}up_proj.weight", (width, hidden)
            yield f"{part}down_proj.weight", (hidden, width)
    yield "model.norm.weight", (hidden,)
    if not made.tied:
        yield "lm_head.weight", (made.vocab_size, hidden)


@contextlib.contextmanager
def written(config: dict[str, Any], folder: pathlib.Path | None) -> Iterator[pathlib.Path]:
    """A folder with such files: the one given, where they stay and are used again, or one that
    goes."""
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        path = folder / "config.json"
        if not path.exists() or json.loads(path.read_text()) != config:
            folder.mkdir(parents=True, exist_ok=True)
            _write(config, folder)
            path.write_text(json.dumps(config))
        yield folder


def _write(config: dict[str, Any], folder: pathlib.Path) -> None:
    for old in folder.glob("*.safetensors*"):
        old.unlink()
    shards: list[list[str]] = []
    arrays: dict[str, Any] = {}
    size = total = 0

    def save() -> None:
        shards.append(list(arrays))
        kw.save_safetensors(folder / f"part-{len(shards):05d}.safetensors", arrays)
        arrays.clear()

    for number, (name, shape) in enumerate(shapes(config)):
        if len(shape) == 1:
            arrays[name] = kw.ones(shape, config["dtype"])
        else:
            arrays[name] = kw.random.normal(shape, config["dtype"], std=0.02, seed=number)
        size += arrays[name].nbytes
        total += arrays[name].nbytes
        if size >= _SHARD_BYTES:
            save()
            size = 0
    if arrays:
        save()
    names = {name: f"part-{i:05d}.safetensors" for i, each in enumerate(shards, 1) for name in each}
    index = {"metadata": {"total_size": total}, "weight_map": names}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def parts(
    folder: pathlib.Path, quantize: str | None, options: argparse.Namespace
) -> list[tuple[str, Any]]:
    """The parts "load" and "start" that are wanted."""
    made: list[tuple[str, Any]] = []
    if "load" in options.parts:
        made.append(("load", lambda: loading(folder, quantize, options.repeats)))
    if "start" in options.parts:
        made.append(("start", lambda: starting(folder, quantize, options.repeats)))
    return made


def _cached_bytes(folder: pathlib.Path) -> int:
    """Reads all files once, so that they are in the page cache. Their bytes."""
    total = 0
    for path in sorted(folder.glob("*.safetensors")):
        with open(path, "rb", buffering=0) as file:
            while got := file.readinto(_BUFFER):
                total += got
    return total


_BUFFER = bytearray(64 << 20)


def loading(folder: pathlib.Path, quantize: str | None, repeats: int) -> dict[str, Any]:
    """Seconds of llm.load() with the files in the page cache, their rate, and the growth of the
    process's largest memory in the first one."""
    size = _cached_bytes(folder)
    times = []
    peak = 0
    for number in range(repeats + 1):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.perf_counter()
        model = llm.load(folder, quantize=quantize, memory="device")
        kw.current_device().synchronize()
        times.append(time.perf_counter() - begin)
        if number == 0:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        del model
    seconds = float(np.median(times[1:]))  # the first one compiles kernels
    return {
        "bytes": size, "seconds": seconds, "first_seconds": times[0],
        "gb_per_second": size / seconds / 1e9, "mark": _LOAD_MARK, "host_growth_bytes": 1024 * peak,
    }  # fmt: skip


def starting(folder: pathlib.Path, quantize: str | None, repeats: int) -> list[dict[str, Any]]:
    """From the start of a process to its first token: with an empty cache of kernels, then with
    what that left."""
    _cached_bytes(folder)
    found: dict[str, list[list[float]]] = {"cold": [], "warm": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as cache:
            for kind in found:
                found[kind].append(_started(folder, quantize, cache))
    rows = []
    for kind, runs in found.items():
        imports, loads, firsts = np.median(runs, axis=0)
        rows.append({
            "kernels": kind, "seconds": float(firsts), "import_seconds": float(imports),
            "load_seconds": float(loads - imports), "token_seconds": float(firsts - loads),
            "mark": _START_MARKS[kind],
        })  # fmt: skip
    return rows


def _started(folder: pathlib.Path, quantize: str | None, cache: str) -> list[float]:
    """Seconds from the start of a process to the end of its import, of loading, to its token."""
    command = [sys.executable, "-c", _FIRST_TOKEN, str(folder), quantize or ""]
    begin = time.time()
    done = subprocess.run(
        command, env=os.environ | {"KERNWRIGHT_CACHE_DIR": cache}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    line = next((each for each in done.stdout.splitlines() if each.startswith("times ")), None)
    if done.returncode or line is None:
        raise kw.errors.Error(f"the process ended with {done.returncode}: {done.stderr[-500:]}")
    return [float(each) - begin for each in line.split()[1:]]
