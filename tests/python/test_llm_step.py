"""llm.WholeStep: packed sequences against NumPy float64."""

import itertools

import numpy as np
import pytest

import kernwright as kw
from kernwright import llm


def attended(q, k, v, positions, starts, window, scale):
    """Causal attention of packed sequences; all operands are turned and normalised already."""
    group = q.shape[1] // k.shape[1]
    out = np.zeros(q.shape)
    for begin, end in itertools.pairwise(starts):
        for head in range(q.shape[1]):
            for i in range(begin, end):
                first = begin if window is None else max(begin, i - window + 1)
                scores = k[first : i + 1, head // group] @ q[i, head] * scale
                weights = np.exp(scores - scores.max())
                out[i, head] = weights @ v[first : i + 1, head // group] / weights.sum()
    return out


def turned(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    angles = positions[:, None] / base ** (np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    low, high = x[..., :half], x[..., half:]
    return np.concatenate([low * cos - high * sin, high * cos + low * sin], -1)


def normalised(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("norms", [False, True])
def test_attends_to_earlier_tokens_of_the_same_sequence(window, norms):
    sequences = [[5, 6, 7, 1, 2], [8], [3, 3, 3]]
    starts, count = [0, 5, 6, 9], 9
    draws = np.random.default_rng(3)
    qkv = draws.standard_normal((count, 8 * 16)).astype(np.float32)
    weights = draws.standard_normal((2, 16)).astype(np.float32)
    step = llm.WholeStep(sequences)
    assert step.tokens.numpy().tolist() == [5, 6, 7, 1, 2, 8, 3, 3, 3]
    assert step.positions.numpy().tolist() == [0, 1, 2, 3, 4, 0, 0, 1, 2]

    heads = kw.asarray(qkv).reshape((count, 8, 16))
    made = step.attend(
        0, heads[:, :4], heads[:, 4:6], heads[:, 6:], window=window,
        rope=llm.Rotation(*kw.nn.rope_tables(8, 16)), eps=1e-5,
        q_norm=kw.asarray(weights[0]) if norms else None,
        k_norm=kw.asarray(weights[1]) if norms else None,
    )  # fmt: skip

    q, k, v = np.split(qkv.astype(np.float64).reshape(count, 8, 16), [4, 6], axis=1)
    if norms:
        q, k = normalised(q, weights[0], 1e-5), normalised(k, weights[1], 1e-5)
    positions = step.positions.numpy()
    q, k = turned(q, positions), turned(k, positions)
    np.testing.assert_allclose(
        made.numpy(), attended(q, k, v, positions, starts, window, 0.25), rtol=0, atol=1e-5
    )


def test_selects_the_last_token_of_each_sequence_or_all():
    x = kw.arange(12, dtype="float32").reshape((4, 3))
    assert llm.WholeStep([[1, 2, 3], [4]]).select(x).numpy()[:, 0].tolist() == [6.0, 9.0]
    assert llm.WholeStep([[1, 2, 3], [4]], select="all").select(x).shape == (4, 3)


@pytest.mark.parametrize("sequences", [[], [[]], [[1], []]])
def test_refuses_empty_sequences(sequences):
    with pytest.raises(llm.ModelError, match="one token at least"):
        llm.WholeStep(sequences)


def test_refuses_unknown_selections():
    with pytest.raises(llm.ModelError, match='"last" or "all"'):
        llm.WholeStep([[1]], select="first")
