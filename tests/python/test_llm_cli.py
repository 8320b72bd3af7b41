"""kernwright generate and kernwright chat with the trained tiny model."""

import io
import itertools
import pathlib
import re
import sys

import pytest

import kernwright as kw
from kernwright.cli import _answer_view, main

TINY = str(pathlib.Path(__file__).parents[1] / "data" / "tiny_llama")


def test_generate_prints_what_the_model_writes(capsys):
    expected = kw.llm.load(TINY).generate("import os", max_tokens=12).text
    assert main(["generate", TINY, "import os", "--max-tokens", "12"]) == 0
    out, err = capsys.readouterr()
    assert out == expected + "\n"
    assert "tokens in" in err and "tokens/s" in err and "kernwright: on " in err


def test_generate_with_layers_on_the_host(capsys):
    expected = kw.llm.load(TINY).generate("import os", max_tokens=6).text
    assert main(["generate", TINY, "import os", "--max-tokens", "6", "--memory", "stream"]) == 0
    assert capsys.readouterr().out == expected + "\n"


def test_generate_takes_and_prints_tokens_without_a_tokenizer(capsys):
    config = f"{TINY}/config.json"
    assert main(["generate", "--random", config, "--tokens", "1,2", "--max-tokens", "3"]) == 0
    assert len(capsys.readouterr().out.split()) == 3


def test_help_of_generate_tells_defaults_and_what_random_models_take(capsys):
    with pytest.raises(SystemExit):
        main(["generate", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for text in ("--tokens IDS token ids", "with --random, which has no tokenizer",
                 "at most (default: 256)", "(default: 0, all)", "(default: auto)",
                 "(default: that of the config)", "(default: another one each time)"):  # fmt: skip
        assert text in shown


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([TINY], 2, "give a prompt, or --tokens"),
        ([TINY, "a", "--tokens", "1"], 2, "give a prompt, or --tokens"),
        ([TINY, "--tokens", "1,x"], 2, "--tokens are numbers, got '1,x'"),
        (["/none", "a"], 1, "/none does not exist"),
        ([TINY, "a", "--temperature", "-1"], 2, "temperature is 0 or more"),
        ([TINY, "a", "--quantize", "q1"], 2, "quantize is one of"),
        ([TINY, "a", "--quantize", "awq"], 2, "gptq, gptq_v2, awq are read from files only"),
        ([TINY, "a", "--tokenizer", "/none"], 1, "/none does not exist"),
        ([TINY, "a", "--memory", "stream", "--budget", "9 KB"], 1, "smallest that works is"),
        ([TINY, "a", "--budget", "much"], 2, "a budget is as 4000000000"),
    ],
)
def test_wrong_use_of_generate(arguments, code, message, capsys):
    assert main(["generate", *arguments]) == code
    assert message in capsys.readouterr().err


@pytest.mark.skipif(not kw.current_device().is_simulated, reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_an_error(capsys):
    assert main(["generate", TINY, "a", "--device", "cuda"]) == 1
    assert "--device cuda: there is no GPU here" in capsys.readouterr().err


def test_a_chat_has_commands_and_goes_on(monkeypatch, capsys):
    lines = ["hello", "/stats", "/clear", "/system be brief", "hello", "/stats", "/what", "/quit"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join([*lines, "never read"])))
    assert main(["chat", TINY, "--max-tokens", "4"]) == 0
    out = capsys.readouterr().out
    assert out.count("2 messages; ") == 2 and "4 tokens" in out and "8 tokens" in out
    assert "/clear forgets" in out


def test_one_message_of_a_chat(capsys):
    model = kw.llm.load(TINY)
    expected = model.chat([{"role": "user", "content": "hi"}], max_tokens=6).text
    assert main(["chat", TINY, "--message", "hi", "--max-tokens", "6"]) == 0
    out, err = capsys.readouterr()
    assert out == expected + "\n"
    assert "2 messages; 6 tokens, " in err and " tokens/s; " in err and "of 512 tokens of" in err


