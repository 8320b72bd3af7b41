"""Texts with drafts against texts without them: the same tokens, and fewer steps."""

import json
import random

import numpy as np
import pytest
from adapter_files import adapter_written
from serving import TINY as TRAINED
from serving import serving
from summing_model import (
    DIM,
    ENDS_WITHIN_DRAFTS,
    VOCABULARY,
    Summing,
    expected,
    make,
    make_model,
    prompts_of,
    require_ends_without_drafts,
    require_right_texts_with_few_pages,
)

import kernwright as kw
from kernwright import llm
from kernwright.cli import main
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._guide.guesses import following
from kernwright.llm._sampling import Sampling

ALWAYS = llm.Draft("ngram", tokens=3, longest=3, always=True)
SPREAD = 6.0
TINY = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "dtype": "float32",
    "max_position_embeddings": 128,
}  # fmt: skip


@pytest.fixture(scope="module")
def drafted():
    return make(draft=ALWAYS)


@pytest.fixture(scope="module")
def iterated():
    return make(Summing(SPREAD), draft=llm.Draft("jacobi", tokens=3, longest=3, always=True))


@pytest.fixture(scope="module")
def spread():
    """Engines of equal models without drafts and with them; tokens are drawn."""
    return make(Summing(SPREAD)), make(Summing(SPREAD), draft=ALWAYS)


def tokens_of(results):
    return [[each.tokens for each in choices] for choices in results]


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_greedy_tokens_are_those_without_drafts(drafted, batch):
    prompts = prompts_of(batch, batch)
    made = drafted.run(prompts, Sampling(max_tokens=25))
    assert tokens_of(made) == [[expected(prompt, min(25, 96 - len(prompt)))] for prompt in prompts]
    stats = drafted.stats()
    assert stats["drafted_tokens"] >= sum(each.drafted for (each,) in made) > 0
    assert stats["used_pages"] == 0


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_drawn_tokens_and_their_chances_are_those_without_drafts(spread, batch):
    plain, with_drafts = spread
    prompts = prompts_of(20 + batch, batch, longest=20)
    options = Sampling(
        max_tokens=20, temperature=0.4, top_p=0.9, seed=7, logprobs=3, frequency_penalty=0.5,
        repetition_penalty=1.2, presence_penalty=0.1, logit_bias={3: 2.0}, bad_tokens=[5],
    )  # fmt: skip
    before = with_drafts.stats()["drafted_tokens"]
    for (wanted,), (made,) in zip(
        plain.run(prompts, options), with_drafts.run(prompts, options), strict=True
    ):
        assert made.tokens == wanted.tokens
        for one, other in zip(made.logprobs, wanted.logprobs, strict=True):
            assert [token for token, _ in one.top] == [token for token, _ in other.top]
            np.testing.assert_allclose(one.logprob, other.logprob, rtol=1e-5, atol=1e-5)
    assert with_drafts.stats()["drafted_tokens"] > before


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("values", [{}, {"temperature": 1.0, "top_p": 0.9, "seed": 4}])
def test_outputs_behind_wrong_guesses_leave_the_tokens_as_they_are(iterated, spread, batch, values):
    prompts = prompts_of(70 + batch, batch)
    requests = [(prompt, Sampling(25, logprobs=2, **values)) for prompt in prompts]
    requests[-1] = (prompts[-1], Sampling(25, guide=Rising(), **values))
    wanted, made = spread[0].run_each(requests), iterated.run_each(requests)
    assert tokens_of(made) == tokens_of(wanted)
    stats = iterated.stats()
    assert stats["used_pages"] == 0
    assert made[0][0].drafted > 10 or batch == 1


class Converging:
    """A token is the place of its own in the text, whatever stands before: an output is right
    behind wrong guesses, too."""

    def __call__(self, step):
        zeros = kw.zeros((step.tokens.size, 1, DIM))
        rest = step.attend(0, zeros, zeros, zeros)[:, 0, 0]
        places = step.select(step.positions) + step.select(rest).astype("int32")
        hot = kw.arange(VOCABULARY, dtype="int32").reshape(1, -1) == (places % 60).reshape(-1, 1)
        return hot.astype("float32")


