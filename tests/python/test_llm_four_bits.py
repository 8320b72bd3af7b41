"""Files of MXFP4 and NVFP4 weights: logits are those of the numbers that NumPy makes of codes."""

import json

import ml_dtypes
import numpy as np
import pytest
from test_llm_families import STORED, distance, language_models
from test_llm_formats import numbers_of, quantised_files

import kernwright as kw
from kernwright import llm

IDS = language_models.token_ids()
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
VALUES = np.concatenate([E2M1, -E2M1])


def nearest(x):
    """The code whose value is next to each number."""
    return np.abs(x[..., None] - VALUES).argmin(-1).astype(np.uint8)


def joined(codes):
    """Two codes in a byte, the first in the low half."""
    return codes[..., 0::2] | codes[..., 1::2] << 4


def split(packed):
    return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)


def mxfp4(x):
    """(blocks, exponents): 32 numbers have one power of two."""
    groups = x.reshape(*x.shape[:-1], -1, 32)
    largest = np.abs(groups).max(-1)
    exponents = np.floor(np.log2(np.where(largest > 0, largest, 1))) - 2
    codes = nearest(groups / 2.0 ** exponents[..., None])
    return joined(codes), (exponents + 127).astype(np.uint8)


def of_mxfp4(blocks, exponents):
    wide = VALUES[split(blocks)] * 2.0 ** (exponents.astype(np.float32)[..., None] - 127)
    return wide.reshape(*blocks.shape[:-2], -1).astype(np.float32)


def nvfp4(x, factor=None):
    """(codes, scales, what scales are multiplied by): 16 numbers have one scale of 8 bits."""
    factor = np.float32(np.abs(x).max() / (6 * 448) if factor is None else factor)
    groups = x.reshape(*x.shape[:-1], -1, 16)
    scales = (np.abs(groups).max(-1) / 6 / factor).astype(ml_dtypes.float8_e4m3fn)
    wide = scales.astype(np.float32)[..., None] * factor
    codes = nearest(groups / np.where(wide == 0, 1, wide))
    return joined(codes.reshape(x.shape)), scales, factor


def of_nvfp4(codes, scales, factor):
    wide = scales.astype(np.float32) * factor
    return VALUES[split(codes)] * wide.repeat(16, -1)


def gpt_oss_files(folder):
    """gpt-oss with experts as its files have them, and the same as plain numbers."""
    few, plain = {}, {}
    for key, value in numbers_of("gpt_oss").items():
        plain[key] = few[key] = value
        if key.endswith(("experts.gate_up_proj", "experts.down_proj")):
            del few[key]
            blocks, exponents = mxfp4(value.swapaxes(1, 2))  # (experts, outputs, inputs)
            few |= {f"{key}_blocks": blocks, f"{key}_scales": exponents}
            plain[key] = np.ascontiguousarray(of_mxfp4(blocks, exponents).swapaxes(1, 2))
    config = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}
    for place, arrays, extra in (
        ("few", few, {"quantization_config": config}), ("all", plain, {}),
    ):  # fmt: skip
        (folder / place).mkdir()
        text = json.dumps(STORED["gpt_oss"]["config"] | extra)
        (folder / place / "config.json").write_text(text)
        made = {key: kw.asarray(value) for key, value in arrays.items()}
        kw.save_safetensors(folder / place / "model.safetensors", made)
    return folder / "few", folder / "all"


def test_experts_of_gpt_oss_are_mxfp4(tmp_path):
    few, whole = gpt_oss_files(tmp_path)
    expected = llm.load(whole, dtype="float32").logits(IDS).numpy()
    made = llm.load(few, dtype="float32").logits(IDS).numpy()
    assert distance(made, expected) < 1e-5
    assert distance(expected, STORED["gpt_oss"]["logits"]) > 1e-3  # the format does lose something
    model = llm.load(few, dtype="bfloat16")
    assert model.module.layers[0].mlp.gate_up.dtype.name == "bfloat16"
    assert distance(model.logits(IDS).numpy(), expected) < 3e-2


def packed_nvfp4(weight):
    codes, scales, factor = nvfp4(weight.numpy())
    parts = {
        ".weight_packed": kw.asarray(codes), ".weight_scale": kw.asarray(scales),
        ".weight_global_scale": kw.asarray(np.array([1 / factor], np.float32)),
        ".input_global_scale": kw.asarray(np.array([3.0], np.float32)),
    }  # fmt: skip
    return parts, of_nvfp4(codes, scales, 1 / (1 / factor))


