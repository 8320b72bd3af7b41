"""kernwright generate and kernwright chat with the trained tiny model."""

import io
import pathlib
import sys

import pytest

import kernwright as kw
from kernwright.cli import main

TINY = str(pathlib.Path(__file__).parents[1] / "data" / "tiny_llama")


def test_generate_prints_what_the_model_writes(capsys):
    expected = kw.llm.load(TINY).generate("import os", max_tokens=12).text
    assert main(["generate", TINY, "import os", "--max-tokens", "12"]) == 0
    out, err = capsys.readouterr()
    assert out == expected + "\n"
    assert "tokens in" in err and "tokens/s" in err and "kernwright: on " in err


def test_generate_takes_and_prints_tokens_without_a_tokenizer(capsys):
    config = f"{TINY}/config.json"
    assert main(["generate", "--random", config, "--tokens", "1,2", "--max-tokens", "3"]) == 0
    assert len(capsys.readouterr().out.split()) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([TINY], 2, "give a prompt, or --tokens"),
        ([TINY, "a", "--tokens", "1"], 2, "give a prompt, or --tokens"),
        ([TINY, "--tokens", "1,x"], 2, "--tokens are numbers, got '1,x'"),
        (["/none", "a"], 1, "/none does not exist"),
        ([TINY, "a", "--temperature", "-1"], 2, "temperature is 0 or more"),
        ([TINY, "a", "--quantize", "q1"], 2, "quantize is one of"),
        ([TINY, "a", "--tokenizer", "/none"], 1, "/none does not exist"),
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
    assert capsys.readouterr().out == expected + "\n"
