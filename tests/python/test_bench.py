"""kernwright bench: measured, kept and compared values, and its failures."""

import json
import pathlib

import numpy as np
import pytest

import kernwright as kw
from kernwright.bench import Benchmark, Case, Skip, _tables, benchmark, compare, run
from kernwright.bench._compare import ratio_interval, regressions
from kernwright.cli import main

FILE = """
import kernwright as kw
from beside import STEPS
work = kw.kernel('''__global__ void work(float* x, int n) {
  for (int i = 0; i < n; ++i) x[threadIdx.x] += 1.0f; }''')

@kw.bench.benchmark(n=[8, 16], dtype=["float32"])
def adds(n, dtype):
    x = kw.zeros(32, dtype=dtype)
    return kw.bench.Case(lambda: work[1, 32](x, n * STEPS), bytes=256, flops=32 * n,
                         check=lambda: (x.numpy() == n * STEPS).all())

@kw.bench.benchmark
def plain():
    x = kw.zeros(32, dtype="float32")
    return lambda: work[1, 32](x, 1)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, sim):
    """A folder with a file of benchmarks, on the simulated device: its counts never vary."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench_mine.py").write_text(FILE)
    (tmp_path / "beside.py").write_text("STEPS = 10\n")
    yield tmp_path
    import sys

    sys.modules.pop("beside", None)


def steps(folder, count):
    import sys

    sys.modules.pop("beside", None)
    # Bytecode counts as that of a file of the same second and size.
    (folder / "beside.py").write_text(f"STEPS = {count}\n" + "#" * count + "\n")