def test_outputs_behind_wrong_guesses_are_the_next_guesses():
    engines = [
        make(Converging(), draft=llm.Draft(kind, tokens=3, always=True))
        for kind in ("ngram", "jacobi")
    ]
    made = [engine.run([[3, 1, 4]], Sampling(max_tokens=30))[0][0] for engine in engines]
    assert made[0].tokens == made[1].tokens == [*range(2, 32)]
    assert made[0].accepted == 0  # no token stood in the text before
    # A step finds its three guesses wrong; the next one has three right ones of it.
    assert made[1].accepted >= 12


def test_a_text_that_repeats_takes_fewer_steps():
    model = llm.load(random=TINY)
    # The token of the highest logit is the one before the last: texts of period two.
    plain = model.generate([3, 4] * 6, max_tokens=40, logit_bias={9: 100})
    made = model.generate([3, 4] * 6, max_tokens=40, logit_bias={9: 100}, draft=ALWAYS)
    assert made.tokens == plain.tokens == [9] * 40
    assert (plain.drafted, plain.accepted) == (0, 0)
    assert made.accepted >= 27  # three of each step, when the text has two tokens
    assert made.drafted >= made.accepted
    stats = model._generator.engine([60], draft=ALWAYS).stats()
    assert stats["steps"] <= 15
    assert stats["accepted_tokens"] == made.accepted


@pytest.mark.parametrize("options", ENDS_WITHIN_DRAFTS)
def test_ends_within_drafts_are_those_without(drafted, options):
    require_ends_without_drafts(drafted, options, 4)


def test_few_pages_prefixes_and_long_prompts_leave_the_texts_right():
    stats = require_right_texts_with_few_pages(make(pages=26, draft=ALWAYS), 26)
    assert stats["drafted_tokens"] > 50


def test_pages_stay_whole_after_every_step():
    draw = random.Random(9)
    engine = make(pages=30, draft=ALWAYS)
    alive, made = [], {}
    for number in range(14):
        prompt, count = prompts_of(draw.random(), 1)[0], draw.randint(1, 20)
        stream = engine.stream(prompt, Sampling(max_tokens=count))
        alive.append((number, stream, prompt, count))
        made[number] = []
        while len(alive) > 3 or (number == 13 and alive):
            chosen = draw.choice(alive)
            if draw.random() < 0.05:
                chosen[1].close()
                alive.remove(chosen)
                continue
            piece = next(chosen[1])
            made[chosen[0]].append(piece.token)
            stats = engine.stats()
            assert stats["free_pages"] + stats["cached_pages"] + stats["used_pages"] == 30
            assert made[chosen[0]] == expected(*chosen[2:])[: len(made[chosen[0]])]
            if piece.finish_reason is not None:
                alive.remove(chosen)
    assert engine.stats()["accepted_tokens"] <= engine.stats()["drafted_tokens"]


def test_stop_strings_and_streams_end_as_without_drafts():
    model = llm.load(random=TINY | {"vocab_size": 259})
    for options in ({"max_tokens": 30, "temperature": 0.3, "seed": 2}, {"max_tokens": 9}):
        texts = [
            [piece._replace(first_seconds=None) for piece in model.stream([5, 6, 7, 5, 6], **more)]
            for more in (options, options | {"draft": ALWAYS})
        ]
        assert texts[0] == texts[1]


def test_an_engine_serves_with_drafts_and_counts_them():
    model = make_model()
    with llm.Engine(model, max_rows=3, draft=ALWAYS) as engine:
        prompts = prompts_of(31, 6, longest=30)
        requests = [engine.submit(prompt, max_tokens=18) for prompt in prompts]
        results = [request.result() for request in requests]
        assert [each.tokens for each in results] == [expected(prompt, 18) for prompt in prompts]
        stats = engine.stats()
        assert stats["drafted_tokens"] >= stats["accepted_tokens"]
        assert stats["drafts"] > 0
        with pytest.raises(InvalidArgument, match="option of the whole engine"):
            engine.submit([1], draft="ngram")


