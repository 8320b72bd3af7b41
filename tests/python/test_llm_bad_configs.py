"""Damaged configs and weights: a ModelError or StoreError that names the file, nothing else."""

import json
import random

import numpy as np
import pytest
from gguf_models import KINDS, arrays_of, metadata_of
from model_files import fields_of
from test_llm_families import STORED, language_models
from test_llm_formats import METHODS, numbers_of, quantised_files

import kernwright as kw
from kernwright import llm

VALUES = [
    None, True, 0, -1, 1, 3, 7, 64, 2**31, 2**70, 10**400, 0.5, -2.5, 1e300, float("inf"),
    float("nan"), "", "x", "0.5", [], [1], ["x", None], [[]], {}, {"rope_type": "yarn"},
    {"rope_type": ["x"], "factor": 2}, {"rope_type": "dynamic", "factor": "y"},
    {"rope_type": "longrope", "factor": 2, "short_factor": [1, -1], "long_factor": "z"},
    {"full_attention": {"rope_type": "llama3", "factor": 0}},
]  # fmt: skip
# Configs also have what other families' have.
NAMES = sorted({name for each in STORED.values() for name in each["config"]})


def refused(path, source):
    """Whether it is refused; then the message names the file or its folder."""
    try:
        model = llm.load(path, dtype="float32")
    except (llm.ModelError, kw.errors.StoreError) as error:
        assert str(source) in str(error), error
        return True
    assert model.config.source
    return False


@pytest.mark.parametrize("name", [
    "llama_yarn", "mixtral", "qwen2_moe", "qwen3_moe", "gemma3", "phi3_longrope", "gpt2", "gpt_oss",
    "granite", "smollm3", "starcoder2", "deepseek_v2",
])  # fmt: skip
def test_changed_fields_of_configs(name, tmp_path):
    rng = random.Random(name)
    config = STORED[name]["config"]
    arrays = {key: kw.asarray(value) for key, value in numbers_of(name).items()}
    kw.save_safetensors(tmp_path / "model.safetensors", arrays)
    count = 0
    for _ in range(8):
        broken = dict(config)
        for _ in range(rng.randrange(1, 3)):
            key = rng.choice([*config, rng.choice(NAMES)])
            if key in broken and rng.random() < 0.25:
                del broken[key]
            else:
                broken[key] = rng.choice(VALUES)
        (tmp_path / "config.json").write_text(json.dumps(broken))
        count += refused(tmp_path, tmp_path)
    assert count > 0


@pytest.mark.parametrize("name", [
    "llama_llama3_tied", "gemma3", "phi3_longrope", "gpt_oss", "deepseek_v2",
])  # fmt: skip
def test_changed_metadata_of_gguf(name, tmp_path):
    rng = random.Random(name)
    config, file = STORED[name]["config"], tmp_path / "m.gguf"
    assert config["architectures"][0] in KINDS
    arrays = {key: kw.asarray(x) for key, x in arrays_of(numbers_of(name), config).items()}
    meta, count = metadata_of(config), 0
    values = [True, 0, -1, 3, 2**40, 0.5, float("nan"), "x", [1, 2], [0.5], ["x"], [True, False]]
    for _ in range(8):
        broken, tensors = dict(meta), dict(arrays)
        key = rng.choice(list(broken))
        if rng.random() < 0.25:
            del broken[key]
        else:
            broken[key] = rng.choice(values)
        if rng.random() < 0.4:
            key = rng.choice(list(tensors))
            tensors[key] = kw.ones(rng.choice([(1,), (3, 5), (2, 2, 2)]))
        kw.save_gguf(file, tensors, broken)
        count += refused(file, file)
    assert count > 0


@pytest.mark.parametrize("method", ["fp8 tensor", "fp8 block", "nf4 double", "gptq", "int4"])
def test_changed_weights_of_few_bits(method, tmp_path):
    """Parts that are missing, of another shape or of another dtype."""
    rng = random.Random(method)
    folder, _ = quantised_files(tmp_path, "llama", *METHODS[method])
    arrays = kw.load_safetensors(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    parts = [key for key in arrays if "_proj" in key]
    count = 0
    for i in range(8):
        broken, fields = dict(arrays), dict(config)
        key = rng.choice(parts)
        change = i % 4
        if change == 0:
            del broken[key]
        elif change == 1:
            broken[key] = kw.zeros(rng.choice([(1,), (3, 5), (2, 2, 2), (0, 4)]), "float16")
        elif change == 2:
            broken[key] = kw.zeros(broken[key].shape, rng.choice(["int8", "int64", "float64"]))
        else:
            given = dict(config["quantization_config"])
            given[rng.choice(list(given))] = rng.choice(VALUES[:-4])
            fields["quantization_config"] = rng.choice([given, *VALUES[1:18]])
        (folder / "config.json").write_text(json.dumps(fields))
        kw.save_safetensors(folder / "model.safetensors", broken)
        count += refused(folder, folder)
    assert count > 2


def test_damaged_bytes_of_weights(tmp_path):
    rng = random.Random(5)
    path = tmp_path / "model.safetensors"
    (tmp_path / "config.json").write_text(json.dumps(STORED["llama"]["config"]))
    kw.save_safetensors(path, {k: kw.asarray(x) for k, x in numbers_of("llama").items()})
    content, count = path.read_bytes(), 0
    for _ in range(40):
        broken = bytearray(content)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(4000)] = rng.randrange(256)
        if rng.random() < 0.3:
            broken = broken[: rng.randrange(len(broken))]
        path.write_bytes(broken)
        count += refused(tmp_path, tmp_path)
    assert count > 10


