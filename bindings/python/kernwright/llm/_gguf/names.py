"""Names of arrays in GGUF files, and the parameter that each fills; see llm/_names.py."""

from __future__ import annotations

import re

from kernwright.llm._names import Names

__all__ = ["file_names", "gguf_names"]

_COMMON: dict[str, str] = {
    "token_embd.weight": "embedding.weight",
    "position_embd.weight": "positions.weight",
    "output.weight": "head.weight",
    **{
        f"{theirs}.{kind}": f"{ours}.{kind}"
        for kind in ("weight", "bias")
        for theirs, ours in {
            "output_norm": "norm",
            "blk.*.attn_norm": "layers.*.input_norm",
            "blk.*.ffn_norm": "layers.*.post_norm",
            "blk.*.attn_q_norm": "layers.*.attention.q_norm",
            "blk.*.attn_k_norm": "layers.*.attention.k_norm",
            "blk.*.attn_qkv": "layers.*.attention.qkv",
            "blk.*.attn_output": "layers.*.attention.out",
            "blk.*.ffn_down": "layers.*.mlp.down",
        }.items()
    },
    **{
        f"blk.*.{theirs}.{kind}": f"layers.*.{ours}.{kind}:{part}"
        for kind in ("weight", "bias")
        for theirs, ours, part in (
            ("attn_q", "attention.qkv", "q"),
            ("attn_k", "attention.qkv", "k"),
            ("attn_v", "attention.qkv", "v"),
            ("ffn_gate", "mlp.gate_up", "gate"),
            ("ffn_up", "mlp.gate_up", "up"),
        )
    },
    "blk.*.ffn_gate_inp.weight": "layers.*.mlp.router.weight",
    "blk.*.ffn_gate_exps.weight": "layers.*.mlp.gate_up:gate",
    "blk.*.ffn_up_exps.weight": "layers.*.mlp.gate_up:up",
    "blk.*.ffn_down_exps.weight": "layers.*.mlp.down",
}
# A norm behind attention has another name where one before the gated layer has its own.
_POST_NORMS = {
    "blk.*.post_attention_norm.weight": "layers.*.post_norm.weight",
    "blk.*.ffn_norm.weight": "layers.*.mlp_norm.weight",
    "blk.*.post_ffw_norm.weight": "layers.*.mlp_post_norm.weight",
}
_UP = {f"blk.*.ffn_up.{kind}": f"layers.*.mlp.up.{kind}" for kind in ("weight", "bias")}
_QKV = {f"blk.*.attn_qkv.{kind}": f"layers.*.attention.qkv.{kind}" for kind in ("weight", "bias")}
_SHARED = {
    "blk.*.ffn_gate_inp.weight": "layers.*.mlp.experts.router.weight",
    "blk.*.ffn_gate_exps.weight": "layers.*.mlp.experts.gate_up:gate",
    "blk.*.ffn_up_exps.weight": "layers.*.mlp.experts.gate_up:up",
    "blk.*.ffn_down_exps.weight": "layers.*.mlp.experts.down",
    "blk.*.ffn_gate_shexp.weight": "layers.*.mlp.shared.gate_up.weight:gate",
    "blk.*.ffn_up_shexp.weight": "layers.*.mlp.shared.gate_up.weight:up",
    "blk.*.ffn_down_shexp.weight": "layers.*.mlp.shared.down.weight",
}
# The converter leaves axes of 1 out.
_SHARED_GATE = {"blk.*.ffn_gate_inp_shexp.weight": "layers.*.mlp.shared_gate.weight|row"}
_LATENT = {
    f"blk.*.attn_{theirs}.weight": f"layers.*.attention.{ours}.weight"
    for theirs, ours in {
        "q": "q_up", "q_a": "q_down", "q_a_norm": "q_norm", "q_b": "q_up", "kv_a_mqa": "kv_down",
        "kv_a_norm": "kv_norm", "kv_b": "kv_up",
    }.items()
}  # fmt: skip
_GPT_OSS = {
    "blk.*.post_attention_norm.weight": "layers.*.post_norm.weight",
    "blk.*.attn_sinks.weight": "layers.*.attention.sinks",
    "blk.*.ffn_gate_inp.bias": "layers.*.mlp.router.bias",
    "blk.*.ffn_gate_exps.bias": "layers.*.mlp.gate_up_bias:gate",
    "blk.*.ffn_up_exps.bias": "layers.*.mlp.gate_up_bias:up",
    "blk.*.ffn_down_exps.bias": "layers.*.mlp.down_bias",
}
_OF_ARCHITECTURES: dict[str, dict[str, str]] = {
    "Gemma2ForCausalLM": _POST_NORMS,
    "Gemma3ForCausalLM": _POST_NORMS,
    "Olmo2ForCausalLM": _POST_NORMS,
    "Glm4ForCausalLM": {
        "blk.*.post_attention_norm.weight": "layers.*.attention_post_norm.weight",
        "blk.*.post_ffw_norm.weight": "layers.*.mlp_post_norm.weight",
        "blk.*.ffn_up.weight": "layers.*.mlp.gate_up.weight",
    },
    "Phi3ForCausalLM": _QKV | {"blk.*.ffn_up.weight": "layers.*.mlp.gate_up.weight"},
    "GPT2LMHeadModel": _QKV | _UP,
    "Starcoder2ForCausalLM": _UP,
    "GptOssForCausalLM": _GPT_OSS,
    "Qwen2MoeForCausalLM": _SHARED | _SHARED_GATE,
    "DeepseekV2ForCausalLM": _SHARED | _LATENT,
}


def gguf_names(architecture: str) -> Names:
    """The table of an architecture, as config.json names it.

    >>> from kernwright.llm._gguf import names
    >>> names.gguf_names("Qwen3ForCausalLM")["blk.*.attn_v.weight"]
    'layers.*.attention.qkv.weight:v'
    """
    return {**_COMMON, **_OF_ARCHITECTURES.get(architecture, {})}


def file_names(architecture: str, path: str) -> dict[str, str]:
    """The arrays that a file has of the parameter at `path`: names by parts, "" for a whole one.
    Empty where the table has none.

    >>> from kernwright.llm._gguf import names
    >>> names.file_names("LlamaForCausalLM", "layers.2.mlp.gate_up.weight")
    {'gate': 'blk.2.ffn_gate.weight', 'up': 'blk.2.ffn_up.weight'}
    """
    numbers = re.findall(r"(?<=\.)[0-9]+(?=\.)", path)
    pattern = re.sub(r"(?<=\.)[0-9]+(?=\.)", "*", path)
    own = _OF_ARCHITECTURES.get(architecture, {})
    for table in (own, _COMMON):
        found = {}
        for name, target in table.items():
            filled, _, part = target.partition("|")[0].partition(":")
            if filled == pattern and (table is own or name not in own):
                found[part] = name.replace("*", *numbers) if numbers else name
        if found:
            parts = {part: name for part, name in found.items() if part}
            whole = "" in found and (table is own or not parts)
            return {"": found[""]} if whole else parts
    return {}
