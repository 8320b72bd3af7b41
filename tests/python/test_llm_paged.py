"""A small Llama over pages against whole sequences, and against NumPy in float64."""

import numpy as np
import pytest

import kernwright as kw
from kernwright.llm import Rotation, WholeStep
from kernwright.llm._engine import TokenEngine
from kernwright.llm._sampling import Sampling

VOCABULARY, DIM, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, LAYERS = 97, 32, 4, 2, 16, 48, 2
CAPACITY, WINDOW = 64, 11


class Block(kw.nn.Module):
    def __init__(self, layer, rope):
        self.layer, self._rope = layer, rope
        self.norm, self.mlp_norm = kw.nn.RMSNorm(DIM), kw.nn.RMSNorm(DIM)
        self.qkv = kw.nn.Linear(DIM, (HEADS + 2 * KV_HEADS) * HEAD_DIM, bias=False, seed=3 * layer)
        self.out = kw.nn.Linear(HEADS * HEAD_DIM, DIM, bias=False, seed=3 * layer + 1)
        self.up = kw.nn.Linear(DIM, HIDDEN, bias=False, seed=3 * layer + 2)
        self.down = kw.nn.Linear(HIDDEN, DIM, bias=False, seed=3 * layer + 3)
        self.q_norm = kw.asarray(np.linspace(2.0, 3.0, HEAD_DIM, dtype=np.float32))
        self.k_norm = kw.asarray(np.linspace(3.0, 1.5, HEAD_DIM, dtype=np.float32))

    def __call__(self, x, step):
        heads = self.qkv(self.norm(x)).reshape(-1, HEADS + 2 * KV_HEADS, HEAD_DIM)
        q, k = heads[:, :HEADS], heads[:, HEADS : HEADS + KV_HEADS]
        attended = step.attend(
            self.layer, q, k, heads[:, HEADS + KV_HEADS :], rope=self._rope, q_norm=self.q_norm,
            k_norm=self.k_norm, window=WINDOW if self.layer else None,
        )  # fmt: skip
        x = x + self.out(attended.reshape(-1, HEADS * HEAD_DIM))
        return x + self.down(kw.nn.silu(self.up(self.mlp_norm(x))))


class Llama(kw.nn.Module):
    def __init__(self):
        rope = Rotation(*kw.nn.rope_tables(CAPACITY, HEAD_DIM))
        self.embedding = kw.nn.Embedding(VOCABULARY, DIM, seed=20)
        self.blocks = [Block(layer, rope) for layer in range(LAYERS)]
        self.norm = kw.nn.RMSNorm(DIM)
        self.head = kw.nn.Linear(DIM, VOCABULARY, bias=False, seed=21)
        self.head.weight *= 8

    def __call__(self, step):
        x = self.embedding(step.tokens)
        for block in self.blocks:
            x = block(x, step)
        return self.head(self.norm(step.select(x)))


