"""Long texts: each scaling of rotary positions beside transformers, and windows at their edges."""

import importlib.util
import json
import pathlib

import ml_dtypes
import numpy as np
import pytest
from test_llm_families import STORED, distance, language_models

import kernwright as kw
from kernwright import llm

_DATA = pathlib.Path(__file__).parents[1] / "data" / "language_models_more.py"


def _module():
    import sys

    sys.modules.setdefault("language_models", language_models)
    spec = importlib.util.spec_from_file_location("language_models_more", _DATA)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


more = _module()
RECORDED = more.stored()
ORIGINAL, PROMPT, NEW = more.ORIGINAL, more.PROMPT, more.NEW


def files(folder, kind):
    name, _ = more.SCALINGS[kind]
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(RECORDED["long"][kind]["config"]))
    arrays = {
        key: kw.asarray(language_models.weights(key, tuple(shape), name).astype(ml_dtypes.bfloat16))
        for key, shape in STORED[name]["shapes"].items()
    }
    kw.save_safetensors(folder / "model.safetensors", arrays)
    return folder


def ids(count):
    return language_models.token_ids(count).tolist()


@pytest.mark.parametrize("kind", more.SCALINGS)
@pytest.mark.parametrize("length", more.LENGTHS)
def test_logits_at_and_beyond_the_original_length(kind, length, tmp_path):
    # "dynamic" depends on how long texts may be: transformers takes the length so far.
    model = llm.load(files(tmp_path, kind), dtype="float32", max_length=max(length, ORIGINAL))
    if kind == "longrope":
        model = llm.load(tmp_path, dtype="float32")
    expected = np.array(RECORDED["long"][kind]["logits"][str(length)])
    assert distance(model.logits(ids(length)).numpy()[-1], expected) < 1e-5


@pytest.mark.parametrize("kind", [kind for kind in more.SCALINGS if kind != "dynamic"])
def test_texts_that_grow_past_the_original_length(kind, tmp_path):
    model = llm.load(files(tmp_path, kind), dtype="float32")
    made = model.generate(ids(PROMPT), max_tokens=NEW, ignore_eos=True)
    assert made.tokens == RECORDED["long"][kind]["tokens"]
    assert min(RECORDED["long"][kind]["margins"]) > 5e-3


@pytest.fixture(scope="module")
def longrope(tmp_path_factory):
    return llm.load(files(tmp_path_factory.mktemp("models") / "m", "longrope"), dtype="float32")


def test_both_factors_count(longrope):
    """Else the tests above would say nothing."""
    far = llm.load(files_without_short(longrope), dtype="float32")
    for length, differs in ((ORIGINAL, True), (ORIGINAL + 1, False)):
        ours, theirs = (each.logits(ids(length)).numpy() for each in (longrope, far))
        assert (distance(ours, theirs) > 1e-3) == differs


def files_without_short(model):
    folder = pathlib.Path(model.config.source).parent
    other = folder.parent / "other"
    if not other.exists():
        files(other, "longrope")
        config = json.loads((other / "config.json").read_text())
        config["rope_parameters"]["short_factor"] = config["rope_parameters"]["long_factor"]
        (other / "config.json").write_text(json.dumps(config))
    return other


def logprobs_alone(model, tokens, prompt):
    """The log-probability of each token behind the prompt, each of a whole text."""
    found = []
    for end in range(prompt, len(tokens)):
        logits = model.logits(tokens[:end])[-1:].astype("float32")
        found.append(float(kw.nn.log_softmax(logits)[0, tokens[end]]))
    return found


def require_as_alone(model, prompt, made):
    alone = logprobs_alone(model, prompt + made.tokens, len(prompt))
    np.testing.assert_allclose([each.logprob for each in made.logprobs], alone, atol=2e-5)


def test_a_batch_has_texts_of_both_kinds(longrope):
    prompts = [ids(3), ids(PROMPT), ids(ORIGINAL), ids(ORIGINAL + 1), ids(30)]
    options = {"max_tokens": 8, "ignore_eos": True, "logprobs": 0, "temperature": 0.7, "seed": 3}
    made = longrope.generate(prompts, **options)
    for prompt, each in zip(prompts, made, strict=True):
        require_as_alone(longrope, prompt, each)
    alone = longrope.generate(prompts[1], **options)
    assert alone.tokens == made[1].tokens


