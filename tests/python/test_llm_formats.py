"""Models in files of few bits: logits are those of the numbers they stand for."""

import json

import numpy as np
import pytest
from test_llm_families import STORED, distance, language_models, written

import kernwright as kw
from kernwright import llm

IDS = language_models.token_ids()


def numbers_of(name):
    """The tensors of a recorded model as NumPy arrays."""
    shapes = STORED[name]["shapes"]
    return {key: language_models.weights(key, tuple(shapes[key]), name) for key in shapes}


def quantised_files(folder, name, config, convert):
    """A recorded model whose products are what convert(weight) gives: tensors by ending, and the
    numbers that they stand for, which are written to a folder beside it."""
    recorded = STORED[name]
    arrays, plain = {}, {}
    for key, value in numbers_of(name).items():
        plain[key] = arrays[key] = kw.asarray(value)
        if key.endswith("_proj.weight"):
            base = key.removesuffix(".weight")
            parts, numbers = convert(arrays.pop(key))
            arrays |= {base + end: array for end, array in parts.items()}
            plain[key] = kw.asarray(np.ascontiguousarray(numbers, np.float32))
    for place, tensors, extra in (
        (folder / "few", arrays, {"quantization_config": config}),
        (folder / "all", plain, {}),
    ):
        place.mkdir(exist_ok=True)
        (place / "config.json").write_text(json.dumps(recorded["config"] | extra))
        kw.save_safetensors(place / "model.safetensors", tensors)
    return folder / "few", folder / "all"


def scaled(codes, scale):
    return codes.numpy().astype(np.float32) * scale


def fp8_rows(weight):
    codes, scale = kw.nn.quantize_rows(weight, "float8_e4m3fn")
    parts = {".weight": codes, ".weight_scale": scale.reshape((-1, 1))}
    return parts, scaled(codes, scale.numpy()[:, None])


def fp8_tensor(weight):
    codes, scale = kw.nn.quantize_rows(weight, "float8_e4m3fn", scope="tensor")
    parts = {".weight": codes, ".weight_scale": scale, ".input_scale": scale}
    return parts, scaled(codes, scale.numpy())


def fp8_block(weight):
    codes, scale = kw.nn.quant.quantize(weight, "fp8_block")
    tiles = scale.numpy().repeat(128, 0).repeat(128, 1)[: codes.shape[0], : codes.shape[1]]
    return {".weight": codes, ".weight_scale_inv": scale}, scaled(codes, tiles)


def int8_rows(weight):
    codes, scale = kw.nn.quantize_rows(weight, "int8")
    return {".weight": codes, ".SCB": scale * 127}, scaled(codes, scale.numpy()[:, None])


def nf4(weight, double=False):
    made = kw.nn.quant.quantize(weight, "nf4", double=double)
    numbers = kw.nn.quant.dequantize(made, "nf4", shape=weight.shape).numpy()
    state = {"quant_type": "nf4", "blocksize": 64, "shape": list(weight.shape)}
    parts = {".weight": made[0].reshape((-1, 1)), ".weight.absmax": made[1]}
    if double:
        state |= {"nested_blocksize": 256, "nested_offset": float(made[4])}
        parts |= {".weight.nested_quant_map": made[2], ".weight.nested_absmax": made[3]}
    text = np.frombuffer(json.dumps(state).encode(), np.uint8).copy()
    parts[".weight.quant_state.bitsandbytes__nf4"] = kw.asarray(text)
    parts[".weight.quant_map"] = kw.zeros(16)
    return parts, numbers


def four_bits(weight, group=32):
    """Codes from 0 to 15 around 8, (n, k), a scale of each group, and the numbers."""
    numbers = weight.numpy()
    groups = numbers.reshape(numbers.shape[0], -1, group)
    scales = (np.abs(groups).max(-1) / 7).astype(np.float16)
    wide = scales[..., None].astype(np.float32)
    codes = np.clip(np.round(groups / wide) + 8, 0, 15)
    made = ((codes - 8) * wide).reshape(numbers.shape)
    return codes.reshape(numbers.shape).astype(np.uint32), scales, made