def run_json(capsys, *words):
    code = main(["bench", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_file_is_measured_at_each_point(folder, capsys):
    code, found = run_json(capsys, "bench_mine.py")
    assert code == 0 and found["kind"] == "bench"
    assert [(r["name"], r["axes"]) for r in found["rows"]] == [
        ("adds", {"n": 8, "dtype": "float32"}), ("adds", {"n": 16, "dtype": "float32"}),
        ("plain", {}),
    ]  # fmt: skip
    assert [r["checked"] for r in found["rows"]] == [True, True, False]
    small, large, _ = found["rows"]
    assert small["unit"] == "counts"
    assert small["median"] == sum(small["counts"].values()) < large["median"]
    assert code == 0 and len(run_json(capsys, ".", "--quick")[1]["rows"]) == 2


def test_axes_can_be_chosen(folder, capsys):
    def points(*words):
        _, found = run_json(capsys, "bench_mine.py", "-k", "adds", *words)
        return [tuple(row["axes"].values()) for row in found["rows"]]

    assert points("--sizes", "3,5") == [(3, "float32"), (5, "float32")]
    assert points("--axis", "n=3", "--dtypes", "float32") == [(3, "float32")]


def test_a_slow_down_of_20_percent_is_a_regression(folder, capsys):
    steps(folder, 100)
    assert main(["bench", "bench_mine.py", "--save", "base"]) == 0
    assert (folder / ".kernwright" / "bench" / "base.json").is_file()
    same = ["bench", "bench_mine.py", "--compare", "base", "--fail-on-regression", "5"]
    assert main(same) == 0
    assert "same 1.000x" in capsys.readouterr().out
    steps(folder, 120)
    assert main(same) == 1
    said = capsys.readouterr()
    assert "slower 1.1" in said.out and said.err.count("regression: adds") == 2
    assert "regression: plain" not in said.err
    assert main(same[:-1] + ["25"]) == 0
    assert main(same[:-2]) == 0
    steps(folder, 50)
    assert main(same) == 0
    assert "faster 0.5" in capsys.readouterr().out


def test_a_run_may_replace_what_it_is_compared_with(folder, capsys):
    assert main(["bench", "bench_mine.py", "--save", "last"]) == 0
    steps(folder, 5)
    assert main(["bench", "bench_mine.py", "--save", "last", "--compare", "last"]) == 0
    assert "faster" in capsys.readouterr().out
    assert main(["bench", "bench_mine.py", "--compare", "last"]) == 0
    assert "faster" not in capsys.readouterr().out


def test_a_saved_run_is_shown(folder, capsys):
    assert main(["bench", "bench_mine.py", "--save", "mine.json"]) == 0
    told = capsys.readouterr().out
    assert main(["bench", "--show", "mine.json"]) == 0
    assert capsys.readouterr().out == told
    assert main(["bench", "--show", "mine.json", "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("| benchmark |")
    assert run_json(capsys, "--show", "mine.json")[1] == json.loads(
        pathlib.Path("mine.json").read_text()
    )


def test_other_devices_are_refused_before_anything_is_measured(folder, capsys):
    assert main(["bench", "bench_mine.py", "--save", "run.json"]) == 0
    found = json.loads((folder / "run.json").read_text())
    for fact, value in (("name", "NVIDIA H100"), ("multiprocessors", 7), ("is_simulated", False)):
        other = {**found, "device": {**found["device"], fact: value}}
        (folder / "run.json").write_text(json.dumps(other))
        capsys.readouterr()
        assert main(["bench", "bench_mine.py", "--compare", "run.json"]) == 2
        said = capsys.readouterr()
        assert "different devices" in said.err and str(value) in said.err and said.out == ""


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"kind": "bench", "v": 2}', '{"kind": "trial"}', "\xff"]
)
def test_a_file_that_is_no_run_is_refused(folder, capsys, text):
    (folder / "run.json").write_bytes(text.encode("latin-1"))
    assert main(["bench", "bench_mine.py", "--compare", "run.json"]) == 2
    assert "run.json" in capsys.readouterr().err


def test_rows_of_a_damaged_run_do_not_count(folder, capsys):
    assert main(["bench", "bench_mine.py", "--save", "run.json"]) == 0
    found = json.loads((folder / "run.json").read_text())
    found["rows"][0]["samples"] = ["x", None]
    found["rows"][1]["samples"] = [0.0]
    (folder / "run.json").write_text(json.dumps(found))
    assert main(["bench", "bench_mine.py", "--compare", "run.json"]) == 0
    out = capsys.readouterr().out
    assert out.count(" new") == 2
    for row in (7, {}, {"name": "adds", "axes": {}}):
        (folder / "run.json").write_text(json.dumps({**found, "rows": [row]}))
        assert main(["bench", "bench_mine.py", "--compare", "run.json"]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.py"], "no file"),
        (["bench_mine.py", "-k", "zzz"], "adds, plain"),
        (["bench_mine.py", "--axis", "m=1"], "no benchmark has an axis 'm'"),
        (["bench_mine.py", "--axis", "n"], "NAME=VALUE"),
        (["bench_mine.py", "--axis", "n=1,,2"], "empty value"),
        (["bench_mine.py", "--axis", "n=1", "--sizes", "2"], "given twice"),
        (["bench_mine.py", "--fail-on-regression", "5"], "--compare"),
        (["bench_mine.py", "--compare", "x", "--fail-on-regression", "-5"], "at least 0"),
        (["bench_mine.py", "--compare", "x", "--fail-on-regression", "nan"], "at least 0"),
        (["bench_mine.py", "--compare", "x"], "there is: none"),
        (["bench_mine.py", "--save", "../x"], "no name of a run"),
        (["bench_mine.py", "--save", "none/x.json"], "no folder"),
        (["beside.py"], "no benchmark"),
        ([".kernwright"], "no file"),
    ],
)
def test_wrong_use_is_told(folder, capsys, words, said):
    assert main(["bench", *words]) == 2
    got = capsys.readouterr()
    assert said in got.err and got.out == ""


def test_what_fails_is_told_and_the_rest_goes_on(folder, capsys):
    (folder / "bench_bad.py").write_text(
        "import kernwright as kw\nfrom bench_mine import plain\n"
        "@kw.bench.benchmark(n=[1, 2])\ndef odd(n):\n    raise ValueError(f'no {n}')\n"
        "@kw.bench.benchmark\ndef wrong():\n"
        "    return kw.bench.Case(plain(), check=lambda: False)\n"
        "@kw.bench.benchmark\ndef asserts():\n    def check():\n        assert 1 == 2, 'one|two'\n"
        "    return kw.bench.Case(plain(), check=check)\n"
        "@kw.bench.benchmark\ndef later():\n    raise kw.bench.Skip('needs a moon')\n"
        "@kw.bench.benchmark\ndef nothing():\n    return 7\n"
    )
    assert main(["bench", "bench_bad.py", "--markdown"]) == 1
    said = capsys.readouterr()
    assert "| odd | n=1 |" in said.out and "ValueError: no 2" in said.out
    assert "wrong: the check says no" in said.out and "wrong: one\\|two" in said.out
    assert "skipped: needs a moon" in said.out and "| plain |" in said.out
    assert "ArgumentError: the benchmark nothing returns a kw.bench.Case" in said.out
    assert "5 cases wrong or failed" in said.err
    lines = said.out.strip().splitlines()
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    (folder / "bench_bad.py").write_text("raise KeyError('x')\n")
    assert main(["bench", "bench_bad.py"]) == 2
    assert "'bench_bad.py', line 1 raised KeyError: 'x'" in capsys.readouterr().err


def test_a_benchmark_that_breaks_is_a_regression():
    good = {"name": "a", "axes": {}, "status": "ok", "unit": "ms", "policy": "cold",
            "samples": [1.0, 1.01, 0.99]}  # fmt: skip
    gone = {**good, "name": "b"}
    device = {"name": "x"}
    for status, verdict, count in (("error", "broken", 1), ("wrong", "broken", 1),
                                   ("skipped", "skipped", 0)):  # fmt: skip
        new = {"device": device, "rows": [{**good, "status": status}]}
        found = compare(new, {"device": device, "rows": [good, gone]})
        assert [row["verdict"] for row in found] == [verdict, "gone"]
        assert len(regressions(found, 5.0)) == count
    other = {"device": device, "rows": [gone]}
    with pytest.raises(kw.InvalidArgument, match="nothing to compare"):
        compare({"device": device, "rows": [good]}, other)
    warm = {**good, "policy": "warm"}
    (row,) = compare({"device": device, "rows": [warm]}, {"device": device, "rows": [good]})
    assert row["verdict"] == "measured otherwise"


def test_verdicts_hold_under_noise():
    """Of runs without a difference few are told apart; one of 5 % always is."""
    draw = np.random.default_rng(5)

    def made(scale):
        samples = list(scale * draw.lognormal(0, 0.02, 60))
        row = {"name": "a", "axes": {}, "status": "ok", "unit": "ms", "policy": "cold"}
        return {"device": {}, "rows": [{**row, "samples": samples}]}

    alike = [compare(made(1.0), made(1.0))[0]["verdict"] for _ in range(60)]
    assert {"slower", "faster"} & set(alike) == set()
    slower = [compare(made(1.05), made(1.0))[0]["verdict"] for _ in range(60)]
    assert slower.count("slower") > 57
    covered = 0
    for _ in range(100):
        new, old = draw.lognormal(0.1, 0.05, 40), draw.lognormal(0, 0.05, 40)
        low, high = ratio_interval(list(new), list(old))
        covered += low <= np.exp(0.1) <= high
    assert covered >= 88


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: benchmark(7), kw.ArgumentError),
        (lambda: benchmark(n=5)(lambda n: None), kw.ArgumentError),
        (lambda: benchmark(n="ab")(lambda n: None), kw.ArgumentError),
        (lambda: benchmark(n=[])(lambda n: None), kw.InvalidArgument),
        (lambda: benchmark(n=[1, 1])(lambda n: None), kw.InvalidArgument),
        (lambda: benchmark(n=[object()])(lambda n: None), kw.ArgumentError),
        (lambda: benchmark(m=[1])(lambda n: None), kw.NameNotFound),
        (lambda: benchmark(lambda n: None), kw.InvalidArgument),
        (lambda: benchmark(name="")(lambda: None), kw.ArgumentError),
        (lambda: Case(5), kw.ArgumentError),
        (lambda: Case(print, check=5), kw.ArgumentError),
        (lambda: Case(print, bytes=-1), kw.InvalidArgument),
        (lambda: run([7]), kw.ArgumentError),
        (lambda: run([benchmark(lambda: print, name="x")] * 2), kw.InvalidArgument),
        (lambda: compare({}, {}), kw.InvalidArgument),
        (lambda: compare(7, {}), kw.InvalidArgument),
    ],
)
def test_wrong_benchmarks_are_refused(make, error):
    with pytest.raises(error):
        make()


