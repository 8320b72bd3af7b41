"""Whole training steps of GPT-2 beside torch: forward, backward, clipping, AdamW.

    train.py [--models gpt2,char] [--subjects ours,logits,eager,compiled,graph]
             [--parts speed,losses,start,chain] [--keep]

"ours" is examples/gpt/model.py, captured, with bfloat16 weights and float32 masters; "logits" the
same with all logits at once in place of kw.nn.linear_cross_entropy(). torch has float32 weights
under autocast, attention of cuDNN and the fused AdamW; "graph" is its eager step as a CUDA graph.
speed: the subjects take turns in one run; tokens a second, MFU, peak memory. losses: the losses of
--loss-steps steps from one start over the same data, beside torch in float32 (our float32 without
torch). start: from the start of a process to the end of its first step, with empty caches and with
full ones. chain: a fused function of 20 elementwise operations and its gradient, as shares of the
bandwidth of a copy; no model. Each part is saved when it is there; with --keep beside the parts of
an earlier run on the same device. The simulated device has a small model.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import gc
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import harness
import kernwright as kw

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples" / "gpt"))
import data
import model as gpt

OURS = ("ours", "logits")
LR = 3e-4
TOLERANCE = 1e-2  # nats, of the losses' means over 10 steps
SIZES = {"gpt2": (64, 1024), "char": (64, 256), "tiny": (4, 16)}  # batch, length


class Ours:
    """The step of examples/gpt without accumulation, captured; with `logits` all of them exist at
    once, overwritten by their gradient."""

    def __init__(self, config: gpt.Config, dtype: str, logits: bool) -> None:
        self.model = gpt.GPT(config, seed=1).astype("bfloat16").astype(dtype)
        self.optimizer = kw.optim.AdamW(
            self.model, lr=LR, betas=(0.9, 0.95), weight_decay=0.1,
            master_weights=dtype != "float32",
            groups=[{"match": r"bias|ln_", "weight_decay": 0.0}],
        )  # fmt: skip
        gradient = kw.value_and_grad(whole_loss if logits else gpt.loss_of)

        def step(inputs: kw.Array, targets: kw.Array) -> kw.Array:
            loss, gradients = gradient(self.model, inputs, targets)
            self.optimizer.step(gradients, max_norm=1.0)
            return loss

        self.step = kw.captured(step)

    def batch(self, inputs: np.ndarray, targets: np.ndarray) -> tuple[kw.Array, kw.Array]:
        return kw.asarray(inputs), kw.asarray(targets)

    def synchronize(self) -> None:
        kw.synchronize()


def whole_loss(model: gpt.GPT, inputs: kw.Array, targets: kw.Array) -> kw.Array:
    return kw.nn.cross_entropy(model(inputs), targets, inplace=True)


class OurMemory:
    """What train_torch.py has for torch: memory of the pool in use."""

    @staticmethod
    def release() -> int:
        kw.memory.trim()
        return 0

    @staticmethod
    def peak(before: int) -> dict[str, float]:
        found = kw.memory.stats()
        return {
            "used_gb": round((found["used_peak"] - before) / 1e9, 3),
            "reserved_gb": round((found["reserved_peak"] - before) / 1e9, 3),
        }


def first_weights(config: gpt.Config) -> dict[str, np.ndarray]:
    """What every subject begins with: numbers that bfloat16 has, in float32."""
    made = gpt.GPT(config, seed=1).astype("bfloat16").astype("float32")
    return {name: weight.numpy() for name, weight in made.named_parameters()}


@functools.cache
def torch_peer() -> Any:
    try:
        import train_torch
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
        return None
    return train_torch


def subject(kind: str, config: gpt.Config, dtype: str, mode: str) -> Any:
    if kind in OURS:
        return Ours(config, dtype, kind == "logits")
    return torch_peer().Theirs(config, first_weights(config), kind, dtype, LR, mode)


def batches(text: np.ndarray, batch: int, length: int, count: int) -> list[Any]:
    """Inputs and targets of random windows of the text."""
    rng, made = np.random.default_rng(1), []
    for _ in range(count):
        starts = rng.integers(0, len(text) - length - 1, (batch, 1))
        windows = text[starts + np.arange(length + 1)].astype(np.int32)
        made.append((windows[:, :-1].copy(), windows[:, 1:].copy()))
    return made


def make_config(name: str) -> tuple[gpt.Config, int, int]:
    batch, length = SIZES[name]
    config = gpt.PRESETS[name]
    return dataclasses.replace(config, n_positions=length), batch, length


def list_kinds(name: str, options: argparse.Namespace) -> list[str]:
    """The subjects; "graph" keeps a second copy of all activations, too much of the large model."""
    wanted = options.subjects or ("ours,eager,compiled" + ("" if name == "gpt2" else ",graph"))
    return [kind for kind in wanted.split(",") if kind in OURS or torch_peer() is not None]


def told(error: BaseException) -> dict[str, str]:
    traceback.print_exception(error)
    printed = str(getattr(error, "stderr", None) or "")[-300:]  # of a process
    return {"error": f"{type(error).__name__}: {error}"[:300] + printed}


def speed(
    name: str, options: argparse.Namespace, text: np.ndarray, save: Callable[[Any], None]
) -> None:
    """Seconds a step of each subject: medians of turns of --steps steps."""
    config, batch, length = make_config(name)
    batch = options.batch or batch
    host = batches(text, batch, length, 4)
    found: dict[str, Any] = {"batch": batch, "length": length, **dataclasses.asdict(config)}
    subjects: dict[str, tuple[Any, list[Any], Any]] = {}
    for kind in list_kinds(name, options):
        try:
            with kw.memory.use(kw.memory.PoolResource()):  # our peak begins anew
                memory = OurMemory if kind in OURS else torch_peer()
                before, start = memory.release(), time.perf_counter()
                made = subject(kind, config, options.dtype, options.compile_mode)
                given = [made.batch(*pair) for pair in host]
                losses = [float(made.step(*given[0]))]
                row = {"first step, s": round(time.perf_counter() - start, 3)}
                losses += [float(made.step(*given[i % 4])) for i in range(1, 4)]
                made.synchronize()
                row["losses"] = [round(loss, 4) for loss in losses]
                if kind in OURS:
                    row["launches"] = made.step.graphs[-1].node_count
                found[kind] = {**row, **memory.peak(before)}
                memory.release()
            subjects[kind] = made, given, memory
        except Exception as error:  # the other subjects still get figures
            found[kind] = told(error)
        save(found)
    seconds: dict[str, list[float]] = {kind: [] for kind in subjects}
    for _ in range(options.rounds):
        for kind, (made, given, memory) in list(subjects.items()):
            try:
                made.step(*given[0])
                made.synchronize()
                start = time.perf_counter()
                for i in range(options.steps):
                    made.step(*given[i % 4])
                made.synchronize()
                seconds[kind].append((time.perf_counter() - start) / options.steps)
                memory.release()
            except Exception as error:
                found[kind] |= told(error)
                del subjects[kind]
    flops, peak = gpt.flops_per_token(config), kw.train.peak_flops()
    for kind in subjects:
        rate = batch * length / statistics.median(seconds[kind])
        found[kind] |= {
            "step, ms": round(statistics.median(seconds[kind]) * 1e3, 4),
            "rounds, ms": [round(each * 1e3, 4) for each in seconds[kind]],
            "tokens a second": round(rate, 1),
            "mfu": "unknown" if peak is None else round(rate * flops / peak, 4),
        }
        if kind != "ours" and "ours" in subjects:
            ratio = statistics.median(seconds[kind]) / statistics.median(seconds["ours"])
            found[kind]["time / ours"] = round(ratio, 3)
    save(found)


def losses(
    name: str, options: argparse.Namespace, text: np.ndarray, save: Callable[[Any], None]
) -> None:
    """The losses of each subject beside the reference's."""
    config, batch, length = make_config(name)
    batch = options.loss_batch or min(batch, 8)
    host = batches(text, batch, length, options.loss_steps)
    runs = [("reference", "ours" if torch_peer() is None else "eager", "float32"),
            ("ours", "ours", options.dtype)]  # fmt: skip
    if torch_peer() is not None:
        runs.append(("eager", "eager", options.dtype))
    found: dict[str, Any] = {"batch": batch, "steps": options.loss_steps, "reference": runs[0][1:]}
    taken: dict[str, np.ndarray] = {}
    width = min(10, options.loss_steps)
    for title, kind, dtype in runs:
        made = subject(kind, config, dtype, options.compile_mode)
        taken[title] = np.array([float(made.step(*made.batch(*pair))) for pair in host])
        del made
        gc.collect()
        apart = taken[title] - taken["reference"]
        smooth = np.convolve(apart, np.full(width, 1 / width), "valid")
        found[f"{title} losses"] = [round(each, 5) for each in taken[title].tolist()]
        found[f"{title} apart"] = {
            "largest of a step": float(abs(apart).max()),
            f"largest of {width} steps": float(abs(smooth).max()),
            "mean": float(apart.mean()),
        }
        save(found)
    apart = found["ours apart"][f"largest of {width} steps"]
    short = options.loss_steps < 2 * width
    falls = short or bool(taken["ours"][-width:].mean() < taken["ours"][:width].mean())
    found["correct"] = bool(apart <= TOLERANCE) and falls
    save(found)


