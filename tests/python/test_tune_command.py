"""kernwright tune: what files say of a session, what the options change, and what is printed."""

import json
import sys
import types

import numpy as np
import pytest

import kernwright as kw
from kernwright.cli import main
from kernwright.cli.tune import budget
from kernwright.tune import _spec

SCALE = """
__global__ void scale(float* y, const float* x, float a, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x * TILE)
    y[i] = a * x[i];
}
"""

SPEC = {
    "kernel_file": "scale.cu",
    "kernel_name": "scale",
    "parameters": {"BLOCK": [32, 64], "TILE": "range(1, 4)"},
    "restrictions": ["BLOCK * TILE <= 128", "n % BLOCK == 0"],
    "problem": {"n": 256},
    "arguments": [
        {"name": "y", "dtype": "float32", "shape": "n"},
        {"name": "x", "dtype": "float32", "shape": ["n"], "fill": "random"},
        {"dtype": "float32", "value": 2.5},
        {"dtype": "int32", "value": "n"},
    ],
    "grid": "-(-n // (BLOCK * TILE))",
    "block": "BLOCK",
    "default": {"BLOCK": 32, "TILE": 1},
    "budget": {"evaluations": 4},
}


class FakeSession:
    """What the command asks of a session."""

    def __init__(self, **given):
        self.given = given
        self.trials = []
        self.reason = "budget"

    def run(self, progress=None):
        assert progress == "live"
        self.trials = [
            types.SimpleNamespace(status="correct", error=None),
            types.SimpleNamespace(status="compile", error="no such thing\nline 2"),
        ]
        config = {"BLOCK": 64, "TILE": 1}
        return types.SimpleNamespace(
            config=config, median=0.25, interval=(0.2, 0.3), ties=[config, {"BLOCK": 32}],
        )  # fmt: skip

    def report(self, path):
        with open(path, "w") as file:
            file.write("report")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.cu").write_text(SCALE)
    return tmp_path


@pytest.fixture
def made(monkeypatch):
    """The sessions that were made."""
    sessions = []

    def make(**given):
        sessions.append(FakeSession(**given))
        return sessions[-1]

    monkeypatch.setattr(kw.tune, "Session", make, raising=False)
    return sessions


def write(folder, **changed):
    path = folder / "spec.json"
    keys = {**SPEC, **changed}
    path.write_text(json.dumps({k: v for k, v in keys.items() if v is not ...}))
    return str(path)


def test_a_json_file_says_all_of_a_session(folder):
    found = _spec.read_json(write(folder))
    y, x, a, n = found["args"]
    assert y.shape == x.shape == (256,) and y.dtype == x.dtype == a.dtype == np.float32
    assert not y.any() and 0 <= x.min() < x.max() <= 1 and (a, n) == (2.5, 256)
    assert n.dtype == np.int32 and [dict(c) for c in found["space"]] == [
        {"BLOCK": b, "TILE": t} for b, t in ((32, 1), (32, 2), (32, 3), (64, 1), (64, 2))
    ]
    assert found["grid"] == SPEC["grid"] and found["problem"] == {"n": 256}
    again = _spec.read_json(write(folder))["args"]
    assert np.array_equal(x, again[1])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kernel_file": ...}, "source"),
        ({"source": SCALE}, "kernel_file"),
        ({"kernel_file": 5}, "a path"),
        ({"paramters": {}}, "'paramters'"),
        ({"parameters": ...}, "parameters is a JSON object"),
        ({"parameters": {}}, "parameters"),
        ({"parameters": {"A": 5}}, "A is a list"),
        ({"parameters": {"A": "__import__('os')"}}, "range()"),
        ({"restrictions": "a < 1"}, "restrictions is a list"),
        ({"restrictions": ["BLOCK <"]}, "column"),
        ({"device_restrictions": {"thread": 1}}, "'thread'"),
        ({"problem": [1]}, "problem is a JSON object"),
        ({"arguments": {"a": 1}}, "arguments is a list"),
        ({"arguments": [5]}, "argument 1 is a JSON object"),
        ({"arguments": [{"dtype": "float32"}]}, "a shape for an array"),
        ({"arguments": [{"dtype": "float32", "shape": 1, "value": 1}]}, "a shape for an array"),
        ({"arguments": [{"dtype": "floot32", "value": 1}]}, "no dtype"),
        ({"arguments": [{"dtype": ["a"], "value": 1}]}, "no dtype"),
        ({"arguments": [{"dtype": "int8", "value": 300}]}, "argument 1"),
        ({"arguments": [{"name": "q", "value": "m * 2"}]}, "(q)"),
        ({"arguments": [{"shape": -1}]}, "at least 0"),
        ({"arguments": [{"shape": 1.5}]}, "whole numbers"),
        ({"arguments": [{"shape": [1 << 20, 1 << 20]}]}, "64 GiB"),
        ({"arguments": [{"shape": 4, "fill": "ones"}]}, "fill is a number"),
        ({"options": {"stdd": "c++17"}}, "stdd"),
        ({"verify": "numpy"}, "a Python file"),
        ({"constants": [1]}, "constants is a JSON object"),
        ({"constants": {"w": {"shape": -3}}}, "constant 1"),
    ],
)  # fmt: skip
def test_a_wrong_json_file_is_told_with_its_name(folder, capsys, made, changed, said):
    assert main(["tune", write(folder, **changed)]) == 2
    got = capsys.readouterr()
    assert said in got.err and "spec.json" in got.err and got.out == "" and not made


