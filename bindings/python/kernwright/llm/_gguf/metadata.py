"""What a GGUF file tells of a model, made of its config: the inverse of config.py."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import kernwright as kw
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._gguf.config import ARCHITECTURES, DTYPE_KEY, END_KEYS, FIELDS
from kernwright.llm.models._layers import RotaryTables, Unread
from kernwright.nn import Module

__all__ = ["differing_setting", "end_tokens", "kind_of", "metadata_of", "rope_factors"]

_LAYER_NORM = ("gpt2", "starcoder2")
_SAME = {("llama", "MixtralForCausalLM"), ("llama", "MistralForCausalLM")}
# The names of config.json for a number of experts.
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")


def kind_of(config: Config) -> tuple[str, bool]:
    """general.architecture, and whether the file has neighbours turn as pairs. Raises ModelError
    for an architecture that GGUF files are not written of."""
    for kind, (name, pairs) in ARCHITECTURES.items():
        if name == config.architecture or (kind, config.architecture) in _SAME:
            return kind, pairs
    known = ", ".join(name for name, _ in ARCHITECTURES.values())
    raise ModelError(
        f"{config.source}: {config.architecture} is not written as a .gguf file; known are {known}"
    )


def metadata_of(config: Config) -> dict[str, Any]:
    """The metadata of a model but those of its tokenizer, as llama.cpp's converter names them."""
    kind, _ = kind_of(config)
    given = config.fields.get
    meta: dict[str, Any] = {
        key: given(field) for key, field in FIELDS.items() if given(field) is not None
    }
    norm = "attention.layer_norm_epsilon" if kind in _LAYER_NORM else None
    norm = norm or "attention.layer_norm_rms_epsilon"
    for key in ("attention.layer_norm_epsilon", "attention.layer_norm_rms_epsilon"):
        meta.pop(key, None)
    experts = next((given(name) for name in _EXPERTS if given(name) is not None), None)
    meta |= {
        "vocab_size": config.vocab_size, "context_length": config.max_length,
        "embedding_length": config.hidden_size, "block_count": config.num_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_heads, "attention.head_count_kv": config.num_kv_heads,
        norm: config.norm_eps, "expert_count": experts,
        "attention.sliding_window": config.sliding_window,
    }  # fmt: skip
    if kind == "gpt2":
        meta.pop("rope.freq_base", None)
    else:
        meta |= {
            "rope.freq_base": config.rope_theta, "rope.dimension_count": config.rope_dim,
            "attention.key_length": config.head_dim, "attention.value_length": config.head_dim,
        }  # fmt: skip
        meta |= _scaling(config)
    if kind == "gpt-oss":
        meta["expert_feed_forward_length"] = config.intermediate_size
    if kind == "phi3":
        meta["attention.sliding_window"] = config.sliding_window or 0
        original = given("original_max_position_embeddings")
        meta["rope.scaling.original_context_length"] = original
    if kind == "deepseek2":
        meta |= _latent(config)
    named = {f"{kind}.{key}": value for key, value in meta.items() if value is not None}
    begin = {} if config.bos is None else {"tokenizer.ggml.bos_token_id": config.bos}
    return {"general.architecture": kind, DTYPE_KEY: config.dtype, **named, **begin}


def end_tokens(ends: Sequence[int], source: str) -> dict[str, int]:
    """The metadata of the tokens that end a text. Raises ModelError for more than have a key."""
    if len(ends) > len(END_KEYS):
        raise ModelError(
            f"{source}: {len(ends)} tokens end a text, {', '.join(map(str, ends))}, and a .gguf "
            f"file tells {len(END_KEYS)}"
        )
    return dict(zip(END_KEYS, ends, strict=False))


