"""EAGLE-3 heads as files have them: what they guess against NumPy, and texts that stay the same."""

import collections
import json
import types

import numpy as np
import pytest
from host_heads import HostBlock, steps_of
from llama_host import config_of, logits_on_the_host, weights_of
from scipy import stats
from serving import PROMPTS
from serving import TINY as TRAINED

import kernwright as kw
from kernwright import llm
from kernwright.cli import main
from kernwright.errors import StoreError
from kernwright.llm._draft_model import loaded_draft
from kernwright.llm._drafting import HeadDrafter, _columns
from kernwright.llm._sampling import Sampling
from kernwright.llm._size import EngineSize

MODEL = "tiny_llama"
HIDDEN, HEADS, KV_HEADS, SIZE, WIDTH, VOCABULARY = 128, 4, 2, 32, 96, 1024
FIELDS = {
    "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": HIDDEN,
    "intermediate_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS, "head_dim": SIZE, "vocab_size": VOCABULARY,
    "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "hidden_act": "silu", "tie_word_embeddings": False, "dtype": "float32",
}  # fmt: skip
LENGTH = 44


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + FIELDS["rms_norm_eps"]) * weight


class HostHead(HostBlock):
    """The head of one text, an entry at a time, in float64."""

    def __init__(self, weights, table, before=False):
        super().__init__(weights, "midlayer.", FIELDS)
        self.table, self.before = table, before

    def entry(self, position, token, state):
        """The next state of the entry at a place; entries behind it are forgotten."""
        normed = norm(state, self.part("hidden_norm"))
        y = np.concatenate([norm(self.table[token], self.part("input_layernorm")), normed])
        return super().entry(position, normed if self.before else state, y)

    def drafts(self, tokens, features, count):
        """So many tokens behind a text, of whose tokens but the last the features are known."""
        states = features @ self.weights["fc.weight"].T
        for position in range(len(self.keys), len(tokens) - 1):
            state = self.entry(position, tokens[position + 1], states[position])
        made, position = [], len(tokens) - 2
        for _ in range(count):
            logits = self.weights["lm_head.weight"] @ norm(state, self.weights["norm.weight"])
            best = int(np.argmax(logits))
            made.append(best + int(self.weights["d2t"][best]))
            position += 1
            if len(made) < count:
                state = self.entry(position, made[-1], state)
        self.forget(len(tokens) - 1)
        return made


def features_of(tokens, layers):
    states = []
    logits_on_the_host(weights_of(MODEL), config_of(MODEL), np.array([tokens]), states)
    return np.concatenate([states[layer][0] for layer in layers], -1)


def random_weights(seed=1, table=False):
    draw = np.random.default_rng(seed)

    def matrix(*shape):
        return (draw.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)

    made = {
        "fc.weight": matrix(HIDDEN, 3 * HIDDEN),
        "midlayer.self_attn.q_proj.weight": matrix(HEADS * SIZE, 2 * HIDDEN),
        "midlayer.self_attn.k_proj.weight": matrix(KV_HEADS * SIZE, 2 * HIDDEN),
        "midlayer.self_attn.v_proj.weight": matrix(KV_HEADS * SIZE, 2 * HIDDEN),
        "midlayer.self_attn.o_proj.weight": matrix(HIDDEN, HEADS * SIZE),
        "midlayer.mlp.gate_proj.weight": matrix(WIDTH, HIDDEN),
        "midlayer.mlp.up_proj.weight": matrix(WIDTH, HIDDEN),
        "midlayer.mlp.down_proj.weight": matrix(HIDDEN, WIDTH),
    }
    for name in ("midlayer.hidden_norm", "midlayer.input_layernorm",
                 "midlayer.post_attention_layernorm", "norm"):  # fmt: skip
        made[f"{name}.weight"] = (1 + draw.normal(size=HIDDEN) / 4).astype(np.float32)
    if table:
        made["embed_tokens.weight"] = matrix(VOCABULARY, HIDDEN)
    return made


def write(folder, weights, **changes):
    folder.mkdir(exist_ok=True)
    fields = FIELDS | {"draft_vocab_size": len(weights["lm_head.weight"])} | changes
    (folder / "config.json").write_text(json.dumps(fields))
    arrays = {name: kw.asarray(x) for name, x in weights.items()}
    kw.save_safetensors(folder / "model.safetensors", arrays)
    return folder


