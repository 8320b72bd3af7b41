"""Records the allocations of real programs, for the pool's tests to replay.

    python tests/record/record_allocations.py --out traces
    python scripts/recorded.py pack tests/unit/memory/traces.tar.xz traces

runs programs of torch and CuPy on a GPU and writes one file for each: a line of the program's name,
then a line for each event, "+BYTES" for an allocation and "-N" for the free of the Nth allocation
(from 0). Sizes are those that the allocator was asked for, torch's rounded up to 512 bytes by it.
The peaks of use and of reserved memory that the library's own pool had are printed.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable
from itertools import pairwise

MAX_EVENTS = 12000


class Recorder:
    """Events with a program's addresses; frees of earlier allocations are dropped."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.live: dict[int, int] = {}
        self.count = 0

    def allocated(self, address: int, size: int) -> None:
        if size == 0:  # CuPy asks for nothing too, and gets nothing
            return
        self.lines.append(f"+{size}")
        self.live[address] = self.count
        self.count += 1

    def freed(self, address: int) -> None:
        if address in self.live:
            self.lines.append(f"-{self.live.pop(address)}")


def train_transformer() -> None:
    """Four training steps of a small language model, each with another length of text."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device="cuda")
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    embedding = nn.Embedding(8000, 512, device="cuda")
    head = nn.Linear(512, 8000, device="cuda")
    parameters = [*model.parameters(), *embedding.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, foreach=False)
    for length in (128, 384, 200, 320):
        tokens = torch.randint(8000, (4, length), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            logits = head(model(embedding(tokens)))
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def train_convolutions() -> None:
    """A small residual network on batches of changing size, then its evaluation."""
    import torch
    from torch import nn

    torch.manual_seed(1)

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.path = nn.Sequential(
                *(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()),
                *(nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs)),
            )
            self.shortcut = nn.Conv2d(inputs, outputs, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.path(x) + self.shortcut(x))

    widths = [3, 32, 64, 128, 256]
    blocks = [m for a, b in pairwise(widths) for m in (Block(a, b), nn.MaxPool2d(2))]
    model = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 100))
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, foreach=False)
    for batch in (32, 32, 7, 48, 21):
        images = torch.rand(batch, 3, 96, 96, device="cuda")
        labels = torch.randint(100, (batch,), device="cuda")
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    model.eval()
    with torch.no_grad():
        for batch in (64, 5):
            model(torch.rand(batch, 3, 96, 96, device="cuda"))


def generate_text() -> None:
    """Attention over caches that grow by a token a step, for requests that come and go."""
    import torch

    torch.manual_seed(2)
    layers, heads, width = 4, 8, 64
    requests: list[list[torch.Tensor]] = []
    for step in range(96):
        if step % 12 == 0:
            length = 40 + 97 * (step // 12 % 5)
            requests.append(
                [torch.rand(2, heads, length, width, device="cuda") for _ in range(layers)]
            )
        if step % 31 == 30:
            requests.pop(len(requests) // 2)
        for caches in requests:
            for i in range(layers):
                new = torch.rand(2, heads, 1, width, device="cuda")
                caches[i] = torch.cat([caches[i], new], dim=2)
                keys, values = caches[i]
                weights = torch.softmax(new[0] @ keys.transpose(1, 2), -1)
                _ = weights @ values


def analyse_tables() -> None:
    """CuPy: sorts, joins, histograms and spectra of tables of many lengths."""
    import cupy as cp

    rng = cp.random.default_rng(3)
    kept = []
    for i in range(60):
        rows = 1000 + 7919 * (i * i % 53)
        keys = rng.integers(0, 500, rows)
        values = rng.random(rows)
        order = cp.argsort(keys)
        totals = cp.bincount(keys[order], weights=values[order], minlength=500)
        spectrum = cp.abs(cp.fft.rfft(values - values.mean()))
        top = cp.sort(spectrum)[-100:]
        unique = cp.unique(cp.concatenate([keys, keys[: rows // 3] + 1]))
        kept.append((totals, top.copy(), unique))
        if len(kept) > 20:
            kept.pop(3)


def record_torch(program: Callable[[], None]) -> tuple[Recorder, str]:
    import torch

    program()  # libraries make their workspaces once
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.memory._record_memory_history(context=None, stacks="python", max_entries=1 << 20)
    program()
    torch.cuda.synchronize()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    recorder = Recorder()
    for event in events:
        if event["action"] == "alloc":
            recorder.allocated(event["addr"], event["size"])
        elif event["action"] == "free_completed":
            recorder.freed(event["addr"])
    used, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    return recorder, f"torch's pool used {used}, reserved {reserved}: {reserved / used:.2f}"


def record_cupy(program: Callable[[], None]) -> tuple[Recorder, str]:
    import cupy as cp

    recorder = Recorder()
    peak = {"used": 0, "reserved": 0}
    pool = cp.get_default_memory_pool()

    class Hook(cp.cuda.MemoryHook):
        name = "recorder"

        def malloc_postprocess(self, **event: int) -> None:
            recorder.allocated(event["mem_ptr"], event["size"])
            peak["used"] = max(peak["used"], pool.used_bytes())
            peak["reserved"] = max(peak["reserved"], pool.total_bytes())

        def free_preprocess(self, **event: int) -> None:
            recorder.freed(event["mem_ptr"])

    program()
    pool.free_all_blocks()
    with Hook():
        program()
    cp.cuda.get_current_stream().synchronize()
    used, reserved = peak["used"], peak["reserved"]
    return recorder, f"CuPy's pool used {used}, reserved {reserved}: {reserved / used:.2f}"


PROGRAMS = {
    train_transformer: record_torch,
    train_convolutions: record_torch,
    generate_text: record_torch,
    analyse_tables: record_cupy,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the traces")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for program, record in PROGRAMS.items():
        recorder, peaks = record(program)
        lines = recorder.lines[:MAX_EVENTS]
        text = "\n".join([program.__doc__ or "", *lines])
        (options.out / f"{program.__name__}.trace").write_text(text + "\n")
        print(f"{program.__name__}: {len(recorder.lines)} events, {peaks}")


if __name__ == "__main__":
    main()