class Rising:
    """A guide: each token is one to three above the one before, and behind 50 comes 1. `width`: so
    many tokens are allowed. It fails behind `last` tokens."""

    def __init__(self, width=3, last=100):
        self.width, self.last, self.made = width, last, []

    def start(self):
        return Rising(self.width, self.last)

    def advance(self, token):
        if token is not None:
            assert not self.made or token in self.allowed()
            self.made.append(token)
        if len(self.made) == self.last:
            raise llm.ModelError("the guide has no more tokens")
        bits = np.zeros(64, np.uint8)
        bits[self.allowed()] = 1
        return np.packbits(bits, bitorder="little").tobytes()

    def allowed(self):
        least = (self.made[-1] if self.made and self.made[-1] < 50 else 0) + 1
        return list(range(least, least + self.width))

    def rollback(self, count):
        assert 0 < count <= len(self.made)
        del self.made[-count:]

    def forced(self):
        if self.width > 1:
            return []
        first = self.allowed()[0]
        return list(range(first, min(first + 5, 51)))


def test_guided_texts_stay_in_their_form_beside_texts_with_drafts():
    engine = make(Summing(SPREAD), draft=ALWAYS)
    prompts = prompts_of(41, 3, longest=20)
    plain = make(Summing(SPREAD))
    requests = [(prompt, Sampling(max_tokens=12, temperature=0.5, seed=3)) for prompt in prompts]
    guided = (prompts[0], Sampling(max_tokens=12, guide=Rising()))
    wanted = tokens_of(plain.run_each([*requests, guided]))
    made = engine.run_each([*requests, guided])
    assert tokens_of(made) == wanted
    (text,) = made[-1]
    assert all(1 <= b - a <= 3 for a, b in zip(text.tokens, text.tokens[1:], strict=False))
    assert sum(each.drafted for (each,) in made) > 0


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("values", [{}, {"temperature": 1.0, "top_p": 0.9, "seed": 4}])
def test_guided_texts_have_the_tokens_that_they_have_without_drafts(spread, batch, values):
    plain, drafted = spread
    requests = [
        (prompt, Sampling(40, guide=Rising(1 + i % 3), choices=1 + i % 2, logprobs=2, **values))
        for i, prompt in enumerate(prompts_of(60 + batch, batch))
    ]
    wanted, made = plain.run_each(requests), drafted.run_each(requests)
    assert tokens_of(made) == tokens_of(wanted)
    for choices, others in zip(made, wanted, strict=True):
        for each, other in zip(choices, others, strict=True):
            assert [one.top for one in each.logprobs] == [one.top for one in other.logprobs]
    # Only one token may follow each: all guesses are right.
    assert all(each.accepted == each.drafted > 5 for each in made[0])
    assert drafted._guides.is_idle


def test_a_guide_that_fails_within_guesses_ends_its_own_request(spread):
    plain, drafted = spread
    neighbour = ([5, 6], Sampling(20, temperature=1.0, seed=3))
    streams = [
        drafted.stream([1], Sampling(30, guide=Rising(1, last=7))),
        drafted.stream(*neighbour),
    ]
    with pytest.raises(llm.ModelError, match="no more tokens"):
        list(streams[0])
    assert [p.token for p in streams[1]] == plain.run_each([neighbour])[0][0].tokens
    assert drafted.stats()["used_pages"] == 0


