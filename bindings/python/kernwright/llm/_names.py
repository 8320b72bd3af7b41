"""Names of tensors in files, and the parameter that each fills: one table a family.

A `*` stands for a number, in the same order on both sides. Behind a parameter's path may stand
`[*]`, one of a stack; `:part`, the rows of one projection of several; and `|change`, a function of
`CHANGES` that the numbers go through.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import kernwright as kw
from kernwright._core import Array

__all__ = [
    "CHANGES", "MOVES", "MissingNames", "Names", "Place", "changed_shape", "place_of"
]  # fmt: skip

Names = Mapping[str, str]


def _halves(x: Array) -> Array:
    """The even columns of the last axis before the odd ones."""
    return kw.concat([x[..., 0::2], x[..., 1::2]], axis=-1)


CHANGES: dict[str, Callable[[Array], Array]] = {
    "T": lambda x: x.mT,
    "+1": lambda x: x.astype("float32") + 1,
    "pairs": _halves,
    "pairs T": lambda x: _halves(x).mT,
    "row pairs": lambda x: _halves(x.mT).mT,
    "row": lambda x: x.reshape((1, -1)),
}
MOVES = ("T", "pairs", "pairs T", "row pairs", "row")
"""Changes that numbers of any dtype go through as they are."""


def changed_shape(shape: tuple[int, ...], change: str | None) -> tuple[int, ...]:
    """The shape of what a change makes of numbers."""
    if change is not None and change.endswith("T"):
        return (*shape[:-2], *shape[-2:][::-1])
    return (1, math.prod(shape)) if change == "row" else shape


def _with_bias(names: Names) -> dict[str, str]:
    """The same for biases: ".weight" becomes ".bias" on both sides."""
    biases = {
        name.replace(".weight", ".bias"): target.replace(".weight", ".bias")
        for name, target in names.items()
    }
    return {**names, **biases}


_BLOCK = "model.layers.*."

LLAMA: dict[str, str] = {
    "model.embed_tokens.weight": "embedding.weight",
    "model.norm.weight": "norm.weight",
    "lm_head.weight": "head.weight",
    f"{_BLOCK}input_layernorm.weight": "layers.*.input_norm.weight",
    f"{_BLOCK}post_attention_layernorm.weight": "layers.*.post_norm.weight",
    f"{_BLOCK}self_attn.q_norm.weight": "layers.*.attention.q_norm.weight",
    f"{_BLOCK}self_attn.k_norm.weight": "layers.*.attention.k_norm.weight",
    **_with_bias({
        f"{_BLOCK}self_attn.q_proj.weight": "layers.*.attention.qkv.weight:q",
        f"{_BLOCK}self_attn.k_proj.weight": "layers.*.attention.qkv.weight:k",
        f"{_BLOCK}self_attn.v_proj.weight": "layers.*.attention.qkv.weight:v",
        f"{_BLOCK}self_attn.o_proj.weight": "layers.*.attention.out.weight",
        f"{_BLOCK}mlp.gate_proj.weight": "layers.*.mlp.gate_up.weight:gate",
        f"{_BLOCK}mlp.up_proj.weight": "layers.*.mlp.gate_up.weight:up",
        f"{_BLOCK}mlp.down_proj.weight": "layers.*.mlp.down.weight",
    }),
}  # fmt: skip

MIXTRAL: dict[str, str] = LLAMA | {
    f"{_BLOCK}block_sparse_moe.gate.weight": "layers.*.mlp.router.weight",
    f"{_BLOCK}block_sparse_moe.experts.*.w1.weight": "layers.*.mlp.gate_up[*]:gate",
    f"{_BLOCK}block_sparse_moe.experts.*.w3.weight": "layers.*.mlp.gate_up[*]:up",
    f"{_BLOCK}block_sparse_moe.experts.*.w2.weight": "layers.*.mlp.down[*]",
}

PHI3: dict[str, str] = LLAMA | {
    f"{_BLOCK}self_attn.qkv_proj.weight": "layers.*.attention.qkv.weight",
    f"{_BLOCK}mlp.gate_up_proj.weight": "layers.*.mlp.gate_up.weight",
}

GLM: dict[str, str] = LLAMA | {
    f"{_BLOCK}mlp.gate_up_proj.weight": "layers.*.mlp.gate_up.weight",
}

GLM4: dict[str, str] = GLM | {
    f"{_BLOCK}post_self_attn_layernorm.weight": "layers.*.attention_post_norm.weight",
    f"{_BLOCK}post_mlp_layernorm.weight": "layers.*.mlp_post_norm.weight",
}

OLMO2: dict[str, str] = LLAMA | {
    f"{_BLOCK}post_feedforward_layernorm.weight": "layers.*.mlp_post_norm.weight",
}

GEMMA: dict[str, str] = LLAMA | {
    "model.norm.weight": "norm.weight|+1",
    f"{_BLOCK}input_layernorm.weight": "layers.*.input_norm.weight|+1",
    f"{_BLOCK}post_attention_layernorm.weight": "layers.*.post_norm.weight|+1",
    f"{_BLOCK}pre_feedforward_layernorm.weight": "layers.*.mlp_norm.weight|+1",
    f"{_BLOCK}post_feedforward_layernorm.weight": "layers.*.mlp_post_norm.weight|+1",
    f"{_BLOCK}self_attn.q_norm.weight": "layers.*.attention.q_norm.weight|+1",
    f"{_BLOCK}self_attn.k_norm.weight": "layers.*.attention.k_norm.weight|+1",
}

# Files for texts and pictures put these prefixes in front: older files the first, newer ones the
# second.
GEMMA_TEXTS: dict[str, str] = {
    prefix + name.removeprefix("model."): target
    for prefix in ("language_model.model.", "model.language_model.")
    for name, target in GEMMA.items() if name.startswith("model.")
}  # fmt: skip
GEMMA_TEXTS |= dict.fromkeys(("language_model.lm_head.weight", "lm_head.weight"), "head.weight")

STARCODER2: dict[str, str] = LLAMA | _with_bias({
    "model.norm.weight": "norm.weight",
    f"{_BLOCK}input_layernorm.weight": "layers.*.input_norm.weight",
    f"{_BLOCK}post_attention_layernorm.weight": "layers.*.post_norm.weight",
    f"{_BLOCK}mlp.c_fc.weight": "layers.*.mlp.up.weight",
    f"{_BLOCK}mlp.c_proj.weight": "layers.*.mlp.down.weight",
})  # fmt: skip

_GPT2: dict[str, str] = {
    "wte.weight": "embedding.weight",
    "wpe.weight": "positions.weight",
    **_with_bias({
        "ln_f.weight": "norm.weight",
        "h.*.ln_1.weight": "layers.*.input_norm.weight",
        "h.*.ln_2.weight": "layers.*.post_norm.weight",
    }),
    "h.*.attn.c_attn.weight": "layers.*.attention.qkv.weight|T",
    "h.*.attn.c_attn.bias": "layers.*.attention.qkv.bias",
    "h.*.attn.c_proj.weight": "layers.*.attention.out.weight|T",
    "h.*.attn.c_proj.bias": "layers.*.attention.out.bias",
    "h.*.mlp.c_fc.weight": "layers.*.mlp.up.weight|T",
    "h.*.mlp.c_fc.bias": "layers.*.mlp.up.bias",
    "h.*.mlp.c_proj.weight": "layers.*.mlp.down.weight|T",
    "h.*.mlp.c_proj.bias": "layers.*.mlp.down.bias",
}  # fmt: skip

# Files name the tensors with and without "transformer." in front.
GPT2: dict[str, str] = {
    **_GPT2,
    **{f"transformer.{name}": target for name, target in _GPT2.items()},
    "lm_head.weight": "head.weight",
}

GPT_OSS: dict[str, str] = LLAMA | {
    f"{_BLOCK}self_attn.sinks": "layers.*.attention.sinks",
    f"{_BLOCK}mlp.router.weight": "layers.*.mlp.router.weight",
    f"{_BLOCK}mlp.router.bias": "layers.*.mlp.router.bias",
    f"{_BLOCK}mlp.experts.gate_up_proj": "layers.*.mlp.gate_up|pairs T",
    f"{_BLOCK}mlp.experts.gate_up_proj_bias": "layers.*.mlp.gate_up_bias|pairs",
    f"{_BLOCK}mlp.experts.down_proj": "layers.*.mlp.down|T",
    f"{_BLOCK}mlp.experts.down_proj_bias": "layers.*.mlp.down_bias",
    # MXFP4 tensors need no transpose: their experts are (outputs, inputs), as in other families.
    f"{_BLOCK}mlp.experts.gate_up_proj_blocks": "layers.*.mlp.gate_up|row pairs",
    f"{_BLOCK}mlp.experts.down_proj_blocks": "layers.*.mlp.down",
}

QWEN3_MOE: dict[str, str] = LLAMA | {
    f"{_BLOCK}mlp.gate.weight": "layers.*.mlp.router.weight",
    f"{_BLOCK}mlp.experts.*.gate_proj.weight": "layers.*.mlp.gate_up[*]:gate",
    f"{_BLOCK}mlp.experts.*.up_proj.weight": "layers.*.mlp.gate_up[*]:up",
    f"{_BLOCK}mlp.experts.*.down_proj.weight": "layers.*.mlp.down[*]",
}

QWEN2_MOE: dict[str, str] = LLAMA | {
    f"{_BLOCK}mlp.gate.weight": "layers.*.mlp.experts.router.weight",
    f"{_BLOCK}mlp.experts.*.gate_proj.weight": "layers.*.mlp.experts.gate_up[*]:gate",
    f"{_BLOCK}mlp.experts.*.up_proj.weight": "layers.*.mlp.experts.gate_up[*]:up",
    f"{_BLOCK}mlp.experts.*.down_proj.weight": "layers.*.mlp.experts.down[*]",
    f"{_BLOCK}mlp.shared_expert.gate_proj.weight": "layers.*.mlp.shared.gate_up.weight:gate",
    f"{_BLOCK}mlp.shared_expert.up_proj.weight": "layers.*.mlp.shared.gate_up.weight:up",
    f"{_BLOCK}mlp.shared_expert.down_proj.weight": "layers.*.mlp.shared.down.weight",
    f"{_BLOCK}mlp.shared_expert_gate.weight": "layers.*.mlp.shared_gate.weight",
}


DEEPSEEK_V2: dict[str, str] = LLAMA | {
    f"{_BLOCK}self_attn.q_proj.weight": "layers.*.attention.q_up.weight",
    f"{_BLOCK}self_attn.q_a_proj.weight": "layers.*.attention.q_down.weight",
    f"{_BLOCK}self_attn.q_a_layernorm.weight": "layers.*.attention.q_norm.weight",
    f"{_BLOCK}self_attn.q_b_proj.weight": "layers.*.attention.q_up.weight",
    f"{_BLOCK}self_attn.kv_a_proj_with_mqa.weight": "layers.*.attention.kv_down.weight",
    f"{_BLOCK}self_attn.kv_a_layernorm.weight": "layers.*.attention.kv_norm.weight",
    f"{_BLOCK}self_attn.kv_b_proj.weight": "layers.*.attention.kv_up.weight",
    f"{_BLOCK}mlp.gate.weight": "layers.*.mlp.experts.router.weight",
    f"{_BLOCK}mlp.experts.*.gate_proj.weight": "layers.*.mlp.experts.gate_up[*]:gate",
    f"{_BLOCK}mlp.experts.*.up_proj.weight": "layers.*.mlp.experts.gate_up[*]:up",
    f"{_BLOCK}mlp.experts.*.down_proj.weight": "layers.*.mlp.experts.down[*]",
    f"{_BLOCK}mlp.shared_experts.gate_proj.weight": "layers.*.mlp.shared.gate_up.weight:gate",
    f"{_BLOCK}mlp.shared_experts.up_proj.weight": "layers.*.mlp.shared.gate_up.weight:up",
    f"{_BLOCK}mlp.shared_experts.down_proj.weight": "layers.*.mlp.shared.down.weight",
}

EAGLE3: dict[str, str] = {
    "fc.weight": "mixer.weight",
    "embed_tokens.weight": "embedding.weight",
    "norm.weight": "norm.weight",
    "lm_head.weight": "head.weight",
    **{
        layer + name.removeprefix(_BLOCK): target.removeprefix("layers.*.")
        for layer in ("midlayer.", "layers.*.")
        for name, target in {
            **LLAMA, f"{_BLOCK}hidden_norm.weight": "layers.*.hidden_norm.weight"
        }.items() if name.startswith(_BLOCK)
    },
}  # fmt: skip

_MTP = "model.mtp_layers.*."

MIMO_PREDICTOR: dict[str, str] = {
    f"{_MTP}token_layernorm.weight": "token_norm.weight",
    f"{_MTP}hidden_layernorm.weight": "hidden_norm.weight",
    f"{_MTP}input_proj.weight": "mixer.weight",
    f"{_MTP}final_layernorm.weight": "norm.weight",
    **{
        name.replace(_BLOCK, _MTP): target.replace("layers.*.", "block.")
        for name, target in LLAMA.items() if name.startswith(_BLOCK)
    },
}  # fmt: skip


_NUMBER = re.compile(r"(?<=\.)[0-9]+(?=\.)")


class Place(NamedTuple):
    """What a tensor of a file fills: a parameter, an entry of a stack, a part of its rows, and the
    change that its numbers go through."""

    path: str
    entry: int | None = None
    part: str | None = None
    change: str | None = None


def place_of(name: str, names: Names) -> Place | None:
    """The place of the tensor `name`; None where the table has none.

    >>> from kernwright.llm import _names
    >>> _names.place_of("model.layers.3.self_attn.k_proj.weight", _names.LLAMA)
    Place(path='layers.3.attention.qkv.weight', entry=None, part='k', change=None)
    """
    target = names.get(_NUMBER.sub("*", name))
    if target is None:
        return None
    for number in _NUMBER.findall(name):
        target = target.replace("*", number, 1)
    found = re.fullmatch(r"([^:|\[]+)(?:\[([0-9]+)\])?(?::([^|]+))?(?:\|(.+))?", target)
    assert found is not None, f"the table has {target}"
    path, entry, part, change = found.groups()
    return Place(path, None if entry is None else int(entry), part, change)


class MissingNames:
    """The tensors that a table wants and a file has not. `there` are those of the file: of several
    ways to name a tensor, the file's other layers tell which one is missing.

    >>> from kernwright.llm import _names
    >>> there = ["model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.gate_proj.weight"]
    >>> _names.MissingNames(_names.LLAMA, there).lacking("layers.1.mlp.gate_up.weight")
    ['model.layers.1.mlp.up_proj.weight']
    """

    def __init__(self, names: Names, there: Collection[str]) -> None:
        self._there = set(there)
        used = {_NUMBER.sub("*", name) for name in self._there}
        begins = {name.partition(".")[0] for name in used}
        rank = {
            name: (name in used, name.partition(".")[0] in begins, place)
            for place, name in enumerate(names)
        }
        self._ways: dict[str, list[tuple[str, str]]] = {}  # names and parts, the likely ones first
        for name in sorted(names, key=rank.__getitem__, reverse=True):
            path, _, part = names[name].partition("|")[0].replace("[*]", "").partition(":")
            self._ways.setdefault(path, []).append((name, part))
        self._stacks = {name for name, target in names.items() if "[*]" in target}

    def lacking(self, path: str, entries: int = 1) -> list[str]:
        """Those of the parameter at `path`, a stack of so many entries where names count them.
        Empty where the table has none."""
        ways = self._ways.get(_NUMBER.sub("*", path), [])
        chosen = {part: name for name, part in reversed(ways)}  # the likeliest of each part
        if ways and not ways[0][1]:
            chosen = {"": ways[0][0]}
        else:
            chosen.pop("", None)
        numbers, found = _NUMBER.findall(path), []
        for pattern in reversed(chosen.values()):
            for entry in range(entries if pattern in self._stacks else 1):
                name = pattern
                for number in (*numbers, str(entry)):
                    name = name.replace("*", number, 1)
                found.append(name)
        return sorted(name for name in found if name not in self._there)
