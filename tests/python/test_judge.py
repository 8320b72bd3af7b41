"""The judge: verdicts for right and wrong kernels, errors for tasks that cannot judge."""

import dataclasses
import json
import os
import subprocess
import sys
import threading

import judge_good
import numpy as np
import pytest
from judge_tasks import AFFINE, GOOD, TOTAL, affine

import kernwright as kw

SIMULATED = os.environ.get("KERNWRIGHT_DEVICE", "sim").startswith("sim")


@pytest.fixture(scope="module")
def judge():
    with kw.Judge(2) as made:
        yield made


def test_a_right_kernel_is_accepted():
    verdict = kw.judge(GOOD, AFFINE, seed=3)
    assert verdict.accepted and verdict.status == "accepted" and not verdict.reason
    assert verdict.seed == 3
    assert {case.number for case in verdict.cases} == set(range(8))
    assert all(case.status == "correct" for case in verdict.cases)
    assert verdict.timing.median > 0
    assert verdict.timing.is_counted == SIMULATED
    low, high = verdict.timing.interval
    assert low <= verdict.timing.median <= high
    assert verdict.speedup is None
    assert verdict.seconds >= verdict.compile_seconds + verdict.check_seconds
    assert str(verdict).startswith("accepted")


def test_the_json_is_the_verdict(judge):
    verdict = judge.judge(GOOD.replace("+ 1", "+ 2"), AFFINE, baseline=GOOD)
    data = json.loads(verdict.to_json())
    names = {field.name for field in dataclasses.fields(kw.Verdict)} - {"_json"}
    assert set(data) == names
    assert data["status"] == "wrong" == verdict.status
    case = data["cases"][-1]
    assert case["argument"] == "y"
    assert case["difference"]["place"] == "[0]"
    assert float(case["difference"]["got"]) == pytest.approx(
        float(case["difference"]["expected"]) + 1, rel=1e-5
    )


def test_a_case_of_a_verdict_can_be_replayed(judge):
    verdict = judge.judge(GOOD.replace("if (i < n)", "if (i < n && i != 77)"), AFFINE, seed=9)
    case = verdict.cases[-1]
    assert verdict.status == "wrong" and case.difference.index == 77
    x, y, n = AFFINE.inputs(case.seed, case.number)
    expected = AFFINE.reference(x, y, n)[1]
    assert float(case.difference.expected) == expected[77]
    assert case.arguments == [f"float32[{n}]", f"float32[{n}]", str(n)]


def test_the_same_seed_gives_the_same_verdict(judge):
    def without_times(text):
        data = json.loads(text)
        return {name: data[name] for name in ("status", "reason", "findings", "cases", "seed")}

    wrong = GOOD.replace("if (i < n)", "if (i < n && i % 5 != 3)")
    one, other = (judge.judge(wrong, AFFINE, seed=12).to_json() for _ in range(2))
    assert without_times(one) == without_times(other)
    drawn = {judge.judge(GOOD, AFFINE, seed=None).seed for _ in range(3)}
    assert len(drawn) == 3


def test_a_finding_has_its_line(judge):
    race = GOOD.replace("2 * x[i] + 1;", "2 * x[i] + 1 + 0 * x[i + 1];")
    verdict = judge.judge(race, AFFINE)
    assert verdict.status == "finding"
    assert (verdict.findings[0].kind, verdict.findings[0].line) == ("bounds", 3)


def test_diagnostics_count_lines_of_the_text(judge):
    verdict = judge.judge(GOOD.replace("x[i]", "z[i]"), AFFINE)
    assert verdict.status == "compile"
    first = verdict.diagnostics[0]
    assert (first.severity, first.file, first.line) == ("error", "kernel.cu", 3)
    assert "z" in first.message


