"""Where the time of a language model's step goes, kernel by kernel, as CUPTI counts it.

    step_profile.py [--models 8b,1b] [--parts "decode 1,decode 64,decode 256,prompt 8192"]

Needs torch, whose profiler reads CUPTI, and a GPU. Kernels that begin while the one before them
ends (programmatic dependent launch) count the time that they wait, so that the sum of all kernels
is more than the step: "waits" has what of a kernel's time lies before the end of another one.
"own_us" is the rest: the sum of them and of the gaps is the step. The simulated device has no such
clock and is refused.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import tempfile
from collections.abc import Callable
from typing import Any

import torch
from llm import CONFIGS
from report_models import ATTENTION, PRODUCTS
from torch.profiler import ProfilerActivity, profile

import harness
import kernwright as kw
from kernwright import llm
from kernwright.llm import _measuring
from kernwright.llm._sampling import Sampling

CONTEXT, STEPS, PROMPTS = 1024, 10, 3


def profile_kernels(run: Callable[[], None], steps: int) -> dict[str, Any]:
    """The kernels of a run of so many steps, by their names, in us of a step."""
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        run()
        kw.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        found.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    kernels = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    return summed(kernels, steps)


def summed(kernels: list[dict[str, Any]], steps: int) -> dict[str, Any]:
    """Times by kernel of events in the order of their beginnings, which may overlap."""
    made: dict[str, dict[str, float]] = {}
    end, gaps = kernels[0]["ts"], 0.0
    for each in kernels:
        name = re.sub(r"^void |kernwright::|[<(].*", "", each["name"])
        row = made.setdefault(name, {"count": 0.0, "own_us": 0.0, "waits_us": 0.0})
        begin, done = each["ts"], each["ts"] + each["dur"]
        exclusive = max(done - max(begin, end), 0.0)
        gaps += max(begin - end, 0.0)
        end = max(end, done)
        row["count"] += 1 / steps
        row["own_us"] += exclusive / steps
        row["waits_us"] += (each["dur"] - exclusive) / steps
    ordered = dict(sorted(made.items(), key=lambda item: -item[1]["own_us"]))
    return {"step_us": (end - kernels[0]["ts"]) / steps, "gaps_us": gaps / steps,
            "kernels": ordered}  # fmt: skip


def decoding(model: llm.Model, rows: int) -> dict[str, Any]:
    # The first rows have generated for as long as the last prompt waited: until their tokens are
    # read, no step runs.
    most = 2 * STEPS + rows
    engine = _measuring._engine(model, rows, CONTEXT + most)
    sampling = Sampling(max_tokens=most)
    streams = [
        engine.stream(each, sampling) for each in _measuring._prompts(model, rows, CONTEXT - STEPS)
    ]
    try:
        _measuring._advance(streams, STEPS + rows)
        return profile_kernels(lambda: _measuring._advance(streams, STEPS) and None, STEPS)
    finally:
        for each in streams:
            each.close()


def prompt(model: llm.Model, length: int) -> dict[str, Any]:
    engine = _measuring._engine(model, 1, length + 1)
    prompts = _measuring._prompts(model, 2 * PROMPTS, length)

    def run(some: list[list[int]]) -> None:
        for each in some:
            engine.run([each], Sampling(max_tokens=1))

    run(prompts[:PROMPTS])
    return profile_kernels(lambda: run(prompts[PROMPTS:]), PROMPTS)


def shares(found: dict[str, Any]) -> dict[str, float]:
    """us of a step in products, in attention, in all other kernels, and between kernels."""
    made = {"products": 0.0, "attention": 0.0, "others": 0.0, "gaps": found["gaps_us"]}
    for name, row in found["kernels"].items():
        kind = "products" if PRODUCTS.search(name) else None
        kind = kind or ("attention" if ATTENTION.search(name) else "others")
        made[kind] += row["own_us"]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="8b,1b")
    parser.add_argument("--parts", default="decode 1,decode 64,decode 256,prompt 8192")
    parser.add_argument("-o", "--output", type=pathlib.Path,
                        default=harness.RESULTS / "step_profile.json")  # fmt: skip
    options = parser.parse_args()
    if kw.current_device().is_simulated:
        parser.error("the simulated device has no clock of kernels: run this with a GPU")
    torch.zeros(1, device="cuda")  # CUPTI starts with torch's own context
    document: dict[str, Any] = {"machine": harness.machine(), "models": {}}
    for name in options.models.split(","):
        model = llm.load(random=CONFIGS[name])
        for part in options.parts.split(","):
            kind, number = part.split()
            found = (decoding if kind == "decode" else prompt)(model, int(number))
            document["models"].setdefault(name, {})[part] = {**found, "shares_us": shares(found)}
            print(name, part, json.dumps(document["models"][name][part]["shares_us"]), flush=True)
            harness.save(options.output, document)


if __name__ == "__main__":
    main()
