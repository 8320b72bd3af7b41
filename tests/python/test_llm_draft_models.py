"""Texts with drafts of a smaller model against texts without: the same tokens, and fewer steps."""

import json
import pathlib
import sys
import types

import numpy as np
import pytest
from adapter_files import adapter_written
from serving import PROMPTS, serving
from serving import TINY as TRAINED
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
from kernwright.errors import ArgumentError, InvalidArgument, OutOfMemory
from kernwright.llm._caches import CacheFormat
from kernwright.llm._draft_model import DraftModel, require_draft
from kernwright.llm._sampling import Sampling
from kernwright.llm._size import EngineSize, token_bytes

SPREAD = 6.0
SMALL = f"{TRAINED}_draft"
TINY = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32,
    "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "dtype": "float32",
    "max_position_embeddings": 128,
}  # fmt: skip


class Wide(Summing):
    """It has rows of logits for tokens that nobody wrote, and these are the highest."""

    def __call__(self, step):
        logits = super().__call__(step)
        return kw.concat([logits, kw.full((logits.shape[0], 3), 99.0)], axis=1)


class Wrong(Summing):
    """Its tokens are right where the sum of a text is a multiple of four."""

    def __call__(self, step):
        logits = super().__call__(step)
        places = step.select(step.positions)
        return kw.where((places % 4 == 0).reshape(-1, 1), logits, -logits)


def drafter_of(model=None, context=96, vocabulary=VOCABULARY):
    return DraftModel(
        model or Summing(), [(1, DIM)], CacheFormat.of("float32"), context, vocabulary
    )  # fmt: skip


def draft_of(tokens=3, always=True):
    return llm.Draft(model="not read by these engines", tokens=tokens, always=always)


def make_drafted(model=None, drafter=None, tokens=3, always=True, **options):
    return make(model, draft=draft_of(tokens, always), drafter=drafter or drafter_of(), **options)


@pytest.fixture(scope="module")
def twins():
    """An engine whose draft model is the model."""
    return make_drafted()


@pytest.fixture(scope="module")
def other():
    """An engine whose draft model is right for every fourth token."""
    return make_drafted(drafter=drafter_of(Wrong()))


@pytest.fixture(scope="module")
def trained():
    return llm.load(TRAINED)


@pytest.fixture(scope="module")
def small():
    return llm.load(SMALL)


def tokens_of(results):
    return [[each.tokens for each in choices] for choices in results]


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("engine", ["twins", "other"])
def test_greedy_tokens_are_those_without_drafts(engine, batch, request):
    drafted = request.getfixturevalue(engine)
    prompts = prompts_of(batch, batch)
    before = drafted.stats()
    made = drafted.run(prompts, Sampling(max_tokens=25))
    assert tokens_of(made) == [[expected(prompt, min(25, 96 - len(prompt)))] for prompt in prompts]
    stats = drafted.stats()
    assert stats["used_pages"] == 0
    checked = stats["drafted_tokens"] - before["drafted_tokens"]
    accepted = stats["accepted_tokens"] - before["accepted_tokens"]
    assert checked > 10 * batch
    if engine == "twins":  # but for tokens behind the end of a text, all are right
        assert accepted == checked
    else:
        assert 0 < accepted < 0.6 * checked


def test_a_model_that_drafts_for_itself_takes_a_step_for_each_group_of_tokens():
    engine = make_drafted(tokens=4)
    assert tokens_of(engine.run([[1, 2, 3]], Sampling(max_tokens=62))) == [
        [expected([1, 2, 3], 62)]
    ]
    stats = engine.stats()
    # The prompt, a step behind which the draft model catches up, 60 tokens in groups of five; one
    # step more is on its way when a text ends.
    assert 2 + 12 <= stats["steps"] <= 2 + 12 + 1
    assert stats["accepted_tokens"] == 48


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_drawn_tokens_and_their_chances_are_those_without_drafts(batch):
    plain = make(Summing(SPREAD))
    with_drafts = make_drafted(Summing(SPREAD), drafter_of(Summing(SPREAD * 1.2)))
    prompts = prompts_of(20 + batch, batch, longest=20)
    options = Sampling(
        max_tokens=20, temperature=0.4, top_p=0.9, seed=7, logprobs=3, frequency_penalty=0.1,
        repetition_penalty=1.02, presence_penalty=0.1, logit_bias={3: 0.2}, bad_tokens=[5],
    )  # fmt: skip
    for (wanted,), (made,) in zip(
        plain.run(prompts, options), with_drafts.run(prompts, options), strict=True
    ):
        assert made.tokens == wanted.tokens
        for one, two in zip(made.logprobs, wanted.logprobs, strict=True):
            assert [token for token, _ in one.top] == [token for token, _ in two.top]
            np.testing.assert_allclose(one.logprob, two.logprob, rtol=1e-5, atol=1e-5)
    stats = with_drafts.stats()
    # A draft is drawn with the random number of the token: most of them are right.
    assert stats["accepted_tokens"] > 0.3 * stats["drafted_tokens"] > 0


