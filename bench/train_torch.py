"""GPT-2 in torch, for train.py: eager, compiled, and as a CUDA graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel


class Attention(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.c_attn(x).unflatten(-1, (3, self.n_head, -1)).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(*parts, is_causal=True)
        return self.c_proj(y.transpose(1, 2).flatten(-2))


class MLP(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)
        self.mlp = MLP(config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """The names are those of examples/gpt/model.py. Returns the loss."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        logits = functional.linear(self.ln_f(x), self.wte.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Theirs:
    """A training run; step() returns the loss on the device.

    `kind`: "eager", "compiled" or "graph". With bfloat16 the parameters are float32 and the model
    is under autocast; float32 products are exact (no tf32).
    """

    def __init__(
        self, config: Any, start: dict[str, np.ndarray], kind: str, dtype: str, lr: float, mode: str
    ) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.backends.cuda.matmul.allow_tf32 = False
        self.model = GPT(config).to(self.device)
        self.model.load_state_dict({name: torch.from_numpy(x) for name, x in start.items()})
        self.narrow, self.kind = dtype == "bfloat16", kind
        named = list(self.model.named_parameters())
        plain = [p for name, p in named if "bias" in name or "ln_" in name]
        decayed = [p for name, p in named if not ("bias" in name or "ln_" in name)]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
            lr=lr, betas=(0.9, 0.95), fused=True, capturable=kind == "graph",
        )  # fmt: skip
        self.mean_loss: Any = self.model
        if kind == "compiled":
            self.mean_loss = torch.compile(self.model, mode=mode)
        self.graph: Any = None

    def _step(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        backends = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
        if self.narrow and self.device == "cuda":
            backends = [SDPBackend.CUDNN_ATTENTION]
        if self.kind == "compiled":
            torch.compiler.cudagraph_mark_step_begin()
        with sdpa_kernel(backends), torch.autocast(
            self.device, torch.bfloat16, enabled=self.narrow, cache_enabled=self.kind != "graph"
        ):  # fmt: skip
            loss = self.mean_loss(inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def batch(self, inputs: np.ndarray, targets: np.ndarray) -> tuple[Any, Any]:
        """On the device."""
        inputs, targets = inputs.astype(np.int64), targets.astype(np.int64)
        return torch.from_numpy(inputs).to(self.device), torch.from_numpy(targets).to(self.device)

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if self.kind != "graph":
            return self._step(inputs, targets)
        if self.graph is None:
            self._record(inputs, targets)
        for given, static in zip((inputs, targets), self.static, strict=True):
            static.copy_(given)
        self.graph.replay()
        return self.loss

    def _record(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        self.static = (inputs.clone(), targets.clone())
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._step(*self.static)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = self._step(*self.static)

    def synchronize(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def release() -> int:
    """Gives cached memory back and begins a new peak; returns the bytes that stay in use."""
    if not torch.cuda.is_available():
        return 0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return int(torch.cuda.memory_allocated())


def peak(before: int) -> dict[str, float]:
    """GB since release(), which returned `before`."""
    if not torch.cuda.is_available():
        return {}
    return {
        "used_gb": round((torch.cuda.max_memory_allocated() - before) / 1e9, 3),
        "reserved_gb": round((torch.cuda.max_memory_reserved() - before) / 1e9, 3),
    }