def words(codes, axis, order=range(8)):
    """Eight codes along an axis in a word of 32 bits."""
    codes = np.moveaxis(codes, axis, -1)
    eights = codes.reshape(*codes.shape[:-1], -1, 8)
    made = sum(eights[..., place] << np.uint32(4 * i) for i, place in enumerate(order))
    return kw.asarray(np.ascontiguousarray(np.moveaxis(made, -1, axis)).view(np.int32))


def gptq(weight):
    codes, scales, numbers = four_bits(weight)
    zeros = np.full((scales.shape[1], weight.shape[0]), 7, np.uint32)
    parts = {
        ".qweight": words(codes.T, 0), ".qzeros": words(zeros, 1),
        ".scales": kw.asarray(np.ascontiguousarray(scales.T)),
        ".g_idx": kw.asarray((np.arange(weight.shape[1]) // 32).astype(np.int32)),
    }  # fmt: skip
    return parts, numbers


def awq(weight):
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    codes, scales, numbers = four_bits(weight)
    zeros = np.full((scales.shape[1], weight.shape[0]), 8, np.uint32)
    parts = {
        ".qweight": words(codes.T, 1, order), ".qzeros": words(zeros, 1, order),
        ".scales": kw.asarray(np.ascontiguousarray(scales.T)),
    }  # fmt: skip
    return parts, numbers


def packed_rows(weight):
    codes, scales, numbers = four_bits(weight)
    parts = {
        ".weight_packed": words(codes, 1), ".weight_scale": kw.asarray(scales),
        ".weight_shape": kw.asarray(np.array(weight.shape, np.int64)),
    }  # fmt: skip
    return parts, numbers


METHODS = {
    "fp8 rows": ({"quant_method": "fbgemm_fp8"}, fp8_rows),
    "fp8 tensor": ({"quant_method": "compressed-tensors", "format": "float-quantized"}, fp8_tensor),
    "fp8 block": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, fp8_block),
    "int8": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, int8_rows),
    "nf4": ({"quant_method": "bitsandbytes", "load_in_4bit": True}, nf4),
    "nf4 double": (
        {"quant_method": "bitsandbytes", "load_in_4bit": True}, lambda w: nf4(w, double=True)),
    "gptq": ({"quant_method": "gptq", "bits": 4, "group_size": 32}, gptq),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 32}, awq),
    "int4": ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, packed_rows),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_quantised_files_stand_for_their_numbers(method, tmp_path):
    config, convert = METHODS[method]
    few, whole = quantised_files(tmp_path, "llama", config, convert)
    model = llm.load(few, dtype="bfloat16")
    expected = llm.load(whole, dtype="float32").logits(IDS).numpy()
    assert distance(model.logits(IDS).numpy(), expected) < 2e-2
    assert distance(expected, STORED["llama"]["logits"]) > 5e-3  # the formats do lose something
    weight = model.module.layers[0].attention.out.weight
    assert not isinstance(weight, kw.Array)  # it keeps its few bits


@pytest.mark.parametrize("format", ["fp8", "int8", "q8_0", "mxfp4"])
def test_weights_are_quantised_while_loading(format, tmp_path):
    folder = written(tmp_path, "llama")
    model = llm.load(folder, dtype="bfloat16", quantize=format)
    made = model.logits(IDS).numpy()
    assert distance(made, STORED["llama"]["logits"]) < (0.5 if format == "mxfp4" else 0.1)
    assert isinstance(model.module.head.weight, kw.Array)


def test_what_is_not_read_is_named(tmp_path):
    config, convert = METHODS["gptq"]
    folder, _ = quantised_files(tmp_path, "llama", config | {"bits": 3}, convert)
    with pytest.raises(llm.ModelError, match="weights of 3 bits are not read"):
        llm.load(folder)
    folder, _ = quantised_files(tmp_path, "llama", {"quant_method": "magic"}, convert)
    with pytest.raises(llm.ModelError, match="quant_method 'magic' is unknown; known are fp8"):
        llm.load(folder)
    with pytest.raises(llm.ModelError, match=r"mlp\.down\.weight \(64, 160\) as nf4: .*formats:"):
        llm.load(written(tmp_path, "llama"), quantize="nf4")
    with pytest.raises(kw.errors.ArgumentError, match="quantize is one of int8, fp8, "):
        llm.load(folder, quantize="q1")