@pytest.mark.parametrize("options", ENDS_WITHIN_DRAFTS)
def test_ends_within_drafts_are_those_without(twins, options):
    require_ends_without_drafts(twins, options, 3)


@pytest.mark.parametrize("host", [None, 40 * 4 * 2 * DIM * 4])
def test_few_pages_prefixes_and_long_prompts_leave_texts_and_drafts_right(host):
    stats = require_right_texts_with_few_pages(make_drafted(pages=26, host_cache=host), 26)
    # The draft model has the keys and values of the text wherever its pages came from, so that
    # every draft is right.
    assert stats["accepted_tokens"] == stats["drafted_tokens"] > 200
    assert host is None or stats["loaded_pages"] > 0


def test_a_text_beyond_the_context_of_the_draft_model_goes_on_without_drafts():
    engine = make_drafted(drafter=drafter_of(context=20))
    prompts = [[1, 2, 3], [5] * 30]
    made = engine.run(prompts, Sampling(max_tokens=40))
    assert tokens_of(made) == [[expected(prompt, 40)] for prompt in prompts]
    (short,), (long,) = made
    assert 9 <= short.accepted <= 17
    assert long.drafted == 0


def test_tokens_that_the_draft_model_does_not_know_are_no_harm():
    engine = make_drafted(drafter=drafter_of(vocabulary=40))
    prompts = prompts_of(8, 3)
    made = engine.run(prompts, Sampling(max_tokens=20))
    assert tokens_of(made) == [[expected(prompt, 20)] for prompt in prompts]
    assert all(each.drafted > 0 for (each,) in made)


def test_drafts_are_drawn_by_the_sampling_of_their_text():
    engine = make_drafted(Summing(SPREAD), drafter=drafter_of(Summing(SPREAD)))
    for bounds in ({"min_p": 0.3}, {"top_p": 0.5}, {"top_k": 2}):
        sampling = Sampling(max_tokens=16, temperature=4.0, seed=1, **bounds)
        ((made,),) = engine.run(prompts_of(8, 1), sampling)
        assert made.accepted == made.drafted > 0


def test_rows_of_logits_beyond_the_vocabulary_are_no_drafts():
    engine = make_drafted(drafter=drafter_of(Wide(), vocabulary=VOCABULARY + 3))
    ((made,),) = engine.run(prompts_of(8, 1), Sampling(max_tokens=8))
    assert made.tokens == expected(prompts_of(8, 1)[0], 8)
    assert made.accepted == made.drafted > 0


def test_drafts_that_do_not_pay_are_left_out_and_the_draft_model_rests(sim):
    drafter = drafter_of(Wrong())
    engine = make_drafted(drafter=drafter, always=False)
    prompt = prompts_of(3, 1, longest=8)[0]
    for _ in range(3):
        assert tokens_of(engine.run([prompt], Sampling(max_tokens=80))) == [[expected(prompt, 80)]]
    stats = engine.stats()
    assert stats["tokens"] == 240
    assert stats["drafts"] < 40  # a simulated device computes a token after the other


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "seed": 3}])
def test_a_trained_draft_model_writes_what_the_model_writes(options):
    # The models have float32: kernels round bfloat16 in other ways with drafts, which may change a
    # drawn token.
    trained, small = (llm.load(path, dtype="float32") for path in (TRAINED, SMALL))
    prompts = [trained.tokenizer.encode(text) for text in PROMPTS]
    options = {"max_tokens": 40, "ignore_eos": True, **options}
    wanted = trained.generate(prompts, **options)
    made = trained.generate(prompts, draft=llm.Draft(model=small, tokens=3, always=True), **options)
    assert [each.tokens for each in made] == [each.tokens for each in wanted]
    # The highest logits agree for about half of the tokens.
    drafted, accepted = (sum(getattr(x, n) for x in made) for n in ("drafted", "accepted"))
    assert (0.1 if "seed" in options else 0.2) * drafted < accepted < 0.8 * drafted


