"""A small transformer of torch, forward and backward, with and without kernwright.torch.

Variants: eager torch, accelerate(), accelerate() with three own classes, with our attention too,
torch.compile, and both together, in turns in one run. Loss and gradients are compared with the same
model in float32. The simulated device checks only the results, with a tiny model and no timing.
"""

from __future__ import annotations

import argparse
import copy
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import harness
import kernwright as kw

try:
    import torch
    from torch import nn
    from torch.nn import functional

    import kernwright.torch as kt
except ImportError as missing:
    sys.exit(f"torch_transformer.py needs torch: {missing}")

HEAD = 128


def half_turn(x: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


class Rotary(kt.Rope):
    """As in transformers: tables of both halves in the dtype of q, from frequencies in float32."""

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> Any:
        tokens = q.shape[-2]
        cos = torch.cat([self.cos, self.cos], -1)[:tokens].to(q.dtype)
        sin = torch.cat([self.sin, self.sin], -1)[:tokens].to(q.dtype)
        return q * cos + half_turn(q) * sin, k * cos + half_turn(k) * sin


class OurRotary(Rotary):
    def forward(self, q: torch.Tensor, k: torch.Tensor) -> Any:
        return kt.Rope.forward(self, q, k)


class Attention(nn.Module):
    def __init__(self, dim: int, head: int, length: int) -> None:
        super().__init__()
        self.head = head
        self.qkv, self.out = nn.Linear(dim, 3 * dim, False), nn.Linear(dim, dim, False)
        self.rotary = Rotary(head, length, heads_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(x).unflatten(-1, (3, -1, self.head)).permute(2, 0, 3, 1, 4)
        q, k = self.rotary(parts[0], parts[1])
        y = functional.scaled_dot_product_attention(q, k, parts[2], is_causal=True)
        return self.out(y.transpose(1, 2).flatten(-2))


class OurAttention(Attention):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(x).unflatten(-1, (3, -1, self.head)).permute(2, 0, 3, 1, 4)
        q, k = self.rotary(parts[0], parts[1])
        y = kt.scaled_dot_product_attention(q, k, parts[2], is_causal=True)
        return self.out(y.transpose(1, 2).flatten(-2))


class MLP(nn.Module):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(dim, hidden, False), nn.Linear(dim, hidden, False)
        self.down = nn.Linear(hidden, dim, False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class OurMLP(MLP):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(kt.swiglu(self.gate(x), self.up(x)))


class Block(nn.Module):
    def __init__(self, dim: int, hidden: int, head: int, length: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(dim, 1e-5), nn.RMSNorm(dim, 1e-5)
        self.attention, self.mlp = Attention(dim, head, length), MLP(dim, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class OurBlock(Block):
    """The kernel of the second norm also does the first addition."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, x = self.norm2(self.attention(self.norm1(x)), residual=x)
        return x + self.mlp(y)


class Transformer(nn.Module):
    def __init__(self, shape: argparse.Namespace) -> None:
        super().__init__()
        dim, head = shape.dim, min(HEAD, shape.dim // 2)
        self.embed = nn.Embedding(shape.vocabulary, dim)
        self.blocks = nn.ModuleList(
            Block(dim, shape.hidden, head, shape.tokens) for _ in range(shape.layers)
        )
        self.norm, self.head = nn.RMSNorm(dim, 1e-5), nn.Linear(dim, shape.vocabulary, False)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, ids: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.loss(self.head(self.norm(x)).flatten(0, 1), target.flatten())


OURS = (
    *("accelerate", "accelerate and classes", "accelerate, classes and attention"),
    "torch.compile and ours",
)
ALSO = {MLP: OurMLP, Rotary: OurRotary, Block: OurBlock}


def variants(model: nn.Module, simulated: bool) -> dict[str, nn.Module]:
    """Copies of the model, by the change made to them."""

    def compiled(module: nn.Module) -> Any:
        return torch.compile(module, backend="aot_eager" if simulated else "inductor")

    made = {name: copy.deepcopy(model) for name in ("torch", *OURS[:3], "torch.compile", OURS[3])}
    print(kt.accelerate(made["accelerate"]), file=sys.stderr)
    for name in ("accelerate and classes", "torch.compile and ours"):
        kt.accelerate(made[name], also=ALSO)
    kt.accelerate(made[OURS[2]], also={**ALSO, Attention: OurAttention})
    for name in ("torch.compile", "torch.compile and ours"):
        made[name] = compiled(made[name])
    return made


def results(model: nn.Module, ids: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
    """Returns the loss and all gradients."""
    model.zero_grad(set_to_none=True)
    loss = model(ids, target)
    loss.backward()
    found = [loss.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]
    model.zero_grad(set_to_none=True)
    return found


def error(found: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    """The largest ||found - expected|| / ||expected||."""
    pairs = zip(found, expected, strict=True)
    return max(float((f.double() - e.double()).norm() / e.double().norm()) for f, e in pairs)


def timed(run: Callable[[], Any]) -> harness.Loop:
    """Runs the calls and then waits for the device."""

    def loop(calls: int) -> None:
        for _ in range(calls):
            run()
        torch.cuda.synchronize()

    return harness.Loop(loop)


def measure(models: dict[str, nn.Module], inputs: tuple[Any, ...], calls: int) -> dict[str, Any]:
    def forward(model: nn.Module) -> Any:
        with torch.no_grad():
            return model(*inputs)

    def both(model: nn.Module) -> None:
        model.zero_grad(set_to_none=True)
        model(*inputs).backward()

    found: dict[str, Any] = {}
    for title, step in (("forward", forward), ("forward and backward", both)):
        subjects = {name: timed(lambda m=m, step=step: step(m)) for name, m in models.items()}
        found[title] = harness.alternate(subjects, calls=calls, rounds=9, reference="torch")
        for name, run in subjects.items():
            torch.cuda.reset_peak_memory_stats()
            run()
            found[title][name]["peak MiB"] = torch.cuda.max_memory_allocated() >> 20
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    output = harness.RESULTS / "torch_transformer.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=output)
    for name, value in (("layers", 4), ("dim", 2048), ("hidden", 5632), ("vocabulary", 32000),
                        ("batch", 4), ("tokens", 2048), ("calls", 5)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def main() -> None:
    shape = arguments()
    simulated = kw.current_device().is_simulated
    if simulated:
        shape.layers, shape.dim, shape.hidden, shape.vocabulary = 2, 32, 48, 61
        shape.batch, shape.tokens = 2, 6
    device, dtype = ("cpu", torch.float32) if simulated else ("cuda", torch.bfloat16)
    torch.manual_seed(0)
    wide = Transformer(shape).to(device)
    inputs = tuple(torch.randint(shape.vocabulary, (2, shape.batch, shape.tokens), device=device))
    expected = results(wide, *inputs)
    models = variants(copy.deepcopy(wide).to(dtype), simulated)
    del wide
    errors = {name: error(results(model, *inputs), expected) for name, model in models.items()}
    # Rounding of bfloat16 adds up over all layers: torch's own error is the measure of ours.
    allowed = 1e-4 if simulated else 1.5 * errors["torch"]
    harness.write(
        shape.output,
        {
            "subject": "torch_transformer",
            "machine": harness.machine(),
            "model": {k: v for k, v in vars(shape).items() if k != "output"},
            "dtype": str(dtype),
            "errors": errors,
            "correct": all(errors[name] <= allowed for name in OURS),
            "us": {} if simulated else measure(models, inputs, shape.calls),
        },
    )


if __name__ == "__main__":
    main()
