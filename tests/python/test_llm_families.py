"""Each family of models against the logits that transformers computed in float32."""

import importlib.util
import json
import pathlib

import ml_dtypes
import numpy as np
import pytest

import kernwright as kw
from kernwright import llm

_DATA = pathlib.Path(__file__).parents[1] / "data" / "language_models.py"
_spec = importlib.util.spec_from_file_location("language_models", _DATA)
language_models = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(language_models)
STORED = language_models.stored()


def written(folder, name):
    """The files of a model, in Hugging Face's layout."""
    recorded = STORED[name]
    (folder / "config.json").write_text(json.dumps(recorded["config"]))
    arrays = {
        key: kw.asarray(language_models.weights(key, tuple(shape), name).astype(ml_dtypes.bfloat16))
        for key, shape in recorded["shapes"].items()
    }
    kw.save_safetensors(folder / "model.safetensors", arrays)
    return folder


def distance(made, expected):
    return np.linalg.norm(made - expected) / np.linalg.norm(expected)


EXPERTS = ("mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss", "deepseek_v2")


@pytest.mark.parametrize("name", language_models.MODELS)
def test_logits_are_those_of_transformers(name, tmp_path):
    model = llm.load(written(tmp_path, name), dtype="float32")
    made = model.logits(language_models.token_ids()).numpy()
    assert made.dtype == np.float32
    assert distance(made, STORED[name]["logits"]) < 1e-5


@pytest.mark.parametrize(
    "name",
    ["gemma2", "gemma3", "glm", "gpt2", "mixtral", "olmo2", "phi3", "smollm3", "starcoder2"],
)
def test_settings_that_a_file_leaves_out_are_those_of_its_family(name, tmp_path):
    written(tmp_path, name)
    config = dict(STORED[name]["config"])
    for field in STORED[name]["optional"]:
        del config[field]
    (tmp_path / "config.json").write_text(json.dumps(config))
    made = llm.load(tmp_path, dtype="float32").logits(language_models.token_ids()).numpy()
    assert distance(made, STORED[name]["logits"]) < 1e-5


@pytest.mark.parametrize("name", ["llama", *EXPERTS])
def test_logits_in_bfloat16_are_near_those_of_float32(name, tmp_path):
    model = llm.load(written(tmp_path, name), dtype="bfloat16")
    made = model.logits(language_models.token_ids()).numpy()
    assert distance(made, STORED[name]["logits"]) < 3e-2


@pytest.mark.parametrize("name", ["gpt2", "gemma3", "gpt_oss", "deepseek_v2"])
def test_streamed_layers_give_the_same_bits(name, tmp_path):
    ids = language_models.token_ids()
    resident = llm.load(written(tmp_path, name), memory="device")
    streamed = llm.load(tmp_path, memory="stream")
    assert streamed.memory.streamed_layers == resident.memory.resident_layers
    for prompt in (ids, ids[:1]):
        found = streamed.logits(prompt).numpy()
        np.testing.assert_array_equal(found, resident.logits(prompt).numpy())


def test_every_architecture_has_a_recorded_model():
    recorded = {each["config"]["architectures"][0] for each in STORED.values()}
    # MiMo is Qwen 2, and transformers has no class for it: see test_llm_predictors.py.
    # Gemma 3 beside pictures has the numbers of Gemma 3: see below.
    others = {"MiMoForCausalLM", "Gemma3ForConditionalGeneration"}
    assert recorded | others == set(llm.known_architectures()) - _registered_by_tests()


@pytest.mark.parametrize("prefix", ["language_model.model.", "model.language_model."])
def test_texts_of_a_model_for_pictures(prefix, tmp_path):
    """Files of Gemma 3 from 4B on: the config of texts is within that of the whole model."""
    (tmp_path / "texts").mkdir()
    source = written(tmp_path / "texts", "gemma3")
    arrays = dict(kw.load_safetensors(source / "model.safetensors"))
    made = {prefix + name.removeprefix("model."): array for name, array in arrays.items()}
    tower = "vision_tower.vision_model" if prefix.startswith("language") else "model.vision_tower"
    made |= {f"{tower}.embeddings.patch_embedding.weight": kw.ones((4, 3, 2, 2)),
             "multi_modal_projector.mm_soft_emb_norm.weight": kw.ones((4,))}  # fmt: skip
    texts = json.loads((source / "config.json").read_text())
    del texts["architectures"]
    whole = {"architectures": ["Gemma3ForConditionalGeneration"], "text_config": texts,
             "vision_config": {"hidden_size": 4}, "dtype": "float32"}  # fmt: skip
    folder = tmp_path / "whole"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(whole))
    kw.save_safetensors(folder / "model.safetensors", made)
    ids = language_models.token_ids()
    expected = llm.load(source, dtype="float32").logits(ids).numpy()
    assert np.array_equal(llm.load(folder, dtype="float32").logits(ids).numpy(), expected)
    small = {"hidden_size": 2560, "num_hidden_layers": 34, "intermediate_size": 10240}  # of 4B
    config = llm.Config.from_fields(whole | {"text_config": small | {"sliding_window": 1024}})
    assert (config.num_heads, config.num_kv_heads, config.head_dim) == (8, 4, 256)
    assert (config.vocab_size, config.max_length, config.sliding_window) == (262208, 131072, 1024)


def _registered_by_tests():
    return {name for name in llm.known_architectures() if name.startswith(("Mine", "Own"))}
