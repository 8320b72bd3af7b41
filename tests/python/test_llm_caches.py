"""Caches of 8 bits: what a trained model loses by them, their memory, scales of files."""

import json

import numpy as np
import pytest
from llama_host import DATA
from test_llm_families import written

import kernwright as kw
from kernwright import llm
from kernwright.llm._caches import CacheFormat
from kernwright.llm._paged_step import PagedStep

# Python, as the model was trained on.
TEXT = '''import json


def read_fields(path, names):
    """Returns the fields of a file, by their names."""
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    missing = [name for name in names if name not in found]
    if missing:
        raise KeyError(f"{path} has no {', '.join(missing)}")
    return {name: found[name] for name in names}


class Reader:
    def __init__(self, path):
        self.path = path
        self.fields = {}

    def __getitem__(self, name):
        if name not in self.fields:
            self.fields[name] = read_fields(self.path, [name])[name]
        return self.fields[name]
'''


@pytest.fixture(scope="module")
def model():
    return llm.load(DATA / "tiny_llama", dtype="bfloat16")


@pytest.fixture(scope="module")
def tokens(model):
    return model.tokenizer.encode(TEXT)


def logits_over(model, format, tokens, chunk):
    """Logits behind each token: the first `chunk` in one step, the others one by one."""
    pages = -(-len(tokens) // 16)
    caches = format.make(model.cache_layers(), pages, 16, 16 * pages, model.device)
    table = np.arange(pages, dtype=np.int32)[None]
    steps = [range(chunk), *([i] for i in range(chunk, len(tokens)))]
    made = []
    for step in steps:
        arrays = {
            "tokens": np.array([tokens[i] for i in step]), "positions": np.array(step),
            "token_rows": np.zeros(len(step)), "lengths": np.array([step[-1] + 1]),
            "last": np.arange(len(step)), "query_starts": np.array([0, len(step)]),
            "page_table": table,
        }  # fmt: skip
        given = {name: kw.asarray(x.astype(np.int32)) for name, x in arrays.items()}
        made.append(model.module(PagedStep(given, caches)).astype("float32").numpy())
    return np.concatenate(made)


def perplexity(logits, tokens):
    x = logits[:-1].astype(np.float64)
    x -= x.max(-1, keepdims=True)
    chances = x - np.log(np.exp(x).sum(-1, keepdims=True))
    return float(np.exp(-chances[np.arange(len(x)), tokens[1:]].mean()))


def test_int8_caches_keep_the_perplexity(model, tokens):
    chunk = len(tokens) - 24  # tokens that are read one by one then
    found = {
        kind: perplexity(logits_over(model, CacheFormat(kind), tokens, chunk), tokens)
        for kind in ("bfloat16", "int8", "float8_e4m3fn")
    }
    whole = perplexity(model.logits(tokens).numpy(), tokens)
    assert abs(found["bfloat16"] / whole - 1) < 0.01
    assert abs(found["int8"] / found["bfloat16"] - 1) < 0.01, found
    assert abs(found["float8_e4m3fn"] / found["bfloat16"] - 1) < 0.03, found


def test_generated_texts_and_memory(model):
    """Eight bits and two scales of 4 bytes for each head of a token."""
    layers = model.cache_layers()
    assert layers == [(2, 32)] * 4
    assert CacheFormat("bfloat16").token_bytes(layers) == 4 * 2 * 2 * 32 * 2
    assert CacheFormat("int8").token_bytes(layers) == 4 * 2 * (2 * 32 + 2 * 4)
    assert CacheFormat("float8_e4m3fn").token_bytes(layers) == 4 * 2 * 2 * 32
    made = CacheFormat("int8").make(layers, 3, 16, 48, model.device)
    bytes_made = sum(array.nbytes for layer in made for array in layer)
    assert bytes_made == 48 * CacheFormat("int8").token_bytes(layers)
    few = llm.load(DATA / "tiny_llama", dtype="bfloat16", kv_dtype="int8")
    prompts = ["def read_fields(path", "class Reader:\n    def __init__"]
    expected = model.generate(prompts, max_tokens=8, temperature=0)
    for text, other in zip(
        few.generate(prompts, max_tokens=8, temperature=0), expected, strict=True
    ):
        assert text.tokens == other.tokens  # the model is sure of them


@pytest.fixture
def scaled(tmp_path):
    """A folder of a model whose files scale keys and values, in both of the usual ways."""
    folder = written(tmp_path, "llama")
    arrays = kw.load_safetensors(folder / "model.safetensors")
    for layer, (key, value) in enumerate(((0.03, 0.02), (0.05, 0.01), (0.04, 0.03))):
        name = f"model.layers.{layer}.self_attn."
        names = ("k_scale", "v_scale") if layer else ("k_proj.k_scale", "v_proj.v_scale")
        for end, scale in zip(names, (key, value), strict=True):
            arrays[name + end] = kw.asarray(np.float32(scale))
        arrays[name + "q_scale"] = kw.asarray(np.array([1.5], np.float32))
    kw.save_safetensors(folder / "model.safetensors", arrays)
    return folder


def test_scales_of_files_are_those_of_float8_caches(scaled):
    ids = list(range(3, 40))
    model = llm.load(scaled, dtype="bfloat16", kv_dtype="float8_e4m3fn")
    caches = model.cache_format.make(model.cache_layers(), 3, 16, 48, model.device)
    assert [round(float(c.key_scale[0]), 2) for c in caches] == [0.03, 0.05, 0.04]
    assert [c.value_scale.shape for c in caches] == [(2,)] * 3
    expected = model.logits(ids).numpy()
    made = logits_over(model, model.cache_format, ids, 30)
    plain = logits_over(model, CacheFormat("bfloat16"), ids, 30)
    error = [np.linalg.norm(x - expected) / np.linalg.norm(expected) for x in (made, plain)]
    assert 1e-3 < error[0] < 0.15 and error[1] < 2e-2, error
    other = llm.load(scaled, dtype="float32")  # whose caches need no scales
    assert all(c.key_scale is None for c in other.cache_format.make([(2, 32)], 1, 16, 16, None))
    assert len(model.generate(ids, max_tokens=2).tokens) == 2


def test_what_is_wrong_is_named(scaled):
    arrays = kw.load_safetensors(scaled / "model.safetensors")
    del arrays["model.layers.1.self_attn.v_scale"]
    kw.save_safetensors(scaled / "model.safetensors", arrays)
    with pytest.raises(llm.ModelError, match="layer 1 has the k_scale alone"):
        llm.load(scaled)
    arrays["model.layers.1.self_attn.v_scale"] = kw.ones(3)
    kw.save_safetensors(scaled / "model.safetensors", arrays)
    model = llm.load(scaled, dtype="bfloat16", kv_dtype="float8_e4m3fn")
    with pytest.raises(llm.ModelError, match=r"layer 1 are 3, and there is one.* of 2 heads"):
        model.generate([1, 2], max_tokens=2)
    config = json.loads((scaled / "config.json").read_text())
    with pytest.raises(kw.errors.ArgumentError, match="float32 kv_dtype is the same, got int8"):
        llm.load(random=config, dtype="float32", kv_dtype="int8")
    with pytest.raises(kw.errors.ArgumentError, match=r"same or one of int8, .*got float16"):
        llm.load(random=config, dtype="bfloat16", kv_dtype="float16")
    with pytest.raises(kw.errors.ArgumentError, match=r"kv_dtype is one of .*int8, float8_e4m3fn"):
        llm.load(random=config, kv_dtype="q4_0")