def test_a_model_of_other_random_weights_is_seldom_right_and_no_harm():
    model, draft = llm.load(random=TINY), llm.load(random={**TINY, "hidden_size": 48})
    prompts = [[1, 2, 3], [4] * 50, [5, 6]]
    wanted = model.generate(prompts, max_tokens=30)
    made = model.generate(
        prompts, max_tokens=30, draft=llm.Draft(model=draft, tokens=3, always=True)
    )
    assert [each.tokens for each in made] == [each.tokens for each in wanted]
    assert sum(each.accepted for each in made) < 0.3 * sum(each.drafted for each in made)


def test_adapters_and_guides_are_those_of_their_texts(tmp_path):
    plain, drafted = llm.load(random=TINY), llm.load(random=TINY)
    adapter_written(tmp_path / "a", {"model.layers.0.self_attn.q_proj": (32, 32)}, seed=1, std=0.8)
    for model in (plain, drafted):
        model.load_adapter(tmp_path / "a")
    draft = llm.Draft(model=llm.load(random=TINY), tokens=3, always=True)
    with llm.Engine(drafted, max_rows=4, draft=draft) as engine:
        asked = [([1, 2, 3], None), ([5, 5, 5, 5], "a"), ([9], "a")]
        requests = [
            engine.submit(prompt, adapter=adapter, max_tokens=24) for prompt, adapter in asked
        ]
        for (prompt, adapter), request in zip(asked, requests, strict=True):
            wanted = plain.generate(prompt, adapter=adapter, max_tokens=24)
            assert request.result().tokens == wanted.tokens
        assert engine.stats()["accepted_tokens"] > 0


def test_an_engine_serves_with_a_draft_model_of_a_path_and_counts_its_memory():
    page = 16 * (token_bytes(llm.load(TRAINED)) + token_bytes(llm.load(SMALL)))
    with llm.Engine(llm.load(TRAINED), max_rows=2, draft=SMALL, kv_memory=9 * page + 1) as engine:
        stats = engine.stats()
        assert stats["free_pages"] == 9
        made = engine.submit(PROMPTS[0], max_tokens=20).result()
        assert made.tokens == engine.model.generate(PROMPTS[0], max_tokens=20).tokens
    with pytest.raises(OutOfMemory, match=rf"holds no page of 16 tokens, which takes {page:,}"):
        llm.Engine(llm.load(TRAINED), draft=SMALL, kv_memory=page - 1)
    size = EngineSize.of_memory(llm.load(TRAINED), 2, 9 * page)
    assert size.pages > 9  # without a draft


def test_a_draft_model_that_does_not_fit_is_refused_with_both_names(tmp_path, trained):
    model = llm.load(random=TINY)
    wider = tmp_path / "config.json"
    wider.write_text(json.dumps({**TINY, "vocab_size": 80}))
    for draft, message in (
        (llm.load(random=wider), f"{wider}.* a vocabulary of 80 tokens.* one of 64"),
        (llm.load(random=TINY, memory="stream"), "in the host's memory"),
    ):
        for call in (
            lambda draft=draft: model.generate([1], draft=llm.Draft(model=draft)),
            lambda draft=draft: llm.Engine(model, draft=llm.Draft(model=draft)),
        ):
            with pytest.raises(llm.ModelError, match=message):
                call()
    changed = llm.load(SMALL)
    changed.tokenizer._tokens = list(changed.tokenizer._tokens)
    changed.tokenizer._tokens[7] = "<other>"
    with pytest.raises(llm.ModelError, match=r"another tokenizer.*token 7 is '<other>' there"):
        trained.generate([1], draft=llm.Draft(model=changed))
    with pytest.raises(ArgumentError, match='"mtp" or the path of a model, and there is no'):
        model.generate([1], draft=str(tmp_path / "none"))
    with pytest.raises(ArgumentError, match=r"a path or an llm.Model, got 7"):
        llm.Draft(model=7)
    with pytest.raises(ArgumentError, match='a draft is "ngram", "jacobi" or "mtp", or has model='):
        llm.Draft("model")
    with pytest.raises(InvalidArgument, match="leave draft or deterministic out"):
        llm.Engine(model, draft=llm.Draft(model=model), deterministic=True)


def test_a_draft_model_of_another_device_is_refused(trained):
    other = types.SimpleNamespace(device="sim:1", config=types.SimpleNamespace(source="other"))
    with pytest.raises(llm.ModelError, match=r"other is on sim:1, and .*: load both on one device"):
        require_draft(other, trained)