def fitted(weights, texts, layers, table, before=False):
    """Adds logits of the tokens in the texts that are right for most of them: least squares over
    the states of the head, far enough apart for drawn tokens."""
    tokens = sorted({token for text in texts for token in text})
    rows, wanted = [], []
    for text in texts:
        features = features_of(text, layers) @ weights["fc.weight"].T.astype(float)
        head = HostHead(weights, table, before)
        for position in range(len(text) - 2):
            state = head.entry(position, text[position + 1], features[position])
            rows.append(norm(state, weights["norm.weight"]))
            wanted.append(tokens.index(text[position + 2]))
    x, y = np.array(rows), np.eye(len(tokens))[wanted]
    solved = 20 * np.linalg.solve(x.T @ x + 0.1 * np.eye(HIDDEN), x.T @ y).T
    seen = np.zeros(VOCABULARY, bool)
    seen[tokens] = True
    return weights | {
        "lm_head.weight": np.ascontiguousarray(solved, np.float32),
        "d2t": np.array(tokens) - np.arange(len(tokens)), "t2d": seen,
    }  # fmt: skip


@pytest.fixture(scope="module")
def plain():
    return llm.load(TRAINED, dtype="float32")


@pytest.fixture(scope="module")
def texts(plain):
    """Prompts and what the model writes, tokens."""
    made = plain.generate(PROMPTS, max_tokens=LENGTH, ignore_eos=True)
    prompts = [plain.tokenizer.encode(prompt) for prompt in PROMPTS]
    return [(prompt, each.tokens) for prompt, each in zip(prompts, made, strict=True)]


@pytest.fixture(scope="module")
def table():
    return weights_of(MODEL)["model.embed_tokens.weight"]


@pytest.fixture(scope="module")
def head(texts, table, tmp_path_factory):
    """The folder of a head that is often right, and its weights."""
    whole = [prompt + tokens for prompt, tokens in texts]
    weights = fitted(random_weights(), whole, (2, 2, 1), table)
    return write(tmp_path_factory.mktemp("heads") / "fitted", weights), weights


def draft_of(path, tokens=3, always=True):
    return llm.Draft(model=path, tokens=tokens, always=always)


VARIANTS = {
    "as published": ({}, (2, 2, 1), False),
    "own layers, norm first": (
        {"eagle_aux_hidden_state_layer_ids": [0, 3, 4], "norm_before_residual": True},
        (0, 3, 4), False,
    ),
    "own table": ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 2]}},
                  (1, 2, 3), True),
}  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_head_guesses_what_it_guesses_in_numpy(variant, plain, texts, table, tmp_path):
    changes, layers, own_table = VARIANTS[variant]
    weights = random_weights(2, own_table)
    table = weights.get("embed_tokens.weight", table)
    before = "norm_before_residual" in changes
    whole = [prompt + tokens for prompt, tokens in texts[:2]]
    weights = fitted(weights, whole, layers, table, before)
    path = write(tmp_path / "head", weights, **changes)
    draft = loaded_draft(draft_of(path), plain)
    engine = EngineSize(2, 128, 16).engine(plain, draft=draft)
    streams = [engine.stream(prompt, Sampling(LENGTH)) for prompt, _ in texts[:2]]
    found = 0
    for (prompt, wanted), stream in zip(texts[:2], streams, strict=True):
        pieces = list(stream)
        assert [piece.token for piece in pieces] == wanted
        host = HostHead(
            {name: np.asarray(x, float) for name, x in weights.items()}, table, before
        )  # fmt: skip
        features = features_of(prompt + wanted, layers)
        for begin, accepted in steps_of(pieces, 3):
            drafts = host.drafts((prompt + wanted)[: len(prompt) + begin], features, 3)
            right = [a == b for a, b in zip(drafts, wanted[begin:], strict=False)]
            assert accepted == [*right, False].index(False), (begin, drafts)
            found += accepted
    assert found > 10


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("values", [{}, {"temperature": 0.8, "top_p": 0.95, "seed": 3}])
def test_texts_are_those_without_drafts(batch, values, plain, head):
    prompts = (PROMPTS * 2)[:batch]
    options = {"max_tokens": 30, "ignore_eos": True, "logprobs": 2, **values}
    wanted = plain.generate(prompts, **options)
    made = plain.generate(prompts, draft=draft_of(head[0]), **options)
    assert [each.tokens for each in made] == [each.tokens for each in wanted]
    assert sum(each.accepted for each in made) > 0