def test_guesses_are_what_followed_the_last_tokens():
    assert following([1, 2, 3, 9, 1, 2], 3, 1, 8) == [3, 9, 1]
    assert following([1, 2, 1, 3, 1], 2, 1, 8) == [3, 1]  # the latest of equal ones
    assert following([7, 1, 2, 5, 1, 2, 7, 1, 2], 1, 1, 8) == [5]  # the longest
    assert following([7, 1, 2, 5, 1, 2, 7, 1, 2], 1, 1, 2) == [7]
    assert following([4, 4], 3, 1, 8) == [4, 4, 4]
    assert following([1, 2, 3], 3, 1, 8) == following([1, 2, 1], 3, 2, 8) == []
    assert following([1], 3, 1, 8) == []


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "kind": {"enum": ["def", "class"]},
        "pair": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
    },
    "required": ["name", "kind", "pair"],
    "additionalProperties": False,
}
FORMS = [
    {"schema": SCHEMA}, {"regex": "(def|class) [a-z]{3,9}(, [a-z]{3})*;"},
    {"choices": ["import os", "import sys"]}, {"grammar": 'start: "a" "b"+ "c"'},
]  # fmt: skip


@pytest.fixture(scope="module")
def trained():
    return llm.load(TRAINED, dtype="float32")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: next(iter(form)))
def test_texts_with_a_form_are_those_without_drafts(trained, form):
    prompts = ["def main(", "import os", "class Point"]
    for each in ({"temperature": 0.0}, {"temperature": 1.0, "seed": 5, "n": 2}):
        options = {"max_tokens": 60, **each, **form}
        wanted = _flat(trained.generate(prompts, **options))
        for source in ({}, {"model": f"{TRAINED}_draft"}):
            draft = llm.Draft(tokens=4, always=True, **source)
            made = _flat(trained.generate(prompts, draft=draft, **options))
            for one, other in zip(made, wanted, strict=True):
                assert (one.tokens, one.finish_reason) == (other.tokens, other.finish_reason)
                if "schema" in form and one.finish_reason == "stop":
                    assert json.loads(one.text)["kind"] in ("def", "class")
            if "schema" in form:
                assert sum(one.accepted for one in made) > 10


def _flat(made):
    return [one for each in made for one in (each if isinstance(each, list) else [each])]


def test_adapters_of_all_layers_and_of_the_head_are_those_of_their_texts(tmp_path):
    modules = {"model.layers.0.self_attn.q_proj": (32, 32), "lm_head": (64, 32)}
    plain, drafted = llm.load(random=TINY), llm.load(random=TINY)
    for name, seed in (("a", 1), ("b", 2)):
        adapter_written(tmp_path / name, modules, seed=seed, std=0.8)
        for model in (plain, drafted):
            model.load_adapter(tmp_path / name)
    # Texts of few drafts and of many: outputs are not in the order of tokens.
    asked = [([1, 2, 3], None), ([5, 5, 5, 5], "a"), ([5, 5, 5, 5], "b"), ([9], "a")]
    with llm.Engine(drafted, max_rows=4, draft=ALWAYS) as engine:
        requests = [
            engine.submit(prompt, adapter=adapter, max_tokens=24) for prompt, adapter in asked
        ]
        for (prompt, adapter), request in zip(asked, requests, strict=True):
            wanted = plain.generate(prompt, adapter=adapter, max_tokens=24)
            assert request.result().tokens == wanted.tokens
        assert engine.stats()["accepted_tokens"] > 0


def test_drafts_that_do_not_pay_are_left_out(sim):
    engine = make(draft=llm.Draft(tokens=3))
    prompt = prompts_of(3, 1, longest=8)[0]
    for _ in range(3):
        assert tokens_of(engine.run([prompt], Sampling(max_tokens=80))) == [[expected(prompt, 80)]]
    stats = engine.stats()
    assert stats["tokens"] == 240
    assert stats["drafts"] < 60  # a simulated device computes a token after the other


