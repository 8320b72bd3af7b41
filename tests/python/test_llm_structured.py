"""Model.generate() and its siblings with a form: every text that ends is of the form."""

import json
import pathlib
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import pytest
import tiny_tokenizers as tiny

from kernwright import llm
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.llm._guide.compiler import Compiler

TINY = pathlib.Path(__file__).parents[1] / "data" / "tiny_llama"
FIELDS = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64,
    "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 256,
    "dtype": "float32",
}  # fmt: skip
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
        "kind": {"enum": ["def", "class"]},
    },
    "required": ["name", "kind"],
    "additionalProperties": False,
}
PROMPT = "def main("


@pytest.fixture(scope="module")
def model():
    return llm.load(TINY, dtype="float32")


def check(made, is_right, least=1):
    """Texts that ended are right, and so many ended."""
    ended = [each for each in made if each.finish_reason != "length"]
    assert len(ended) >= least and all(each.finish_reason == "stop" for each in ended)
    for each in ended:
        assert is_right(each.text), each.text


def validates(text):
    jsonschema.validate(json.loads(text), SCHEMA)
    return True


def test_texts_of_a_schema_over_many_seeds(model):
    options = {"max_tokens": 60, "temperature": 1.0, "schema": SCHEMA}
    made = model.generate([PROMPT, "import os"], n=6, seed=1, **options)
    check([each for choices in made for each in choices], validates, least=6)
    greedy = model.generate(PROMPT, schema=json.dumps(SCHEMA), max_tokens=100)
    assert greedy.finish_reason == "stop" and validates(greedy.text)


def test_texts_of_the_other_forms(model):
    options = {"max_tokens": 40, "temperature": 1.5, "n": 6, "seed": 3}
    regex = r"(def|class) [a-z_]{1,9}\(\):"
    check(model.generate(PROMPT, regex=regex, **options), re.compile(regex).fullmatch, 6)
    choices = ["self", "return None", "\u20ac 5"]
    check(model.generate(PROMPT, choices=choices, **options), choices.__contains__, 6)
    grammar = 'start: "[" /[1-9]{1,3}/ ("," /[1-9]{1,3}/)* "]"'
    made = model.generate(PROMPT, grammar=grammar, **options)
    check(made, lambda text: isinstance(json.loads(text), list))


def test_streams_and_stop_strings(model):
    whole = model.generate(PROMPT, schema=SCHEMA, max_tokens=100)
    pieces = list(model.stream(PROMPT, schema=SCHEMA, max_tokens=100))
    assert "".join(piece.text for piece in pieces) == whole.text
    assert [p.token for p in pieces if p.token is not None] == whole.tokens
    assert [p.finish_reason for p in pieces if p.finish_reason] == ["stop"]
    cut = model.generate(PROMPT, schema=SCHEMA, max_tokens=100, stop=["kind"])
    assert cut.text == whole.text[: whole.text.index("kind")] and cut.finish_reason == "stop"
    short = model.generate(PROMPT, schema=SCHEMA, max_tokens=3)
    assert short.finish_reason == "length" and short.tokens == whole.tokens[:3]


def test_equal_seeds_and_neighbours(model):
    options = {"max_tokens": 12, "temperature": 1.0, "seed": 9}
    free = model.generate(["import os", PROMPT], **options)
    guided = model.generate(PROMPT, choices=["a b c", "import sys"], **options)
    with llm.Engine(model, max_rows=4, kv_memory=1 << 22) as engine:
        requests = [
            engine.submit("import os", **options),
            engine.submit(PROMPT, choices=["a b c", "import sys"], **options),
            engine.submit(PROMPT, **options),
        ]
        made = [request.result(timeout=300) for request in requests]
    assert made[0].tokens == free[0].tokens and made[2].tokens == free[1].tokens
    assert made[1].tokens == guided.tokens and made[1].text in ("a b c", "import sys")