def chances_of(prompt, heat, least, begin=(), chance=1.0):
    """The chances of texts of three tokens, by NumPy in float64: those below `least` are counted
    together, with None in place of the token."""
    if len(begin) == 3:
        return {begin: chance}
    tokens = np.array([[*prompt, *begin]])
    logits = logits_on_the_host(weights_of(MODEL), config_of(MODEL), tokens)[0, -1] / heat
    row = chance * np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    made = {(*begin, None): row[row < least].sum()}
    for token in np.flatnonzero(row >= least):
        made |= chances_of(prompt, heat, least, (*begin, int(token)), row[token])
    return made


def test_drawn_texts_have_the_chances_of_the_model(plain, head, texts):
    prompt, count, heat = texts[0][0], 320, 0.8
    chances = chances_of(prompt, heat, 8 / count)
    options = {"max_tokens": 5, "ignore_eos": True, "temperature": heat, "n": 40}
    draft = draft_of(head[0], tokens=2)
    made = [text for seed in range(8)
            for text in plain.generate(prompt, seed=seed, draft=draft, **options)]  # fmt: skip
    assert sum(text.accepted for text in made) > count / 10
    begins = {text[:i] for text in chances for i in range(4) if None not in text[:i]}
    found = collections.Counter()
    for text in made:
        kept = next(i for i in (3, 2, 1, 0) if tuple(text.tokens[:i]) in begins)
        found[(*text.tokens[:kept], None)[:3]] += 1
    assert set(found) <= set(chances) and len(found) > 6
    wanted = np.array([chance * count for chance in chances.values()])
    seen, rare = np.array([found[text] for text in chances]), wanted < 5
    pooled = [[*each[~rare], each[rare].sum()] for each in (seen, wanted)]
    assert stats.chisquare(*pooled).pvalue > 1e-3


def test_forms_penalties_and_ends_are_those_without_drafts(plain, head):
    for options in (
        {"choices": ["import os", "import sys"]}, {"repetition_penalty": 1.3, "n": 2, "seed": 1},
        {"stop": ["e"]}, {"min_tokens": 7}, {"max_tokens": 2}, {"logit_bias": {5: 3.0}},
    ):  # fmt: skip
        options = {"max_tokens": 24, **options}
        made = [plain.generate(PROMPTS[0], draft=draft, **options)
                for draft in (draft_of(head[0]), "none")]  # fmt: skip
        made = [each if isinstance(each, list) else [each] for each in made]
        assert [one.tokens for one in made[0]] == [one.tokens for one in made[1]]


def test_few_pages_shared_beginnings_and_prompts_in_parts(plain, head, texts):
    long = [token for prompt, tokens in texts for token in prompt + tokens]
    prompts = [long, long[:70] + [3], long[:70] + [4], texts[2][0], [7]] * 2
    wanted = plain.generate(prompts, max_tokens=40, ignore_eos=True, draft="none")
    engine = llm.Engine(
        plain, max_rows=4, max_tokens_per_step=40, kv_memory=24 * 16 * _token_bytes(plain, head),
        draft=draft_of(head[0]), host_cache=1 << 20,
    )  # fmt: skip
    with engine:
        for _ in range(2):
            made = [engine.submit(each, max_tokens=40, ignore_eos=True) for each in prompts]
            assert [each.result().tokens for each in made] == [each.tokens for each in wanted]
        stats = engine.stats()
    assert stats["preemptions"] > 0 and stats["shared_tokens"] > 0
    assert stats["accepted_tokens"] > 20
    assert stats["used_pages"] == 0


def _token_bytes(model, head):
    states = 3 * HIDDEN * 4
    return 4 * 2 * 2 * 32 * 4 + 2 * KV_HEADS * SIZE * 4 + states