def modelopt_nvfp4(weight, factor=None):
    codes, scales, factor = nvfp4(weight.numpy(), factor)
    parts = {
        ".weight": kw.asarray(codes), ".weight_scale": kw.asarray(scales),
        ".weight_scale_2": kw.asarray(factor), ".input_scale": kw.asarray(np.float32(3)),
    }  # fmt: skip
    return parts, of_nvfp4(codes, scales, factor)


def modelopt_fp8(weight):
    codes, scale = kw.nn.quantize_rows(weight, "float8_e4m3fn", scope="tensor")
    parts = {".weight": codes, ".weight_scale": scale, ".input_scale": scale}
    return parts, codes.numpy().astype(np.float32) * scale.numpy()


METHODS = {
    "compressed-tensors": (
        {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, packed_nvfp4),
    "modelopt": ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, modelopt_nvfp4),
    "modelopt fp8": ({"quant_method": "modelopt", "quant_algo": "FP8"}, modelopt_fp8),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_files_stand_for_their_numbers(method, tmp_path):
    config, convert = METHODS[method]
    few, whole = quantised_files(tmp_path, "llama", config, convert)
    expected = llm.load(whole, dtype="float32").logits(IDS).numpy()
    before = kw.memory.transfers()["to_device_bytes"]
    model = llm.load(few, dtype="bfloat16")
    copied = kw.memory.transfers()["to_device_bytes"] - before
    assert copied <= (few / "model.safetensors").stat().st_size  # no tensor is read twice
    assert distance(model.logits(IDS).numpy(), expected) < 2e-2
    assert not isinstance(model.module.layers[0].mlp.down.weight, kw.Array)  # keeps its few bits


def test_experts_may_be_nvfp4(tmp_path):
    few, whole = quantised_files(tmp_path, "qwen3_moe", *METHODS["compressed-tensors"])
    expected = llm.load(whole, dtype="float32").logits(IDS).numpy()
    made = llm.load(few, dtype="float32").logits(IDS).numpy()
    assert distance(made, expected) < 5e-3  # other products of packed weights round x to 16 bits


def test_projections_with_one_scale_of_all_are_one_weight(tmp_path):
    few, whole = quantised_files(
        tmp_path, "llama", METHODS["modelopt"][0], lambda w: modelopt_nvfp4(w, 2.0**-13)
    )
    expected = llm.load(whole, dtype="float32").logits(IDS).numpy()
    model = llm.load(few, dtype="bfloat16")
    assert model.module.layers[0].attention.qkv.weight.format == "nvfp4"
    assert distance(model.logits(IDS).numpy(), expected) < 2e-2


def test_config_beside_the_files(tmp_path):
    """Older exports of ModelOpt keep it in a file of its own."""
    few, whole = quantised_files(tmp_path, "llama", *METHODS["modelopt"])
    config = json.loads((few / "config.json").read_text())
    del config["quantization_config"]
    (few / "config.json").write_text(json.dumps(config))
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}}
    (few / "hf_quant_config.json").write_text(json.dumps(beside))
    expected = llm.load(whole, dtype="float32").logits(IDS).numpy()
    assert distance(llm.load(few, dtype="bfloat16").logits(IDS).numpy(), expected) < 2e-2
    (few / "hf_quant_config.json").write_text('{"quantization": 3}')
    with pytest.raises(llm.ModelError, match="quantization must be an object"):
        llm.load(few)


def test_what_is_wrong_is_named(tmp_path):
    config, convert = METHODS["modelopt"]
    few, _ = quantised_files(tmp_path, "llama", config | {"quant_algo": "W4A8_AWQ"}, convert)
    with pytest.raises(llm.ModelError, match="quant_algo 'W4A8_AWQ' is unknown; known are FP8"):
        llm.load(few)

    def without_scale(weight):
        parts, numbers = convert(weight)
        del parts[".weight_scale"]
        return parts, numbers

    few, _ = quantised_files(tmp_path, "llama", config, without_scale)
    with pytest.raises(llm.ModelError, match=r"down_proj\.weight lacks .*proj\.weight_scale"):
        llm.load(few)
    few, _ = quantised_files(tmp_path, "llama", [], convert)
    with pytest.raises(llm.ModelError, match="quantization_config has fields, got"):
        llm.load(few)
