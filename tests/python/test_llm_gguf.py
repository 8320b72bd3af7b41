"""Models in GGUF files give the logits of the same weights in safetensors files."""

import json

import numpy as np
import pytest
from gguf_models import arrays_of, metadata_of, written
from test_llm_families import STORED, distance, language_models
from test_llm_four_bits import mxfp4, of_mxfp4, split

import kernwright as kw
from kernwright import llm

IDS = language_models.token_ids()
# What GGUF files cannot tell is as llama.cpp has it: Gemma's scale of scores, StarCoder's window,
# every fourth layer of SmolLM3, experts in all layers of Qwen3.
CHANGED = {
    "gemma2": {"query_pre_attn_scalar": 32}, "gemma3": {"query_pre_attn_scalar": 32},
    "starcoder2": {"sliding_window": None},
    "smollm3": {
        "num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4,
        "layer_types": None},
    "qwen3_moe": {"mlp_only_layers": []},
}  # fmt: skip
# Mistral has Llama's files, GLM none; files of GPT-2 cannot tell how scores are scaled.
MODELS = [name for name in STORED if name not in ("mistral", "glm", "gpt2_scaled")]


def tensors_of(name, config):
    """The numbers of a recorded model; of blocks beyond those that were recorded, or of another
    kind, those of the block before."""
    shapes = dict(STORED[name]["shapes"])
    for layer in range(config.get("num_hidden_layers", 0)):
        new = f"model.layers.{layer}."
        has_experts = any(key.startswith(f"{new}mlp.experts") for key in shapes)
        if any(key.startswith(new) for key in shapes) and (name != "qwen3_moe" or has_experts):
            continue
        for key in [key for key in shapes if key.startswith(new)]:
            del shapes[key]
        old = f"model.layers.{layer - 1}."
        shapes |= {new + key[len(old) :]: shapes[key] for key in shapes if key.startswith(old)}
    return {key: language_models.weights(key, tuple(shapes[key]), name) for key in shapes}


def folder_of(folder, tensors, config):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    kw.save_safetensors(
        folder / "model.safetensors", {key: kw.asarray(value) for key, value in tensors.items()}
    )
    return folder


def logits(path):
    return llm.load(path, dtype="float32").logits(IDS).numpy()


@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_safetensors(name, tmp_path):
    config = STORED[name]["config"] | CHANGED.get(name, {})
    tensors = tensors_of(name, config)
    made = logits(written(tmp_path / "m.gguf", tensors, config))
    if name not in CHANGED:
        assert distance(made, STORED[name]["logits"]) < 1e-5
        return
    expected = logits(folder_of(tmp_path / "plain", tensors, config))
    assert distance(made, expected) < 1e-5
    assert distance(made, STORED[name]["logits"]) > 1e-3  # the change does change something


def test_latent_attention_with_all_its_parts(tmp_path):
    """As in DeepSeek-V2: queries through a short vector, yarn with a factor of scores, experts in
    groups."""
    yarn = {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 0.7,
        "mscale_all_dim": 0.7, "rope_theta": 10000.0,
    }  # fmt: skip
    config = STORED["deepseek_v2"]["config"] | {
        "q_lora_rank": 48, "rope_parameters": yarn, "topk_method": "group_limited_greedy",
        "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5,
    }  # fmt: skip
    tensors = {}
    for key, value in tensors_of("deepseek_v2", config).items():
        if "self_attn.q_proj" not in key:
            tensors[key] = value
            continue
        base = key.removesuffix("q_proj.weight")
        for part, shape in (
            ("q_a_proj", (48, 64)), ("q_a_layernorm", (48,)), ("q_b_proj", (160, 48)),
        ):  # fmt: skip
            name = f"{base}{part}.weight"
            tensors[name] = language_models.weights(name.replace("layer", "_"), shape, "deepseek")
    groups = {"deepseek2.expert_group_count": 4, "deepseek2.expert_group_used_count": 2}
    made = logits(written(tmp_path / "m.gguf", tensors, config, **groups))
    expected = logits(folder_of(tmp_path / "plain", tensors, config))
    assert distance(made, expected) < 1e-5


def test_older_files_of_latent_attention(tmp_path):
    """Both ways out of the latent vector were one array; the plain keys told the model's heads."""
    config = STORED["deepseek_v2"]["config"]
    tensors = tensors_of("deepseek_v2", config)
    arrays = {name: kw.asarray(x) for name, x in arrays_of(tensors, config).items()
              if "attn_k_b" not in name and "attn_v_b" not in name}  # fmt: skip
    for layer in range(3):
        whole = tensors[f"model.layers.{layer}.self_attn.kv_b_proj.weight"]
        arrays[f"blk.{layer}.attn_kv_b.weight"] = kw.asarray(whole)
    meta = {key: value for key, value in metadata_of(config).items() if not key.endswith("_mla")}
    meta |= {
        "deepseek2.attention.key_length": 40, "deepseek2.attention.value_length": 24,
        "deepseek2.attention.head_count_kv": 4,
    }  # fmt: skip
    kw.save_gguf(tmp_path / "m.gguf", arrays, meta)
    assert distance(logits(tmp_path / "m.gguf"), STORED["deepseek_v2"]["logits"]) < 1e-5


