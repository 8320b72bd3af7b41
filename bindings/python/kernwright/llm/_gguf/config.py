"""The config of a GGUF file: its metadata under the names that config.json has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernwright._files.gguf import Gguf
from kernwright.llm._config import Config
from kernwright.llm._errors import ModelError
from kernwright.llm._fields import Fields

__all__ = ["ARCHITECTURES", "END_KEYS", "FIELDS", "config_of"]

# general.architecture: the name that config.json has, and whether neighbours turn as pairs
# (LLAMA_ROPE_TYPE_NORM in llama.cpp's llama_model_rope_type()).
ARCHITECTURES = {
    "llama": ("LlamaForCausalLM", True),
    "qwen2": ("Qwen2ForCausalLM", False),
    "qwen2moe": ("Qwen2MoeForCausalLM", False),
    "qwen3": ("Qwen3ForCausalLM", False),
    "qwen3moe": ("Qwen3MoeForCausalLM", False),
    "gemma2": ("Gemma2ForCausalLM", False),
    "gemma3": ("Gemma3ForCausalLM", False),
    "phi3": ("Phi3ForCausalLM", False),
    "gpt2": ("GPT2LMHeadModel", False),
    "olmo2": ("Olmo2ForCausalLM", False),
    "granite": ("GraniteForCausalLM", True),
    "smollm3": ("SmolLM3ForCausalLM", True),
    "starcoder2": ("Starcoder2ForCausalLM", False),
    "glm4": ("Glm4ForCausalLM", True),
    "gpt-oss": ("GptOssForCausalLM", False),
    "deepseek2": ("DeepseekV2ForCausalLM", True),
}  # fmt: skip

END_KEYS = tuple(f"tokenizer.ggml.{each}_token_id" for each in ("eos", "eot", "eom"))
"""Of the tokens that end a text."""

# What the model computes in; files of others have no such key, and are bfloat16.
DTYPE_KEY = "kernwright.dtype"
# Keys behind "<architecture>." and the fields of config.json.
FIELDS = {
    "vocab_size": "vocab_size",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.layer_norm_epsilon": "rms_norm_eps",
    "attention.sliding_window": "sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "rope.freq_base": "rope_theta",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "attention.scale": "attention_multiplier",
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
}
_ACTIVATIONS = {
    "gemma2": "gelu_pytorch_tanh", "gemma3": "gelu_pytorch_tanh", "gpt2": "gelu_new",
    "starcoder2": "gelu_pytorch_tanh",
}  # fmt: skip


def config_of(file: Gguf, source: str) -> Config:
    """The config that the metadata tells. Raises ModelError for an unknown architecture, and for
    metadata that are missing or make no sense."""
    kind = file.metadata.get("general.architecture")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        raise ModelError(
            f"{source}: general.architecture {kind!r:.60} is unknown; known are "
            f"{', '.join(ARCHITECTURES)}"
        )
    name, pairs = ARCHITECTURES[kind]
    meta = {
        key.removeprefix(f"{kind}."): _short(_plain(value))
        for key, value in file.metadata.items()
        if key.startswith(f"{kind}.")
    }
    fields = {field: meta[key] for key, field in FIELDS.items() if key in meta}
    if kind == "llama" and fields.get("sliding_window"):
        name = "MistralForCausalLM"
    if kind == "llama" and fields.get("num_experts", 0):
        name = "MixtralForCausalLM"
        fields["num_local_experts"] = fields["num_experts"]
    if isinstance(file.metadata.get(DTYPE_KEY), str):
        fields["dtype"] = file.metadata[DTYPE_KEY]
    fields |= {
        "architectures": [name], "rope_interleaved": pairs,
        "hidden_act": _ACTIVATIONS.get(kind, "silu"),
        "tie_word_embeddings": "output.weight" not in file,
        "rope_theta": fields.get("rope_theta", 10000.0), "partial_rotary_factor": 1.0,
        **_special_tokens(file.metadata), **_shapes(file, meta, fields, source),
    }  # fmt: skip
    scaling = _scaling(file, meta, fields)
    if scaling is not None:
        fields["rope_scaling"] = scaling
    if kind == "gpt2":
        fields.pop("rope_scaling", None)
    if fields.get("sliding_window") == 0:  # as files of Phi-4 have it
        del fields["sliding_window"]
    _family_fields(kind, fields, meta)
    if kind == "deepseek2":
        _latent_fields(fields, meta, source)
    return Config.from_fields(fields, source=source)


def _plain(value: Any) -> Any:
    """A number that all layers share, where the file has a list of equal ones."""
    if isinstance(value, np.ndarray):
        return value[0].item() if value.size and (value == value[0]).all() else value.tolist()
    return value


def _short(value: Any) -> Any:
    """The shortest decimal of a float32, as the config.json had it: 1e-05, not 9.99999974e-06."""
    if isinstance(value, float) and float(np.float32(value)) == value:
        return float(str(np.float32(value)))
    return value


def _special_tokens(metadata: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "tokenizer.ggml.bos_token_id" in metadata:
        found["bos_token_id"] = metadata["tokenizer.ggml.bos_token_id"]
    ends = [metadata[key] for key in END_KEYS if key in metadata]
    if ends:
        found["eos_token_id"] = [end for i, end in enumerate(ends) if end not in ends[:i]]
    return found


def _shapes(
    file: Gguf, meta: Mapping[str, Any], fields: Mapping[str, Any], source: str
) -> dict[str, Any]:
    """What the arrays tell where the metadata do not."""
    if "token_embd.weight" not in file:
        raise ModelError(f"{source} has no array token_embd.weight")
    if len(file.shape("token_embd.weight")) != 2:
        raise ModelError(f"{source}: token_embd.weight is {file.shape('token_embd.weight')}")
    found: dict[str, Any] = {"vocab_size": file.shape("token_embd.weight")[0]}
    heads, hidden = fields.get("num_attention_heads"), fields.get("hidden_size")
    head_dim = fields.get("head_dim")
    if head_dim is None and isinstance(heads, int) and isinstance(hidden, int) and heads > 0:
        head_dim = hidden // heads
    turned = meta.get("rope.dimension_count")
    if isinstance(turned, int) and isinstance(head_dim, int) and 0 < turned < head_dim:
        found["partial_rotary_factor"] = turned / head_dim
    found["attention_bias"] = any(f"blk.0.{each}.bias" in file for each in ("attn_q", "attn_qkv"))
    found["mlp_bias"] = "blk.0.ffn_gate.bias" in file
    return found


def _scaling(
    file: Gguf, meta: Mapping[str, Any], fields: Mapping[str, Any]
) -> dict[str, Any] | None:
    positions = fields.get("max_position_embeddings", 2048)
    original = meta.get("rope.scaling.original_context_length", positions)
    for short, long in (
        ("rope_factors_short.weight", "rope_factors_long.weight"),
        ("rope_freqs.weight", "rope_freqs.weight"),  # Llama 3's, which change no attention
    ):
        if short in file and long in file:
            scaling = {
                "rope_type": "longrope", "original_max_position_embeddings": original,
                "short_factor": file[short].numpy().astype(float).tolist(),
                "long_factor": file[long].numpy().astype(float).tolist(),
                "attention_factor": meta.get("rope.scaling.attn_factor"),
            }  # fmt: skip
            if short == long:
                scaling["attention_factor"] = 1.0
            return {key: value for key, value in scaling.items() if value is not None}
    kind = meta.get("rope.scaling.type", "none")
    if kind == "none" or "rope.scaling.factor" not in meta:
        return None
    found = {
        "rope_type": kind, "factor": meta["rope.scaling.factor"],
        "original_max_position_embeddings": original,
    }  # fmt: skip
    for name in ("beta_fast", "beta_slow"):
        if f"rope.scaling.yarn_{name}" in meta:
            found[name] = meta[f"rope.scaling.yarn_{name}"]
    return found


def _family_fields(kind: str, fields: dict[str, Any], meta: Mapping[str, Any]) -> None:
    """Settings that files of other layouts name, and these know by the architecture."""
    if kind in ("gemma2", "gemma3"):
        # 27B models scale scores by the width of a head of the hidden size, others by head_dim.
        heads, hidden = fields.get("num_attention_heads"), fields.get("hidden_size")
        scalar = fields.get("head_dim", 256)
        large = fields.get("num_hidden_layers") in (46, 62)
        if large and isinstance(heads, int) and isinstance(hidden, int) and heads > 0:
            scalar = hidden // heads
        fields["query_pre_attn_scalar"] = scalar
    if kind == "gemma3":
        fields.setdefault("rope_local_base_freq", 10000.0)
    if kind == "smollm3":
        fields["no_rope_layer_interval"] = 4
    if kind == "qwen3moe":
        fields["norm_topk_prob"] = True
    if kind == "qwen2moe":
        fields["norm_topk_prob"] = False
    if kind in ("qwen2", "qwen3", "qwen2moe", "qwen3moe"):
        fields["use_sliding_window"] = False
    if kind == "gpt-oss":
        fields["num_local_experts"] = fields.get("num_experts")
        if "rope_scaling" in fields:
            fields["rope_scaling"]["truncate"] = False


def _latent_fields(fields: dict[str, Any], meta: Mapping[str, Any], source: str) -> None:
    """Adds the fields of DeepSeek-V2. Newer files tell the heads of the latent vector in the plain
    keys, and the heads of the model in keys that end in _mla; older files have the latter in the
    plain keys."""
    reader = Fields(source, meta)
    if reader.get("expert_gating_func", int, 1) != 1:
        raise ModelError(f"{source}: expert_gating_func is not softmax, as DeepSeek-V2 has it")
    turned = reader.need("rope.dimension_count", int)
    head = reader.get("attention.key_length_mla", int) or reader.need("attention.key_length", int)
    value = reader.get("attention.value_length_mla", int)
    value = value or reader.need("attention.value_length", int)
    fields |= {
        "num_key_value_heads": fields.get("num_attention_heads"), "head_dim": turned,
        "partial_rotary_factor": 1.0, "qk_rope_head_dim": turned, "v_head_dim": value,
        "qk_nope_head_dim": head - turned,
        "kv_lora_rank": reader.need("attention.kv_lora_rank", int),
        "q_lora_rank": reader.get("attention.q_lora_rank", int),
        "n_routed_experts": reader.get("expert_count", int),
        "n_shared_experts": reader.get("expert_shared_count", int, 0),
        "first_k_dense_replace": reader.get("leading_dense_block_count", int, 0),
        "routed_scaling_factor": reader.get("expert_weights_scale", float, 1.0),
        "norm_topk_prob": reader.get("expert_weights_norm", bool, False),
    }  # fmt: skip
    groups = reader.get("expert_group_count", int, 1)
    if groups > 1:
        kept = reader.need("expert_group_used_count", int)
        fields |= {"topk_method": "group_limited_greedy", "n_group": groups, "topk_group": kept}
    multiplier = reader.get("rope.scaling.yarn_log_multiplier", float)
    if multiplier and "rope_scaling" in fields:  # a tenth of mscale, as the converter writes it
        fields["rope_scaling"] |= dict.fromkeys(("mscale", "mscale_all_dim"), 10 * multiplier)
