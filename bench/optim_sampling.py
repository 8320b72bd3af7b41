"""AdamW steps, top-k sampling and normal numbers beside torch, CuPy and a copy of the device.

On a GPU at full size; on the simulated device a few elements, as a check of the subjects alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import harness
import kernwright as kw

Subjects = dict[str, Callable[[], Any]]
SIMULATED = kw.current_device().is_simulated
PARAMETERS = 20_000 if SIMULATED else 250_000_000
FILL = 20_000 if SIMULATED else 1 << 28
ROWS, TOKENS, TOP_K = (1, 2) if SIMULATED else (1, 8, 128), 4000 if SIMULATED else 128_256, 50


def optional(name: str) -> Any:
    """A peer that runs here, or None."""
    if SIMULATED:
        return None
    try:
        return __import__(name)
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
        return None


def timed(subjects: Subjects, moved: float, calls: int) -> dict[str, Any]:
    """Times in microseconds, and the bytes that must move over the best of them."""
    torch = optional("torch")

    def settle() -> None:
        kw.synchronize()
        if torch is not None:
            torch.cuda.synchronize()

    waiting = {
        name: harness.Loop(lambda count, call=call: ([call() for _ in range(count)], settle()))
        for name, call in subjects.items()
    }
    times = harness.alternate(waiting, settle, calls=calls, rounds=3 if SIMULATED else 9)
    return {
        name: {**time, "GB/s": round(moved / time["min"] / 1e3, 1)} for name, time in times.items()
    }


def copies(count: int) -> tuple[Subjects, float]:
    """What the device's memory reaches: a copy of float32."""
    x = kw.ones(count)
    return {"copy": lambda: x.copy()}, 8.0 * count


def adamw() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    split = [PARAMETERS // 3, PARAMETERS // 3, PARAMETERS - 2 * (PARAMETERS // 3)]
    hosts = [rng.standard_normal(n, np.float32) for n in split]
    params, grads = [kw.asarray(h) for h in hosts], [kw.asarray(h) for h in hosts]
    optimizer = kw.optim.AdamW(params, lr=1e-3)
    optimizer.step(grads)
    # With m = 0.1 g and v = 0.001 g g, the first step is lr * sign(g), nearly.
    right = all(
        np.allclose(p.numpy(), h * (1 - 1e-5) - 1e-3 * np.sign(h), atol=2e-5)
        for p, h in zip(params, hosts, strict=True)
    )
    subjects: Subjects = {"kernwright": lambda: optimizer.step(grads)}
    torch = optional("torch")
    if torch is not None:
        own = [torch.nn.Parameter(torch.tensor(h, device="cuda")) for h in hosts]
        for p in own:
            p.grad = p.detach().clone()
        fused = torch.optim.AdamW(own, lr=1e-3, fused=True)
        subjects["torch, fused"] = fused.step
    return {"parameters": PARAMETERS, "times": timed(subjects, 28.0 * PARAMETERS, 10),
            "correct": right}  # fmt: skip


def sampling(rows: int) -> dict[str, Any]:
    host = np.random.default_rng(1).standard_normal((rows, TOKENS)).astype(np.float32) * 2
    logits, out = kw.asarray(host), kw.empty(rows, "int64")
    counter = kw.zeros(1, "uint64")
    best = np.sort(host, axis=1)[:, -TOP_K]
    drawn = kw.nn.sample(logits, top_k=TOP_K, seed=1).numpy()
    right = bool((host[np.arange(rows), drawn] >= best).all())
    right &= bool((kw.nn.greedy(logits).numpy() == host.argmax(1)).all())
    subjects: Subjects = {
        "kernwright, top-k": lambda: kw.nn.sample(logits, top_k=TOP_K, seed=1, out=out),
        "kernwright, top-k and top-p": lambda: kw.nn.sample(
            logits, top_k=TOP_K, top_p=0.9, seed=1, counter=counter, out=out
        ),
        "kernwright, greedy": lambda: kw.nn.greedy(logits, out=out),
    }
    torch = optional("torch")
    if torch is not None:
        theirs = torch.tensor(host, device="cuda")

        def draw() -> Any:
            values, places = theirs.topk(TOP_K, dim=-1)
            chosen = torch.multinomial(values.softmax(-1), 1)
            return places.gather(-1, chosen)

        subjects["torch, topk and multinomial"] = draw
        subjects["torch, argmax"] = lambda: theirs.argmax(-1)
    return {"rows": rows, "tokens": TOKENS, "times": timed(subjects, 4.0 * rows * TOKENS, 50),
            "correct": right}  # fmt: skip


def normal_fill() -> dict[str, Any]:
    x = kw.empty(FILL)
    generator = kw.random.Generator(1)
    z = generator.normal(20_000).numpy().astype(np.float64)
    right = bool(abs(z.mean()) < 0.03 and abs(z.std() - 1) < 0.02)
    subjects: Subjects = {"kernwright": lambda: generator.normal(out=x)}
    torch, cupy = optional("torch"), optional("cupy")
    if torch is not None:
        theirs = torch.empty(FILL, device="cuda")
        subjects["torch"] = lambda: theirs.normal_()
    if cupy is not None:
        random = cupy.random.default_rng(1)
        subjects["CuPy"] = lambda: random.standard_normal(FILL, dtype=cupy.float32)
    return {"elements": FILL, "times": timed(subjects, 4.0 * FILL, 10), "correct": right}


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "optim_sampling")
    subjects, moved = copies(FILL)
    result = {
        "subject": "optim_sampling",
        "machine": harness.machine(),
        "unit": "microseconds a call; GB/s of the bytes that must move",
        "copy": timed(subjects, moved, 10),
        "adamw": adamw(),
        "sampling": [sampling(rows) for rows in ROWS],
        "normal": normal_fill(),
    }
    harness.write(options.output, result)


if __name__ == "__main__":
    main()