@pytest.mark.parametrize(("draft", "error", "message"), [
    (7, ArgumentError, 'draft is "ngram", "jacobi", "mtp", the path of a model, .* or None, got 7'),
    ("n-gram", ArgumentError, 'a draft is "ngram"'),
])  # fmt: skip
def test_wrong_drafts_are_named(draft, error, message):
    model = llm.load(random=TINY)
    with pytest.raises(error, match=message):
        model.generate([1], draft=draft)
    with pytest.raises(error, match=message):
        llm.Engine(model, draft=draft)


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"tokens": 0}, InvalidArgument, "tokens of a draft is from 1 to 31, got 0"),
    ({"longest": 65}, InvalidArgument, "longest of a draft is from 1 to 64, got 65"),
    ({"shortest": 4, "longest": 3}, InvalidArgument, "4 tokens, and the longest 3"),
    ({"tokens": 2.0}, ArgumentError, "tokens of a draft is an int"),
    ({"kind": "mtp", "model": "x"}, ArgumentError, "the layer of the model itself"),
    ({"always": 1}, ArgumentError, "always is True or False"),
])  # fmt: skip
def test_wrong_numbers_of_a_draft_are_named(options, error, message):
    with pytest.raises(error, match=message):
        llm.Draft(**options)


def test_usual_numbers_of_drafts_and_their_limits():
    usual = llm.Draft()
    assert (usual.tokens, usual.shortest, usual.longest, usual.always) == (7, 1, 8, False)
    assert [llm.Draft(kind).tokens for kind in ("jacobi", "mtp")] == [7, 1]
    assert llm.Draft(model="folder").tokens == 4
    assert llm.Draft(tokens=31, shortest=64, longest=64).tokens == 31
    for wrong in ({"tokens": 32}, {"tokens": True}, {"shortest": 0}):
        with pytest.raises((ArgumentError, InvalidArgument)):
            llm.Draft(**wrong)


def test_deterministic_engines_have_no_drafts():
    model = llm.load(random=TINY)
    with pytest.raises(InvalidArgument, match="leave draft or deterministic out"):
        model.generate([1], draft="ngram", deterministic=True)
    with pytest.raises(InvalidArgument, match="leave draft or deterministic out"):
        llm.Engine(model, draft="ngram", deterministic=True)


def test_the_command_line_takes_drafts(capsys):
    arguments = ["generate", str(TRAINED), "import os\nimport os", "--max-tokens", "16"]
    assert main(arguments) == 0
    plain = capsys.readouterr().out
    assert main([*arguments, "--draft", "ngram", "--draft-tokens", "3"]) == 0
    assert capsys.readouterr().out == plain
    for more, message in (
        (["--draft-tokens", "3"], "--draft-tokens is for --draft"),
        (["--draft", "grams"], 'a draft is "ngram"'),
        (["--draft", "ngram", "--draft-tokens", "0"], "from 1 to 31, got 0"),
    ):
        assert main([*arguments, *more]) == 2
        assert message in capsys.readouterr().err


def test_a_benchmark_has_a_row_with_drafts_and_without(capsys):
    arguments = ["-p", "none", "-n", "24", "-b", "none", "-r", "1", "--draft", "ngram", "--json"]
    assert main(["bench", "llm", str(TRAINED), *arguments]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][-1]
    assert (row["test"], row["status"], row["tokens"]) == ("draft24", "ok", 24)
    assert row["plain_ms"] > 0 and row["ms"] > 0
    assert 0 < row["accepted"] <= row["drafted"]


def test_a_server_counts_drafts_by_the_names_of_vllm():
    with (
        llm.Engine(llm.load(str(TRAINED)), max_rows=2, draft=ALWAYS) as engine,
        serving(engine) as client,
    ):
        body = {"prompt": "import os\nimport os", "max_tokens": 16, "temperature": 0}
        status, made = client.post("/v1/completions", body)
        assert status == 200
        text = client.ask("GET", "/metrics")[2].decode()
        found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        stats = engine.stats()
        for name, key in (
            ("drafts", "drafts"), ("draft_tokens", "drafted_tokens"),
            ("accepted_tokens", "accepted_tokens"),
        ):  # fmt: skip
            metric = f'vllm:spec_decode_num_{name}_total{{model_name="tiny"}}'
            assert float(found[metric]) == stats[key] > 0
    plain = llm.load(str(TRAINED)).generate(body["prompt"], max_tokens=16)
    assert made["choices"][0]["text"] == plain.text
