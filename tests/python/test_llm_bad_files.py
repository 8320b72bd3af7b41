"""Damaged files of tokenizers and templates: a ModelError that names the file, nothing else."""

import base64
import copy
import json
import random
import warnings

import pytest
import tiny_tokenizers as tiny

from kernwright import llm

VALUES = [None, True, 3, -1, 2.5, "x", "", [], ["x"], [None], {}, {"a": 1}, 1 << 40, "\ud800"]


@pytest.fixture(scope="module")
def pairs():
    return tiny.byte_level(size=300)


@pytest.fixture(scope="module")
def pieces():
    return tiny.scored_pieces(size=300)


def used(path):
    """Loads a tokenizer and uses all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = llm.Tokenizer(path)
    ids = tokenizer.encode("It's 20 \u20ac\n")
    tokenizer.decode(ids)
    tokenizer.decode(list(range(len(tokenizer))), skip_special_tokens=False)
    if tokenizer.chat_template is not None:
        tokenizer.encode_chat([{"role": "user", "content": "Hi"}])


def refused(path, *said):
    """Whether it is refused; then its message names the file (or one beside it)."""
    try:
        used(path)
    except llm.ModelError as error:
        folder = path if path.is_dir() else path.parent
        assert str(folder) in str(error), error
        for each in said:
            assert each in str(error), error
        return True
    return False


def changed(value, rng):
    """A copy with one value of it replaced or dropped, and the way to it."""
    value = copy.deepcopy(value)
    place, way = value, []
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = rng.choice(keys)
        way.append(key)
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.3:
            break
        place = inner
    if isinstance(place, dict) and rng.random() < 0.3:
        del place[key]
    else:
        place[key] = copy.deepcopy(rng.choice(VALUES))
    return value, way


def test_changed_values_of_tokenizer_json(pairs, tmp_path):
    rng = random.Random(1)
    spec = json.loads(pairs.to_str())
    path = tmp_path / "tokenizer.json"
    count = 0
    for _ in range(200):
        broken, _ = changed(spec, rng)
        path.write_text(json.dumps(broken))
        count += refused(path)
    assert count > 50


@pytest.mark.parametrize("name", ["tokenizer_config", "generation_config", "special_tokens_map"])
def test_changed_values_beside_it(name, pairs, tmp_path):
    rng = random.Random(2)
    content = {
        "bos_token": "<s>",
        "eos_token": {"content": "</s>"},
        "eos_token_id": [1, 2],
        "add_bos_token": True,
        "clean_up_tokenization_spaces": False,
        "added_tokens_decoder": {"300": {"content": "<a>", "special": True, "lstrip": False}},
        "chat_template": [{"name": "default", "template": "{{ messages[0].content }}"}],
    }
    count = 0
    for _ in range(200):
        broken, _ = changed(content, rng)
        count += refused(tiny.folder_of(tmp_path / "m", pairs, **{name: broken}))
    assert count > 10


def test_errors_name_the_field(pairs, tmp_path):
    for content, said in (
        ({"bos_token": 3}, ("tokenizer_config.json", "bos_token must be a text, got 3")),
        ({"bos_token": {}}, ("no field bos_token.content",)),
        ({"add_bos_token": "yes"}, ("add_bos_token must be true or false, got 'yes'",)),
        ({"added_tokens_decoder": {"x": {"content": "a"}}}, ("the id 'x'",)),
        ({"chat_template": [{"name": "a"}]}, ("no field chat_template[0].template",)),
        ({"chat_template": "{% if %}"}, ("chat template", "line 1")),
        ([], ("tokenizer_config.json", "an object")),
    ):
        folder = tiny.folder_of(tmp_path / "m", pairs, tokenizer_config=content)
        assert refused(folder, *said), content
    (folder / "tokenizer_config.json").write_bytes(b'{"a": \xff}')
    assert refused(folder, "tokenizer_config.json", "not UTF-8")
    (folder / "tokenizer_config.json").write_text('{"a": ')
    assert refused(folder, "tokenizer_config.json", "no JSON")
    (folder / "tokenizer_config.json").write_text("[" * 100_000)
    assert refused(folder, "tokenizer_config.json", "nested too deep")
    (folder / "tokenizer_config.json").write_text("{}")
    (folder / "config.json").write_text('{"eos_token_id": "2"}')
    assert refused(folder, "config.json", "eos_token_id must be token ids, got '2'")
    (folder / "config.json").write_text('{"text_config": 3}')
    assert refused(folder, "config.json", "text_config must be an object, got 3")
    spec = json.loads(pairs.to_str())
    del spec["model"]
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    assert refused(folder, "tokenizer.json has no field model")
    spec = json.loads(pairs.to_str())
    spec["decoder"] = {"type": "CTC"}
    (folder / "config.json").unlink()
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    assert refused(folder, "tokenizer.json")


@pytest.mark.parametrize("kind", ["pairs", "pieces", "t5", "bert"])
def test_changed_metadata_of_gguf(kind, pairs, pieces, tmp_path):
    made = tiny.gguf_of_pairs(pairs) if kind == "pairs" else tiny.gguf_of_pieces(pieces)
    made["tokenizer.ggml.add_bos_token"] = True
    made["tokenizer.chat_template"] = "{{ messages[0].content }}"
    if kind in ("t5", "bert"):
        made["tokenizer.ggml.model"] = kind
    rng = random.Random(3)
    values = [3, -1, 1 << 30, 2.5, True, "x", "", ["x"], [1, 2], [0.5], "\u2581", "{% if %}"]
    count = 0
    for _ in range(150):
        broken = dict(made)
        name = rng.choice(list(broken))
        if rng.random() < 0.2:
            del broken[name]
        elif isinstance(broken[name], list) and rng.random() < 0.5:
            broken[name] = broken[name][: rng.randrange(len(broken[name]))]
        else:
            broken[name] = rng.choice(values)
        count += refused(tiny.write_gguf(tmp_path / "m.gguf", broken))
    assert count > 20


def test_errors_of_gguf_name_the_field(pairs, pieces, tmp_path):
    pieces, pairs = tiny.gguf_of_pieces(pieces), tiny.gguf_of_pairs(pairs)
    for made, change, said in (
        (
            pieces,
            {"model": "rwkv"},
            "ggml.model is 'rwkv'; known are bert, gemma4, gpt2, llama, t5",
        ),
        (pieces, {"model": 3}, "tokenizer.ggml.model must be a text, got 3"),
        (pieces, {"tokens": []}, "tokenizer.ggml.tokens is an empty list"),
        (pieces, {"tokens": [1]}, "tokens must be a list of texts, got 1 at 0"),
        (pieces, {"scores": [0.5]}, "tokenizer.ggml.scores has 1 entries for"),
        (pieces, {"token_type": ["x"] * 400}, "token_type must be a list of numbers"),
        (pairs, {"merges": ["ab"]}, "tokenizer.ggml.merges has 'ab' at 0, which is no pair"),
        (pairs, {"merges": ["zz qq"]}, "cannot be used as a tokenizer"),
        (pairs, {"add_bos_token": 1}, "add_bos_token must be true or false, got 1"),
    ):
        broken = made | {f"tokenizer.ggml.{name}": value for name, value in change.items()}
        assert refused(tiny.write_gguf(tmp_path / "m.gguf", broken), "m.gguf", said)
    path = tmp_path / "m.gguf"
    path.write_bytes(path.read_bytes()[:100])
    assert refused(path, "m.gguf")


def test_damaged_bytes(pairs, pieces, tmp_path):
    rng = random.Random(4)
    ranks = {bytes([i]): i for i in range(256)}
    files = [
        tiny.write_gguf(tmp_path / "m.gguf", tiny.gguf_of_pairs(pairs)),
        tiny.write_sentencepiece(tmp_path / "m.model", pieces),
        tiny.write_tiktoken(tmp_path / "m.tiktoken", ranks),
        tiny.folder_of(tmp_path / "m", pairs) / "tokenizer.json",
    ]
    for path in files:
        content = path.read_bytes()
        used(path)
        count = 0
        for _ in range(120):
            broken = bytearray(content[: rng.randrange(1, len(content))])
            if rng.random() < 0.6:
                broken = bytearray(content)
                for _ in range(rng.randrange(1, 4)):
                    broken[rng.randrange(min(len(broken), 2000))] = rng.randrange(256)
            path.write_bytes(broken)
            count += refused(path)
        assert count > 40, path


def test_what_tiktoken_files_must_have(tmp_path):
    path = tmp_path / "m.tiktoken"
    line = [base64.b64encode(bytes([i])) + b" %d" % i for i in range(256)]
    for lines, said in (
        ([*line, b"YWI= x"], "line 257 is no base64 with a rank"),
        ([*line, b"Y?I= 256"], "line 257 is no base64"),
        ([*line, line[3]], "line 257 has b'\\x03', empty or for a second time"),
        (line[:200], "has no tokens for the bytes [200, 201"),
        ([], "has no tokens"),
    ):
        path.write_bytes(b"\n".join(lines))
        assert refused(path, "m.tiktoken", said), said
    path = tmp_path / "tekken.json"
    path.write_text('{"config": {"pattern": "a"}, "vocab": []}')
    assert refused(path, "no field config.default_num_special_tokens")


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_changed_templates():
    import chat_templates

    pytest.importorskip("jinja2")
    rng = random.Random(5)
    marks = ["{%", "%}", "{{", "}}", "for", "endfor", "(", "]", "|", "'", "**", "loop", "-", "[::"]
    for text in chat_templates.STYLES.values():
        for _ in range(50):
            at = rng.randrange(len(text))
            broken = text[:at] + rng.choice(marks) + text[at + rng.randrange(6) :]
            try:
                template = llm.ChatTemplate(broken, bos_token="<s>", eos_token="</s>")
                template.render([chat_templates.SYSTEM, chat_templates.USER, chat_templates.CALL])
            except ValueError as error:  # InvalidArgument and ModelError alone
                assert "chat template" in str(error), (broken, error)
