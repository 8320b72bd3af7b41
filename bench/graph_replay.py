"""Replay of a graph of 100 kernels: ours from Python and C++, the driver's own, and torch's."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import harness
import kernwright as kw

SOURCE = r"""
__global__ void add(float* x, float v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += v;
}"""
KERNELS = 100
N = 1024


def ours(stream: kw.Stream) -> dict[str, Any]:
    k = kw.kernel(SOURCE)
    x, graph = kw.zeros(N), kw.Graph()
    with graph.capture(stream):
        for _ in range(KERNELS):
            k[4, 256](x, 1.0, N)
    assert graph.node_count == KERNELS
    graph.launch(stream)
    stream.synchronize()
    assert (x.numpy() == KERNELS).all()
    node, run = graph.nodes[0], k[4, 256, stream]

    def eager() -> None:
        for _ in range(KERNELS):
            run(x, 1.0, N)

    return {
        "kernwright graph.launch()": lambda: graph.launch(stream),
        "kernwright graph.update() of one kernel": lambda: graph.update(node, x, 1.0, N),
        "kernwright eager launches": eager,
    }


def torch_subjects() -> dict[str, Any]:
    import torch

    x = torch.zeros(N, device="cuda")
    x.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(KERNELS):
            x.add_(1)
    return {"torch CUDAGraph.replay()": graph.replay}


def floor() -> dict[str, Any]:
    """The driver's own graph and ours from C++, from bench/graph_floor.cpp."""
    folder = os.environ.get("KERNWRIGHT_BENCH_BUILD", "build/release")
    program = pathlib.Path(__file__).parents[1] / folder / "bench" / "graph_floor"
    if not program.is_file():
        return {}
    result = subprocess.run([program], check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "graph_replay")
    stream = kw.Stream()
    device = kw.current_device()
    subjects, missing = ours(stream), {}
    if not device.is_simulated:
        try:
            subjects.update(torch_subjects())
        except Exception as error:  # missing or broken packages are named, not hidden
            missing["torch"] = repr(error)
    calls = 1 if device.is_simulated else 200
    host = harness.alternate(subjects, device.synchronize, calls=calls)
    whole = {
        name: harness.alternate({name: lambda c=call: (c(), device.synchronize())}, calls=calls)
        for name, call in subjects.items()
        if "update" not in name
    }
    harness.write(
        options.output,
        {"subject": "graph_replay", "unit": f"us per replay of {KERNELS} kernels",
         "machine": harness.machine(), "host time of a launch": host,
         "launch until done": {name: times[name] for name, times in whole.items()},
         "cpp": floor(), "missing": missing},
    )  # fmt: skip


if __name__ == "__main__":
    main()