def test_guesses_that_do_not_pay_are_left_out(plain, texts, table, tmp_path, sim):
    """A head of random numbers is never right; a step with it takes longer."""
    weights = random_weights(5)
    weights |= {"lm_head.weight": weights["fc.weight"][:9, :HIDDEN], "d2t": np.zeros(9, np.int64)}
    path = write(tmp_path / "wrong", weights)
    for _ in range(3):  # times are measured: other work in the wrong moment makes a step seem cheap
        with llm.Engine(
            plain, max_rows=1, kv_memory=1 << 24, draft=draft_of(path, 3, False)
        ) as engine:
            engine.submit(texts[0][0], max_tokens=120, ignore_eos=True).result()
            stats = engine.stats()
        if stats["drafts"] < 60:
            break
    assert 3 <= stats["drafts"] < 60 and stats["steps"] > 100


def test_a_head_counts_its_memory_and_belongs_to_the_model_that_is_loaded_with_it(head):
    model = llm.load(TRAINED, draft=str(head[0]))
    assert model.draft.kind == "model" and model.draft.tokens == 4
    page = 16 * (4 * 2 * 2 * 32 * 2 + (2 * KV_HEADS * SIZE + 3 * HIDDEN) * 2)
    with llm.Engine(model, max_rows=2, kv_memory=9 * page + 1) as engine:
        assert engine.stats()["free_pages"] == 9
        wanted = model.generate(PROMPTS[0], max_tokens=20, draft="none").tokens
        assert engine.submit(PROMPTS[0], max_tokens=20).result().tokens == wanted


def test_commands_take_a_head(head, capsys):
    assert main(["generate", TRAINED, PROMPTS[0], "--max-tokens", "5", "--draft",
                 str(head[0])]) == 0  # fmt: skip
    assert main(["serve", TRAINED, "--check", "--draft", str(head[0])]) == 0
    assert "Eagle3" in capsys.readouterr().out


def test_a_head_that_does_not_fit_is_refused_with_what_differs(head, plain, tmp_path):
    _, weights = head
    changed = {
        "vocabulary of 99": (weights, {"vocab_size": 99}),
        "states of 64 numbers": (weights, {"target_hidden_size": 64}),
        "one layer, not 2": (weights, {"num_hidden_layers": 2}),
        "no d2t": ({k: x for k, x in weights.items() if k != "d2t"}, {}),
        "different tokens": (weights | {"d2t": weights["d2t"] * 0 + 2000}, {}),
        "numbers for": (weights | {"d2t": weights["d2t"][1:]}, {}),
        "fc.weight": ({k: x for k, x in weights.items() if k != "fc.weight"}, {}),
        "extra.weight": (weights | {"extra.weight": weights["norm.weight"]}, {}),
        "three of 4 layers": (weights, {"eagle_aux_hidden_state_layer_ids": [1, 2, 9]}),
    }
    for number, (message, (tensors, fields)) in enumerate(changed.items()):
        path = write(tmp_path / str(number), tensors, **fields)
        wanted = "mixer.weight" if message == "fc.weight" else message
        with pytest.raises(llm.ModelError, match=wanted):
            plain.generate([1], max_tokens=2, draft=draft_of(path))
    damaged = write(tmp_path / "damaged", weights)
    (damaged / "model.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises((llm.ModelError, StoreError)):
        plain.generate([1], max_tokens=2, draft=draft_of(damaged))
    assert len(plain.generate([1], max_tokens=2).tokens) == 2


def test_a_model_that_does_not_tell_its_states_says_so():
    step = type("Step", (), {"states": {}})()
    drafter = object.__new__(HeadDrafter)
    drafter.watched = (1, 2)
    drafter._head = type("Head", (), {"config": llm.Config.from_fields(FIELDS)})()
    with pytest.raises(llm.ModelError, match=r"step.observe\(1, x\)"):
        drafter.keep(step, None)


def test_tokens_without_a_logit_have_the_place_behind_all():
    tokens = kw.asarray(np.array([2, 5], np.int32))
    head = types.SimpleNamespace(
        tokens=tokens, config=types.SimpleNamespace(vocab_size=8), device=tokens.device
    )
    assert _columns(head, 7).numpy().tolist() == [2, 2, 0, 2, 2, 1, 2]
    assert _columns(head, 8).numpy().tolist() == [2, 2, 0, 2, 2, 1, 2, 2]
    head.tokens = None
    assert _columns(head, 8) is None
