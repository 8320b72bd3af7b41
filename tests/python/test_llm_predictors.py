"""Layers of multi-token prediction beside a model in its files: what they guess against NumPy, and
texts that stay the same."""

import json
import shutil

import numpy as np
import pytest
from host_heads import HostBlock, steps_of
from llama_host import DATA, config_of, logits_on_the_host, weights_of
from serving import PROMPTS

import kernwright as kw
from kernwright import llm
from kernwright.cli import main
from kernwright.llm._draft_model import loaded_draft
from kernwright.llm._heads import load_predictor
from kernwright.llm._sampling import Sampling
from kernwright.llm._size import EngineSize

MODEL = "tiny_llama"
FIELDS = config_of(MODEL)
HIDDEN, WIDTH = FIELDS["hidden_size"], FIELDS["intermediate_size"]
LAYERS, LENGTH = FIELDS["num_hidden_layers"], 44
FRONT = "model.mtp_layers.0."
WEIGHTS = weights_of(MODEL)
TABLE = WEIGHTS["model.embed_tokens.weight"]
LAST = WEIGHTS.get("lm_head.weight", TABLE)


class HostPredictor(HostBlock):
    """The layer of one text, an entry at a time, in float64."""

    def __init__(self, weights):
        weights = {name: np.asarray(x, float) for name, x in weights.items()}
        super().__init__(weights, FRONT, FIELDS)

    def mixed(self, token, state):
        normed = self.norm(state, self.part("hidden_layernorm"))
        return np.concatenate([normed, self.norm(TABLE[token], self.part("token_layernorm"))])

    def state(self, position, token, state):
        """The next state of the entry at a place; entries behind it are forgotten."""
        x = self.part("input_proj") @ self.mixed(token, state)
        made = self.entry(position, x, self.norm(x, self.part("input_layernorm")))
        return self.norm(made, self.part("final_layernorm"))

    def drafts(self, tokens, states, count):
        """So many tokens behind a text, of whose tokens but the last the states are known."""
        for position in range(len(self.keys), len(tokens) - 1):
            state = self.state(position, tokens[position + 1], states[position])
        made, position = [], len(tokens) - 2
        for _ in range(count):
            made.append(int(np.argmax(LAST @ state)))
            position += 1
            if len(made) < count:
                state = self.state(position, made[-1], state)
        self.forget(len(tokens) - 1)
        return made


def states_of(tokens):
    """The model's states behind its last layer."""
    states = []
    logits_on_the_host(WEIGHTS, FIELDS, np.array([tokens]), states)
    return states[LAYERS][0]


def random_weights(seed=1, scale=1.0):
    draw = np.random.default_rng(seed)
    size = FIELDS["head_dim"]
    heads, kv_heads = FIELDS["num_attention_heads"] * size, FIELDS["num_key_value_heads"] * size

    def matrix(*shape):
        return (draw.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)

    shapes = {
        "input_proj": (HIDDEN, 2 * HIDDEN), "self_attn.q_proj": (heads, HIDDEN),
        "self_attn.k_proj": (kv_heads, HIDDEN), "self_attn.v_proj": (kv_heads, HIDDEN),
        "self_attn.o_proj": (HIDDEN, heads), "mlp.gate_proj": (WIDTH, HIDDEN),
        "mlp.up_proj": (WIDTH, HIDDEN), "mlp.down_proj": (HIDDEN, WIDTH),
    }  # fmt: skip
    made = {f"{FRONT}{name}.weight": matrix(*shape) for name, shape in shapes.items()}
    for name in ("self_attn.o_proj", "mlp.down_proj"):
        made[f"{FRONT}{name}.weight"] *= np.float32(scale)
    for name in "qkv":
        rows = shapes[f"self_attn.{name}_proj"][0]
        made[f"{FRONT}self_attn.{name}_proj.bias"] = matrix(rows) * 4
    for name in ("token_layernorm", "hidden_layernorm", "final_layernorm", "input_layernorm",
                 "post_attention_layernorm"):  # fmt: skip
        made[f"{FRONT}{name}.weight"] = (1 + draw.normal(size=HIDDEN) / 4).astype(np.float32)
    return made


def fitted(weights, texts):
    """With an input_proj by which the logits are mostly those of the model a token later: least
    squares, as if the block added nothing."""
    host = HostPredictor(weights)
    rows, wanted = [], []
    for text in texts:
        states = states_of(text)
        for position in range(len(text) - 2):
            rows.append(host.mixed(text[position + 1], states[position]))
            later = states[position + 1]
            scaled = later / np.sqrt((later * later).mean()) * WEIGHTS["model.norm.weight"]
            wanted.append(scaled / host.part("final_layernorm"))
    x, y = np.array(rows), np.array(wanted)
    solved = np.linalg.solve(x.T @ x + 0.01 * np.eye(2 * HIDDEN), x.T @ y).T
    return weights | {f"{FRONT}input_proj.weight": np.ascontiguousarray(solved, np.float32)}


