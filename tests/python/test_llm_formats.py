"""Models in files of few bits: logits are those of the numbers they stand for."""

import json

import model_files
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


def gptq_ordered(weight):
    """With desc_act: columns have groups in any order."""
    order, back = _order(weight.shape[1])
    parts, numbers = gptq(kw.asarray(np.ascontiguousarray(weight.numpy()[:, order])))
    groups = (np.arange(len(order)) // 32)[back]
    codes, _, _ = four_bits(kw.asarray(np.ascontiguousarray(weight.numpy()[:, order])))
    parts[".qweight"] = words(np.ascontiguousarray(codes[:, back].T), 0)
    parts[".g_idx"] = kw.asarray(groups.astype(np.int32))
    return parts, np.ascontiguousarray(numbers[:, back])


def _order(columns):
    """An order of columns, and the way back."""
    order = np.random.default_rng(columns).permutation(columns)
    return order, np.argsort(order)


def packed_ordered(weight):
    """compressed-tensors with actorder: weight_g_idx has the group of each column."""
    order, back = _order(weight.shape[1])
    codes, scales, numbers = four_bits(kw.asarray(np.ascontiguousarray(weight.numpy()[:, order])))
    parts = {
        ".weight_packed": words(np.ascontiguousarray(codes[:, back]), 1),
        ".weight_scale": kw.asarray(scales),
        ".weight_g_idx": kw.asarray((np.arange(len(order)) // 32)[back].astype(np.int32)),
        ".weight_shape": kw.asarray(np.array(weight.shape, np.int64)),
    }  # fmt: skip
    return parts, np.ascontiguousarray(numbers[:, back])


def packed_zeros(weight):
    """compressed-tensors with zero points: packed along the outputs."""
    codes, scales, numbers = four_bits(weight)
    zeros = np.full((weight.shape[0], scales.shape[1]), 5, np.uint32)
    parts = {
        ".weight_packed": words(codes, 1), ".weight_scale": kw.asarray(scales),
        ".weight_zero_point": words(zeros, 0),
        ".weight_shape": kw.asarray(np.array(weight.shape, np.int64)),
    }  # fmt: skip
    return parts, numbers + 3 * scales.astype(np.float32).repeat(32, 1)


def gptq_v2(weight):
    """Zeros without an offset of 1."""
    parts, numbers = gptq(weight)
    zeros = np.full((weight.shape[1] // 32, weight.shape[0]), 8, np.uint32)
    return parts | {".qzeros": words(zeros, 1)}, numbers


def fp8_block_compressed(weight):
    """Tiles of compressed-tensors: weight_scale has two axes."""
    parts, numbers = fp8_block(weight)
    return {".weight": parts[".weight"], ".weight_scale": parts[".weight_scale_inv"]}, numbers


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
    "gptq ordered": (
        {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True}, gptq_ordered),
    "gptq v2": (
        {"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq_v2"},
        gptq_v2),
    "int4 ordered": (
        {"quant_method": "compressed-tensors", "format": "pack-quantized"}, packed_ordered),
    "int4 zeros": (
        {"quant_method": "compressed-tensors", "format": "pack-quantized"}, packed_zeros),
    "fp8 rows compressed": (
        {"quant_method": "compressed-tensors", "format": "float-quantized"}, fp8_rows),
    "fp8 block compressed": (
        {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {
            "group_0": {"weights": {"strategy": "block", "block_structure": [128, 128]}}}},
        fp8_block_compressed),
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


WIDE = {"hidden_size": 192, "intermediate_size": 320, "num_hidden_layers": 1}


def converted(fields, part, convert):
    """The arrays of a model, those with `part` in their names in a format, and as its numbers."""
    arrays, plain = {}, {}
    for key, array in model_files.arrays_of(model_files.shapes_of(fields), "float32").items():
        plain[key] = arrays[key] = array
        if part in key:
            parts, numbers = convert(array)
            del arrays[key]
            arrays |= {key.removesuffix(".weight") + end: each for end, each in parts.items()}
            plain[key] = kw.asarray(np.ascontiguousarray(numbers, np.float32))
    return arrays, plain


def loaded_from(folder, fields, arrays):
    """The model of new files."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(fields))
    kw.save_safetensors(folder / "model.safetensors", arrays)
    return llm.load(folder, dtype="float32")


@pytest.mark.parametrize("method", ["fp8 block", "fp8 block compressed"])
def test_tiles_of_several_rows_and_columns(method, tmp_path):
    """The recorded models are smaller than two tiles."""
    config, convert = METHODS[method]
    fields = STORED["llama"]["config"] | WIDE

    def scaled_up(array):
        return kw.asarray(array.numpy() * np.float32(1 + np.arange(array.shape[0])[:, None] // 128))

    arrays, plain = converted(fields, "_proj.weight", lambda array: convert(scaled_up(array)))
    few = loaded_from(tmp_path / "few", fields | {"quantization_config": config}, arrays)
    whole = loaded_from(tmp_path / "whole", fields, plain)
    assert few.module.layers[0].mlp.down.weight.format == "fp8_block"
    # Products of packed weights round to 16 bits.
    assert distance(few.logits(IDS).numpy(), whole.logits(IDS).numpy()) < 5e-3


@pytest.mark.parametrize("size", [[64, 128], [128], "1x128"])
def test_other_tiles_are_refused(size, tmp_path):
    config, convert = METHODS["fp8 block"]
    folder, _ = quantised_files(tmp_path, "llama", config | {"weight_block_size": size}, convert)
    with pytest.raises(llm.ModelError, match="tiles of fp8 are 128 x 128, got"):
        llm.load(folder)
    groups = {"group_0": {"weights": {"strategy": "block", "block_structure": size}}}
    folder, _ = quantised_files(
        tmp_path, "llama", METHODS["fp8 rows compressed"][0] | {"config_groups": groups}, fp8_rows
    )
    with pytest.raises(llm.ModelError, match="tiles of fp8 are 128 x 128, got"):
        llm.load(folder)


EXPERTS = ["fp8 rows", "fp8 block", "int8", "gptq", "gptq ordered", "awq", "int4", "int4 ordered"]


@pytest.mark.parametrize("method", EXPERTS)
def test_experts_in_few_bits_are_their_numbers(method, tmp_path):
    """They become numbers while loading, whatever the format of their files."""
    fields = model_files.fields_of("qwen3_moe", num_hidden_layers=1, mlp_only_layers=[])
    config, convert = METHODS[method]
    arrays, plain = converted(fields, ".experts.", convert)
    few = loaded_from(tmp_path / "few", fields | {"quantization_config": config}, arrays)
    whole = loaded_from(tmp_path / "whole", fields, plain)
    assert len(arrays) > len(plain)
    assert distance(few.logits(IDS).numpy(), whole.logits(IDS).numpy()) < 1e-5
