"""Latent attention of DeepSeek-V2: pages hold one vector of each token for all heads."""

import numpy as np
import pytest
from adapter_files import adapter_written
from model_files import fields_of, shapes_of, written

import kernwright as kw
from kernwright import llm
from kernwright.llm._caches import CacheFormat
from kernwright.llm.models.deepseek import merged

PROMPTS = [[3, 5, 7, 9, 11, 13], [8, 1] * 17, [4]]
OPTIONS = {"max_tokens": 6, "ignore_eos": True, "logprobs": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("latent") / "m"
    return written(folder, "deepseek_v2", dtype="float32", max_position_embeddings=256)


def log_chances(model, tokens, **options):
    logits = model.logits(tokens, **options).numpy().astype(np.float64)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def assert_whole(model, tolerance=1e-4, **options):
    """The tokens over pages have the chances that they have in the whole text, which is computed
    from the keys and values of all heads."""
    for prompt, made in zip(PROMPTS, model.generate(PROMPTS, **OPTIONS, **options), strict=True):
        chances = log_chances(model, prompt + made.tokens, **options)[len(prompt) - 1 : -1]
        for row, token, found in zip(chances, made.tokens, made.logprobs, strict=True):
            assert abs(row[token] - found.logprob) < tolerance
            assert row.max() - row[token] < tolerance


def test_texts_are_those_of_whole_sequences(folder):
    model = llm.load(folder)
    assert model.cache_layers() == [(4, 40, 80)] * 2
    assert_whole(model)
    together = model.generate(PROMPTS, **OPTIONS)
    alone = [model.generate(prompt, **OPTIONS).tokens for prompt in PROMPTS]
    assert [each.tokens for each in together] == alone


@pytest.mark.parametrize(
    "options", [{"quantize": "q8_0"}, {"quantize": "int8"}, {"memory": "stream"}], ids=str
)
def test_weights_of_few_bits_and_of_the_host(folder, options):
    assert_whole(llm.load(folder, **options), 2e-2 if "quantize" in options else 1e-4)


def test_adapters_of_what_is_absorbed(folder, tmp_path):
    model = llm.load(folder)
    plain = model.generate(PROMPTS, **OPTIONS)
    shapes = shapes_of(fields_of("deepseek_v2"))
    modules = {
        name.removesuffix(".weight"): shape for name, shape in shapes.items() if "kv_b_proj" in name
    }
    for name, rank in (("a", 5), ("b", 70)):
        adapter_written(tmp_path / name, modules, rank=rank, std=0.1)
        model.load_adapter(tmp_path / name)
        assert_whole(model, adapter=name)
        made = model.generate(PROMPTS, **OPTIONS, adapter=name)
        assert [m.logprobs for m in made] != [m.logprobs for m in plain]
    assert_whole(model)


@pytest.mark.parametrize("adapter", [None, "a"])
def test_long_prompts_in_parts(folder, tmp_path, adapter):
    """New tokens of a part attend to each other by the keys and values of all heads, and to earlier
    ones by what is kept."""
    model = llm.load(folder)
    if adapter is not None:
        shapes = shapes_of(fields_of("deepseek_v2"))
        modules = {
            name.removesuffix(".weight"): shape
            for name, shape in shapes.items() if "kv_b_proj" in name
        }  # fmt: skip
        adapter_written(tmp_path / "a", modules, rank=5, std=0.1)
        model.load_adapter(tmp_path / "a")
    prompt = [int(each) for each in np.random.default_rng(2).integers(3, 60, 150)]
    with llm.Engine(model, max_rows=1, max_tokens_per_step=64) as engine:
        found = [engine.submit(p, adapter=adapter, **OPTIONS).result() for p in (prompt, [5, 6])]
    for tokens, made in zip((prompt, [5, 6]), found, strict=True):
        chances = log_chances(model, tokens + made.tokens, adapter=adapter)[len(tokens) - 1 : -1]
        for row, token, each in zip(chances, made.tokens, made.logprobs, strict=True):
            assert abs(row[token] - each.logprob) < 1e-4
            assert row.max() - row[token] < 1e-4


def test_bytes_of_a_token(folder):
    model = llm.load(folder, dtype="bfloat16")
    layers = model.cache_layers()
    assert model.cache_format.token_bytes(layers) == 2 * 80 * 2
    caches = model.cache_format.make(layers, 3, 16, 48, model.device)
    assert [(each.keys.shape, each.values) for each in caches] == [((3, 16, 1, 80), None)] * 2
    # Caches of 8 bits keep the keys and values of all heads, each head with a scale.
    for dtype, scales in (("float8_e4m3fn", 0), ("int8", 8)):
        assert CacheFormat(dtype).token_bytes(layers) == 2 * 4 * (2 * 40 + scales)
        small = llm.load(folder, dtype="bfloat16", kv_dtype=dtype)
        assert len(small.generate(PROMPTS[0], max_tokens=3, ignore_eos=True).tokens) == 3
    assert CacheFormat("float32").keeps_latent((16, 192, 256))
    assert not CacheFormat("float32").keeps_latent((16, 192, 576))


@pytest.mark.parametrize("packed", [False, True], ids=["decode", "packed"])
def test_queries_and_keys_of_576_elements(packed):
    """As DeepSeek-V2 has them; the values are a view of the keys."""
    draws = np.random.default_rng(3)
    heads, width, pages = 16, 576, 6
    lengths, news = np.array([37, 20]), np.array([21, 2] if packed else [1, 1])
    table = np.array([[4, 0, 2], [1, 5, 3]], np.int32)
    kept = kw.asarray(draws.standard_normal((pages, 16, 1, width)), "bfloat16")
    count = int(news.sum())
    q = kw.asarray(draws.standard_normal((count, heads, width)) / 8, "bfloat16")
    values = kept[..., 256:512]
    sizes = kw.asarray(lengths, "int32")
    if packed:
        starts = kw.asarray(np.cumsum([0, *news]), "int32")
        made = kw.nn.paged_attention(
            q, kept, values, kw.asarray(table), sizes, starts, scale=0.1
        )  # fmt: skip
    else:
        made = kw.nn.decode_attention(
            q[:, :, None], kept, values, sizes, page_table=kw.asarray(table), scale=0.1
        )[:, :, 0]
    rows = q.astype("float32").numpy().astype(np.float64)
    first = 0
    for pages_of, length, new in zip(table, lengths, news, strict=True):
        tokens = kept.astype("float32").numpy()[pages_of, :, 0].reshape(-1, width)[:length]
        for i in range(new):
            seen = tokens[: length - new + i + 1].astype(np.float64)
            scores = rows[first + i] @ seen.T * 0.1
            chances = np.exp(scores - scores.max(-1, keepdims=True))
            expected = chances @ seen[:, 256:512] / chances.sum(-1, keepdims=True)
            np.testing.assert_allclose(
                made[first + i].astype("float32").numpy(), expected, atol=2e-2
            )
        first += new
    if packed:  # earlier tokens alone, of sequences with 16 and none
        made, sums = kw.nn.paged_attention(
            q, kept, values, kw.asarray(table), kw.asarray([16, 0], "int32"), starts, scale=0.1,
            is_causal=False, return_lse=True,
        )  # fmt: skip
        seen = kept.astype("float32").numpy()[4, :, 0].astype(np.float64)
        scores = rows[0] @ seen.T * 0.1
        weights = np.exp(scores)
        expected = weights @ seen[:, 256:512] / weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(made[0].astype("float32").numpy(), expected, atol=2e-2)
        np.testing.assert_allclose(sums[:, 0].numpy(), np.log(np.exp(scores).sum(-1)), atol=2e-2)
        assert not made[21:].numpy().any() and np.isneginf(sums[:, 21:].numpy()).all()
        with pytest.raises(kw.errors.ArgumentError, match="is_causal is True, or False without"):
            kw.nn.paged_attention(
                q, kept, values, kw.asarray(table), sizes, starts, is_causal=False, window=3
            )
    with pytest.raises(kw.InvalidArgument, match="head_dim is at most 256"):
        kw.nn.attention(q[None], q[None], q[None])


def test_yarn_scales_scores_by_mscale_squared(tmp_path):
    rope = {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64,
        "rope_theta": 10000.0,
    }  # fmt: skip
    made = []
    for name, more in (
        ("a", {"mscale": 0.7, "mscale_all_dim": 0.7}), ("b", {"attention_factor": 1.0})
    ):  # fmt: skip
        fields = {"dtype": "float32", "max_position_embeddings": 256}
        source = written(tmp_path / name, "deepseek_v2", **fields, rope_parameters={**rope, **more})
        made.append(llm.load(source))
    for block in made[1].module.layers:
        block.attention.q_up.weight *= (0.07 * np.log(4.0) + 1) ** 2
    found, expected = (model.logits(PROMPTS[1]).numpy() for model in made)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_parts_of_the_keys_are_merged_by_their_sums():
    none = -np.inf
    new, earlier = kw.asarray([0.0, 3.0, 5.0, 1.0]), kw.asarray([0.0, 7.0, 9.0, 2.0])
    new_sums, sums = kw.asarray([none, 0.0, none, -2001.0]), kw.asarray([none, none, 0.0, -2000.0])
    found = merged(new, earlier, new_sums, sums).numpy()
    np.testing.assert_allclose(found, [0, 3, 9, 2 - 1 / (1 + np.e)], rtol=1e-6)


def test_groups_of_experts_are_those_of_one_method_alone(tmp_path):
    def logits(method, groups):
        fields = {"topk_method": method, "n_group": groups, "topk_group": 1}
        source = written(tmp_path / f"{method}{groups}", "deepseek_v2", dtype="float32", **fields)
        return llm.load(source).logits(PROMPTS[1]).numpy()

    plain = logits("greedy", 1)
    assert (logits("greedy", 2) == plain).all()
    assert (logits("group_limited_greedy", 2) != plain).any()