def test_a_conversation_that_outgrows_the_context_goes_on(monkeypatch, capsys):
    lines = ["a" * 600, "/stats", "hello", "/stats"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    assert main(["chat", TINY, "--max-tokens", "2"]) == 0
    out, err = capsys.readouterr()
    assert "the context holds 512; /clear begins anew" in err
    assert "0 messages; 0 tokens" in out and "2 messages; 2 tokens" in out


def test_generate_writes_several_texts_at_a_time(capsys):
    options = {"max_tokens": 5, "temperature": 1.0, "seed": 4}
    made = kw.llm.load(TINY).generate("def ", n=3, **options)
    flags = ["--max-tokens", "5", "--temperature", "1", "--seed", "4", "--batch-size", "3"]
    assert main(["generate", TINY, "def ", *flags]) == 0
    out, err = capsys.readouterr()
    assert out == "".join(f"[{i}] {each.text}\n" for i, each in enumerate(made, 1))
    count = sum(len(each.tokens) for each in made)
    assert f"{count} tokens of 3 texts in" in err
    assert main(["generate", TINY, "def ", "--batch-size", "0"]) != 0
    assert "n is from 1 to 16384, got 0" in capsys.readouterr().err


def test_generate_without_graphs_writes_the_same(capsys):
    written = []
    for flags in ([], ["--no-graph"]):
        assert main(["generate", TINY, "def ", "--max-tokens", "6", "--seed", "4", *flags]) == 0
        written.append(capsys.readouterr().out)
    assert written[0] == written[1] != ""


@pytest.mark.parametrize(
    ("command", "flag", "why"),
    [
        ("chat", "--batch-size", "one text at a time"),
        ("chat", "--cuda-graph", "one recorded graph"),
        ("chat", "--speculative", "--draft ngram from the text"),
        ("generate", "--draft-model", "--draft PATH guesses tokens"),
        ("generate", "--cuda-graph", "one recorded graph"),
    ],
)
def test_flags_without_a_use_are_refused_by_name(command, flag, why, capsys):
    with pytest.raises(SystemExit) as caught:
        main([command, TINY, flag])
    assert caught.value.code == 2
    assert f"{flag}: " in (err := capsys.readouterr().err) and why in err


TEXT = """# Title

One *word*.

```python
a = 1

b = 2
```

- x
- y"""


def test_blocks_of_markdown_are_whole():
    ends = {_answer_view.whole_blocks(TEXT[:i]) for i in range(len(TEXT) + 1)}
    assert {TEXT[:end].count("```") % 2 for end in ends} == {0}
    blocks = [TEXT[a:b].strip() for a, b in itertools.pairwise([*sorted(ends), len(TEXT)])]
    assert blocks == ["# Title", "One *word*.", TEXT[TEXT.index("```") : -8].strip(), "- x\n- y"]


def test_an_answer_is_shown_as_markdown():
    pytest.importorskip("rich")
    from rich.console import Console

    file = io.StringIO()
    view = _answer_view.RichView(Console(file=file, force_terminal=True, width=60))
    parser = kw.llm.MessageParser("hermes")
    text = f'<think>Let me see.</think>{TEXT}<tool_call>{{"name": "add", "arguments": '
    text += '{"a": 1}}</tool_call>'
    for _ in range(2):  # a view shows one answer after the other
        view.begin()
        for piece in text:
            view.add(piece, parser.push(piece))
        view.add("", parser.finish())
        view.end()
        parser = kw.llm.MessageParser("hermes")
    shown = file.getvalue()
    assert "\x1b[2mLet me see.\x1b[0m" in shown  # dim
    final = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    for part in ("Title", "One word.", "a = 1", "b = 2", " \u2022 x", " \u2022 y", 'add {"a": 1}'):
        assert final.count(part) >= 2, part
    assert "```" not in final.split("\n")[-3:] and "*word*" not in re.sub(
        "[^*a-z]", "", final[-50:]
    )


def test_plain_text_without_a_terminal(capsys):
    assert isinstance(_answer_view.answer_view(), _answer_view.PlainView)