def _scaling(config: Config) -> dict[str, Any]:
    """What metadata tell of scaled positions; factors of each frequency are arrays."""
    scaling = config.rope_scaling
    if scaling is None:
        return {}
    kind, original = scaling["rope_type"], scaling.get("original_max_position_embeddings")
    if kind in ("linear", "yarn"):
        found = {
            "rope.scaling.type": kind, "rope.scaling.factor": float(scaling["factor"]),
            "rope.scaling.original_context_length": original,
        }  # fmt: skip
        for name in ("beta_fast", "beta_slow"):
            if name in scaling:
                found[f"rope.scaling.yarn_{name}"] = float(scaling[name])
        if scaling.get("mscale_all_dim"):
            found["rope.scaling.yarn_log_multiplier"] = 0.1 * scaling["mscale_all_dim"]
        return found
    if kind == "longrope":
        return {
            "rope.scaling.original_context_length": original,
            "rope.scaling.attn_factor": _attention_factor(config.max_length, scaling),
        }
    if kind == "llama3":
        return {}
    raise ModelError(f"{config.source}: a .gguf file cannot tell rotary positions of {kind!r}")


def _attention_factor(length: int, scaling: Mapping[str, Any]) -> float:
    """LongRoPE's factor of scores; Ding et al., "LongRoPE", 2024."""
    if scaling.get("attention_factor") is not None:
        return float(scaling["attention_factor"])
    original = scaling["original_max_position_embeddings"]
    factor = scaling.get("factor") or scaling.get("max_position_embeddings", length) / original
    return math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0


def _latent(config: Config) -> dict[str, Any]:
    """Of DeepSeek-V2: the heads of the latent vector in the plain keys, the model's in *_mla."""
    count, given = config.count, config.fields.get
    rank, turned = count("kv_lora_rank"), count("qk_rope_head_dim")
    found = {
        "attention.head_count_kv": 1, "attention.key_length": rank + turned,
        "attention.value_length": rank, "attention.kv_lora_rank": rank,
        "attention.q_lora_rank": given("q_lora_rank"),
        "attention.key_length_mla": count("qk_nope_head_dim") + turned,
        "attention.value_length_mla": count("v_head_dim"), "rope.dimension_count": turned,
        "leading_dense_block_count": count("first_k_dense_replace", 0),
        "expert_shared_count": given("n_shared_experts") or 0,
        "expert_weights_scale": config.number("routed_scaling_factor", 1.0),
        "expert_weights_norm": config.flag("norm_topk_prob", False), "expert_gating_func": 1,
    }  # fmt: skip
    if given("topk_method") == "group_limited_greedy":
        found |= {
            "expert_group_count": given("n_group"), "expert_group_used_count": given("topk_group"),
        }  # fmt: skip
    return found


def rope_factors(config: Config) -> dict[str, Any]:
    """The arrays with a divisor of each frequency: of LongRoPE, and in place of Llama 3's rule."""
    scaling = config.rope_scaling or {}
    if scaling.get("rope_type") == "longrope":
        return {
            f"rope_factors_{name}.weight": np.array(scaling[f"{name}_factor"], np.float32)
            for name in ("long", "short")
        }
    if scaling.get("rope_type") == "llama3":
        plain = 1 / config.rope_theta ** (np.arange(0, config.rope_dim, 2) / config.rope_dim)
        scaled = kw.nn.rope_frequencies(config.rope_dim, base=config.rope_theta, scaling=scaling)
        return {"rope_freqs.weight": (plain / scaled.numpy()).astype(np.float32)}
    return {}


def differing_setting(ours: Any, theirs: Any, path: str = "") -> str | None:
    """A setting in which two networks without numbers differ, with both values; None where they
    compute the same."""
    if isinstance(ours, RotaryTables) and isinstance(theirs, RotaryTables):
        return ours.difference(theirs, path)
    if isinstance(ours, Module) and type(ours) is type(theirs):
        ours, theirs = vars(ours), vars(theirs)
    if isinstance(ours, Unread) and isinstance(theirs, Unread):
        same = tuple(ours.shape) == tuple(theirs.shape)
        return None if same else f"{path}: {ours.shape} and {theirs.shape}"
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        ours, theirs = dict(enumerate(ours)), dict(enumerate(theirs))
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        if list(ours) != list(theirs):
            return f"{path}: {list(ours)} and {list(theirs)}"
        for name in ours:
            below = f"{path}.{name}" if path else str(name)
            found = differing_setting(ours[name], theirs[name], below)
            if found is not None:
                return found
        return None
    numbers = isinstance(ours, float) and isinstance(theirs, (int, float))
    near = numbers and math.isclose(ours, theirs, rel_tol=1e-6)
    return None if near or ours == theirs else f"{path}: {ours!r:.80} and {theirs!r:.80}"
