"""Folders of Hugging Face's layout become .gguf files by llm.quantize(), as llama.cpp's converter
writes them: its names, its order of rows, its metadata, its vocabularies."""

import json
import pathlib

import gguf_models
import model_files
import numpy as np
import pytest
import tiny_tokenizers
from test_llm_families import STORED, distance
from test_llm_gguf import CHANGED

import kernwright as kw
from kernwright import llm

TINY = pathlib.Path(__file__).parents[1] / "data" / "tiny_llama"
IDS = [1, 5, 9, 2, 30, 7, 11, 40]
CHANGES = CHANGED | {
    "phi3_longrope": {"num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 16},
}  # fmt: skip


def folder_of(folder, name, **changes):
    fields = model_files.fields_of(name)
    changes = CHANGES.get(name, {}) | changes
    if name.startswith("gemma"):
        changes["query_pre_attn_scalar"] = fields["head_dim"]
    return model_files.written(folder, name, **changes)


def same_value(made, expected):
    if isinstance(expected, (float, np.floating)):
        return made == pytest.approx(float(expected), rel=1e-6)
    return made == expected


@pytest.mark.parametrize("name", [n for n in STORED if n not in ("glm", "gpt2_scaled")])
def test_files_are_those_of_the_converter(name, tmp_path):
    source = folder_of(tmp_path / "source", name, dtype="float32")
    llm.quantize(source, tmp_path / "m.gguf", "q8_0")
    config = json.loads((source / "config.json").read_text())
    if name == "mistral":  # llama.cpp's kind llama, and with a window not of Llama's class
        config["architectures"] = ["LlamaForCausalLM"]
    if not config.get("use_sliding_window", True):
        config["sliding_window"] = None
    tensors = {k: x.numpy() for k, x in kw.load_safetensors(source / "model.safetensors").items()}
    expected = gguf_models.arrays_of(tensors, config)
    with kw.Gguf(tmp_path / "m.gguf") as file:
        assert set(file) == set(expected)
        for key, numbers in expected.items():
            format = file.format(key)
            if format == "float32":
                np.testing.assert_allclose(file[key].numpy(), numbers, rtol=2e-6, err_msg=key)
                continue
            assert format == "q8_0", key
            blocks = kw.nn.quant.quantize(kw.asarray(numbers), "q8_0")
            np.testing.assert_array_equal(file[key].numpy(), blocks.numpy(), err_msg=key)
        quantised = {key for key in file if file.format(key) == "q8_0"}
        assert {"blk.0.attn_output.weight"} <= quantised
        assert not {key for key in quantised if "_inp" in key or "norm" in key or "exps" in key}
        for key, value in gguf_models.metadata_of(config).items():
            if not key.endswith(("_token_id", "expert_feed_forward_length")):
                assert same_value(file.metadata[key], value), key
    made = llm.load(tmp_path / "m.gguf")
    plain = llm.load(source, quantize="q8_0")
    assert made.config.dtype == "float32" and made.config.norm_eps == plain.config.norm_eps
    assert made.config.eos == plain.config.eos[:2]
    most = 2e-2 if name == "deepseek_v2" else 2e-6  # what goes by heads there keeps its numbers
    assert distance(made.logits(IDS).numpy(), plain.logits(IDS).numpy()) < most
    if name in ("qwen3", "gemma2", "phi3", "starcoder2"):  # llama's heads have another order
        assert (made.logits(IDS).numpy() == plain.logits(IDS).numpy()).all()


@pytest.mark.parametrize(("format", "most"), [("q4_k", 0.5), ("q6_k", 0.1)])
def test_blocks_of_many_numbers(format, most, tmp_path):
    extents = {"hidden_size": 256, "head_dim": 64}
    source = model_files.written(tmp_path / "source", "llama", **extents)
    llm.quantize(source, tmp_path / "m.gguf", format, dtype="float16")
    made = llm.load(tmp_path / "m.gguf", dtype="float16").logits(IDS).numpy()
    plain = llm.load(source, dtype="float16", quantize=format).logits(IDS).numpy()
    assert distance(made, plain) < 2e-3
    assert 0 < distance(made, llm.load(source, dtype="float16").logits(IDS).numpy()) < most


def test_the_tokenizer_of_a_folder_comes_along(tmp_path):
    seen = []
    llm.quantize(TINY, tmp_path / "m.gguf", "q8_0", progress=lambda *each: seen.append(each))
    made, plain = llm.load(tmp_path / "m.gguf"), llm.load(TINY, quantize="q8_0")
    assert seen[0][0] == 0 and seen[-1][:2] == (seen[0][1],) * 2
    for text in tiny_tokenizers.TEXTS:
        ids = plain.tokenizer.encode(text)
        assert made.tokenizer.encode(text) == ids
        assert made.tokenizer.decode(ids) == plain.tokenizer.decode(ids)
    assert made.tokenizer.bos == plain.tokenizer.bos
    assert set(plain.tokenizer.eos) <= set(made.tokenizer.eos)
    assert (
        made.generate("import os", max_tokens=12).text
        == plain.generate("import os", max_tokens=12).text
    )
    with kw.Gguf(tmp_path / "m.gguf") as file:
        assert file.metadata["general.name"] == "tiny_llama"
        assert file.metadata["tokenizer.ggml.model"] == "gpt2"


def with_tokenizer(path, made, **files):
    """A folder of a model with a row of logits for each token, and some more."""
    size = made.get_vocab_size() + 6
    folder = model_files.written(path, "llama", vocab_size=size)
    return tiny_tokenizers.folder_of(folder, made, **files)


LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@pytest.mark.parametrize("pattern", [None, LLAMA3], ids=["gpt2", "llama3"])
def test_byte_pairs_with_a_rule(pattern, tmp_path):
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    config = {
        "bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True, "chat_template": template,
    }  # fmt: skip
    source = with_tokenizer(
        tmp_path / "s", tiny_tokenizers.byte_level(pattern=pattern), tokenizer_config=config
    )
    llm.quantize(source, tmp_path / "m.gguf", "q8_0")
    made, plain = llm.Tokenizer(tmp_path / "m.gguf"), llm.Tokenizer(source)
    for text in tiny_tokenizers.TEXTS:
        assert made.encode(text) == plain.encode(text)
        assert made.decode(made.encode(text)) == plain.decode(plain.encode(text))
    assert made.encode("a")[0] == made.bos == plain.bos
    assert len(made) == len(plain) + 6 and made.token(len(plain)) == f"[PAD{len(plain)}]"
    messages = [{"role": "user", "content": "Hi"}]
    assert made.encode_chat(messages) == plain.encode_chat(messages)


def test_pieces_with_scores(tmp_path):
    from tokenizers import Tokenizer

    file = tmp_path / "v.gguf"
    pieces = tiny_tokenizers.scored_pieces()
    kw.save_gguf(file, {"a": kw.ones(1)}, {
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": [piece for piece, _, _ in pieces],
        "tokenizer.ggml.scores": np.array([score for _, score, _ in pieces], np.float32),
        "tokenizer.ggml.token_type": np.array([kind for _, _, kind in pieces], np.int32),
        "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    })  # fmt: skip
    original = llm.Tokenizer(file)
    roles = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True}
    library = Tokenizer.from_str(original._made.to_str())
    source = with_tokenizer(tmp_path / "s", library, tokenizer_config=roles)
    llm.quantize(source, tmp_path / "m.gguf", "q8_0")
    made = llm.Tokenizer(tmp_path / "m.gguf")
    for text in tiny_tokenizers.TEXTS:
        assert made.encode(text) == original.encode(text), text
        assert made.decode(made.encode(text)) == original.decode(original.encode(text))
    with kw.Gguf(tmp_path / "m.gguf") as opened:
        assert opened.metadata["tokenizer.ggml.model"] == "llama"


def test_what_a_file_cannot_tell_is_refused(tmp_path):
    def refused(message, name, **changes):
        source = model_files.written(tmp_path / f"{len(list(tmp_path.iterdir()))}", name, **changes)
        with pytest.raises(llm.ModelError, match=message):
            llm.quantize(source, tmp_path / "m.gguf", "q8_0")
        assert not (tmp_path / "m.gguf").exists()

    dynamic = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    refused("cannot tell rotary positions of 'dynamic'", "llama", rope_parameters=dynamic)
    refused("GlmForCausalLM is not written as a .gguf file", "glm")
    refused(r"cannot tell a setting .*scale: ", "gemma2", query_pre_attn_scalar=77)
    refused("cannot tell a setting", "smollm3", no_rope_layers=[0, 1], no_rope_layer_interval=2)
    refused("rows of 168 numbers, and q8_0", "llama", intermediate_size=168)


def test_what_no_rule_gives_is_refused(tmp_path):
    pattern = r"[^\s]{1,2}|\s"  # of no model
    source = with_tokenizer(tmp_path / "s", tiny_tokenizers.byte_level(pattern=pattern))
    with pytest.raises(llm.ModelError, match="none of the rules for cutting texts"):
        llm.quantize(source, tmp_path / "m.gguf", "q8_0")
    small = model_files.written(tmp_path / "t", "llama", vocab_size=64)
    tiny_tokenizers.folder_of(small, tiny_tokenizers.byte_level())
    with pytest.raises(llm.ModelError, match=r"has 400 tokens, and the model 64"):
        llm.quantize(small, tmp_path / "m.gguf", "q8_0")


def ends_of(source, target):
    llm.quantize(source, target, "q8_0")
    return set(llm.load(source, quantize="q8_0").config.eos), set(llm.load(target).config.eos)


def test_tokens_that_end_a_text_come_along(tmp_path):
    """Those of generation_config.json, too; more than such a file tells raise."""
    source = model_files.written(tmp_path / "s", "llama", eos_token_id=2, vocab_size=400)
    (source / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 2, 5]}))
    expected, found = ends_of(source, tmp_path / "m.gguf")
    assert expected == found == {2, 5, 7}
    (source / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 2, 5, 6]}))
    with pytest.raises(llm.ModelError, match=r"4 tokens end a text, 2, 7, 5, 6, and a \.gguf file"):
        llm.quantize(source, tmp_path / "n.gguf", "q8_0")
    (source / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 2]}))
    made = tiny_tokenizers.byte_level()
    config = {"eos_token": "</s>"}
    tiny_tokenizers.folder_of(source, made, tokenizer_config=config)
    llm.quantize(source, tmp_path / "t.gguf", "q8_0")
    ours, theirs = llm.load(tmp_path / "t.gguf"), llm.load(source)
    assert {*ours.config.eos, *ours.tokenizer.eos} == {*theirs.config.eos, *theirs.tokenizer.eos}


def test_texts_changed_before_they_are_cut_are_refused(tmp_path):
    from tokenizers import AddedToken, normalizers

    changing = tiny_tokenizers.byte_level()
    changing.normalizer = normalizers.Replace("foo", "bar")
    stripping = tiny_tokenizers.byte_level()
    stripping.add_special_tokens([AddedToken("<|user|>", lstrip=True)])
    for i, (made, message) in enumerate(
        ((changing, "does not tell the normalizer"), (stripping, "added tokens among texts"))
    ):
        source = with_tokenizer(tmp_path / str(i), made)
        with pytest.raises(llm.ModelError, match=message):
            llm.quantize(source, tmp_path / "m.gguf", "q8_0")
    composing = tiny_tokenizers.byte_level()
    composing.normalizer = normalizers.NFC()  # as Qwen's: llama.cpp's converter leaves it out
    llm.quantize(with_tokenizer(tmp_path / "c", composing), tmp_path / "c.gguf", "q8_0")
