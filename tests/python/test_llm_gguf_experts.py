"""Experts in blocks of GGUF files: the logits of the numbers that the blocks stand for."""

import model_files
import numpy as np
import pytest
from gguf_models import arrays_of, metadata_of, written
from test_llm_families import distance, language_models

import kernwright as kw
from kernwright import llm

IDS = language_models.token_ids()
_EXTENTS = {
    "hidden_size": 256, "intermediate_size": 256, "moe_intermediate_size": 256,
    "num_hidden_layers": 1, "mlp_only_layers": [],
}  # fmt: skip


@pytest.mark.parametrize("format", ["q4_0", "q8_0", "q4_k", "q6_k"])
@pytest.mark.parametrize("name", ["qwen3_moe", "mixtral"])
def test_experts_in_blocks(format, name, tmp_path):
    own = {
        key: value for key, value in _EXTENTS.items() if not ("moe" in key and name == "mixtral")
    }
    fields = model_files.fields_of(name, **own)
    tensors = {
        key: array.numpy()
        for key, array in model_files.arrays_of(model_files.shapes_of(fields), "float32").items()
    }

    def formats(key, shape):
        return format if "_exps.weight" in key else None

    few = written(tmp_path / "few.gguf", tensors, fields, formats)
    plain, lost = {}, 0.0
    for key, value in arrays_of(tensors, fields).items():
        plain[key] = kw.asarray(value)
        if formats(key, value.shape):
            blocks = kw.nn.quant.quantize(plain[key], format)
            plain[key] = kw.nn.quant.dequantize(blocks, format)
            lost = max(lost, float(np.abs(plain[key].numpy() - value).max()))
    kw.save_gguf(tmp_path / "plain.gguf", plain, metadata_of(fields))
    assert few.stat().st_size < (tmp_path / "plain.gguf").stat().st_size and lost > 0
    made, expected = (
        llm.load(path, dtype="float32").logits(IDS).numpy()
        for path in (few, tmp_path / "plain.gguf")
    )
    assert distance(made, expected) < 1e-5
