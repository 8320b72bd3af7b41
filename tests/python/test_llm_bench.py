"""kernwright bench llm: rows of prompts, texts and steps, as a table and as JSON."""

import json
import pathlib

import numpy as np
import pytest
from model_files import weights_of

import kernwright as kw
from kernwright import llm
from kernwright.cli import main

TINY = str(pathlib.Path(__file__).parents[1] / "data" / "tiny_llama")
FEW = ["--steps", "2", "-r", "2", "--context", "8"]


def test_rows_are_measured(capsys):
    rows = ["-p", "4,9", "-n", "3", "-b", "1,2"]
    assert main(["bench", "llm", TINY, *rows, *FEW, "--json", "--max-seq-len", "64"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "bench llm" and document["model"]["max_length"] == 64
    found = [(row["test"], row["batch"]) for row in document["rows"]]
    assert found == [("pp4", 1), ("pp9", 1), ("tg3", 1), ("step@8", 1), ("step@8", 2)]
    for row in document["rows"]:
        assert row["status"] == "ok"
        assert 0 < row["ms_low"] <= row["ms"] <= row["ms_high"]
        tokens = {"pp": int(row["test"][2:]) if row["test"][:2] == "pp" else 0}.get(
            row["test"][:2], row["batch"]
        )
        mean = row.get("step_ms", row["ms"])
        assert row["tokens_per_second"] == pytest.approx(1e3 * tokens / mean)


@pytest.mark.parametrize("quantize", [None, "fp8", "q8_0"])
def test_the_model_is_described(quantize, capsys):
    options = [] if quantize is None else ["--quantize", quantize]
    config = f"{TINY}/config.json"
    none = ["-p", "none", "-n", "none", "-b", "none"]
    assert main(["bench", "llm", "--random", config, *none, "--json", *options]) == 0
    model = json.loads(capsys.readouterr().out)["model"]
    arrays = weights_of(llm.load(random=config, quantize=quantize))
    own = [each for path, each in arrays.items() if "head" not in path]  # which is the embedding
    assert model["bytes"] == sum(each.nbytes for each in own)
    whole = llm.load(random=config).module.named_parameters()
    assert model["parameters"] == sum({id(each): each.size for _, each in whole}.values())
    assert model["random"] and model["quantize"] == quantize


def test_what_the_context_does_not_hold_is_skipped(capsys):
    arguments = ["-p", "4,64", "-n", "none", "-b", "none", "-r", "1", "--max-seq-len", "32"]
    assert main(["bench", "llm", TINY, *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["test", "batch", "ms", "quartiles", "tokens/s"]
    assert lines[2].split()[:2] == ["pp4", "1"] and len(lines[2].split()) == 5
    assert "skipped: 65 tokens, and the context holds 32" in lines[3]


def test_a_row_that_fails_leaves_the_others(capsys, monkeypatch):
    class Full(kw.OutOfMemory):
        pass

    def made(self, lengths, *options):
        if len(lengths) > 1:
            raise Full("no place")
        return made.engine(self, lengths, *options)

    generator = type(llm.load(TINY)._generator)
    made.engine = generator.engine
    monkeypatch.setattr(generator, "engine", made)
    arguments = ["-p", "none", "-n", "2", "-b", "2,1", "--json", *FEW]
    assert main(["bench", "llm", TINY, *arguments]) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["status"] for row in rows] == ["ok", "error", "ok"]
    assert rows[1]["why"] == "Full: no place"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([TINY, "-p", "0"], "--prompts '0': numbers from 1 on"),
        ([TINY, "-b", "1,x"], "--batch-sizes '1,x': numbers from 1 on"),
        ([TINY, "--steps", "0"], "--steps is 1 at least, got 0"),
        ([], "give a MODEL, or --random CONFIG"),
    ],
)
def test_wrong_use(arguments, message, capsys):
    assert main(["bench", "llm", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_another_benchmark_may_be_called_llm(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "llm").mkdir()
    assert main(["bench", "./llm"]) == 2
    assert "no bench_*.py file in './llm'" in capsys.readouterr().err


def test_quartiles_are_numpys():
    from kernwright.llm import _measuring

    times = np.random.default_rng(3).random(7).tolist()
    found = _measuring._quartiles(times)
    ordered = sorted(1e3 * each for each in times)
    assert found["ms"] == pytest.approx(ordered[3])
    assert found["ms_low"] == pytest.approx((ordered[1] + ordered[2]) / 2)