def test_decorated_functions_stay_functions():
    @benchmark(n=[1, 2], name="twice")
    def double(n, extra=1):
        return lambda: n

    assert isinstance(double, Benchmark) and double.name == "twice"
    assert double(n=3)() == 3 and len(list(double.points())) == 2
    assert repr(double) == "Benchmark(twice; n: 2)"


def test_the_list_runs_nothing(folder, capsys):
    (folder / "bench_list.py").write_text(
        "import kernwright as kw\n@kw.bench.benchmark(n=[1, 2])\ndef never(n):\n    1 / 0\n"
    )
    assert main(["bench", "bench_list.py", "--list"]) == 0
    assert capsys.readouterr().out.split() == ["never", "n:", "1,", "2"]
    assert main(["bench", "bench_list.py", "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"name": "never", "axes": {"n": [1, 2]}}]


def test_half_an_interval_is_told_as_a_part_of_the_median():
    row = {"name": "a", "axes": {}, "status": "ok", "checked": True, "unit": "ms", "median": 2.0,
           "interval": [1.0, 5.0]}  # fmt: skip
    assert _tables.cells(row)[2:4] == ["2 ms", "1e+02 %"]


def test_skip_is_public():
    assert issubclass(Skip, Exception) and pathlib.Path(kw.bench.__file__).name == "__init__.py"


def test_a_timer_measures_one_thing_at_a_time(sim):
    timer = kw._core._Timer()
    effort = {
        "policy": "warm", "min_samples": 3, "max_samples": 3, "max_seconds": 0.1, "noise": 0.1
    }  # fmt: skip
    with pytest.raises(kw.InvalidArgument, match="is measuring"):
        timer.measure(lambda: timer.measure(lambda: None, **effort), **effort)
    with pytest.raises(ZeroDivisionError):
        timer.measure(lambda: 1 / 0, **effort)
    with pytest.raises(kw.InvalidArgument):
        timer.measure(lambda: None, **{**effort, "policy": "hot"})
    x = kw.zeros(1)
    assert timer.measure(lambda: x._fill(1), **effort)["counts"] is not None
    assert kw.current_stream().handle == 0  # the timer's stream is no longer the current one