def test_requests_of_an_engine_with_forms(model, monkeypatch):
    with llm.Engine(model, max_rows=4, kv_memory=1 << 22) as engine:
        with pytest.raises(InvalidArgument, match="regex"):
            engine.submit(PROMPT, regex="[")
        made = engine.submit(PROMPT, schema=SCHEMA, max_tokens=60, n=3, temperature=1.0, seed=2)
        check(made.result(timeout=300), validates)
        left = engine.submit(PROMPT, regex="[a-z]*", max_tokens=200, ignore_eos=True)
        next(iter(left))
        left.cancel()

        class Failing:
            def advance(self, token):
                if token is None:
                    return mask
                raise RuntimeError("the grammar is out of order")

            start = lambda self: self  # noqa: E731

        guide = engine.submit(PROMPT, choices=["ab"], max_tokens=4)
        assert guide.result(timeout=300).text == "ab"
        mask = b"\xff" * ((model.config.vocab_size + 31) // 32 * 4)
        monkeypatch.setattr(Compiler, "compile", lambda self, form: Failing())
        failing = engine.submit(PROMPT, choices=["ab"], max_tokens=4)
        neighbour = engine.submit(PROMPT, max_tokens=12)
        with pytest.raises(llm.ModelError, match="out of order"):
            failing.result(timeout=300)
        assert len(neighbour.result(timeout=300).tokens) == 12
        stats = engine.stats()
    assert stats["failed"] == 1 and stats["aborted"] == 1


def test_other_requests_begin_while_the_first_masks_are_made(model, monkeypatch):
    begun, may_go_on = threading.Event(), threading.Event()
    guide = Compiler.compile
    started = []

    class Slow:
        def __init__(self, guide):
            self.guide = guide

        def start(self):
            begun.set()
            started.append(may_go_on.wait(60))
            return self.guide.start()

    monkeypatch.setattr(Compiler, "compile", lambda *form: Slow(guide(*form)))
    with llm.Engine(model, max_rows=4, kv_memory=1 << 22) as engine, ThreadPoolExecutor(2) as pool:
        try:
            guided = pool.submit(lambda: engine.submit(PROMPT, choices=["ab"], max_tokens=4, n=2))
            assert begun.wait(60)
            light = pool.submit(lambda: engine.submit(PROMPT, max_tokens=3).result(timeout=60))
            assert len(light.result(60).tokens) == 3
            assert not guided.done()
        finally:
            may_go_on.set()
        assert [each.text for each in guided.result(60).result(timeout=300)] == ["ab", "ab"]
        assert started == [True, True]
        begun.clear()
        may_go_on.clear()
        late = pool.submit(lambda: engine.submit(PROMPT, choices=["ab"], max_tokens=4))
        assert begun.wait(60)
        engine.close()
        may_go_on.set()
        with pytest.raises(llm.EngineClosed):
            late.result(60)


@pytest.mark.parametrize("kind", ["pairs", "gguf"])
def test_random_models_with_tokenizers_of_other_files(kind, tmp_path):
    """Padded vocabularies, leading spaces of SentencePiece, no training at all."""
    if kind == "gguf":
        metadata = tiny.gguf_of_pieces(tiny.scored_pieces())
        tokenizer = llm.Tokenizer(tiny.write_gguf(tmp_path / "m.gguf", metadata))
    else:
        path = tiny.folder_of(
            tmp_path, tiny.byte_level(), tokenizer_config={"eos_token": "</s>", "bos_token": "<s>"}
        )
        tokenizer = llm.Tokenizer(path)
    model = llm.load(random=FIELDS | {"vocab_size": len(tokenizer) + 37})
    model.tokenizer = tokenizer
    prompt = [tokenizer.bos]
    options = {"max_tokens": 80, "temperature": 1.0, "n": 10, "seed": 4}
    check(model.generate(prompt, schema=SCHEMA, **options), validates, least=3)
    choices = [" one", "two  ", "three .", " 'm"]
    made = model.generate(prompt, choices=choices, **options)
    check(made, choices.__contains__, least=10)
    assert len({each.text for each in made}) > 1


def test_what_makes_no_sense_is_refused(model):
    for options, error in [
        ({"schema": {"type": "frob"}}, InvalidArgument),
        ({"regex": "a", "choices": ["a"]}, ArgumentError),
        ({"choices": "ab"}, ArgumentError),
        ({"regex": "a", "min_tokens": 2}, InvalidArgument),
    ]:
        with pytest.raises(error):
            model.generate(PROMPT, **options)
    assert model.generate(PROMPT, regex="").text == ""
    bare = llm.load(random=FIELDS | {"vocab_size": 64})
    with pytest.raises(InvalidArgument, match="tokenizer"):
        bare.generate([1], regex="a")
    assert len(model.generate(PROMPT, max_tokens=3).tokens) == 3
