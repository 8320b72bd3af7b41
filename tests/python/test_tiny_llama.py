"""The trained models in tests/data: files, logits, and the script that made them."""

import dataclasses
import importlib
import json
import platform
import sys

import numpy as np
import pytest
from llama_host import (
    DATA,
    MODELS,
    config_of,
    host_array,
    logits_on_the_host,
    mean_loss,
    weights_of,
)

import kernwright as kw


@pytest.fixture(scope="module")
def recipe():
    """tests/data/tiny_llama.py as a module."""
    before = list(sys.path)
    sys.path.insert(0, str(DATA))
    try:
        yield importlib.import_module("tiny_llama")
    finally:
        sys.path[:] = before
        for name in ("tiny_llama", "data"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module", params=MODELS)
def stored(request):
    """A model's name, its configuration, weights in float64, and what transformers computed."""
    name = request.param
    with np.load(DATA / name / "expected.npz") as file:
        return name, config_of(name), weights_of(name), dict(file)


def test_the_files_are_small_and_laid_out_as_hugging_faces():
    files = [path for name in MODELS for path in (DATA / name).iterdir()]
    assert sum(path.stat().st_size for path in files) < 4_000_000
    for name, count in zip(MODELS, (918_656, 213_312), strict=True):
        config = config_of(name)
        assert config["architectures"] == ["LlamaForCausalLM"] and config["model_type"] == "llama"
        arrays = kw.load_safetensors(DATA / name / "model.safetensors")
        width, inner, size = config["hidden_size"], config["intermediate_size"], config["head_dim"]
        queries, keys = (config[f"num_{each}_heads"] * size for each in ("attention", "key_value"))
        shapes = {"embed_tokens": (config["vocab_size"], width), "norm": (width,)}
        for i in range(config["num_hidden_layers"]):
            shapes |= {
                f"layers.{i}.self_attn.q_proj": (queries, width),
                f"layers.{i}.self_attn.k_proj": (keys, width),
                f"layers.{i}.self_attn.v_proj": (keys, width),
                f"layers.{i}.self_attn.o_proj": (width, queries),
                f"layers.{i}.mlp.gate_proj": (inner, width),
                f"layers.{i}.mlp.up_proj": (inner, width),
                f"layers.{i}.mlp.down_proj": (width, inner),
                f"layers.{i}.input_layernorm": (width,),
                f"layers.{i}.post_attention_layernorm": (width,),
            }
        assert {name: x.shape for name, x in arrays.items()} == {
            f"model.{name}.weight": shape for name, shape in shapes.items()
        }
        assert {x.dtype.name for x in arrays.values()} == {"bfloat16"}
        assert sum(x.size for x in arrays.values()) == count


def test_both_models_have_one_tokenizer_of_all_bytes():
    texts = {(DATA / name / "tokenizer.json").read_bytes() for name in MODELS}
    assert len(texts) == 1
    tokenizer = json.loads(texts.pop())
    vocabulary = tokenizer["model"]["vocab"]
    special = {each["content"]: each["id"] for each in tokenizer["added_tokens"]}
    assert special == {"<|begin|>": 1022, "<|end|>": 1023}
    assert sorted((vocabulary | special).values()) == list(range(1024))
    assert sum(len(each) == 1 for each in vocabulary) == 256
    for name in MODELS:
        for file in ("config", "generation_config"):
            settings = json.loads((DATA / name / f"{file}.json").read_text())
            assert (settings["bos_token_id"], settings["eos_token_id"]) == (1022, 1023)


def test_the_tokenizer_gives_the_recorded_tokens(stored):
    tokenizers = pytest.importorskip("tokenizers")
    name, _, _, expected = stored
    bpe = tokenizers.Tokenizer.from_file(str(DATA / name / "tokenizer.json"))
    for i in range(4):
        text = str(expected[f"prompt_{i}"])
        ids = bpe.encode(text).ids
        assert ids == expected[f"prompt_ids_{i}"].tolist()
        assert bpe.decode(ids) == text


def test_the_chat_template_gives_the_recorded_text(stored):
    jinja2 = pytest.importorskip("jinja2")
    name, _, _, expected = stored
    settings = json.loads((DATA / name / "tokenizer_config.json").read_text())
    template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(
        settings["chat_template"]
    )
    words = [("system", "Write Python.\n"), ("user", " Sort a list. ")]
    words += [("assistant", "x.sort()"), ("user", "And reversed?")]
    given = {
        "messages": [{"role": role, "content": text} for role, text in words],
        "bos_token": settings["bos_token"], "eos_token": settings["eos_token"],
    }  # fmt: skip
    assert template.render(given) == str(expected["chat"])
    assert template.render(given, add_generation_prompt=True) == str(expected["chat_asked"])
    assert str(expected["chat_asked"]).startswith("<|begin|># system: Write Python.\n# user: Sort")


def test_float64_gives_the_logits_and_the_loss_of_transformers(stored):
    _, config, weights, expected = stored
    tokens = expected["held_out"].astype(np.int64)
    logits = logits_on_the_host(weights, config, tokens[:, :-1])
    assert np.abs(logits[0, :24] - expected["logits"]).max() < 1e-4
    assert abs(mean_loss(logits, tokens[:, 1:]) - expected["loss"]) < 1e-5
    assert expected["loss"] < {4: 2.55, 2: 2.65}[config["num_hidden_layers"]]


def test_greedy_tokens_have_wide_margins(stored):
    _, config, weights, expected = stored
    margins = []
    for i in range(4):
        tokens = expected[f"greedy_{i}"].astype(np.int64)
        logits = logits_on_the_host(weights, config, tokens[None, :-1])[0, -64:]
        assert logits.argmax(-1).tolist() == tokens[-64:].tolist()
        best = np.sort(logits, -1)
        margins.append(best[:, -1] - best[:, -2])
        assert np.allclose(margins[-1], expected[f"margins_{i}"], atol=1e-4)
    assert np.mean(margins) > 2 and np.mean(np.less(margins, 0.1)) < 0.05


def test_the_draft_agrees_with_half_of_the_tokens():
    draft, config = weights_of(MODELS[1]), config_of(MODELS[1])
    agreed = []
    with np.load(DATA / MODELS[0] / "expected.npz") as expected:
        for i in range(4):
            tokens = expected[f"greedy_{i}"].astype(np.int64)
            found = logits_on_the_host(draft, config, tokens[None, :-1])[0].argmax(-1)
            agreed.append(found[-64:] == tokens[-64:])
    assert np.mean(agreed) > 0.4


def test_the_recipe_computes_the_stored_models(recipe, stored):
    name, config, _, expected = stored
    assert dataclasses.asdict(recipe.MODELS[name]).items() <= config.items()
    model = recipe.Llama(recipe.MODELS[name])
    given = kw.load_safetensors(DATA / name / "model.safetensors")
    model.load({key.removeprefix("model."): x.astype("float32") for key, x in given.items()})
    tokens = expected["held_out"][:1, :24].astype(np.int32)
    assert np.allclose(model(kw.asarray(tokens))[0].numpy(), expected["logits"], atol=2e-3)


def test_saved_models_are_the_stored_files(recipe, tmp_path):
    for name in MODELS:
        model = recipe.Llama(recipe.MODELS[name]).astype("bfloat16")
        given = kw.load_safetensors(DATA / name / "model.safetensors")
        model.load({key.removeprefix("model."): x for key, x in given.items()})
        recipe.save(model, tmp_path / name, DATA / name)
        for path in (tmp_path / name).iterdir():
            assert path.read_bytes() == (DATA / name / path.name).read_bytes(), path.name


def test_the_text_is_the_recorded_one(recipe):
    recorded = json.loads((DATA / "tiny_llama_data.json").read_text())
    if platform.python_version() != recorded["python"]:
        pytest.skip(f"the text is the standard library of Python {recorded['python']}")
    assert recipe.digest_of(*recipe.documents()) == recorded["documents"]


# Of steps 4, 8, ... on the simulated device.
LOSSES = (6.8964, 6.8549, 6.8032, 6.6393, 6.7352, 6.5733)


def test_a_few_steps_give_the_recorded_losses(recipe, tmp_path):
    config = recipe.Config(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=16,
    )  # fmt: skip
    with np.load(DATA / MODELS[0] / "expected.npz") as expected:
        tokens = expected["held_out"].ravel()
    for name in ("train", "val"):
        kw.train.write_shard(tmp_path / f"{name}.bin", tokens)
    runs = []
    for _ in range(2):
        model = recipe.Llama(config).astype("bfloat16")
        losses = recipe.train(model, tmp_path, steps=24, batch=4, every=4)
        runs.append((losses, [x.numpy().tobytes() for _, x in model.named_parameters()]))
    assert runs[0] == runs[1]
    near = 2e-3 if kw.current_device().is_simulated else 0.05
    assert np.allclose([loss for _, loss, _ in losses], LOSSES, atol=near)


def test_the_loss_is_that_of_float64(recipe, stored):
    name, config, _, expected = stored
    model = recipe.Llama(recipe.MODELS[name], seed=5)
    tokens = expected["held_out"][:2, :17].astype(np.int32)
    weights = {f"model.{name}": host_array(x) for name, x in model.named_parameters()}
    logits = logits_on_the_host(weights, config, tokens[:, :-1])
    loss = recipe.loss_of(model, kw.asarray(tokens[:, :-1]), kw.asarray(tokens[:, 1:]))
    assert abs(mean_loss(logits, tokens[:, 1:]) - loss.item()) < 1e-4
