"""Gradients of what attention adds to scores, a mask of numbers and the slopes of ALiBi, against
the formula in float64 and finite differences."""

import numpy as np
import pytest
from attention_model import TYPES, for_all_heads, normal, reference, score_changes

import kernwright as kw

BOUND = {"float32": 2e-5, "float16": 2e-2, "bfloat16": 1.2e-1}


def operands(batch, heads, kv_heads, queries, keys, dim, dtype="float32", value_dim=None):
    shapes = [(heads, queries, dim), (kv_heads, keys, dim), (kv_heads, keys, value_dim or dim),
              (heads, queries, value_dim or dim)]  # fmt: skip
    return [normal(batch, *shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]


def summed_to(shape, sums):
    """Of the axes of `sums` those that `shape` has no extent of are summed."""
    extents = (1,) * (4 - len(shape)) + tuple(shape)
    axes = tuple(n for n in range(4) if extents[n] == 1)
    return sums.sum(axes, keepdims=True).reshape(shape)


def wanted(host, mask=None, alibi=None, keep=1.0, **options):
    """Of the mask and of the slopes, in float64."""
    q, k, v = for_all_heads(*host[:3])
    dy = host[3].astype(np.float64)
    changes, _, _ = score_changes(q, k, v, dy, mask, alibi=alibi, keep=keep, **options)
    i, j = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])
    of_mask = None if mask is None else summed_to(mask.shape, changes)
    of_slopes = (changes * -np.abs(i - j)).sum((2, 3))
    if alibi is not None and alibi.ndim == 1:
        of_slopes = of_slopes.sum(0)
    return of_mask, of_slopes


def found(host, mask=None, alibi=None, wrt=None, **options):
    """Of the mask and of the slopes, whichever is there; or of the operands named by `wrt`."""
    dy = kw.asarray(host[3].astype(np.float32))
    given = {key: kw.asarray(x) if isinstance(x, np.ndarray) else x for key, x in options.items()}
    arrays = [None if x is None else kw.asarray(x) for x in (*host[:3], mask, alibi)]

    def loss(q, k, v, mask, alibi):
        y = kw.nn.attention(q, k, v, mask, alibi=alibi, enable_gqa=True, **given)
        return (y.astype("float32") * dy).sum()

    if wrt is None:
        wrt = tuple(n for n in (3, 4) if arrays[n] is not None)
    return kw.grad(loss, wrt=wrt)(*arrays)


def assert_close(got, exact, dtype):
    got, exact = np.asarray(got.numpy()).astype(np.float64), np.asarray(exact)
    assert got.shape == exact.shape
    bound = BOUND[dtype]
    assert np.linalg.norm(got - exact) <= bound * max(np.linalg.norm(exact), 1)
    scale = np.abs(exact).max(initial=1)
    np.testing.assert_allclose(got, exact, rtol=4 * bound, atol=2 * bound * scale)


def check(host, dtype, mask=None, alibi=None, model=None, **options):
    model = options if model is None else model
    got = found(host, mask, alibi, **options)
    exact = [x for x, of in zip(wanted(host, mask, alibi, **model), (mask, alibi), strict=True)
             if of is not None]  # fmt: skip
    for one, other, of in zip(got, exact, [x for x in (mask, alibi) if x is not None], strict=True):
        assert str(one.dtype) == str(of.dtype)
        assert_close(one, other, dtype)


