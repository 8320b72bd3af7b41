"""Heads of drafts in NumPy: a block of one text, an entry at a time, and the steps that used it."""

import itertools

import numpy as np
from llama_host import softmax


class HostBlock:
    """The block whose tensors have names with `prefix` in front, in float64; `fields` are those of
    its config."""

    def __init__(self, weights, prefix, fields):
        self.weights, self.prefix, self.fields = weights, prefix, fields
        self.keys, self.values = [], []

    def part(self, name):
        return self.weights[f"{self.prefix}{name}.weight"]

    def norm(self, x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.fields["rms_norm_eps"]) * weight

    def projected(self, name, x):
        y = self.part(name) @ x
        return y + self.weights.get(f"{self.prefix}{name}.bias", 0)

    def forget(self, length):
        """Entries behind a place are forgotten."""
        del self.keys[length:], self.values[length:]

    def entry(self, position, x, y):
        """The sum behind the block at a place: `x` in front of it, `y` what attention reads."""
        self.forget(position)
        size = self.fields["head_dim"]
        q, k, v = (self.projected(f"self_attn.{name}_proj", y).reshape(-1, size) for name in "qkv")
        angles = position * self.fields["rope_theta"] ** (-np.arange(0, size, 2) / size)

        def turned(x):
            a, b = np.split(x, 2, -1)
            cos, sin = np.cos(angles), np.sin(angles)
            return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

        group = len(q) // len(k)
        self.keys.append(np.repeat(turned(k), group, 0))
        self.values.append(np.repeat(v, group, 0))
        scores = np.einsum("hd,nhd->hn", turned(q), np.array(self.keys)) / np.sqrt(size)
        made = np.einsum("hn,nhd->hd", softmax(scores), np.array(self.values)).reshape(-1)
        x = x + self.part("self_attn.o_proj") @ made
        y = self.norm(x, self.part("post_attention_layernorm"))
        gate = self.part("mlp.gate_proj") @ y
        return x + self.part("mlp.down_proj") @ (
            gate / (1 + np.exp(-gate)) * (self.part("mlp.up_proj") @ y)
        )


def steps_of(pieces, most):
    """(tokens before, accepted) of the steps of `most` drafts; the first piece has no drafts."""
    made, before, begin = [], (0, 0), 0
    for (drafted, accepted), group in itertools.groupby(
        pieces, key=lambda piece: (piece.drafted, piece.accepted)
    ):
        size = len(list(group))
        if drafted - before[0] == most:
            made.append((begin, accepted - before[1]))
            assert size == accepted - before[1] + 1
        before, begin = (drafted, accepted), begin + size
    return made