def test_a_file_that_is_missing_within_a_spec_is_named(folder, capsys, made):
    assert main(["tune", write(folder, kernel_file="none.cu")]) == 2
    assert "none.cu cannot be read: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import numpy\nx = 1 / 0\n", "line 2 raised ZeroDivisionError: division by zero"),
        ("import no_such_package\n", "line 1 raised ModuleNotFoundError"),
        ("x = \n", "raised SyntaxError"),
        ("def session(**options):\n    return [][1]\n", "line 2 raised IndexError"),
        ("import kernwright as kw\nspace = kw.tune.Space(A=5)\n", "line 2 raised ArgumentError"),
    ],
)
def test_a_python_file_that_raises_is_told_in_one_line(folder, capsys, text, said):
    (folder / "raises.py").write_text(text)
    assert main(["tune", "raises.py"]) == 2
    told = capsys.readouterr().err
    assert "the session file 'raises.py'" in told and said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("name", ["verify", "objective"])
def test_functions_of_a_file_that_raise_are_told(folder, capsys, sim, name):
    (folder / "raises.py").write_text(
        "import numpy as np, kernwright as kw\n"
        "kernel = kw.kernel('__global__ void f(float* x) { x[threadIdx.x] = BLOCK; }')\n"
        "space = kw.tune.Space(BLOCK=[32])\n"
        "args, grid, block = (np.ones(32, 'f4'),), 1, 'BLOCK'\n"
        f"def {name}(x):\n    raise LookupError('mine')\n"
    )
    assert main(["tune", "raises.py"]) == 2
    assert "'raises.py', line 6 raised LookupError: mine" in capsys.readouterr().err