def test_the_formula_against_finite_differences():
    q, k, v, dy = (x.astype(np.float64) for x in operands(1, 2, 1, 3, 4, 5))
    mask, alibi = normal(2, 3, 4, seed=7).astype(np.float64), np.array([0.3, 0.1])
    options = {"soft_cap": 2.0, "sinks": [0.2, -0.4], "left": 2, "right": 1}
    made = wanted([q, k, v, dy], mask, alibi, **options)
    for which, exact in enumerate(made):
        for at in np.ndindex(exact.shape):
            both = []
            for step in (1e-6, -1e-6):
                moved = [mask.copy(), alibi.copy()]
                moved[which][at] += step
                y, _ = reference(q, k, v, moved[0], alibi=moved[1], **options)
                both.append((y * dy).sum())
            assert abs((both[0] - both[1]) / 2e-6 - exact[at]) < 1e-7


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "shape", [(2, 4, 9, 11), (2, 1, 9, 11), (4, 9, 11), (9, 11), (4, 1, 11), (2, 1, 9, 1), (1,)]
)
def test_a_mask_of_each_shape_that_broadcasts(dtype, shape):
    host, sinks = operands(2, 4, 2, 9, 11, 16, dtype), normal(4, seed=9)
    for kind in {"float32", dtype}:  # without sinks a number for all keys has a gradient of 0
        check(host, dtype, normal(*shape, dtype=kind, seed=8), sinks=sinks)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("queries", "keys", "dim", "value_dim"),
                         [(5, 270, 24, 40), (65, 64, 7, 9)])  # fmt: skip
def test_tiles_and_heads_of_odd_sizes(dtype, queries, keys, dim, value_dim):
    host = operands(1, 2, 1, queries, keys, dim, dtype, value_dim)
    alibi = np.array([0.02, 0.3], np.float32)
    check(host, dtype, normal(2, queries, keys, seed=8), alibi)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    "options",
    [
        {"soft_cap": 2.0, "scale": 0.3, "sinks": np.array([0.5, 3.0, -1.0, -200.0], np.float32)},
        {"window": (5, 3), "lengths": np.array([11, 0], np.int32)},
        {"query_lengths": np.array([9, 4], np.int32), "lengths": np.array([3, 11], np.int32)},
    ],
)
def test_together_with_what_else_scores_depend_on(dtype, options):
    host = operands(2, 4, 2, 9, 11, 16, dtype)
    mask = normal(4, 9, 11, seed=8)
    mask[:, 2] = -np.inf  # a row that sees nothing
    mask[0, 4:, 3] = -np.inf
    alibi = np.abs(normal(2, 4, seed=9))
    model = dict(options)
    if "window" in model:
        model["left"], model["right"] = model.pop("window")
    check(host, dtype, mask, alibi, model, **options)
    check(host, dtype, mask, None, model, **options)
    check(host, dtype, None, alibi, model, **options)


def test_slopes_of_causal_attention():
    host = operands(2, 4, 4, 70, 70, 32)
    alibi = np.array([0.5, 0.1, 0.0, -0.2], np.float32)
    check(host, "float32", None, alibi, {"causal": True}, is_causal=True)