def process_seconds() -> float:
    """Since this process began."""
    ticks = int(pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    now = float(pathlib.Path("/proc/uptime").read_text().split()[0])
    return now - ticks / os.sysconf("SC_CLK_TCK")


def first_step(name: str, kind: str, options: argparse.Namespace) -> None:
    """Runs in a process of its own and prints its seconds."""
    config, batch, length = make_config(name)
    made = subject(kind, config, options.dtype, options.compile_mode)
    pair = batches(np.arange(length * 4) % 256, options.batch or batch, length, 1)[0]
    float(made.step(*made.batch(*pair)))
    print(round(process_seconds(), 3))


def start(
    name: str, options: argparse.Namespace, text: np.ndarray, save: Callable[[Any], None]
) -> None:
    """Seconds to the first step's end, with empty caches and with those that it left."""
    found: dict[str, Any] = {}
    for kind in list_kinds(name, options):
        if kind == "graph":
            continue
        with tempfile.TemporaryDirectory() as folder:
            names = ("KERNWRIGHT_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
            caches = {name: f"{folder}/{name}" for name in names}
            words = ["--first-step", kind, "--models", name, "--dtype", options.dtype,
                     "--compile-mode", options.compile_mode]  # fmt: skip
            words += ["--batch", str(options.batch)] if options.batch else []
            for caches_are in ("cold", "warm"):
                try:
                    ended = subprocess.run(
                        [sys.executable, __file__, *words], capture_output=True, text=True,
                        check=True, timeout=options.start_seconds, env={**os.environ, **caches},
                    )  # fmt: skip
                    found[f"{kind}, {caches_are}, s"] = float(ended.stdout.split()[-1])
                except subprocess.SubprocessError as error:
                    found[f"{kind}, {caches_are}, s"] = told(error)
                save(found)


def arithmetic(x: Any) -> Any:
    """20 operations of an instruction or two each, with bounded values and slopes."""
    for _ in range(5):
        x = kw.maximum(x * 1.25 + 0.5, x) * 0.75
    return x


def chained(x: Any) -> Any:
    """20 operations, four of them tanh: arithmetic takes longer than memory."""
    for _ in range(4):
        x = kw.tanh(x * 1.25 + 0.5) - 0.25 * x
    return x


def chain(save: Callable[[Any], None]) -> None:
    """Times of fused chains, of their gradients, and of a copy; kernels of each."""
    size = 1 << (12 if kw.current_device().is_simulated else 26)
    found: dict[str, Any] = {"operations": 20, "elements": size}
    for dtype in ("float32", "bfloat16"):
        x = kw.asarray(np.linspace(-2, 2, size, dtype=np.float32)).astype(dtype)
        simple, tanh_chain = kw.fuse(arithmetic), kw.fuse(chained)
        y, back = kw.vjp(simple, x)
        _, back_through_tanh = kw.vjp(tanh_chain, x)
        ones, copy = kw.ones_like(y), kw.empty_like(x)
        calls: dict[str, tuple[Callable[[], Any], int]] = {
            "copy": (functools.partial(copy._assign, x), 2),
            "forward": (functools.partial(simple, x), 2),
            "gradient": (functools.partial(back, ones), 3),
            "forward, 4 tanh": (functools.partial(tanh_chain, x), 2),
            "gradient, 4 tanh": (functools.partial(back_through_tanh, ones), 3),
        }
        best = 0.0
        rows = found[dtype] = {}
        for name, (call, passes) in calls.items():
            call()
            with kw.profile() as seen:
                call()
            names = [each.name for each in seen.activities]
            milliseconds = kw.time(call).median
            rate = passes * x.nbytes / milliseconds / 1e6
            best = rate if name == "copy" else best
            rows[name] = {
                "kernels": len([each for each in names if each not in ("allocate", "release")]),
                "ms": milliseconds, "gb_per_s": round(rate, 1), "of a copy": round(rate / best, 3),
            }  # fmt: skip
            save(found)


PARTS = {"speed": speed, "losses": losses, "start": start}


def parse_options() -> argparse.Namespace:
    simulated = kw.current_device().is_simulated
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--output", type=pathlib.Path, default=harness.RESULTS / "train.json")
    parser.add_argument("--models", default="tiny" if simulated else "gpt2,char")
    parser.add_argument("--subjects", help="ours, logits, eager, compiled, graph")
    parser.add_argument("--parts", default=",".join([*PARTS, "chain"]))
    parser.add_argument("--keep", action="store_true", help="the parts in the output so far")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--batch", type=int, help="rows of a step for speed and start")
    parser.add_argument("--steps", type=int, default=2 if simulated else 20, help="of each turn")
    parser.add_argument("--rounds", type=int, default=2 if simulated else 5)
    parser.add_argument("--loss-steps", type=int, default=12 if simulated else 200)
    parser.add_argument("--loss-batch", type=int, help="rows of a step for losses")
    # max-autotune of torch 2.11 ends with an illegal access at mm(50304x65536, 65536x768).
    parser.add_argument("--compile-mode", default="default", help="of torch.compile")
    parser.add_argument("--start-seconds", type=float, default=300, help="limit of a start")
    parser.add_argument("--first-step", help=argparse.SUPPRESS)
    return parser.parse_args()


def kept(path: pathlib.Path, document: dict[str, Any]) -> dict[str, Any]:
    """The document with the parts of an earlier one from the same device."""
    if not path.exists():
        return document
    earlier = json.loads(path.read_text())
    same = earlier.get("machine", {}).get("device") == document["machine"]["device"]
    return {**(earlier if same else {}), **document}


def main() -> None:
    options = parse_options()
    if options.first_step:
        first_step(options.models, options.first_step, options)
        return
    text = np.frombuffer(data.read_text("stdlib", 10_000_000).encode(), np.uint8)
    document: dict[str, Any] = {"subject": "train", "machine": harness.machine()}
    if options.keep:
        document = kept(options.output, document)
    parts = options.parts.split(",")
    if "chain" in parts:
        parts.remove("chain")

        def save_chain(found: Any) -> None:
            document["chain"] = found
            harness.save(options.output, document)

        try:
            chain(save_chain)
        except Exception as error:
            save_chain(document.get("chain", {}) | told(error))
    for name in options.models.split(","):
        for part in parts:

            def save(found: Any, name: str = name, part: str = part) -> None:
                document.setdefault(name, {})[part] = found
                harness.save(options.output, document)

            try:
                PARTS[part](name, options, text, save)
            except Exception as error:  # the other parts still get figures
                save(document.get(name, {}).get(part, {}) | told(error))
            gc.collect()
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