def normed(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight


def turned(x):
    angles = np.arange(len(x))[:, None] / 10000 ** (np.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def reference_logits(model, tokens):
    """The logits behind the last token."""
    weights = {name: value.numpy().astype(np.float64) for name, value in model.named_parameters()}
    x = weights["embedding.weight"][tokens]
    places = np.arange(len(tokens))
    for layer in range(LAYERS):
        of = {
            name.split(".", 2)[2]: w
            for name, w in weights.items()
            if name.startswith(f"blocks.{layer}.")
        }
        heads = (normed(x, of["norm.weight"]) @ of["qkv.weight"].T).reshape(
            len(x), HEADS + 2 * KV_HEADS, HEAD_DIM
        )
        q = turned(normed(heads[:, :HEADS], of["q_norm"]))
        k = turned(normed(heads[:, HEADS : HEADS + KV_HEADS], of["k_norm"]))
        k, v = (np.repeat(each, 2, axis=1) for each in (k, heads[:, HEADS + KV_HEADS :]))
        scores = np.einsum("qhe,khe->hqk", q, k) / np.sqrt(HEAD_DIM)
        distance = places[:, None] - places
        hidden = (distance < 0) | ((distance >= WINDOW) if layer else False)
        scores = np.where(hidden, -np.inf, scores)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + np.einsum("hqk,khe->qhe", p, v).reshape(len(x), -1) @ of["out.weight"].T
        up = normed(x, of["mlp_norm.weight"]) @ of["up.weight"].T
        x = x + (up / (1 + np.exp(-up))) @ of["down.weight"].T
    return normed(x[-1], weights["norm.weight"]) @ weights["head.weight"].T


def reference(model, prompt, count):
    """Greedy tokens, up to one whose margin rounding could turn over."""
    tokens = list(prompt)
    for _ in range(count):
        made = reference_logits(model, tokens)
        best = np.sort(made)[-2:]
        if best[1] - best[0] < 1e-3:
            break
        tokens.append(int(made.argmax()))
    return tokens[len(prompt) :]


PROMPTS = [
    np.random.default_rng(length).integers(0, VOCABULARY, length).tolist()
    for length in (1, 29, 7, 16, 43, 2)
]


@pytest.fixture(scope="module")
def model():
    return Llama()


def engine_of(model, **options):
    options = {"max_rows": 4, "page_size": 8, "max_tokens_per_step": 32, **options}
    return TokenEngine(
        model, vocabulary=VOCABULARY, cache_layers=[(KV_HEADS, HEAD_DIM)] * LAYERS,
        capacity=CAPACITY, dtype="float32", **options,
    )  # fmt: skip


def test_whole_sequences_are_those_of_numpy(model):
    made = model(WholeStep(PROMPTS)).numpy()
    for prompt, logits in zip(PROMPTS, made, strict=True):
        expected = reference_logits(model, prompt)
        assert np.linalg.norm(logits - expected) <= 1e-4 * np.linalg.norm(expected)


def test_greedy_tokens_over_pages_are_those_of_numpy(model):
    made = engine_of(model).run(PROMPTS, Sampling(max_tokens=10))
    lengths = []
    for prompt, (each,) in zip(PROMPTS, made, strict=True):
        expected = reference(model, prompt, 10)
        assert each.tokens[: len(expected)] == expected
        lengths.append(len(expected))
    assert sum(lengths) >= 50 and len({tuple(each.tokens) for (each,) in made}) > 3


def test_batches_chunks_and_choices_change_no_token(model):
    alone = engine_of(model, max_rows=1, max_tokens_per_step=64)
    expected = [alone.run([prompt], Sampling(max_tokens=10))[0][0].tokens for prompt in PROMPTS]
    for options in ({"max_tokens_per_step": 7}, {"max_rows": 6, "page_size": 3, "pages": 60}):
        made = engine_of(model, **options).run(PROMPTS, Sampling(max_tokens=10, choices=2))
        assert [[each.tokens for each in choices] for choices in made] == [
            [tokens] * 2 for tokens in expected
        ]


def test_deterministic_engines_give_the_same_bits_in_any_batch(model):
    engine = engine_of(model, deterministic=True, max_rows=5, max_tokens_per_step=24)
    options = Sampling(max_tokens=8, temperature=0.9, seed=5, logprobs=3)
    alone = [engine.run([prompt], options)[0][0] for prompt in PROMPTS]
    together = [each for (each,) in engine.run(PROMPTS[::-1], options)]
    assert together[::-1] == alone


class Noted:
    """Keeps the logits of each step's rows in an array of the device."""

    def __init__(self, model):
        self.model, self.kept = model, {}

    def __call__(self, step):
        logits = self.model(step)
        kept = self.kept.setdefault(step.tokens.size, kw.zeros(logits.shape))
        kept[...] = logits
        return logits


def test_logits_over_pages_are_those_of_whole_sequences(model):
    noted = Noted(model)
    engine = engine_of(noted, max_rows=1)
    prompt = PROMPTS[4]
    engine.run([prompt], Sampling(max_tokens=1))
    whole = model(WholeStep([prompt])).numpy()
    chunk = max(noted.kept)  # the prompt took two steps, and the second had 11 of its tokens
    assert 11 <= min(noted.kept) < chunk
    np.testing.assert_allclose(noted.kept[min(noted.kept)].numpy(), whole, rtol=1e-3, atol=1e-3)