@pytest.mark.parametrize("options", [{"draft": "ngram"}, {"deterministic": True}, {"n": 2}])
def test_every_way_of_generation_switches(options, longrope):
    prompt = ids(PROMPT)
    made = longrope.generate(prompt, max_tokens=NEW, ignore_eos=True, logprobs=0, **options)
    for each in made if isinstance(made, list) else [made]:
        assert each.tokens == RECORDED["long"]["longrope"]["tokens"]
        require_as_alone(longrope, prompt, each)


def test_pages_of_short_texts_are_no_beginning_of_long_ones(longrope):
    text = ids(40)
    short = longrope.generate(text[:PROMPT], max_tokens=2, ignore_eos=True, logprobs=0)
    grown = longrope.generate(text, max_tokens=4, ignore_eos=True, logprobs=0)
    assert grown.cached_tokens == 0
    again = longrope.generate(text, max_tokens=4, ignore_eos=True, logprobs=0)
    assert again.cached_tokens == 32 and again.tokens == grown.tokens
    for prompt, made in ((text[:PROMPT], short), (text, grown), (text, again)):
        require_as_alone(longrope, prompt, made)


def test_pages_that_an_engine_keeps_when_it_grows_stay_those_of_long_texts():
    """Of a long text that was in the cache up to a length of short ones."""
    fields = {
        "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 64,
        "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
        "max_position_embeddings": 8192, "dtype": "float32", "rope_scaling": {
            "rope_type": "longrope", "short_factor": [1.0] * 16, "factor": 128.0,
            "long_factor": [8.0 + i for i in range(16)], "original_max_position_embeddings": 64,
        },
    }  # fmt: skip
    draw = np.random.default_rng(1)
    text, tail = draw.integers(0, 64, 100).tolist(), draw.integers(0, 64, 1100).tolist()
    options = {"max_tokens": 2, "logprobs": 1, "ignore_eos": True}
    wanted = llm.load(random=fields).generate(text[:52], **options).logprobs
    model = llm.load(random=fields)
    model.generate(text, max_tokens=2)
    assert model.generate(text[:64] + tail, max_tokens=2).cached_tokens == 64
    got = model.generate(text[:52], **options).logprobs
    np.testing.assert_allclose(
        [each.logprob for each in got], [each.logprob for each in wanted], atol=1e-5
    )


@pytest.mark.parametrize("length", [ORIGINAL, ORIGINAL + 4, 40])
def test_snapshots_have_the_factors_of_their_length(length, longrope):
    snapshot = longrope.snapshot(ids(length))
    fresh = llm.load(pathlib.Path(longrope.config.source).parent, dtype="float32")
    fresh.restore(snapshot)
    for prompt in (ids(length), ids(48)):
        made = fresh.generate(prompt, max_tokens=3, ignore_eos=True, logprobs=0)
        require_as_alone(fresh, prompt, made)


def test_a_context_within_the_original_length_has_short_factors(longrope):
    folder = pathlib.Path(longrope.config.source).parent
    model = llm.load(folder, dtype="float32", max_length=ORIGINAL)
    assert model.config.short_length() == 0 and longrope.config.short_length() == ORIGINAL
    made = model.generate(ids(PROMPT), max_tokens=4, ignore_eos=True)
    assert made.tokens == RECORDED["long"]["longrope"]["tokens"][:4]


WINDOW = 12


@pytest.mark.parametrize("name", ["mistral", "starcoder2"])
def test_windows_at_their_edge(name, tmp_path):
    """A window of one more or one less token changes the logits behind it, and none before."""
    folders = {}
    for window in (WINDOW - 1, WINDOW, WINDOW + 1):
        folder = tmp_path / str(window)
        folder.mkdir()
        config = STORED[name]["config"] | {"sliding_window": window}
        (folder / "config.json").write_text(json.dumps(config))
        kw.save_safetensors(folder / "model.safetensors", {
            key: kw.asarray(language_models.weights(key, tuple(shape), name))
            for key, shape in STORED[name]["shapes"].items()
        })  # fmt: skip
        folders[window] = llm.load(folder, dtype="float32")
    expected = STORED[name]["logits"]
    made = {window: model.logits(ids(40)).numpy() for window, model in folders.items()}
    assert distance(made[WINDOW], expected) < 1e-5
    for window in (WINDOW - 1, WINDOW + 1):
        edge = min(window, WINDOW)  # the first token with another window
        assert distance(made[window][:edge], expected[:edge]) < 1e-5
        assert distance(made[window][edge], expected[edge]) > 1e-4
    model = folders[WINDOW]
    for length in (WINDOW - 1, WINDOW, WINDOW + 1):
        text = model.generate(ids(length), max_tokens=3, ignore_eos=True, logprobs=0)
        require_as_alone(model, ids(length), text)