def write(folder, weights, **changes):
    """The stored Llama as a MiMo, with these tensors beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = FIELDS | {
        "architectures": ["MiMoForCausalLM"], "model_type": "mimo", "attention_bias": True,
        "num_nextn_predict_layers": 1,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(fields | changes))
    for file in (DATA / MODEL).iterdir():
        if file.suffix != ".safetensors" and file.name != "config.json":
            shutil.copy(file, folder / file.name)
    arrays = {name: x.astype(np.float32) for name, x in WEIGHTS.items()} | weights
    for layer in range(LAYERS):
        for name in "qkv":
            front = f"model.layers.{layer}.self_attn.{name}_proj."
            arrays[f"{front}bias"] = np.zeros(len(arrays[f"{front}weight"]), np.float32)
    kw.save_safetensors(
        folder / "model.safetensors", {name: kw.asarray(x) for name, x in arrays.items()}
    )
    return folder


@pytest.fixture(scope="module")
def texts():
    """Prompts and what the model writes, tokens."""
    plain = llm.load(DATA / MODEL, dtype="float32")
    made = plain.generate(PROMPTS, max_tokens=LENGTH, ignore_eos=True)
    prompts = [plain.tokenizer.encode(prompt) for prompt in PROMPTS]
    return [(prompt, each.tokens) for prompt, each in zip(prompts, made, strict=True)]


@pytest.fixture(scope="module")
def folder(texts, tmp_path_factory):
    """The files of a model with a layer that is often right."""
    weights = fitted(random_weights(scale=0.05), [prompt + tokens for prompt, tokens in texts])
    return write(tmp_path_factory.mktemp("predictors") / "fitted", weights), weights


@pytest.fixture(scope="module")
def model(folder):
    return llm.load(folder[0], dtype="float32")


def draft_of(tokens=1, always=True):
    return llm.Draft("mtp", tokens=tokens, always=always)


def test_the_model_is_the_same_without_its_layer(model, texts):
    for prompt, tokens in texts[:2]:
        assert model.generate(prompt, max_tokens=LENGTH, ignore_eos=True).tokens == tokens
    assert not [name for name, _ in model.module.named_parameters() if "mixer" in name]


def test_states_and_logits_of_a_layer_are_those_of_numpy(tmp_path, texts):
    weights = random_weights(3)
    head = load_predictor(llm.load(write(tmp_path / "random", weights), dtype="float32"))
    text = texts[0][0] + texts[0][1]
    states, host = states_of(text), HostPredictor(weights)
    step = llm.WholeStep([text[1:]], select="all")
    given = kw.asarray(states[:-1].astype(np.float32))
    made = head.module.layer(head.module.mix(given), step)
    wanted = np.array([host.state(i, text[i + 1], states[i]) for i in range(len(text) - 1)])
    np.testing.assert_allclose(made.numpy(), wanted, rtol=0, atol=2e-4 * np.abs(wanted).max())
    logits = head.module.logits(made).numpy()
    np.testing.assert_allclose(logits, wanted @ LAST.T, rtol=0, atol=1e-3 * np.abs(logits).max())
    assert (head.states, head.width) == ((LAYERS,), HIDDEN)


@pytest.mark.parametrize("count", [1, 3])
def test_a_layer_guesses_what_it_guesses_in_numpy(count, model, folder, texts):
    draft = loaded_draft(draft_of(count), model)
    engine = EngineSize(2, 128, 16).engine(model, draft=draft)
    streams = [engine.stream(prompt, Sampling(LENGTH)) for prompt, _ in texts[:2]]
    found = 0
    for (prompt, wanted), stream in zip(texts[:2], streams, strict=True):
        pieces = list(stream)
        assert [piece.token for piece in pieces] == wanted
        host, states = HostPredictor(folder[1]), states_of(prompt + wanted)
        for begin, accepted in steps_of(pieces, count):
            drafts = host.drafts((prompt + wanted)[: len(prompt) + begin], states, count)
            right = [a == b for a, b in zip(drafts, wanted[begin:], strict=False)]
            assert accepted == [*right, False].index(False), (begin, drafts)
            found += accepted
    assert found > 10


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("values", [{}, {"temperature": 0.8, "top_p": 0.95, "seed": 3}])
def test_texts_are_those_without_drafts(batch, values, model):
    prompts = (PROMPTS * 2)[:batch]
    options = {"max_tokens": 20, "ignore_eos": True, "logprobs": 2, **values}
    wanted = model.generate(prompts, **options)
    made = model.generate(prompts, draft=draft_of(), **options)
    for one, other in zip(made, wanted, strict=True):
        assert one.tokens == other.tokens
        for a, b in zip(one.logprobs, other.logprobs, strict=True):
            assert abs(a.logprob - b.logprob) < 1e-3
    assert sum(each.accepted for each in made) > 0


def test_forms_penalties_and_ends_are_those_without_drafts(model):
    for options in (
        {"choices": ["import os", "import sys"]}, {"repetition_penalty": 1.3, "n": 2, "seed": 1},
        {"presence_penalty": 1.0, "frequency_penalty": 0.5}, {"stop": ["e"]}, {"min_tokens": 7},
        {"max_tokens": 2}, {"logit_bias": {5: 3.0}},
    ):  # fmt: skip
        options = {"max_tokens": 24, **options}
        made = [model.generate(PROMPTS[0], draft=draft, **options)
                for draft in (draft_of(2), "none")]  # fmt: skip
        made = [each if isinstance(each, list) else [each] for each in made]
        assert [one.tokens for one in made[0]] == [one.tokens for one in made[1]]


def test_few_pages_shared_beginnings_and_prompts_in_parts(model, texts):
    long = [token for prompt, tokens in texts for token in prompt + tokens][:70]
    prompts = [[*long, 3], [*long, 4], texts[2][0], texts[0][0], [7]]
    wanted = model.generate(prompts, max_tokens=80, ignore_eos=True, draft="none")
    layer = 2 * FIELDS["num_key_value_heads"] * FIELDS["head_dim"] * 4
    engine = llm.Engine(
        model, max_rows=4, max_tokens_per_step=40, draft=draft_of(2), host_cache=1 << 20,
        kv_memory=22 * 16 * ((LAYERS + 1) * layer + HIDDEN * 4),
    )  # fmt: skip
    with engine:
        made = [engine.submit(each, max_tokens=80, ignore_eos=True) for each in prompts]
        assert [each.result().tokens for each in made] == [each.tokens for each in wanted]
        stats = engine.stats()
    assert stats["preemptions"] > 0 and stats["shared_tokens"] > 0
    assert stats["accepted_tokens"] > 20
    assert stats["used_pages"] == 0


def test_guesses_that_do_not_pay_are_left_out(tmp_path, texts, sim):
    """A layer of random numbers is never right; a step with it takes longer."""
    model = llm.load(write(tmp_path / "random", random_weights(5)), dtype="float32")
    draft = draft_of(3, always=False)
    with llm.Engine(model, max_rows=1, kv_memory=1 << 24, draft=draft) as engine:
        engine.submit(texts[0][0], max_tokens=120, ignore_eos=True).result()
        stats = engine.stats()
    assert 3 <= stats["drafts"] < 60 and stats["steps"] > 100


def test_commands_and_a_model_of_random_numbers_take_their_layer(folder, capsys):
    path = str(folder[0])
    assert main(["generate", path, PROMPTS[0], "--max-tokens", "5", "--draft", "mtp"]) == 0
    assert main(["serve", path, "--check", "--draft", "mtp"]) == 0
    assert "draft    MiMoForCausalLM" in capsys.readouterr().out
    config = f"{path}/config.json"
    assert main(["serve", "--random", config, "--check", "--draft", "mtp"]) == 0
    drawn = llm.load(random=config, draft="mtp")
    assert (drawn.draft.kind, drawn.draft.tokens) == ("model", 1)
    made = drawn.generate([1, 2], max_tokens=6, ignore_eos=True)
    assert made.tokens == drawn.generate([1, 2], max_tokens=6, ignore_eos=True, draft="none").tokens


def test_files_without_a_layer_or_with_a_wrong_one_are_refused(folder, tmp_path):
    _, weights = folder
    second = {name.replace("layers.0", "layers.1"): x for name, x in weights.items()}
    wrong = {
        "missing: .*mixer.weight": ({}, {}),
        r"missing: \S+\.final_layernorm\.weight \(for norm.weight\)": (
            {name: x for name, x in weights.items() if "final" not in name}, {},
        ),
        "num_nextn_predict_layers is 0": (weights, {"num_nextn_predict_layers": 0}),
        "num_nextn_predict_layers is 2": (weights | second, {"num_nextn_predict_layers": 2}),
        "second layer": (weights | second, {}),
        "unexpected: .*extra": (weights | {f"{FRONT}extra.weight": np.zeros(3, np.float32)}, {}),
        "input_proj.weight is": (
            weights | {f"{FRONT}input_proj.weight": np.zeros((HIDDEN, HIDDEN), np.float32)}, {},
        ),
        "whole number": (weights, {"num_nextn_predict_layers": "one"}),
        "is of int64": (
            weights | {f"{FRONT}input_proj.weight": np.zeros((HIDDEN, 2 * HIDDEN), np.int64)}, {},
        ),
    }  # fmt: skip
    for number, (message, (tensors, fields)) in enumerate(wrong.items()):
        path = write(tmp_path / str(number), tensors, **fields)
        with pytest.raises(llm.ModelError, match=message):
            llm.load(path, dtype="float32", draft="mtp")
        assert len(llm.load(path, dtype="float32").generate([1], max_tokens=2).tokens) == 2


def test_models_of_other_families_have_none():
    with pytest.raises(llm.ModelError, match="LlamaForCausalLM has no layer for draft"):
        llm.load(DATA / MODEL, draft="mtp")
    with pytest.raises(kw.errors.ArgumentError, match="leave model out"):
        llm.Draft("mtp", model="a/path")