def test_a_baseline_makes_a_speedup(judge):
    slow = GOOD.replace("2 * x[i] + 1", "x[i] + x[i] + 1 + (x[0] - x[0]) + (x[n / 2] - x[n / 2])")
    verdict = judge.judge(GOOD, AFFINE, baseline=slow)
    assert verdict.accepted, str(verdict)
    assert verdict.baseline.median > 0
    assert verdict.speedup == pytest.approx(verdict.baseline.median / verdict.timing.median)
    if SIMULATED:
        assert verdict.speedup > 1.2


BAD_BASELINES = {
    "does not compile": ("nonsense", "compile"),
    "has no text": ("", "compile"),
    "has no entry": ("__global__ void other() {}", "compile"),
    "takes more": (GOOD.replace("int n)", "int n, int m)"), "compile"),
    "does nothing": (GOOD.replace("if (i < n)", "if (false)"), "wrong"),
    "is wrong": (GOOD.replace("+ 1", "+ 2"), "wrong"),
    "is wrong for some": (GOOD.replace("if (i < n)", "if (i < n && n > 400)"), "wrong"),
    "writes outside": (GOOD.replace("if (i < n)", "if (i == 0) y[n] = 1; if (i < n)"), "finding"),
    "faults": (GOOD.replace("y[i] =", "y[i + (1ll << 40)] ="), "finding|crash"),
    "traps": (GOOD.replace("if (i < n)", "__trap(); if (i < n)"), "finding|crash"),
    "changes its input": (
        GOOD.replace("if (i < n)", "if (i < n) const_cast<float*>(x)[i] = 7; if (i < n)"),
        "cheating|wrong",
    ),
}


@pytest.mark.parametrize("text, status", BAD_BASELINES.values(), ids=BAD_BASELINES.keys())
def test_a_baseline_that_is_no_measure_is_the_task_s_fault(judge, text, status):
    with pytest.raises(kw.InvalidArgument, match=f'the baseline .* is "({status})": .'):
        judge.judge(GOOD, AFFINE, baseline=text)
    assert judge.judge(GOOD, AFFINE, baseline=GOOD).speedup > 0


def test_an_endless_baseline_costs_its_worker_alone():
    with kw.Judge(1) as judge:
        endless = GOOD.replace("if (i < n)", "while (n > 0) if (i < n)")
        seconds = 2 if SIMULATED else 10  # a GPU serves other tests' processes meanwhile
        words = rf'the baseline .* is "timeout": case 0 .* {seconds}000 ms'
        with pytest.raises(kw.InvalidArgument, match=words):
            judge.judge(GOOD, AFFINE, baseline=endless, timeout=seconds)
        assert judge.losses >= 1
        assert judge.judge(GOOD, AFFINE, baseline=GOOD).accepted


def test_a_kernel_that_is_refused_has_its_verdict_whatever_the_baseline_does(judge):
    wrong = GOOD.replace("+ 1", "+ 2")
    assert judge.judge(wrong, AFFINE, baseline=GOOD.replace("+ 1", "+ 3")).status == "wrong"


def test_a_baseline_may_add_to_zeros_where_the_kernel_overwrites(judge):
    def inputs(seed, case):
        n = 2000 - 31 * case
        x = np.random.default_rng([seed, case]).standard_normal(n, np.float32)
        return x, np.zeros(n, np.float32), n

    adds = GOOD.replace("y[i] = 2", "y[i] += 2")
    verdict = judge.judge(GOOD, affine(inputs=inputs), baseline=adds)
    assert verdict.accepted and verdict.speedup, str(verdict)


def test_a_baseline_must_take_the_inputs_of_a_task_without_a_signature(judge):
    with pytest.raises(kw.InvalidArgument, match="the baseline does not take the task's inputs"):
        judge.judge(GOOD, affine(signature=None), baseline=GOOD.replace("int n", "int n, int m"))


def test_what_no_device_can_do_is_impossible(judge):
    task = affine(bytes=1e15)
    verdict = judge.judge(GOOD, task)
    assert verdict.status == "impossible" and "less than" in verdict.reason
    honest = affine(bytes=lambda x, y, n: x.nbytes + y.nbytes, flops=lambda x, y, n: 2 * n)
    verdict = judge.judge(GOOD, honest)
    assert verdict.accepted, str(verdict)
    assert 0 < verdict.floor <= verdict.timing.median


