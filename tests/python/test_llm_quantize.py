"""llm.quantize(): files of few bits that load as weights quantised while loading do."""

import importlib
import json
import pathlib
import shutil

import model_files
import numpy as np
import pytest
from test_llm_families import distance

import kernwright as kw
from kernwright import llm
from kernwright.cli import main
from kernwright.errors import ArgumentError, InvalidArgument

TINY = pathlib.Path(__file__).parents[1] / "data" / "tiny_llama"
IDS = [1, 5, 9, 2, 30, 7]


def require_equal(made, expected):
    made, expected = model_files.weights_of(made), model_files.weights_of(expected)
    assert made.keys() == expected.keys()
    for path in expected:
        np.testing.assert_array_equal(made[path], expected[path], err_msg=path)


@pytest.mark.parametrize("format", ["fp8", "int8", "nf4"])
@pytest.mark.parametrize("name", ["llama_biases", "gpt2", "phi3", "qwen3_moe", "gemma2"])
def test_a_folder_loads_as_its_source_quantised(name, format, tmp_path):
    source = model_files.written(tmp_path / "source", name)
    llm.quantize(source, tmp_path / "made", format)
    made, expected = llm.load(tmp_path / "made"), llm.load(source, quantize=format)
    require_equal(made, expected)
    kinds = {type(layer.attention.out.weight).__name__ for layer in made.module.layers}
    assert kinds == {"PackedWeight" if format == "nf4" else "ScaledWeight"}
    np.testing.assert_array_equal(made.logits(IDS).numpy(), expected.logits(IDS).numpy())


def test_logits_are_near_those_of_the_numbers(tmp_path):
    source = model_files.written(tmp_path / "source", "llama")
    expected = llm.load(source).logits(IDS).numpy()
    for format, most in (("int8", 0.03), ("fp8", 0.1), ("nf4", 0.3)):
        llm.quantize(source, tmp_path / format, format)
        found = distance(llm.load(tmp_path / format).logits(IDS).numpy(), expected)
        assert 0 < found < most, format