def test_dynamic_positions_are_those_of_the_longest_sequence(tmp_path):
    """Up to the original length nothing is scaled. A longer context is asked for, and all sequences
    then have the frequencies of its length, as transformers has them for a sequence of it."""
    config = STORED["llama"]["config"] | {"max_position_embeddings": 32}
    for place, rope in (
        ("dynamic", {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}),
        ("plain", {"rope_type": "default", "rope_theta": 10000.0}),
        ("longer", {"rope_type": "default",
                    "rope_theta": 10000.0 * (4.0 * 48 / 32 - 3) ** (32 / 30)}),
    ):  # fmt: skip
        (tmp_path / place).mkdir()
        positions = {"max_position_embeddings": 48} if place == "longer" else {}
        text = json.dumps(config | positions | {"rope_parameters": rope})
        (tmp_path / place / "config.json").write_text(text)
        arrays = {key: kw.asarray(value) for key, value in numbers_of("llama").items()}
        kw.save_safetensors(tmp_path / place / "model.safetensors", arrays)

    def logits(place, count, **options):
        model = llm.load(tmp_path / place, dtype="float32", **options)
        return model.logits(language_models.token_ids(count)).numpy()

    assert np.array_equal(logits("dynamic", 32), logits("plain", 32))
    with pytest.raises(llm.ContextError, match="33 tokens, and the context holds 32"):
        logits("dynamic", 33)
    made, expected = logits("dynamic", 40, max_length=48), logits("longer", 40)
    assert np.linalg.norm(made - expected) < 1e-5 * np.linalg.norm(expected)
    assert llm.load(tmp_path / "dynamic", max_length=10**6).config.max_length == 128


def test_older_names_of_positions_of_phi():
    """transformers takes "su" and "yarn" of Phi-3 for what is called longrope since."""
    for family, name, found in (("phi3", "su", "longrope"), ("phi3", "yarn", "longrope"),
                                ("llama", "yarn", "yarn")):  # fmt: skip
        fields = STORED[family]["config"] | {"rope_parameters": {"type": name, "factor": 2.0}}
        assert llm.Config.from_fields(fields).rope_scaling["rope_type"] == found


RULES = {
    "is no scaling .* there are": {"rope_type": "foo"},
    "needs a factor": {"rope_type": "linear"},
    "a finite number": {"rope_type": "linear", "factor": 1e300 * 1e10},
    "is a number": {"rope_type": "linear", "factor": "4"},
    "needs low_freq_factor": {"rope_type": "llama3", "factor": 8.0, "high_freq_factor": 4.0},
    "needs high_freq_factor": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0},
    "takes 8 factors": {
        "rope_type": "longrope", "factor": 4.0, "original_max_position_embeddings": 16,
        "short_factor": [1.0, 1.0, 1.0], "long_factor": [1.0] * 8,
    },
}  # fmt: skip


@pytest.mark.parametrize("message", RULES)
def test_rules_of_positions_are_checked_before_numbers_are_read(message):
    config = STORED["llama"]["config"] | {"head_dim": 16, "max_position_embeddings": 64}
    with pytest.raises(llm.ModelError, match=message):
        llm.load(random=config | {"rope_parameters": RULES[message]})
    with pytest.raises(llm.ModelError, match="rms_norm_eps is 0 or above"):
        llm.load(random=config | {"rms_norm_eps": -1.0})


def test_a_window_counts_where_the_class_has_one():
    config = STORED["mistral"]["config"] | {"sliding_window": 4}
    assert llm.load(random=config).config.windows()[0] == 4
    # A file that says nothing has that of the class, and one that says null has none.
    unsaid = {key: value for key, value in config.items() if key != "sliding_window"}
    assert llm.Config.from_fields(unsaid).windows()[0] == 4096
    assert llm.Config.from_fields(unsaid | {"sliding_window": None}).windows()[0] is None
    for name in ("LlamaForCausalLM", "GraniteForCausalLM", "Olmo2ForCausalLM"):
        assert llm.load(random=config | {"architectures": [name]}).config.windows()[0] is None


def test_experts_refuse_activations_of_dense_layers():
    fields = fields_of("qwen3_moe", dtype="float32", hidden_act="mish")
    with pytest.raises(llm.ModelError, match="experts do not take mish"):
        llm.load(random=fields)
