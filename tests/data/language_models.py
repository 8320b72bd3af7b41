"""Tiny models of each family: their configs, weights by a formula, and what transformers says.

    python language_models.py      # where torch and transformers are; writes language_models.npz

Weights are a function of a tensor's name and shape, so that only logits are stored. Logits are
those of transformers in float32, of files written with these weights and read again.
"""

import json
import pathlib
import sys
import tempfile
import zlib

import ml_dtypes
import numpy as np

STORED = pathlib.Path(__file__).with_suffix(".npz")
TOKENS = 40  # beyond windows, and beyond the lengths that scaled rotations begin with

_BASE = {
    "vocab_size": 96, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
    "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip


def _with(**changes):
    return {**_BASE, **changes}


def _scaled(**scaling):
    return {"rope_theta": 10000.0, **scaling}


_LLAMA3 = _scaled(
    rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=16,
)  # fmt: skip
_YARN = _scaled(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)
_LONG = _scaled(
    rope_type="longrope", original_max_position_embeddings=16,
    short_factor=[1.0 + 0.1 * i for i in range(8)],
    long_factor=[1.5 + 0.5 * i for i in range(8)],
)  # fmt: skip

# The architecture and the fields of each model.
MODELS = {
    "llama": ("Llama", _with()),
    "llama_linear": ("Llama", _with(rope_parameters=_scaled(rope_type="linear", factor=4.0))),
    "llama_llama3_tied": ("Llama", _with(rope_parameters=_LLAMA3, tie_word_embeddings=True)),
    "llama_yarn": ("Llama", _with(rope_parameters=_YARN)),
    "llama_biases": ("Llama", _with(attention_bias=True, mlp_bias=True)),
    "mistral": ("Mistral", _with(sliding_window=12)),
    "mixtral": ("Mixtral", _with(num_local_experts=4, num_experts_per_tok=2, sliding_window=None)),
    "qwen2": ("Qwen2", _with(head_dim=16, tie_word_embeddings=True)),
    "qwen2_moe": ("Qwen2Moe", _with(
        head_dim=16, moe_intermediate_size=48, shared_expert_intermediate_size=80, num_experts=8,
        num_experts_per_tok=2, norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[])),
    "qwen3": ("Qwen3", _with()),
    "qwen3_moe": ("Qwen3Moe", _with(
        moe_intermediate_size=48, num_experts=8, num_experts_per_tok=2, norm_topk_prob=True,
        decoder_sparse_step=1, mlp_only_layers=[1])),
    "gemma2": ("Gemma2", _with(
        sliding_window=16, query_pre_attn_scalar=24, attn_logit_softcapping=5.0,
        final_logit_softcapping=3.0, tie_word_embeddings=True)),
    "gemma3": ("Gemma3", _with(
        num_hidden_layers=6, sliding_window=16, query_pre_attn_scalar=24,
        tie_word_embeddings=True)),
    "phi3": ("Phi3", _with(head_dim=16, sliding_window=None)),
    "phi3_longrope": ("Phi3", _with(
        head_dim=16, sliding_window=None, rope_parameters=_LONG,
        original_max_position_embeddings=16)),
    "phi4_mini": ("Phi3", _with(
        head_dim=16, sliding_window=None,
        rope_parameters=_scaled(rope_type="default", partial_rotary_factor=0.75))),
    "gpt2": ("GPT2", {
        "vocab_size": 96, "n_positions": 64, "n_embd": 64, "n_layer": 3, "n_head": 4,
        "bos_token_id": 1, "eos_token_id": 2}),
    "gpt2_scaled": ("GPT2", {
        "vocab_size": 96, "n_positions": 64, "n_embd": 64, "n_layer": 3, "n_head": 4,
        "n_inner": 160, "activation_function": "relu", "scale_attn_weights": False,
        "scale_attn_by_inverse_layer_idx": True, "tie_word_embeddings": False,
        "bos_token_id": 1, "eos_token_id": 2}),
    "gpt_oss": ("GptOss", _with(
        num_local_experts=4, num_experts_per_tok=2, sliding_window=16)),
    "olmo2": ("Olmo2", _with(head_dim=16)),
    "granite": ("Granite", _with(
        head_dim=16, embedding_multiplier=3.0, residual_multiplier=0.22,
        attention_multiplier=0.0625, logits_scaling=8.0, tie_word_embeddings=True)),
    "smollm3": ("SmolLM3", _with(
        head_dim=16, no_rope_layer_interval=3, tie_word_embeddings=True)),
    "starcoder2": ("Starcoder2", _with(head_dim=16, sliding_window=12, use_bias=True)),
    "glm": ("Glm", _with(attention_bias=True)),
    "glm4": ("Glm4", _with(attention_bias=True)),
    "deepseek_v2": ("DeepseekV2", _with(
        head_dim=16, num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=32, qk_nope_head_dim=24,
        qk_rope_head_dim=16, v_head_dim=24, moe_intermediate_size=48, n_routed_experts=8,
        n_shared_experts=1, num_experts_per_tok=2, first_k_dense_replace=1,
        routed_scaling_factor=1.0, topk_method="greedy", norm_topk_prob=False)),
}  # fmt: skip


def weights(name, shape, family):
    """The numbers of a tensor, as float32 that bfloat16 can hold: a hash of the name and of an
    element's place, spread evenly, with a deviation that suits the kind of tensor."""
    count = int(np.prod(shape))
    state = np.arange(count, dtype=np.uint64) + np.uint64(zlib.crc32(name.encode()) << 20)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    even = (state >> np.uint64(11)).astype(np.float64) / 2.0**53 * 2 - 1  # from -1 to 1
    table = any(part in name for part in ("embed", "wte", "wpe", "lm_head"))
    norm = "norm" in name or "ln_" in name
    if norm and name.endswith("weight"):
        numbers = even * 0.3 + (0.0 if family.startswith("gemma") else 1.0)
    elif len(shape) >= 2 and not name.endswith("bias"):
        numbers = even * (1.0 if table else 0.2)
    else:
        numbers = even * 0.2
    # By way of float32, as the recorded models were made: ml_dtypes rounds a float64 once since
    # 0.7, twice before.
    numbers = numbers.reshape(shape).astype(np.float32)
    return numbers.astype(ml_dtypes.bfloat16).astype(np.float32)


def token_ids(count=TOKENS):
    """The prompt of all models."""
    return (np.arange(count, dtype=np.int64) * 37 + 11) % 93 + 3


def stored():
    """The config's fields, those among them that a file may leave out, the shapes by names, logits
    (40, vocabulary), the next 12 greedy tokens and their margins, of each model."""
    with np.load(STORED) as file:
        texts = json.loads(bytes(file["texts"]).decode())
        return {
            name: {
                **texts[name],
                "logits": file[f"{name}.logits"],
                "greedy": file[f"{name}.greedy"],
                "margins": file[f"{name}.margins"],
            }
            for name in texts
        }


def optional(config, config_class):
    """The settings of a config that its class has without being told."""
    default = config_class().to_dict()
    return [
        name
        for name, value in config.items()
        if name in default and default[name] == value and not name.startswith(("num_", "model_"))
    ]


def record():
    import torch
    import transformers
    from safetensors import safe_open
    from safetensors.numpy import save_file

    texts, arrays = {}, {}
    for name, (family, fields) in MODELS.items():
        config_class = getattr(transformers, f"{family}Config", None)
        config_class = config_class or getattr(transformers, f"{family}TextConfig")
        suffix = "LMHeadModel" if family == "GPT2" else "ForCausalLM"
        model_class = getattr(transformers, family + suffix)
        if family == "Gemma3":
            config_class = transformers.Gemma3TextConfig
        with tempfile.TemporaryDirectory() as folder:
            model_class(config_class(**fields)).save_pretrained(folder)
            file = pathlib.Path(folder) / "model.safetensors"
            with safe_open(file, "np") as opened:
                keys = opened.keys()
                shapes = {key: opened.get_slice(key).get_shape() for key in keys}
            made = {key: weights(key, shape, name) for key, shape in shapes.items()}
            save_file(made, file, metadata={"format": "pt"})
            config = json.loads((pathlib.Path(folder) / "config.json").read_text())
            model = model_class.from_pretrained(
                folder,
                dtype=torch.float32,
                attn_implementation="eager",  # others lack soft caps
            ).eval()
        ids = torch.from_numpy(token_ids())[None]
        greedy, margins = [], []
        with torch.no_grad():
            logits = model(ids, use_cache=False).logits[0]
            for _ in range(12):
                top = model(ids, use_cache=False).logits[0, -1].topk(2)
                margins.append(float(top.values[0] - top.values[1]))
                greedy.append(int(top.indices[0]))
                ids = torch.cat([ids, top.indices[:1][None]], 1)
        texts[name] = {
            "config": config, "optional": optional(config, config_class), "shapes": shapes
        }  # fmt: skip
        arrays |= {
            f"{name}.logits": logits.float().numpy(),
            f"{name}.greedy": np.array(greedy, np.int32),
            f"{name}.margins": np.array(margins, np.float32),
        }
        print(
            name, len(shapes), "tensors, deviation", round(float(logits.std()), 3), file=sys.stderr
        )
    arrays["texts"] = np.frombuffer(json.dumps(texts).encode(), np.uint8)
    np.savez_compressed(STORED, **arrays)


if __name__ == "__main__":
    record()