def test_options_replace_what_the_file_says(folder, made, capsys):
    path = write(folder, strategy="random", seed=3)
    words = ["--budget", "2min,50", "--seed", "7", "--store", "s.jsonl", "--report", "r.html"]
    assert main(["tune", path, *words]) == 0
    given = made[0].given
    assert given["budget"] == {"seconds": 120.0, "evaluations": 50}
    assert (given["seed"], given["strategy"], given["store"]) == (7, "random", "s.jsonl")
    out = capsys.readouterr().out
    assert "BLOCK=64, TILE=1" in out and "0.25 ms (0.2 to 0.3)" in out and "r.html" in out
    assert "2: 1 correct, 1 compile" in out and (folder / "r.html").read_text() == "report"
    assert main(["tune", write(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["config"] == {"BLOCK": 64, "TILE": 1} and found["median"] == 0.25
    assert found["statuses"] == {"correct": 1, "compile": 1} and found["reason"] == "budget"


def test_a_python_file_imports_what_lies_beside_it(folder, made):
    (folder / "beside_spec.py").write_text("SEED = 11\n")
    (folder / "spec.py").write_text(
        "from beside_spec import SEED\nkernel, space, args, seed = 1, 2, (), SEED\n"
    )
    path = list(sys.path)
    assert main(["tune", str(folder / "spec.py")]) == 0
    assert made[-1].given["seed"] == 11 and sys.path == path


def test_a_python_file_defines_a_session_in_three_ways(folder, made, capsys):
    path = folder / "spec.py"
    use = "from kernwright import tune\n"
    path.write_text(use + "def session(**options):\n    return tune.Session(seed=1, **options)\n")
    assert main(["tune", str(path), "--budget", "9"]) == 0
    assert made[-1].given == {"seed": 1, "budget": {"evaluations": 9}}
    path.write_text(use + "session = tune.Session(seed=2)\n")
    assert main(["tune", str(path)]) == 0
    assert made[-1].given == {"seed": 2}
    path.write_text("kernel, space, args, grid, other = 1, 2, (3,), 4, 5\n")
    assert main(["tune", str(path), "--seed", "5"]) == 0
    assert made[-1].given == {"kernel": 1, "space": 2, "args": (3,), "grid": 4, "seed": 5}


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("x = 1", [], "defines neither"),
        ("session = 5", [], "is a kw.tune.Session"),
        ("def session():\n    return 5", [], "made a int"),
        ("def session():\n    return 5", ["--seed", "1"], "does not take --seed"),
        ("class S:\n    def run(self): pass\nsession = S()", ["--seed", "1"], "cannot change it"),
    ],
)
def test_a_python_file_without_a_session_is_told(folder, capsys, made, text, words, said):
    (folder / "spec.py").write_text(text)
    assert main(["tune", "spec.py", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["none.json", ".", "scale.cu"])
def test_what_is_no_specification_is_wrong_use(folder, capsys, name):
    assert main(["tune", name]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("words", [["--report", "none/r.html"], ["--store", "."]])
def test_places_to_write_are_looked_at_first(folder, capsys, made, words):
    assert main(["tune", write(folder), *words]) == 2
    assert not made


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("60s", {"seconds": 60.0}),
        ("1.5min", {"seconds": 90.0}),
        ("2h", {"seconds": 7200.0}),
        ("200", {"evaluations": 200}),
        ("gpu=20s, 50", {"gpu_seconds": 20.0, "evaluations": 50}),
        ("target=0.5", {"target": 0.5}),
        ("target=1e-3", {"target": 0.001}),
    ],
)
def test_budgets(text, found):
    assert budget(text) == found


@pytest.mark.parametrize(
    "text", ["", "s", "-5s", "0", "0s", "1.5", "60s,5s", "gpu=", "nan", "5 apples", "target=5s",
             "1.2.3s", "inf"]
)  # fmt: skip
def test_wrong_budgets(folder, capsys, made, text):
    assert main(["tune", write(folder), f"--budget={text}"]) == 2
    assert "--budget" in capsys.readouterr().err and not made


def test_options_of_a_t1_file_reach_the_compiler(folder):
    given = ["-std=c++20", "--use_fast_math", "-DWIDE=4", "-maxrregcount=40"]
    options = _spec.read_json(t1(folder, CompilerOptions=given))["kernel"]._program.options
    assert (options.std, options.fast_math, options.max_registers) == ("c++20", True, 40)
    assert options.defines == {"WIDE": "4"}


def t1(folder, **changed):
    spec = {
        "Language": "CUDA", "CompilerOptions": ["-std=c++11"], "KernelName": "scale",
        "KernelFile": "kernels/scale.cu", "ProblemSize": [256, 4],
        "LocalSize": {"X": "BLOCK", "Y": "1", "Z": "1"}, "GridDivX": ["BLOCK", "TILE"],
        "Arguments": [
            {"Name": "y", "Type": "float", "MemoryType": "Vector", "FillType": "Constant",
             "Size": "ProblemSize[0]*ProblemSize[1] + max(TILE) - 1", "FillValue": 3.0},
            {"Name": "n", "Type": "int", "MemoryType": "Scalar", "FillValue": 7},
        ],
        **changed,
    }  # fmt: skip
    document = {
        "General": {}, "KernelSpecification": {k: v for k, v in spec.items() if v is not ...},
        "ConfigurationSpace": {
            "TuningParameters": [{"Name": "BLOCK", "Type": "int", "Values": "[32, 64]"},
                                 {"Name": "TILE", "Type": "int", "Values": "[1, 2, 3]"}],
            "Conditions": [{"Expression": "BLOCK * TILE <= 128", "Parameters": ["BLOCK", "TILE"]}],
        },
    }  # fmt: skip
    path = folder / "t1.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_a_t1_file_says_all_of_a_session(folder):
    found = _spec.read_json(t1(folder))
    y, n = found["args"]
    assert y.shape == (256 * 4 + 2,) and (y == 3).all() and n == 7 and n.dtype == np.int32
    assert len(found["space"]) == 5
    grid = [kw.tune.Expression(text)(BLOCK=64, TILE=3) for text in found["grid"]]
    assert grid == [2, 4] and found["block"] == ("BLOCK", "1", "1")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"Language": "OpenCL"}, "OpenCL"),
        ({"ProblemSize": []}, "ProblemSize"),
        ({"ProblemSize": ["wide", 4]}, "'wide'"),
        ({"ProblemSize": [0, 4]}, "above 0"),
        ({"Arguments": [{"Name": "f", "Size": 1, "FillType": "BinaryRaw"}]}, "BinaryRaw"),
        ({"Arguments": [{"Name": "f", "Size": 1, "MemoryType": "Texture"}]}, "Texture"),
        ({"LocalSize": ...}, "LocalSize"),
        ({"CompilerOptions": "-O3"}, "CompilerOptions"),
        ({"Arguments": [{"Name": "f", "Type": "float", "Size": "ProblemSize[7]"}]}, "t1.json"),
    ],
)
def test_a_t1_file_that_cannot_run_is_told(folder, capsys, made, changed, said):
    assert main(["tune", t1(folder, **changed)]) == 2
    assert said in capsys.readouterr().err