def test_a_draft_model_with_more_rows_of_logits_and_the_same_tokenizer_fits(trained):
    fields = json.loads(pathlib.Path(SMALL, "config.json").read_text())
    wide = llm.load(random={**fields, "vocab_size": 1100})
    wide.tokenizer = trained.tokenizer
    made = trained.generate(PROMPTS[0], max_tokens=8, draft=llm.Draft(model=wide, always=True))
    assert made.tokens == trained.generate(PROMPTS[0], max_tokens=8).tokens
    assert made.drafted > 0


def test_the_usual_numbers_of_drafts():
    assert (llm.Draft().tokens, llm.Draft(model="a").tokens) == (7, 4)
    assert llm.Draft(model="a", tokens=9).tokens == 9
    assert llm.Draft(model="a").kind == "model"


def test_a_draft_model_of_a_path_is_loaded_once(monkeypatch):
    model, draft = make_model(), make_model()
    loads = []

    def load(path, **options):
        loads.append(path)
        return draft

    monkeypatch.setattr(sys.modules["kernwright.llm._draft_model"], "_loaders", [load])
    chosen = llm.Draft(model="somewhere", tokens=2, always=True)
    for count in (5, 5, 60):  # the last one needs larger caches
        made = model.generate([1, 2], max_tokens=count, draft=chosen)
        assert made.tokens == expected([1, 2], count)
        assert made.accepted > 0
    assert loads == ["somewhere"]


def test_a_model_is_loaded_with_a_draft_for_all_calls():
    model = llm.load(TRAINED, draft=llm.Draft(model=SMALL, tokens=2, always=True))
    plain = model.generate(PROMPTS[0], max_tokens=12, draft="none")
    made = model.generate(PROMPTS[0], max_tokens=12)
    assert made.tokens == plain.tokens and (made.drafted > 0, plain.drafted) == (True, 0)
    assert model.generate(PROMPTS[0], max_tokens=3, deterministic=True).drafted == 0
    text = model.tokenizer.encode(PROMPTS[0] + "import json\n" * 4)
    model.generate(text, max_tokens=4)
    snapshot = model.snapshot(text)
    other = llm.load(TRAINED, draft=llm.Draft(model=SMALL, tokens=2, always=True))
    other.restore(snapshot)
    again = other.generate(text, max_tokens=12)
    assert again.tokens == model.generate(text, max_tokens=12, draft="none").tokens
    assert again.accepted > 0
    with llm.Engine(model, max_rows=1) as engine, llm.Engine(model, draft="none") as without:
        for each, drafts in ((engine, True), (without, False)):
            assert each.submit(PROMPTS[0], max_tokens=12).result().tokens == plain.tokens
            assert (each.stats()["drafted_tokens"] > 0) == drafts
    assert llm.load(random=TINY, draft="ngram").draft == llm.Draft()
    with pytest.raises(llm.ModelError, match=r"a vocabulary of 64 tokens.* one of 80"):
        llm.load(random={**TINY, "vocab_size": 80}, draft=llm.Draft(model=llm.load(random=TINY)))


def test_commands_take_a_draft_model(capsys):
    arguments = ["generate", str(TRAINED), PROMPTS[0], "--max-tokens", "16"]
    assert main(arguments) == 0
    plain = capsys.readouterr().out
    assert main([*arguments, "--draft", SMALL, "--draft-tokens", "3"]) == 0
    assert capsys.readouterr().out == plain
    bench = ["-p", "none", "-n", "12", "-b", "none", "-r", "1", "--draft", SMALL, "--json"]
    assert main(["bench", "llm", str(TRAINED), *bench]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][-1]
    assert (row["test"], row["status"], row["tokens"]) == ("draft12", "ok", 12)
    assert row["plain_ms"] > 0 and row["ms"] > 0


def test_a_server_writes_with_a_draft_model(trained, small):
    draft = llm.Draft(model=small, tokens=3, always=True)
    body = {"prompt": PROMPTS[1], "max_tokens": 16, "temperature": 0}
    wanted = trained.generate(PROMPTS[1], max_tokens=16).text
    with llm.Engine(trained, max_rows=2, draft=draft) as engine, serving(engine) as client:
        status, made = client.post("/v1/completions", body)
        assert status == 200 and made["choices"][0]["text"] == wanted
        assert engine.stats()["accepted_tokens"] > 0