def test_grids_blocks_and_shared_memory(judge):
    text = """extern __shared__ float part[];
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] = 2 * part[threadIdx.x] + 1;
}"""
    shapes = [
        {"block": 64, "shared_bytes": 256},
        {"block": (32, 1), "grid": lambda x, y, n: (-(-n // 32), 1, 1), "shared_bytes": 128},
        {"block": lambda x, y, n: 128, "shared_bytes": lambda x, y, n: 512},
    ]
    for shape in shapes:
        verdict = judge.judge(text, affine(**shape))
        assert verdict.accepted, str(verdict)
    assert judge.judge(text, affine(grid=1, block=64, shared_bytes=256)).status == "wrong"
    narrow = text.replace("__global__ void", "__global__ void __launch_bounds__(64)")
    assert judge.judge(narrow, affine(block=128, shared_bytes=512)).status == "crash"


def test_a_difference_tells_numbers_that_are_none(judge):
    def reason(text):
        verdict = judge.judge(text, AFFINE)
        assert verdict.status == "wrong"
        difference = verdict.cases[-1].difference
        return verdict.reason, difference

    text, difference = reason(GOOD.replace("+ 1", '+ nanf("")'))
    assert "5000 of 5000 elements differ, all by NaN or infinity" in text
    assert difference.not_finite == difference.count == 5000
    text, difference = reason(GOOD.replace("+ 1", "+ (i % 5 == 0 ? 1 / 0.f : 2)"))
    assert "5000 of 5000 elements differ: 1000 by NaN or infinity, the others by at most 1" in text
    assert (difference.not_finite, difference.count) == (1000, 5000)


def test_a_grid_that_waits_for_itself(judge):
    text = """#include <cooperative_groups.h>
__device__ int sum;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) sum = 0;
  cooperative_groups::this_grid().sync();
  atomicAdd(&sum, 1);
  cooperative_groups::this_grid().sync();
  if (i < n) y[i] = 2 * x[i] + (atomicAdd(&sum, 0) == gridDim.x * blockDim.x ? 1 : 0);
}"""
    verdict = judge.judge(text, affine(cooperative=True))
    assert verdict.accepted, str(verdict)


def test_no_word_of_a_file_gets_into_a_verdict(judge):
    for code in ("y[i] = zz;", "y[i] = x[i + 100000000];", "__trap();"):
        text = '#line 1 "/etc/passwd"\n' + GOOD.replace("if (i < n)", code + " if (i < n)")
        verdict = judge.judge(text, AFFINE)
        assert not verdict.accepted and "root:" not in verdict.to_json()


def test_an_interrupt_ends_a_judgement(tmp_path):
    (tmp_path / "task.py").write_text(TASK_FILE)
    (tmp_path / "endless.cu").write_text(GOOD.replace("if (i < n)", "while (n > 0) if (i < n)"))
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 0 and "interrupted" in out


INTERRUPTED = """
import os, pathlib, signal, threading, time
import kernwright as kw
from kernwright.cli.judge import load_task
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the parent ignores it
task = load_task("task.py")
with kw.Judge(1, device="sim") as judge:
    threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    try:
        judge.judge(pathlib.Path("endless.cu"), task, timeout=60)
    except KeyboardInterrupt:
        assert time.monotonic() - start < 20
        print("interrupted")
"""


def test_headers_of_the_task_are_the_only_ones(judge):
    text = '#include "scale.h"\n' + GOOD.replace("2 * x", "SCALE * x")
    assert judge.judge(text, affine(headers={"scale.h": "#define SCALE 2"})).accepted
    assert judge.judge(text, AFFINE).status == "compile"


def test_what_a_task_allows(judge):
    clock = GOOD.replace("+ 1", "+ 1 + (clock64() == 0 ? 1 : 0)")
    assert judge.judge(clock, AFFINE).status == "cheating"
    assert judge.judge(clock, affine(allow=["clock"])).accepted
    heap = GOOD.replace("if (i < n)", "int* p = (int*)malloc(4); free(p); if (i < n)")
    assert judge.judge(heap, AFFINE).status == "compile"
    assert judge.judge(heap, affine(allow=["malloc"])).accepted


def test_structs_scalars_and_many_types(judge):
    text = """struct Pair { float a; int b; };
__global__ void k(Pair p, double d, unsigned long long u, bool on, const Pair* in, Pair* out) {
  if (threadIdx.x == 0 && on) out[0] = {in[0].a + p.a + (float)d, in[0].b + p.b + (int)(u >> 60)};
}"""
    pair = np.dtype([("a", np.float32), ("b", np.int32)])

    def inputs(seed, case):
        value = np.array([(1.5, case)], pair)
        return value[0], 0.25, 1 << 63, True, value, np.zeros(1, pair)

    def reference(p, d, u, on, source, out):
        assert isinstance(p, np.void) and p.dtype == pair and u == 1 << 63 and source.dtype == pair
        expected = np.array([(source["a"][0] + p["a"] + d, source["b"][0] + p["b"] + 8)], pair)
        return None, None, None, None, None, expected

    verdict = judge.judge(text, kw.Task(entry="k", inputs=inputs, reference=reference, grid=1))
    assert verdict.accepted, str(verdict)


def test_a_single_array_is_for_the_argument_that_is_written(judge):
    assert judge.judge(GOOD, affine(reference=lambda x, y, n: 2.0 * x + 1)).accepted
    many = affine(signature="float* x, float* y, int n", reference=lambda x, y, n: x)
    with pytest.raises(kw.InvalidArgument, match="return a tuple"):
        judge.judge(GOOD.replace("const ", ""), many)


class Tensor:
    """The attributes of a torch.Tensor used by the judge."""

    dtype = "torch.float64"

    def __init__(self, array):
        self.array = array

    def detach(self):
        return self

    cpu = detach

    def is_complex(self):
        return False

    def numpy(self):
        return self.array


def test_tensors_as_expected_values(judge):
    task = affine(reference=lambda x, y, n: (None, Tensor(x * np.float64(2) + 1), None))
    assert judge.judge(GOOD, task).accepted
    assert judge.judge(GOOD.replace("+ 1", "+ 2"), task).status == "wrong"


def test_empty_arrays(judge):
    inputs = kw.Inputs(x="float32[n]", y="float32[n]", n="size", most=300, least=0)
    assert inputs(0, 1)[2] == 0
    assert judge.judge(GOOD, affine(inputs=inputs)).accepted
    none = kw.Inputs(x="float32[n]", y="float32[n]", n="size", most=0, least=0)
    with pytest.raises(kw.InvalidArgument, match="empty"):
        judge.judge(GOOD, affine(inputs=none))


def test_wrong_calls(judge):
    for source, task, options in (
        (3, AFFINE, {}),
        (GOOD, "task", {}),
        (GOOD, AFFINE, {"seed": "x"}),
        (GOOD, AFFINE, {"timeout": None}),
        (GOOD, AFFINE, {"checks": [3]}),
    ):
        with pytest.raises(kw.ArgumentError):
            judge.judge(source, task, **options)
    for options in ({"seed": -1}, {"timeout": 0}, {"timeout": float("nan")}, {"checks": "speed"}):
        with pytest.raises(kw.InvalidArgument):
            judge.judge(GOOD, AFFINE, **options)
    for workers in (0, -1, 5000):
        with pytest.raises(kw.InvalidArgument):
            kw.Judge(workers)
    with pytest.raises(kw.ArgumentError):
        kw.Judge("2")


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "x" * 100, "#" * 1000, "/*"])
def test_texts_that_are_none(judge, text):
    assert judge.judge(text, AFFINE).status == "compile"


def test_a_closed_judge_judges_no_more():
    judge = kw.Judge(1)
    assert judge.judge(GOOD, AFFINE).accepted
    judge.close()
    judge.close()
    with pytest.raises(kw.InvalidArgument, match="closed"):
        judge.judge(GOOD, AFFINE)


def test_many_futures_and_threads(judge):
    futures = [judge.submit(GOOD, AFFINE, seed=seed) for seed in range(6)]
    accepted = []
    threads = [
        threading.Thread(target=lambda: accepted.append(judge.judge(GOOD, TOTAL).status))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    assert all(future.result().accepted for future in futures)
    for thread in threads:
        thread.join()
    assert accepted == ["compile"] * 3


def test_a_lost_worker_is_replaced():
    with kw.Judge(1) as judge:
        endless = GOOD.replace("if (i < n)", "while (n > 0)")
        assert judge.judge(endless, AFFINE, timeout=2).status == "timeout"
        assert judge.judge(GOOD, AFFINE).accepted
        assert judge.losses >= 1


GOOD_KERNELS = list(judge_good.kernels())


@pytest.mark.parametrize("name, text, task", GOOD_KERNELS[::9], ids=lambda v: str(v)[:40])
def test_no_false_alarm(judge, name, text, task):
    verdict = judge.judge(text, task)
    assert verdict.accepted, str(verdict)


def test_there_are_enough_good_kernels():
    assert len(GOOD_KERNELS) >= 200
    assert len({name for name, _, _ in GOOD_KERNELS}) == len(GOOD_KERNELS)


# --- the command ----------------------------------------------------------------------------------

TASK_FILE = """
import numpy as np
import kernwright as kw

print("a task may print")
task = kw.Task(
    entry="affine",
    signature="const float* x, float* y, int n",
    inputs=kw.Inputs(x="float32[n]", y="float32[n]", n="size", most=2000),
    reference=lambda x, y, n: (None, 2.0 * x + 1, None),
)
other = kw.Task(entry="f", inputs=task.inputs, reference=task.reference)
nothing = 3
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "task.py").write_text(TASK_FILE)
    (tmp_path / "good.cu").write_text(GOOD)
    (tmp_path / "wrong.cu").write_text(GOOD.replace("+ 1", "+ 2"))
    return tmp_path


def command(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "kernwright", "judge", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


def test_command(folder):
    result = command(folder, "task.py", "good.cu", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["status"] == "accepted"
    result = command(folder, "task.py", "good.cu", "wrong.cu", "--json", "--baseline", "good.cu")
    assert result.returncode == 1
    assert [each["status"] for each in json.loads(result.stdout)] == ["accepted", "wrong"]
    result = command(folder, "task.py", "wrong.cu")
    assert result.returncode == 1 and "wrong.cu: wrong: case 0" in result.stdout
    result = command(folder, "task.py", "good.cu", "--baseline", "wrong.cu")
    assert result.returncode == 2 and "the baseline cannot serve" in result.stderr


def test_wrong_use_of_the_command(folder):
    (folder / "raises.py").write_text("x = 1\nraise ValueError('oh')\n")
    (folder / "empty.py").write_text("")
    useless = TASK_FILE.replace("2.0 * x + 1", "x[1:]")
    (folder / "useless.py").write_text(useless)
    for arguments, words in (
        (("no.py", "good.cu"), "no file 'no.py'"),
        (("task.py", "no.cu"), "no file 'no.cu'"),
        (("raises.py", "good.cu"), "line 2 raised ValueError: oh"),
        (("empty.py", "good.cu"), "defines no task"),
        (("task.py", "good.cu", "--name", "nothing"), "is of type int"),
        (("task.py", "good.cu", "--name", "tasks"), "it has task, other"),
        (("task.py", "good.cu", "--checks", "speed"), "speed"),
        (("task.py", "good.cu", "--workers", "0"), "workers"),
        (("useless.py", "good.cu"), "the reference returned"),
        (("good.cu", "good.cu"), "no Python file"),
    ):
        result = command(folder, *arguments)
        assert result.returncode == 2, (arguments, result)
        assert words in result.stderr, (arguments, result.stderr)
        assert not result.stdout