def test_a_session_runs_from_a_file_to_its_report(folder, capsys, sim):
    """No fake here: compiled, run on the simulated device, kept, resumed, reported."""
    path = write(folder, budget=...)
    words = ["tune", path, "--store", "s.jsonl", "--report", "r.html", "--json"]
    assert main(words) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["trials"] == 5 and found["statuses"] == {"correct": 5}
    assert found["reason"] == "complete" and found["median"] is None and found["score"] > 0
    assert found["config"] in [{"BLOCK": b, "TILE": t} for b in (32, 64) for t in (1, 2, 3)]
    assert "scale: " in said.err  # plain lines, as stderr is no terminal
    page = (folder / "r.html").read_text()
    assert "Tuning scale on" in page and "#define BLOCK" in page and "y[i] = a * x[i];" in page
    rows = [json.loads(line) for line in (folder / "s.jsonl").read_text().splitlines()]
    assert sum(row["kind"] == "trial" for row in rows) == 5
    assert main(words) == 0  # from the store: nothing is compiled again
    again = json.loads(capsys.readouterr().out)
    assert again["config"] == found["config"] and again["trials"] == 5


def test_a_session_without_a_correct_trial_fails(folder, capsys, sim):
    (folder / "scale.cu").write_text(SCALE.replace("a * x[i];", "b * x[i];"))
    assert main(["tune", write(folder), "--report", "r.html"]) == 1
    said = capsys.readouterr()
    assert "none: no trial was correct" in said.out and "no configuration" in said.err
    assert said.out.count('identifier "b" is undefined') == 1
    assert "No trial was correct" in (folder / "r.html").read_text()


CONSTANT = """
__constant__ float weight[2];
__global__ void scale(float* y, int n) {
  for (int i = threadIdx.x; i < n; i += BLOCK + 0 * TILE) y[i] = weight[i % 2];
}
"""


def test_constant_memory_is_filled(folder, capsys, sim):
    (folder / "scale.cu").write_text(CONSTANT)
    values = {"dtype": "float32", "shape": 2, "fill": 7.0}
    arguments = [SPEC["arguments"][0], SPEC["arguments"][3]]
    path = write(
        folder, constants={"weight": values}, arguments=arguments, grid=1, verify="default"
    )
    assert main(["tune", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["statuses"] == {"correct": 4}
    rows = [
        {"Name": "y", "Type": "float", "MemoryType": "Vector", "Size": 64, "FillValue": 0},
        {"Name": "weight", "Type": "float", "MemType": "Constant", "Size": 2, "FillValue": 7.0},
        {"Name": "n", "Type": "int", "MemoryType": "Scalar", "FillValue": 64},
    ]
    found = _spec.read_json(t1(folder, Arguments=rows))
    assert list(found["constants"]) == ["weight"] and (found["constants"]["weight"] == 7).all()
    assert len(found["args"]) == 2
    assert main(["tune", t1(folder, Arguments=rows), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["statuses"] == {"correct": 5}


def test_an_array_of_constant_memory_may_be_an_argument_too(folder):
    text = CONSTANT.replace("float* y, int n", "float* y, float* weight_, int n")
    (folder / "scale.cu").write_text(text)
    rows = [
        {"Name": "y", "Type": "float", "MemoryType": "Vector", "Size": 64, "FillValue": 0},
        {"Name": "weight", "Type": "float", "MemoryType": "Vector", "MemType": "Constant",
         "Size": 2, "FillValue": 7.0},
        {"Name": "n", "Type": "int", "MemoryType": "Scalar", "FillValue": 64},
    ]  # fmt: skip
    found = _spec.read_json(t1(folder, Arguments=rows))
    assert list(found["constants"]) == ["weight"] and len(found["args"]) == 3
    assert found["args"][1] is found["constants"]["weight"]
    (folder / "scale.cu").write_text(CONSTANT)
    rows[1] = {**rows[1], "MemoryType": "Symbol", "MemType": "Global"}
    found = _spec.read_json(t1(folder, Arguments=rows))
    assert list(found["constants"]) == ["weight"] and len(found["args"]) == 2


def test_an_interrupt_leaves_what_was_found(folder, capsys, monkeypatch):
    class Interrupted(FakeSession):
        def run(self, progress=None):
            self.best = super().run(progress)
            raise KeyboardInterrupt

    monkeypatch.setattr(kw.tune, "Session", Interrupted)
    assert main(["tune", write(folder), "--report", "r.html", "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["config"] == {"BLOCK": 64, "TILE": 1}
    assert "interrupted" in said.err and (folder / "r.html").is_file()