def test_masks_far_from_zero():
    host = operands(1, 2, 1, 9, 11, 16)
    mask = normal(9, 11, seed=8)
    mask[3] += 3e4  # float32 has two bits behind the point there
    mask[3] = np.round(mask[3])
    mask[5] = np.finfo(np.float32).min
    got, exact = found(host, mask)[0].numpy(), wanted(host, mask)[0]
    np.testing.assert_allclose(got, exact, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_dropout(dtype):
    host = operands(2, 2, 1, 9, 16, 16, dtype)
    options = {"dropout_p": 0.4, "seed": 3}
    identity = kw.broadcast_to(kw.eye(16, dtype=dtype), (2, 1, 16, 16))
    q, k = (kw.asarray(x) for x in host[:2])
    keep = (kw.nn.attention(q, k, identity, enable_gqa=True, **options).numpy() != 0) / 0.6
    alibi, mask = np.array([0.1, 0.2], np.float32), normal(9, 16, seed=8)
    for given in ((mask, alibi), (mask, None), (None, alibi)):
        check(host, dtype, *given, {"keep": keep}, **options)


def test_packed_sequences():
    q, k, v, dy = (normal(12, 2, 16, seed=i) for i in range(4))
    at = np.array([0, 5, 12], np.int32)
    options = {"is_causal": True, "cu_seqlens_q": at, "cu_seqlens_k": at}
    each = np.array([[0.1, 0.2], [0.3, 0.05]], np.float32)
    exact = [
        wanted([x[a:b].swapaxes(0, 1)[None] for x in (q, k, v, dy)], None, slopes, causal=True)[1]
        for a, b, slopes in ((0, 5, each[0]), (5, 12, each[1]))
    ]
    assert_close(found((q, k, v, dy), None, each, **options)[0], exact, "float32")
    slopes = each[0]
    exact = [
        wanted([x[a:b].swapaxes(0, 1)[None] for x in (q, k, v, dy)], None, slopes, causal=True)[1]
        for a, b in ((0, 5), (5, 12))
    ]
    assert_close(found((q, k, v, dy), None, slopes, **options)[0], sum(exact), "float32")


def test_views():
    host = operands(2, 2, 2, 9, 11, 16)
    mask = normal(11, 9, seed=8)
    device = [kw.asarray(x) for x in host]
    turned = kw.asarray(mask).mT

    def loss(mask, q=device[0]):
        return (kw.nn.attention(q, device[1], device[2], mask) * device[3]).sum()

    assert_close(kw.grad(loss)(turned), wanted(host, mask.T)[0], "float32")
    whole = kw.broadcast_to(turned, (2, 2, 9, 11))
    assert_close(kw.grad(loss)(whole), wanted(host, np.broadcast_to(mask.T, whole.shape))[0],
                 "float32")  # fmt: skip
    heads = kw.swapaxes(kw.asarray(host[0].swapaxes(1, 2).copy()), 1, 2)
    plain = kw.grad(loss)(turned).numpy()
    assert (kw.grad(lambda m: loss(m, heads))(turned).numpy() == plain).all()
    shifted = kw.zeros(host[0].size + 1, "float32")  # heads that are no multiples of 16 bytes apart
    shifted[1:] = device[0].reshape(-1)
    moved = shifted[1:].reshape(host[0].shape)
    assert_close(kw.grad(lambda m: loss(m, moved))(turned), wanted(host, mask.T)[0], "float32")


def test_operands_have_the_same_gradients_beside_it():
    host, mask = operands(2, 4, 2, 9, 11, 16), normal(4, 9, 11, seed=8)
    alibi = np.array([0.5, 0.1, 0.0, -0.2], np.float32)
    whole = found(host, mask, alibi, wrt=(0, 1, 2, 3, 4))
    for each, other in zip(found(host, mask, alibi, wrt=(0, 1, 2)), whole, strict=False):
        assert (each.numpy() == other.numpy()).all()
    for each, other in zip(found(host, mask, alibi), whole[3:], strict=True):
        assert (each.numpy() == other.numpy()).all()
    assert (found(host, mask, alibi, wrt=4).numpy() == whole[4].numpy()).all()


@pytest.mark.parametrize(("batch", "queries", "keys"), [(0, 9, 11), (2, 0, 11), (2, 9, 0)])
def test_nothing_to_attend_to(batch, queries, keys):
    host = operands(batch, 2, 2, queries, keys, 16)
    mask, alibi = np.zeros((queries, keys), np.float32), np.ones(2, np.float32)
    of_mask, of_slopes = found(host, mask, alibi)
    assert of_mask.shape == (queries, keys) and (of_mask.numpy() == 0).all()
    assert (of_slopes.numpy() == 0).all()


def test_heads_that_come_from_one_product():
    """split_qkv() reads them where they lie; a bias of positions is learned beside them."""
    x, bias = kw.asarray(normal(2, 5, 3 * 2 * 8)), kw.asarray(normal(2, 5, 5, seed=1))
    dy = kw.asarray(normal(2, 2, 5, 8, seed=2))

    def loss(x, bias):
        q, k, v = kw.nn.split_qkv(x, 2, heads_first=True)
        return (kw.nn.attention(q, k, v, bias) * dy).sum()

    of_x, of_bias = kw.grad(loss, wrt=(0, 1))(x, bias)
    q, k, v = (np.asarray(each.numpy()) for each in kw.nn.split_qkv(x, 2, heads_first=True))
    assert_close(of_bias, wanted([q, k, v, dy.numpy()], bias.numpy())[0], "float32")
    alone = kw.grad(lambda x: loss(x, bias))(x)
    assert (alone.numpy() == of_x.numpy()).all()


def test_a_module_learns_its_bias_in_captured_steps():
    class Biased(kw.nn.Module):
        def __init__(self):
            self.attention = kw.nn.MultiHeadAttention(16, 2, seed=1)
            self.bias = kw.zeros((2, 5, 5), "float32")

        def __call__(self, x):
            return self.attention(x, self.bias)

    x, aim = kw.asarray(normal(2, 5, 16)), kw.asarray(normal(2, 5, 16, seed=1))

    def run(wrap):
        model = Biased()
        optimizer = kw.optim.AdamW(model, lr=1e-2)

        def step(x):
            loss, grads = kw.value_and_grad(lambda m: ((m(x) - aim) ** 2).mean())(model)
            optimizer.step(grads)
            return loss

        step = wrap(step)
        losses = [float(step(x)) for _ in range(6)]
        return losses, model.bias.numpy()

    losses, bias = run(lambda step: step)
    assert losses == sorted(losses, reverse=True) and np.abs(bias).max() > 1e-3
    captured, other = run(kw.captured)
    assert captured == losses and (other == bias).all()


def test_second_derivatives():
    """By the mask and slopes alone; those by the operands are kernels."""
    q, k, v, w = (kw.asarray(x) for x in operands(1, 2, 2, 2, 3, 4))
    mask, slopes = normal(2, 3).astype(np.float64), np.array([0.2, 0.1])

    def once(mask, slopes):
        terms = (mask.astype("float32"), slopes.astype("float32"))
        attended = lambda m, s: (kw.nn.attention(q, k, v, m, alibi=s) * w).sum()  # noqa: E731
        of_mask, of_slopes = kw.grad(attended, wrt=(0, 1))(*terms)
        return kw.concat([of_mask[1, :2], of_slopes]).astype("float64")

    kw.gradcheck(once, kw.asarray(mask), kw.asarray(slopes), eps=1e-2, rtol=1e-2, atol=2e-3)
    with pytest.raises(kw.ArgumentError, match=r"gradient of attention\(\) has no gradient"):
        kw.grad(lambda q: kw.grad(lambda q: kw.nn.attention(q, k, v).sum())(q).sum())(q)


def test_decoding_says_that_it_has_none():
    q, slopes = kw.asarray(normal(1, 2, 3, 8)), kw.ones(2, "float32")
    with pytest.raises(kw.ArgumentError, match=r"decode_attention.* no gradient of its alibi"):
        kw.grad(lambda s: kw.nn.decode_attention(q, q, q, alibi=s).sum())(slopes)


def test_gradcheck():
    q, k, v = (kw.asarray(normal(1, 2, n, 4, seed=n)) for n in (3, 5, 5))
    mask, slopes = normal(2, 3, 5).astype(np.float64), np.array([0.2, 0.1])

    def attended(mask, slopes):
        mask, slopes = mask.astype("float32"), slopes.astype("float32")
        y = kw.nn.attention(q, k, v, mask, alibi=slopes, soft_cap=3.0)
        return y[:, :, 1].astype("float64")

    kw.gradcheck(attended, kw.asarray(mask), kw.asarray(slopes), eps=1e-2, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("dtype", sorted(TYPES))
def test_two_runs_have_the_same_bits(dtype):
    host = operands(2, 4, 2, 9, 70, 16, dtype)
    mask, alibi = normal(70, seed=8), np.array([0.5, 0.1, 0.0, -0.2], np.float32)
    for one, other in zip(found(host, mask, alibi), found(host, mask, alibi), strict=True):
        assert (one.numpy() == other.numpy()).all()
