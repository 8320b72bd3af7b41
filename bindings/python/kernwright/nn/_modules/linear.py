"""Linear, Embedding and what is made of linear layers."""

from __future__ import annotations

import math
from typing import Any

import kernwright
from kernwright._core import Array
from kernwright.errors import InvalidArgument
from kernwright.nn import _embedding, _linear
from kernwright.nn._activations import product_activation
from kernwright.nn._modules import settings
from kernwright.nn._modules.module import Module
from kernwright.nn._packed_weight import PackedWeight
from kernwright.nn._scaled_weight import ScaledWeight
from kernwright.nn.init import _functions as init

__all__ = ["MLP", "Embedding", "GatedMLP", "Linear"]


def seeds(seed: int | None, count: int) -> list[int | None]:
    """A seed for each of several draws."""
    if seed is None:
        return [None] * count
    from kernwright.random._sequence import whole

    return [(whole(seed, "seed") * count + i) % 2**64 for i in range(count)]


class Linear(Module):
    """x @ weight.T + bias, as torch's: weight (out_features, in_features), bias (out_features,).

    Both begin as uniform numbers within 1 / sqrt(in_features), from `seed` or from the generator of
    kw.random. `dtype` is that of the parameters. quantize() makes weights of 8 bits and fewer.

    >>> kw.nn.Linear(2, 3)(kw.ones((5, 2))).shape
    (5, 3)
    """

    weight: Any

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = None,
        seed: int | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        inputs = settings.extent(in_features, "in_features", least=0)
        shape = settings.extent(out_features, "out_features", least=0), inputs
        has_bias = settings.flag(bias, "bias")
        bound = 1.0 / math.sqrt(max(inputs, 1))
        draws = {"dtype": dtype, "device": device}
        of_weight, of_bias = seeds(seed, 2)
        self.weight = init.uniform(shape, -bound, bound, seed=of_weight, **draws)
        self.bias = (
            init.uniform(shape[0], -bound, bound, seed=of_bias, **draws) if has_bias else None
        )

    def __call__(self, x: Any, **options: Any) -> Array:
        """The layer of x (..., in_features); `options` are those of kw.nn.linear(): activation,
        residual, ..."""
        weight = self.weight
        if isinstance(weight, ScaledWeight):
            return _linear.linear(x, weight.codes, self.bias, scale=weight.scale, **options)
        return _linear.linear(x, weight, self.bias, **options)

    def quantize(self, format: str) -> Linear:
        """Replaces the weight by one of few bits, for inference; returns the layer.

        "int8", "float8_e4m3fn" and "float8_e5m2" have a scale for each output; the formats of
        kw.nn.quant.quantize() that kw.nn.quant.pack() takes ("q4_k", "nf4", ...) make a
        PackedWeight. The weight is no parameter afterwards: load the numbers first, since load(),
        save() and to() of a module with such weights raise InvalidArgument.

        >>> layer = kw.nn.Linear(256, 64, seed=1).quantize("q8_0")
        >>> layer, layer(kw.ones((1, 256))).shape
        (Linear(in_features=256, out_features=64, bias=True, format=q8_0)  # 64 parameters, (1, 64))
        """
        if not isinstance(self.weight, Array):
            raise InvalidArgument("the weight is quantised already")
        if format in ("int8", "float8_e4m3fn", "float8_e5m2"):
            self.weight = ScaledWeight(*kernwright.nn.quantize_rows(self.weight, format))
        else:
            quant = kernwright.nn.quant
            n, k = self.weight.shape
            shape = (n, k) if format in ("nf4", "fp4") else None  # their codes have no rows
            blocks = quant.quantize(self.weight, format)
            self.weight = quant.pack(blocks, format, shape=shape)
        return self

    def extra_repr(self) -> str:
        """The extents and settings that repr() shows."""
        matrix, text = self.weight, ""
        if isinstance(matrix, ScaledWeight):
            matrix = matrix.codes
            text = f", format={matrix.dtype.name}"
        elif isinstance(matrix, PackedWeight):
            text = f", format={matrix.format}"
        outputs, inputs = matrix.shape
        return f"in_features={inputs}, out_features={outputs}, bias={self.bias is not None}{text}"


class Embedding(Module):
    """Rows of a table by their numbers, as torch's: weight (num_embeddings, embedding_dim), which
    begins as normal numbers.

    >>> kw.nn.Embedding(10, 4)(kw.asarray([1, 2, 3])).shape
    (3, 4)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, *, dtype: Any = None,
        seed: int | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        shape = (
            settings.extent(num_embeddings, "num_embeddings", least=0),
            settings.extent(embedding_dim, "embedding_dim", least=0),
        )
        self.weight = init.normal(shape, dtype=dtype, seed=seed, device=device)

    def __call__(self, ids: Any) -> Array:
        return _embedding.embedding(ids, self.weight)

    def as_linear(self, x: Any) -> Array:
        """x @ weight.T: the logits of tied weights.

        >>> kw.nn.Embedding(10, 4).as_linear(kw.ones((3, 4))).shape
        (3, 10)
        """
        return _linear.linear(x, self.weight)

    def extra_repr(self) -> str:
        """The extents and settings that repr() shows."""
        return "{}, {}".format(*self.weight.shape)


class MLP(Module):
    """down_proj(activation(up_proj(x))): dim to hidden_dim and back.

    `activation` is a name that kw.nn.linear() takes: "gelu", "gelu_tanh", "relu2", "silu", ...

    >>> kw.nn.MLP(8, 32)(kw.ones((5, 8))).shape
    (5, 8)
    """

    def __init__(
        self, dim: int, hidden_dim: int, activation: str = "gelu", bias: bool = True, *,
        dtype: Any = None, seed: int | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        self.activation = product_activation("activation", activation)
        dim = settings.extent(dim, "dim", least=0)
        hidden_dim = settings.extent(hidden_dim, "hidden_dim", least=0)
        of_up, of_down = seeds(seed, 2)
        options = {"dtype": dtype, "device": device}
        self.up_proj = Linear(dim, hidden_dim, bias, seed=of_up, **options)
        self.down_proj = Linear(hidden_dim, dim, bias, seed=of_down, **options)

    def __call__(self, x: Any) -> Array:
        return self.down_proj(self.up_proj(x, activation=self.activation))


class GatedMLP(Module):
    """down_proj(activation(gate_proj(x)) * up_proj(x)); "silu" is SwiGLU, as in Llama.

    >>> kw.nn.GatedMLP(8, 32)(kw.ones((5, 8))).shape
    (5, 8)
    """

    def __init__(
        self, dim: int, hidden_dim: int, activation: str = "silu", bias: bool = False, *,
        dtype: Any = None, seed: int | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        self.activation = product_activation("activation", activation)
        dim = settings.extent(dim, "dim", least=0)
        hidden_dim = settings.extent(hidden_dim, "hidden_dim", least=0)
        of_gate, of_up, of_down = seeds(seed, 3)
        options = {"dtype": dtype, "device": device}
        self.gate_proj = Linear(dim, hidden_dim, bias, seed=of_gate, **options)
        self.up_proj = Linear(dim, hidden_dim, bias, seed=of_up, **options)
        self.down_proj = Linear(hidden_dim, dim, bias, seed=of_down, **options)

    def __call__(self, x: Any) -> Array:
        return self.down_proj(self.gate_proj(x, activation=self.activation) * self.up_proj(x))
