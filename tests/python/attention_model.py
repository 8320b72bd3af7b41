"""Attention in NumPy's float64, operands and errors of it, for the tests of attention."""

import ml_dtypes
import numpy as np

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
# Of the whole result by its norm; weights of 16 bits are rounded once more than the result.
# Weights beside float8 values are rounded to float8_e4m3fn, three bits behind the first.
NORM = {"float16": 8e-4, "bfloat16": 6e-3, "float32": 1e-6, "float8": 3.2e-2}


def normal(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(TYPES[dtype])


def weights_of(q, k, mask=None, *, scale=None, causal=False, bottom=False, left=-1, right=-1,
               soft_cap=None, sinks=None, alibi=None, lengths=None,
               query_lengths=None):  # fmt: skip
    """Weights, logarithms, and the derivative of scores by the products of q and k (of all heads).

    `bottom`: the last query stands at the last key.
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    score = np.einsum("bhid,bhjd->bhij", q, k) * scale
    slope = np.full_like(score, scale)
    if soft_cap:
        score = soft_cap * np.tanh(score / soft_cap)
        slope = slope * (1 - (score / soft_cap) ** 2)
    batches, heads, queries, keys = score.shape
    ends = np.full(batches, keys) if lengths is None else np.clip(lengths, 0, keys)
    ends = ends.reshape(-1, 1, 1, 1)
    shift = ends - queries if bottom else 0
    i, j = np.arange(queries)[:, None] + shift, np.arange(keys)
    seen = np.broadcast_to(j < ends, score.shape)
    right = 0 if causal else right
    if right >= 0:
        seen = seen & (j <= i + right)
    if left >= 0:
        seen = seen & (j >= i - left)
    if query_lengths is not None:
        seen = seen & (np.arange(queries)[:, None] < np.reshape(query_lengths, (-1, 1, 1, 1)))
    if alibi is not None:
        score = score - np.asarray(alibi).reshape(-1, heads, 1, 1) * np.abs(i - j)
    if mask is not None and mask.dtype == bool:
        seen = seen & mask
    elif mask is not None:
        score = score + np.asarray(mask).astype(np.float64)
    score = np.where(seen, score, -np.inf)
    most = score.max(-1, keepdims=True, initial=-np.inf)
    if sinks is not None:
        most = np.maximum(most, np.reshape(sinks, (-1, 1, 1)))
    base = np.where(np.isinf(most), 0, most)
    weight = np.exp(score - base)
    total = weight.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(np.reshape(sinks, (-1, 1, 1)) - base)
    with np.errstate(divide="ignore"):
        return weight / np.where(total == 0, 1, total), (base + np.log(total))[..., 0], slope


def for_all_heads(q, k, v):
    """In float64, with keys and values for each head of the queries."""
    q, k, v = (np.asarray(x).astype(np.float64) for x in (q, k, v))
    group = q.shape[1] // max(k.shape[1], 1)
    return q, np.repeat(k, group, 1), np.repeat(v, group, 1)


def reference(q, k, v, mask=None, *, keep=1.0, **options):
    """The result and the logarithms; weights are multiplied by `keep`."""
    q, k, v = for_all_heads(q, k, v)
    weight, logarithms, _ = weights_of(q, k, mask, **options)
    return np.einsum("bhij,bhjd->bhid", weight * keep, v), logarithms


def score_changes(q, k, v, grad, mask=None, *, keep=1.0, **options):
    """The gradient of each score, (batch, heads, queries, keys); its weight; the derivative of the
    score by the product. All operands have the query's heads."""
    weight, _, slope = weights_of(q, k, mask, **options)
    change = np.einsum("bhid,bhjd->bhij", grad, v) * keep
    return weight * (change - (weight * change).sum(-1, keepdims=True)), weight, slope


def gradients(q, k, v, grad, mask=None, *, keep=1.0, **options):
    """Of query, key and value."""
    kv_shape = k.shape[:2]
    q, k, v = for_all_heads(q, k, v)
    grad = np.asarray(grad).astype(np.float64)
    change, weight, slope = score_changes(q, k, v, grad, mask, keep=keep, **options)
    change, kept = change * slope, weight * keep
    of_heads = (change @ k, change.swapaxes(2, 3) @ q, kept.swapaxes(2, 3) @ grad)
    if not q.shape[1]:
        return of_heads
    group = q.shape[1] // max(kv_shape[1], 1)
    summed = [
        x.reshape(*kv_shape, group, *x.shape[2:]).sum(2) if n else x for n, x in enumerate(of_heads)
    ]
    return tuple(summed)


def assert_attention(got, wanted, dtype):
    got = np.asarray(got.numpy()).astype(np.float64)
    assert got.shape == wanted.shape
    bound = NORM[dtype]
    np.testing.assert_allclose(got, wanted, rtol=8 * bound, atol=8 * bound)
    norm = np.linalg.norm(wanted)
    assert np.linalg.norm(got - wanted) <= bound * norm


def assert_logarithms(got, wanted):
    np.testing.assert_allclose(got.numpy(), wanted, rtol=2e-5, atol=2e-5)