def ggml_mxfp4(x):
    """Blocks of an exponent and 16 bytes, whose low halves are the first 16 codes."""
    packed, exponents = mxfp4(x)
    codes = split(packed)
    pairs = codes[..., :16] | codes[..., 16:] << 4
    blocks = np.concatenate([exponents[..., None], pairs], -1).astype(np.uint8)
    return kw.asarray(blocks.reshape(*x.shape[:-1], -1))


def test_experts_in_blocks_of_mxfp4(tmp_path):
    """Files of gpt-oss; linear layers may have the format too, and keep it."""
    config = STORED["gpt_oss"]["config"]
    tensors = tensors_of("gpt_oss", config)
    few, plain = {}, {}
    for name, value in arrays_of(tensors, config).items():
        few[name] = plain[name] = kw.asarray(value)
        if "_exps.weight" in name or "attn_output.weight" in name:
            few[name] = (ggml_mxfp4(value), "mxfp4")
            plain[name] = kw.asarray(of_mxfp4(*mxfp4(value)))
    kw.save_gguf(tmp_path / "few.gguf", few, metadata_of(config))
    kw.save_gguf(tmp_path / "plain.gguf", plain, metadata_of(config))
    expected = logits(tmp_path / "plain.gguf")
    model = llm.load(tmp_path / "few.gguf", dtype="float32")
    assert model.module.layers[0].attention.out.weight.format == "mxfp4"
    assert distance(model.logits(IDS).numpy(), expected) < 5e-3  # its product rounds x to 16 bits
    with kw.Gguf(tmp_path / "few.gguf") as file:
        name = "blk.1.ffn_down_exps.weight"
        assert np.array_equal(file.numbers(name).numpy(), plain[name].numpy())


def test_mixed_blocks_are_the_numbers_that_they_stand_for(tmp_path):
    """Values and the way back in another format than queries and keys, as Q4_K_M files have."""

    def formats(name, shape):
        if len(shape) < 2 or name.startswith("token_embd"):
            return None
        return "q8_0" if "attn_v" in name or "ffn_down" in name else "q4_0"

    config = STORED["llama"]["config"]
    tensors = tensors_of("llama", config)
    model = llm.load(written(tmp_path / "few.gguf", tensors, config, formats), dtype="float32")
    plain = {}
    for name, value in arrays_of(tensors, config).items():
        plain[name], format = kw.asarray(value), formats(name, value.shape)
        if format is not None:
            blocks = kw.nn.quant.quantize(plain[name], format)
            plain[name] = kw.nn.quant.dequantize(blocks, format)
    kw.save_gguf(tmp_path / "plain.gguf", plain, metadata_of(config))
    expected = logits(tmp_path / "plain.gguf")
    assert distance(model.logits(IDS).numpy(), expected) < 2e-3  # products round x to 16 bits
    assert distance(expected, STORED["llama"]["logits"]) > 2e-3  # the formats do lose something


def test_what_is_wrong_is_named(tmp_path):
    file = tmp_path / "m.gguf"
    kw.save_gguf(file, {"w": kw.ones(3)}, {"general.architecture": "magic"})
    with pytest.raises(llm.ModelError, match=r"general\.architecture 'magic' is unknown"):
        llm.load(file)
    kw.save_gguf(file, {"w": kw.ones(3)}, {"general.architecture": "llama"})
    with pytest.raises(llm.ModelError, match=r"has no array token_embd\.weight"):
        llm.load(file)
    config = STORED["deepseek_v2"]["config"]
    tensors = tensors_of("deepseek_v2", config)
    written(file, tensors, config, **{"deepseek2.expert_gating_func": 2})
    with pytest.raises(llm.ModelError, match="expert_gating_func is not softmax"):
        llm.load(file)
    arrays = {name: kw.asarray(x) for name, x in arrays_of(tensors, config).items()}
    arrays["blk.1.attn_v_b.weight"] = kw.ones((4, 24, 31))
    kw.save_gguf(file, arrays, metadata_of(config))
    with pytest.raises(llm.ModelError, match=r"attn_k_b\.weight is .*attn_v_b\.weight"):
        llm.load(file)
    del arrays["blk.1.attn_v_b.weight"]
    kw.save_gguf(file, arrays, metadata_of(config))
    with pytest.raises(llm.ModelError, match=r"attn_v_b\.weight has three axes"):
        llm.load(file)
