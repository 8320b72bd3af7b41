"""Rows that have the same bits in steps of any size: plans that count on more rows than there are.

On Hopper deterministic steps have the rows that they need. The other devices keep one size.
"""

import numpy as np
import pytest
from hopper import hopper_alone, run_at_9_0, simulated_elsewhere
from test_llm_families import written

import kernwright as kw
from kernwright import llm
from kernwright._core import _with_planned_rows as with_planned_rows
from kernwright.errors import InvalidArgument
from kernwright.llm._alike import PLANNED_ROWS
from kernwright.llm._size import EngineSize

ROWS = (1, 2, 3, 8, 9, 16, 17, 32)
RNG = np.random.default_rng(7)
FIELDS = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 80, "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 96, "dtype": "bfloat16",
}  # fmt: skip


def numbers(*shape, dtype="bfloat16"):
    return kw.asarray(RNG.standard_normal(shape, dtype=np.float32)).astype(dtype)


def same_for_any_rows(function, x, most=PLANNED_ROWS):
    """The rows of a batch of `most`, as each smaller batch that begins alike has them."""
    counts = sorted({min(m, most) for m in ROWS})
    planned = {m: with_planned_rows(most, lambda m=m: function(x[:m])) for m in counts}
    whole = planned[most].astype("float32").numpy()
    assert np.isfinite(whole).all()
    for m, made in planned.items():
        np.testing.assert_array_equal(made.astype("float32").numpy(), whole[:m])
    return whole


@hopper_alone
@pytest.mark.parametrize(
    ("n", "k", "turned"), [(64, 64, True), (192, 1024, False), (1000, 520, True), (4240, 64, False)]
)
def test_products(n, k, turned):
    weight = numbers(k, n).T if turned else numbers(n, k)
    bias = numbers(n)
    x, residual = numbers(32, k), numbers(32, n)

    def product(rows):
        return kw.nn.linear(rows, weight, bias, residual=residual[: rows.shape[0]])

    for most in (2, 5):
        same_for_any_rows(product, x, most)
    made = same_for_any_rows(product, x)
    wide = [each.astype("float32").numpy().astype(np.float64) for each in (x, weight, bias)]
    expected = wide[0] @ wide[1].T + wide[2] + residual.astype("float32").numpy()
    assert np.linalg.norm(made - expected) < 1e-2 * np.linalg.norm(expected)


@hopper_alone
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("n", [64, 4096, 20000])
def test_rows_of_norms_and_of_softmax(n, dtype):
    x, weight = numbers(32, n, dtype=dtype), numbers(n, dtype=dtype)
    same_for_any_rows(lambda rows: kw.nn.rms_norm(rows, weight), x)
    same_for_any_rows(lambda rows: kw.nn.log_softmax(rows), x)
    tokens = same_for_any_rows(
        lambda rows: kw.nn.sample(rows, temperature=1.5, top_p=0.9, seed=3, step=2), x
    )
    assert len(set(tokens.tolist())) > 16


@hopper_alone
@pytest.mark.parametrize("heads", [(4, 2), (32, 8)])
def test_attention_over_pages(heads):
    queries, (heads, kv_heads) = numbers(32, heads[0], 1, 64), heads
    keys, values = (numbers(160, 16, kv_heads, 64) for _ in range(2))
    table = kw.asarray(np.arange(32 * 24, dtype=np.int32).reshape(32, 24) % 160)
    lengths = kw.asarray((384 - np.arange(32) * 7 % 200).astype(np.int32))

    def attend(rows):
        count = rows.shape[0]
        return kw.nn.decode_attention(rows, keys, values, lengths[:count], page_table=table[:count])

    same_for_any_rows(attend, queries)


@hopper_alone
@pytest.mark.parametrize("name", ["gemma3", "gpt2", "wide"])
def test_texts_alone_and_in_batches(name, tmp_path):
    if name == "wide":
        model = llm.load(random=FIELDS | {"hidden_size": 512, "intermediate_size": 1024})
    else:
        model = llm.load(written(tmp_path, name), dtype="bfloat16")
    prompts = [[3 + i, 5, 7 + i][: 1 + i % 3] for i in range(32)]
    options = {
        "max_tokens": 3, "temperature": 0.8, "seed": 4, "logprobs": 2, "deterministic": True,
        "ignore_eos": True,
    }  # fmt: skip
    together = model.generate(prompts, **options)
    assert model._generator._engine.any_rows
    for count in (1, 2, 3, 8):
        made = model.generate(prompts[:count], **options)
        for each, other in zip(made, together, strict=False):
            assert (each.tokens, each.logprobs) == (other.tokens, other.logprobs)


@hopper_alone
def test_models_that_plan_by_the_rows_keep_one_size():
    def any_rows(rows=32, quantize=None, **changes):
        model = llm.load(random=FIELDS | changes, quantize=quantize)
        size = EngineSize(rows, capacity=64, pages=64)
        return size.engine(model, deterministic=True).any_rows

    assert any_rows()
    assert not any_rows(rows=33)
    assert not any_rows(dtype="float32")
    assert not any_rows(quantize="q8_0")
    assert not any_rows(hidden_size=60, num_attention_heads=3, num_key_value_heads=3)
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
    assert not any_rows(architectures=["MixtralForCausalLM"], **experts)


def test_plans_count_on_some_rows_at_most():
    for most in (0, 33):
        with pytest.raises(InvalidArgument, match="plans count on 1 to 32 rows, not"):
            with_planned_rows(most, lambda: None)


@simulated_elsewhere
def test_at_9_0():
    run_at_9_0(__file__)
