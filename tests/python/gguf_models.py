"""Recorded models as GGUF files, as llama.cpp's converter writes them: names of arrays, changes of
numbers, metadata."""

import numpy as np

import kernwright as kw

# config.json's architecture: the name in the file.
KINDS = {
    "LlamaForCausalLM": "llama", "MixtralForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2",
    "Qwen2MoeForCausalLM": "qwen2moe", "Qwen3ForCausalLM": "qwen3", "Qwen3MoeForCausalLM":
    "qwen3moe", "Gemma2ForCausalLM": "gemma2", "Gemma3ForCausalLM": "gemma3", "Phi3ForCausalLM":
    "phi3", "Olmo2ForCausalLM": "olmo2", "GPT2LMHeadModel": "gpt2", "GptOssForCausalLM": "gpt-oss",
    "GraniteForCausalLM": "granite", "SmolLM3ForCausalLM": "smollm3", "Starcoder2ForCausalLM":
    "starcoder2", "Glm4ForCausalLM": "glm4", "DeepseekV2ForCausalLM": "deepseek2",
}  # fmt: skip
_TOP = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "transformer.wte": "token_embd", "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm",
}  # fmt: skip
_BLOCK = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "self_attn.qkv_proj": "attn_qkv",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "mlp.gate_up_proj": "ffn_up", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "mlp.gate": "ffn_gate_inp", "mlp.router": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp", "block_sparse_moe.experts.w1": "ffn_gate_exps",
    "block_sparse_moe.experts.w2": "ffn_down_exps", "block_sparse_moe.experts.w3": "ffn_up_exps",
    "mlp.experts.gate_proj": "ffn_gate_exps", "mlp.experts.up_proj": "ffn_up_exps",
    "mlp.experts.down_proj": "ffn_down_exps",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp",
    "mlp.shared_experts.down_proj": "ffn_down_shexp",
    "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm",
    "self_attn.q_b_proj": "attn_q_b", "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "self_attn.kv_a_layernorm": "attn_kv_a_norm", "self_attn.sinks": "attn_sinks",
}  # fmt: skip
_SANDWICH = {
    "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}  # fmt: skip
_OF_KIND = {
    "gemma2": _SANDWICH, "gemma3": _SANDWICH, "olmo2": _SANDWICH,
    "glm4": {"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm":
             "post_ffw_norm"},
    "gpt-oss": {"post_attention_layernorm": "post_attention_norm"},
}  # fmt: skip
_TURNS_NEIGHBOURS = ("llama", "granite", "smollm3")  # and so q and k are permuted


def permuted(weight, heads):
    """Halves of each head become neighbours."""
    rows = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return rows.swapaxes(1, 2).reshape(weight.shape)


def _name(base, end, kind):
    if base in _TOP:
        return f"{_TOP[base]}.{end}"
    _, _, number, inner = base.split(".", 3)
    return f"blk.{number}.{(_BLOCK | _OF_KIND.get(kind, {}))[inner]}.{end}"


def _of_gpt_oss(base, value):
    """Gates and others are interleaved; weights are (experts, inputs, outputs)."""
    layer, end = base.rsplit(".mlp.experts.", 1)
    is_down, end = end.startswith("down"), "bias" if end.endswith("bias") else "weight"
    value = value if end == "bias" else value.swapaxes(1, 2)
    number = layer.split(".")[2]
    if is_down:
        return {f"blk.{number}.ffn_down_exps.{end}": value}
    return {
        f"blk.{number}.ffn_{name}_exps.{end}": value[:, first::2]
        for name, first in (("gate", 0), ("up", 1))
    }


def _of_latent(name, value, config):
    """The way to the keys, transposed, and that to the values, by heads."""
    heads, plain = config["num_attention_heads"], config["qk_nope_head_dim"]
    both = value.reshape(heads, plain + config["v_head_dim"], -1)
    return {
        name.replace("kv_b", "k_b"): both[:, :plain].swapaxes(1, 2),
        name.replace("kv_b", "v_b"): both[:, plain:],
    }


def arrays_of(tensors, config):
    """Arrays by their names in the file."""
    kind = KINDS[config["architectures"][0]]
    heads = {"q": "num_attention_heads", "k": "num_key_value_heads"}
    made, experts = {}, {}
    for key, value in tensors.items():
        if kind == "gpt-oss" and ".mlp.experts." in key:
            made |= _of_gpt_oss(key, value)
            continue
        if kind == "gpt-oss" and key.endswith("sinks"):
            key += ".weight"
        base, _, end = key.rpartition(".")
        if ".experts." in base:  # one after the other
            head, _, tail = base.partition(".experts.")
            number, part = tail.split(".", 1)
            experts.setdefault(f"{head}.experts.{part}", {})[int(number)] = value
            continue
        if kind in _TURNS_NEIGHBOURS and base.endswith(("q_proj", "k_proj")):
            value = permuted(value, config[heads[base[-6]]])
        if kind.startswith("gemma") and base.endswith("norm"):
            value = value + 1
        if kind == "gpt2" and end == "weight" and ".c_" in base:
            value = value.T
        if "kv_b_proj" in base:
            number = base.split(".")[2]
            made |= _of_latent(f"blk.{number}.attn_kv_b.weight", value, config)
            continue
        made[_name(base, end, kind)] = value.squeeze()
    for base, each in experts.items():
        stacked = np.stack([each[number] for number in sorted(each)])
        made[_name(base, "weight", kind)] = stacked
    factors = config.get("rope_parameters", {})
    if factors.get("rope_type") == "llama3":
        made["rope_freqs.weight"] = _llama3_factors(factors, config["head_dim"])
    if factors.get("rope_type") == "longrope":
        for name in ("long", "short"):
            made[f"rope_factors_{name}.weight"] = np.array(factors[f"{name}_factor"], np.float32)
    return {name: np.ascontiguousarray(value) for name, value in made.items()}


def _llama3_factors(scaling, dim):
    """What the converter writes in place of Llama 3's rule: a divisor of each frequency."""
    frequencies = 1.0 / 10000.0 ** (np.arange(0, dim, 2) / dim)
    original = scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    waves = 2 * np.pi / frequencies
    smooth = (original / waves - low) / (high - low)
    between = 1 / ((1 - smooth) / scaling["factor"] + smooth)
    factors = np.where(waves > original / low, scaling["factor"], between)
    return np.where(waves < original / high, 1.0, factors).astype(np.float32)


def metadata_of(config):
    """What the converter notes of a config."""
    kind, given = KINDS[config["architectures"][0]], config.get
    rope = config.get("rope_parameters", {})
    rope = rope.get("full_attention", rope)
    hidden = given("hidden_size", given("n_embd"))
    heads = given("num_attention_heads", given("n_head"))
    norm = given("rms_norm_eps")
    head_dim = given("head_dim", hidden // heads)
    positions = given("max_position_embeddings", given("n_positions"))
    meta = {
        "context_length": positions, "embedding_length": hidden,
        "block_count": given("num_hidden_layers", given("n_layer")),
        "feed_forward_length": given("intermediate_size", 4 * hidden),
        "attention.head_count": heads,
        "attention.head_count_kv": given("num_key_value_heads"),
        "attention.layer_norm_rms_epsilon": norm,
        "attention.layer_norm_epsilon": given("norm_epsilon", given("layer_norm_epsilon")),
        "rope.freq_base": rope.get("rope_theta"),
        "attention.sliding_window": given("sliding_window"),
        "attn_logit_softcapping": given("attn_logit_softcapping"),
        "final_logit_softcapping": given("final_logit_softcapping"),
        "expert_count": given("num_local_experts", given("num_experts", given("n_routed_experts"))),
        "expert_used_count": given("num_experts_per_tok"),
        "expert_feed_forward_length": given("moe_intermediate_size"),
        "expert_shared_feed_forward_length": given("shared_expert_intermediate_size"),
        "attention.scale": given("attention_multiplier"),
        "embedding_scale": given("embedding_multiplier"),
        "residual_scale": given("residual_multiplier"), "logit_scale": given("logits_scaling"),
    }  # fmt: skip
    if kind not in ("gpt2", "granite", "phi3"):
        meta |= {"attention.key_length": head_dim, "attention.value_length": head_dim}
    if kind != "gpt2":
        meta["rope.dimension_count"] = int(head_dim * rope.get("partial_rotary_factor", 1.0))
    if kind == "gpt-oss":
        meta["expert_feed_forward_length"] = config["intermediate_size"]
    if kind == "phi3":
        meta["attention.sliding_window"] = given("sliding_window") or 0
        meta["rope.scaling.original_context_length"] = config["original_max_position_embeddings"]
    if kind == "deepseek2":
        meta |= _of_latent_heads(config)
    if rope.get("rope_type") in ("linear", "yarn"):
        meta["rope.scaling.type"] = rope["rope_type"]
        meta["rope.scaling.factor"] = rope["factor"]
        original = rope.get("original_max_position_embeddings")
        meta["rope.scaling.original_context_length"] = original
    if rope.get("mscale_all_dim"):
        meta["rope.scaling.yarn_log_multiplier"] = 0.1 * rope["mscale_all_dim"]
    if rope.get("rope_type") == "longrope":
        scale = positions / config["original_max_position_embeddings"]
        original = config["original_max_position_embeddings"]
        meta["rope.scaling.attn_factor"] = float(np.sqrt(1 + np.log(scale) / np.log(original)))
    named = {f"{kind}.{key}": value for key, value in meta.items() if value is not None}
    return {
        "general.architecture": kind, **named, "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }  # fmt: skip


def _of_latent_heads(config):
    rank, turned = config["kv_lora_rank"], config["qk_rope_head_dim"]
    return {
        "attention.head_count_kv": 1, "attention.key_length": rank + turned,
        "attention.value_length": rank, "attention.kv_lora_rank": rank,
        "attention.q_lora_rank": config["q_lora_rank"],
        "attention.key_length_mla": config["qk_nope_head_dim"] + turned,
        "attention.value_length_mla": config["v_head_dim"], "rope.dimension_count": turned,
        "leading_dense_block_count": config["first_k_dense_replace"],
        "expert_shared_count": config["n_shared_experts"],
        "expert_weights_scale": config["routed_scaling_factor"], "expert_gating_func": 1,
    }  # fmt: skip


def written(file, tensors, config, formats=lambda name, shape: None, **more):
    """A GGUF file of these tensors; `formats` tells that of an array, and `more` metadata."""
    made = {}
    for name, value in arrays_of(tensors, config).items():
        array, format = kw.asarray(value), formats(name, value.shape)
        made[name] = array if format is None else (kw.nn.quant.quantize(array, format), format)
    kw.save_gguf(file, made, metadata_of(config) | more)
    return file