def test_tensors_are_those_of_the_layouts(tmp_path):
    """By the definitions of compressed-tensors and bitsandbytes, computed by NumPy."""
    source = model_files.written(tmp_path / "source", "llama", dtype="float32")
    key = "model.layers.1.mlp.down_proj"
    weight = kw.load_safetensors(source / "model.safetensors")[f"{key}.weight"].numpy()
    files = {}
    for format in ("fp8", "int8", "nf4"):
        llm.quantize(source, tmp_path / format, format)
        files[format] = kw.load_safetensors(tmp_path / format / "model.safetensors")
    fp8 = files["fp8"][f"{key}.weight"], files["fp8"][f"{key}.weight_scale"].numpy()
    assert fp8[0].dtype.name == "float8_e4m3fn" and fp8[1].shape == (weight.shape[0], 1)
    np.testing.assert_allclose(fp8[1][:, 0], np.abs(weight).max(1) / 448, rtol=1e-6)
    wide = fp8[0].numpy().astype(np.float32) * fp8[1]
    assert (np.abs(wide - weight) <= np.maximum(np.abs(weight) / 16, fp8[1] / 2**9) * 1.001).all()
    codes, largest = (files["int8"][f"{key}.{end}"].numpy() for end in ("weight", "SCB"))
    np.testing.assert_array_equal(largest, np.abs(weight).max(1))
    assert codes.dtype == np.int8
    assert (np.abs(codes * (largest / 127)[:, None] - weight) <= largest[:, None] / 253).all()
    base = f"{key}.weight"
    table, absmax = (files["nf4"][f"{base}.{end}"].numpy() for end in ("quant_map", "absmax"))
    assert (np.diff(table) > 0).all() and table[0] == -1 and table[15] == 1 and 0 in table
    packed = files["nf4"][base].numpy()
    assert packed.shape == (weight.size // 2, 1)
    nibbles = np.concatenate([packed >> 4, packed & 15], axis=1).reshape(-1, 64)
    blocks = weight.reshape(-1, 64)
    np.testing.assert_array_equal(absmax, np.abs(blocks).max(1))
    scaled = blocks / absmax[:, None]
    nearest = np.abs(scaled[..., None] - table).min(-1)
    np.testing.assert_allclose(np.abs(scaled - table[nibbles]), nearest, atol=1e-6)
    state = json.loads(bytes(files["nf4"][f"{base}.quant_state.bitsandbytes__nf4"].numpy()))
    assert state["shape"] == list(weight.shape) and state["blocksize"] == 64


def test_what_keeps_its_numbers_is_named(tmp_path):
    source = model_files.written(tmp_path / "source", "qwen3_moe")
    found = {}
    for format in ("fp8", "int8", "nf4"):
        llm.quantize(source, tmp_path / format, format)
        found[format] = json.loads((tmp_path / format / "config.json").read_text())
    ignored = found["fp8"]["quantization_config"]["ignore"]
    assert {"lm_head", "model.embed_tokens", r"re:model\.layers\.0\.mlp\.experts\..*"} <= set(
        ignored
    )
    for format in ("int8", "nf4"):
        kept = found[format]["quantization_config"]["llm_int8_skip_modules"]
        assert {"lm_head", "model.layers.0.mlp.experts"} <= set(kept)
    assert not any("self_attn" in each for each in ignored)


def test_everything_but_weights_is_copied(tmp_path):
    source = tmp_path / "source"
    shutil.copytree(TINY, source)
    (source / "additional_chat_templates").mkdir()
    (source / "additional_chat_templates" / "short.jinja").write_text("{{ messages }}")
    (source / "pytorch_model.bin").write_bytes(b"other weights")
    seen = []
    llm.quantize(source, tmp_path / "made", "int8", progress=lambda *each: seen.append(each))
    made = {str(p.relative_to(tmp_path / "made")) for p in (tmp_path / "made").rglob("*")}
    there = {str(p.relative_to(source)) for p in source.rglob("*")}
    assert made == there - {"pytorch_model.bin"}
    for name in ("tokenizer.json", "generation_config.json", "tokenizer_config.json"):
        assert (tmp_path / "made" / name).read_bytes() == (source / name).read_bytes()
    done, total, _ = zip(*seen, strict=True)
    assert list(done) == list(range(total[0] + 1)) and set(total) == {total[0]}
    text = llm.load(tmp_path / "made").generate("import os", max_tokens=8).text
    assert text == llm.load(source, quantize="int8").generate("import os", max_tokens=8).text


def test_many_tensors_come_in_several_files(tmp_path, monkeypatch):
    source = model_files.written(tmp_path / "source", "llama")
    llm.quantize(source, tmp_path / "one", "fp8")
    module = importlib.import_module("kernwright.llm._quantize")
    monkeypatch.setattr(module, "_SHARD", 100_000)
    llm.quantize(source, tmp_path / "several", "fp8")
    index = json.loads((tmp_path / "several" / "model.safetensors.index.json").read_text())
    parts = sorted(each.name for each in (tmp_path / "several").glob("*.safetensors"))
    assert len(parts) > 2 and parts == sorted(set(index["weight_map"].values()))
    assert parts[0] == f"model-00001-of-{len(parts):05d}.safetensors"
    assert index["metadata"]["total_size"] == sum(
        each.nbytes for each in kw.load_safetensors(tmp_path / "one" / "model.safetensors").values()
    )
    require_equal(llm.load(tmp_path / "several"), llm.load(tmp_path / "one"))


def test_a_dtype_is_told_to_those_who_load(tmp_path):
    source = model_files.written(tmp_path / "source", "llama", dtype="float32")
    llm.quantize(source, tmp_path / "made", "int8", dtype="bfloat16")
    made = llm.load(tmp_path / "made")
    assert made.config.dtype == "bfloat16"
    require_equal(made, llm.load(source, dtype="bfloat16", quantize="int8"))


@pytest.mark.parametrize("format", ["q4_k", "q5_k", "q6_k", "q8_0"])
def test_a_gguf_file_loads_as_its_source_quantised(format, tmp_path):
    words = ["<s>", "</s>", "a", "b"]
    meta = {
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.scores": np.array([0, 0, -1, -2], np.float32),
        "tokenizer.ggml.token_type": np.array([3, 3, 1, 1], np.int32),
        "general.name": "tiny", "llama.few": True, "general.file_type": 1, "a.large": 2**40,
        "a.below": -3, "a.part": np.uint16(7),
    }  # fmt: skip
    source = model_files.gguf_written(
        tmp_path / "m.gguf", "llama", metadata=meta, hidden_size=256, head_dim=64
    )
    made = tmp_path / "made.gguf"
    llm.quantize(source, made, format)
    require_equal(llm.load(made), llm.load(source, quantize=format))
    with kw.Gguf(source) as before, kw.Gguf(made) as after:
        assert after.format("blk.0.ffn_down.weight") == format
        assert after.format("output.weight") == "float16"
        changed = ("general.file_type", "general.quantization_version")
        for key, value in before.metadata.items():
            if key not in changed:
                np.testing.assert_array_equal(after.metadata[key], value, err_msg=key)
        assert after.metadata["tokenizer.ggml.token_type"].dtype == np.int32
        assert set(after.metadata) == {*before.metadata, *changed}
    with pytest.raises(llm.ModelError, match="no weights of linear layers in numbers"):
        llm.quantize(made, tmp_path / "again.gguf", "q8_0")


def test_what_cannot_be_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    source = model_files.written(tmp_path / "source", "llama")
    odd = model_files.written(tmp_path / "odd", "llama", intermediate_size=160)
    file = model_files.gguf_written(tmp_path / "m.gguf", "llama")
    latent = model_files.gguf_written(tmp_path / "latent.gguf", "deepseek_v2")
    llm.quantize(source, tmp_path / "done", "fp8")
    before = sorted(tmp_path.rglob("*"))

    def refused(error, message, *arguments, **options):
        with pytest.raises(error, match=message):
            llm.quantize(*arguments, **options)
        assert sorted(tmp_path.rglob("*")) == before

    new = tmp_path / "new"
    refused(InvalidArgument, "done exists already", source, tmp_path / "done", "fp8")
    refused(InvalidArgument, "no folder", source, tmp_path / "none" / "new", "fp8")
    refused(ArgumentError, "format is one of fp8, int8, nf4 for a folder", source, new, "q1")
    refused(ArgumentError, "format is one of", source, new, None)
    refused(ArgumentError, "a path is a str", source, 3, "fp8")
    refused(ArgumentError, "dtype is one of", source, new, "fp8", dtype="int8")
    refused(llm.ModelError, "does not exist", tmp_path / "none", new, "fp8")
    refused(llm.ModelError, "must end in .gguf: q4_k is", source, new, "q4_k")
    refused(llm.ModelError, "would be a folder, as fp8 is", source, tmp_path / "n.gguf", "fp8")
    refused(llm.ModelError, "must end in .gguf", file, new, "q8_0")
    refused(llm.ModelError, "kept by heads", latent, tmp_path / "new.gguf", "q8_0")
    refused(llm.ModelError, "not fp8", file, tmp_path / "new.gguf", "fp8")
    refused(llm.ModelError, "already, by 'compressed-tensors'", tmp_path / "done", new, "fp8")
    refused(llm.ModelError, r"down_proj.weight has rows of 160 .* blocks of 64", odd, new, "nf4")
    refused(llm.ModelError, r"rows of 128 .* blocks of 256", file, tmp_path / "n.gguf", "q4_k")

    def interrupted(*_):
        raise KeyboardInterrupt

    refused(KeyboardInterrupt, None, source, new, "fp8", progress=interrupted)


def test_the_command_writes_and_tells(tmp_path, capsys):
    out = tmp_path / "made"
    assert main(["quantize", str(TINY), str(out), "--format", "fp8"]) == 0
    found, err = capsys.readouterr()
    assert str(out) in found and "% of" in found
    assert "0/" in err and "tensors" in err and "kernwright: on " in err
    require_equal(llm.load(out), llm.load(TINY, quantize="fp8"))
    assert main(["quantize", str(TINY), str(out), "--format", "fp8"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["quantize", str(TINY), str(tmp_path / "b"), "--format", "int8", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bytes"] < document["bytes_before"]
