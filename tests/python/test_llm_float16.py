"""float16: sums of layers that pass its largest number are float32, or the model says so."""

import json

import numpy as np
import pytest
from test_llm_families import STORED, distance, language_models

import kernwright as kw
from kernwright import llm
from kernwright.llm.models._layers import Wide

IDS = language_models.token_ids(12)


def files(folder, name, large):
    """A recorded model in which tensors whose names end so have another mean."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(STORED[name]["config"]))
    arrays = {}
    for key, shape in STORED[name]["shapes"].items():
        numbers = language_models.weights(key, tuple(shape), name)
        for ending, value in large.items():
            if key.endswith(ending):
                numbers = numbers + np.float32(value)
        arrays[key] = kw.asarray(numbers)
    kw.save_safetensors(folder / "model.safetensors", arrays)
    return folder


# What comes out of each layer is below 65504; their sums are above.
SANDWICH = {
    "post_attention_layernorm.weight": 14000.0, "post_feedforward_layernorm.weight": 14000.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "large"),
    [("gemma2", SANDWICH), ("gemma3", SANDWICH), ("gpt_oss", {"o_proj.bias": 40000.0})],
)
def test_sums_of_layers_beyond_float16(name, large, tmp_path):
    folder = files(tmp_path / "m", name, large)
    model = llm.load(folder, dtype="float16")
    sums = []
    layer = type(model.module.layers[0])
    called = layer.__call__

    def watched(self, x, step):
        made = called(self, x, step)
        sums.append(float(kw.abs(made).max()))
        return made

    layer.__call__ = watched
    try:
        made = model.logits(IDS).numpy()
    finally:
        layer.__call__ = called
    assert max(sums) > 65504  # else the test would say nothing
    expected = llm.load(folder, dtype="float32").logits(IDS).numpy()
    assert np.isfinite(made).all() and distance(made, expected) < 2e-2
    text = model.generate(IDS.tolist(), max_tokens=3, ignore_eos=True)
    assert len(text.tokens) == 3
    assert np.isfinite(model.embed(IDS.tolist()).numpy()).all()


@pytest.mark.parametrize("name", ["gemma3", "gpt_oss"])
def test_usual_float16_models_are_near_float32(name, tmp_path):
    folder = files(tmp_path / "m", name, {})
    made = llm.load(folder, dtype="float16").logits(language_models.token_ids()).numpy()
    assert distance(made, STORED[name]["logits"]) < 5e-3
    streamed = llm.load(folder, dtype="float16", memory="stream")
    np.testing.assert_array_equal(streamed.logits(language_models.token_ids()).numpy(), made)


def test_other_families_are_refused_with_what_to_do(tmp_path):
    folder = files(tmp_path / "m", "llama_biases", {"o_proj.bias": 40000.0})
    model = llm.load(folder, dtype="float16")
    calls = [
        lambda: model.logits(IDS), lambda: model.embed(IDS.tolist()),
        lambda: model.perplexity(IDS.tolist()), lambda: model.generate(IDS.tolist(), max_tokens=2),
        lambda: list(model.stream(IDS.tolist(), max_tokens=2)),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(llm.ModelError, match=r'not finite.*float16.*dtype="bfloat16"'):
            call()
    wide = llm.load(folder, dtype="bfloat16")
    assert np.isfinite(wide.logits(IDS).numpy()).all()


def test_only_float16_is_widened(tmp_path):
    folder = files(tmp_path / "m", "gemma2", {})
    for dtype, narrow in (("float16", "float16"), ("bfloat16", None), ("float32", None)):
        found = llm.load(folder, dtype=dtype).module.named_modules()
        assert {each._narrow for _, each in found if isinstance(each, Wide)} == {narrow}
