"""Sessions on the device at hand: outcomes, verification, stores."""

import json
import math
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading

import ml_dtypes
import numpy as np
import pytest
from tune_sessions import SCALE, N, X, session, space, statuses

import kernwright as kw
from kernwright.tune import Session, Space


def test_a_session_finds_the_best_of_a_small_space(tmp_path):
    tuned = session(default={"BLOCK": 128, "VEC": 2})
    best = tuned.run()
    assert len(tuned.trials) == 6
    assert {trial.status for trial in tuned.trials} == {"correct"}
    assert tuned.reason == best.reason == "complete"
    assert best.config in best.ties
    assert best.score == pytest.approx(best.time or best.score)
    (first,) = (trial for trial in tuned.trials if trial.config == {"BLOCK": 128, "VEC": 2})
    assert first.score is not None and first.code and first.resources.registers > 0
    assert list(first.config) == ["BLOCK", "VEC"]
    if kw.current_device().is_simulated:
        assert best.score == min(trial.score for trial in tuned.trials)
        assert first.time is None and first.metrics["instructions"] > 0
        assert best.default == first.score
    else:
        assert first.times and first.interval[0] <= first.time <= first.interval[1]
        assert best.interval[0] <= best.median <= best.interval[1]
        assert best.default > 0
    y = kw.zeros(N, dtype=np.float32)
    block, vec = best.config["BLOCK"], best.config["VEC"]
    best.kernel[-(-N // (block * vec)), block](kw.asarray(X), y, 3.0, N)
    np.testing.assert_allclose(y.numpy(), 3 * X)


def test_every_outcome_is_data():
    text = SCALE.replace(
        "{\n",
        """{
#if BAD == 1
  if (threadIdx.x == 0) y[(size_t)n + 1000000000] = 0;
#elif BAD == 2
  nonsense;
#elif BAD == 3
  a += 1;
#elif BAD == 4
  while (*(volatile float*)y != 1) {}  // NaN: compilers may drop a loop over a local variable
#elif BAD == 5
  if (n > 0) return;
#endif
""",
        1,
    )
    of = Space(BLOCK=[32, 4096], VEC=[1], BAD=range(6)).require("BAD == 0 or BLOCK == 32")
    tuned = session(text, of, run_timeout=3.0)
    best = tuned.run()
    assert best.config == {"BLOCK": 32, "VEC": 1, "BAD": 0}
    assert statuses(tuned) == {
        (32, 1, 0): "correct",
        (32, 1, 1): "runtime",
        (32, 1, 2): "compile",
        (32, 1, 3): "correctness",
        (32, 1, 4): "timeout",
        (32, 1, 5): "correctness",
        (4096, 1, 0): "constraints",
    }
    by_bad = {trial.config["BAD"]: trial for trial in tuned.trials if trial.config["BLOCK"] == 32}
    assert "nonsense" in by_bad[2].error
    assert "argument 1[0]" in by_bad[3].error
    assert "nan" in by_bad[5].error  # nothing was written: the poison is seen
    assert all(trial.error for trial in tuned.trials if trial.status != "correct")


def test_inputs_that_a_kernel_overwrites_are_put_back():
    text = """__global__ void twice(float* x, int n) {
      int i = blockIdx.x * BLOCK + threadIdx.x;
      if (i < n) x[i] = 2 * x[i] + 1;
    }"""
    tuned = Session(
        text, Space(BLOCK=[32, 64, 128, 256]), (X, N),
        grid="-(-n // BLOCK)", block="BLOCK", verify=lambda x, n: (2 * x + 1, None),
    )  # fmt: skip
    tuned.run()
    assert {trial.status for trial in tuned.trials} == {"correct"}
    np.testing.assert_array_equal(X, np.random.default_rng(7).random(N).astype(np.float32))


def test_who_writes_a_const_input_spoils_no_other_trial():
    text = SCALE.replace(
        "y[i + k] = a * x[i + k];",
        "{ y[i + k] = a * x[i + k]; if (VEC == 1) ((float*)x)[i + k] = 7; }",
    )
    tuned = session(text, of=Space(BLOCK=[32, 64], VEC=[1, 2, 4]))
    tuned.run()
    found = {(trial.config["BLOCK"], trial.config["VEC"]): trial for trial in tuned.trials}
    assert all((trial.status == "correct") == (vec > 1) for (_, vec), trial in found.items())
    assert "x) is const in the kernel's signature" in found[64, 1].error
    wrong = session(text.replace("VEC == 1", "VEC == 1 && (y[i + k] = 3)"), of=tuned.space)
    wrong.run()
    assert statuses(wrong) == {
        (block, vec): "correctness" if vec == 1 else "correct"
        for block in (32, 64)
        for vec in (1, 2, 4)
    }


def test_outputs_hold_other_contents_before_each_verified_launch():
    """Who writes only over NaN, or only over what is none, is wrong in one of the launches."""
    text = """__global__ void twice(const float* x, float* y, int n) {
      int i = blockIdx.x * 64 + threadIdx.x;
      if (i >= n || (MODE == 1 && y[i] == y[i]) || (MODE == 2 && y[i] != y[i])) return;
      y[i] = 2 * x[i];
    }"""
    x, y = X[:300].copy(), np.zeros(300, np.float32)
    tuned = Session(
        text, Space(MODE=[0, 1, 2]), (x, y, 300), grid=5, block=64, verify=(None, 2 * x, None)
    )
    tuned.run()
    found = {trial.config["MODE"]: trial.status for trial in tuned.trials}
    assert found == {0: "correct", 1: "correctness", 2: "correctness"}


def test_a_right_answer_in_the_given_output_is_no_excuse():
    text = """__global__ void twice(const float* x, float* y, int n) {
      int i = blockIdx.x * 64 + threadIdx.x;
      if (i < n && MODE == 0) y[i] = 2 * x[i];
      if (i < n && MODE == 1 && x[i] != 0) y[i] = 2 * x[i];
    }"""
    x = X[:300].copy()
    x[7] = 0
    for modes in ([0, 1, 2], [2, 1, 0]):
        for verify in (lambda x, y, n: (None, 2 * x, None), (None, 2 * x, None)):
            tuned = Session(
                text, Space(MODE=modes), (x, 2 * x, 300), grid=5, block=64, verify=verify
            )
            tuned.run()
            found = {trial.config["MODE"]: trial.status for trial in tuned.trials}
            assert found == {0: "correct", 1: "correctness", 2: "correctness"}


def test_a_scratch_array_does_not_excuse_a_right_answer_in_the_given_output():
    text = """__global__ void twice(const float* x, float* y, float* scratch, int n) {
      int i = blockIdx.x * 64 + threadIdx.x;
      if (i >= n) return;
      scratch[i] = 2 * x[i];
      if (MODE == 0 || (MODE == 1 && i % 2)) y[i] = scratch[i];
    }"""
    x = X[:300].copy()
    for modes in ([0, 1, 2], [2, 1, 0]):
        scratch = kw.Out(np.zeros(300, np.float32))
        tuned = Session(
            text, Space(MODE=modes), (x, 2 * x, scratch, 300), grid=5, block=64,
            verify=lambda x, y, scratch, n: (None, 2 * x, None, None),
        )  # fmt: skip
        tuned.run()
        found = {trial.config["MODE"]: trial.status for trial in tuned.trials}
        assert found == {0: "correct", 1: "correctness", 2: "correctness"}


def test_an_output_without_given_contents_is_written_whole():
    """Also where all configurations write over NaN alone, and so would be right at first."""
    text = """__global__ void twice(const float* x, float* y, int n) {
      int i = blockIdx.x * BLOCK + threadIdx.x;
      if (i < n && y[i] != y[i]) y[i] = 2 * x[i];
    }"""
    tuned = Session(
        text, Space(BLOCK=[32, 64]), (X[:64], kw.Out(np.zeros(64, np.float32)), 64),
        grid="-(-n // BLOCK)", block="BLOCK", verify=lambda x, y, n: (None, 2 * x, None),
    )  # fmt: skip
    with pytest.warns(RuntimeWarning, match="no configuration was correct"):
        tuned.run()
    assert {trial.status for trial in tuned.trials} == {"correctness"}


@pytest.mark.parametrize("out", [False, True])
def test_a_kernel_that_is_right_once_is_wrong(out):
    text = """__device__ unsigned launches;
    __global__ void twice(const float* x, float* y, int n) {
      int i = threadIdx.x;
      if (launches < RIGHT) y[i] = 2 * x[i];
      __syncthreads();
      if (i == 0) ++launches;
    }"""
    y = np.zeros(64, np.float32)
    tuned = Session(
        text, Space(RIGHT=[1000, 3, 2, 1]), (X[:64], kw.Out(y) if out else y, 64),
        grid=1, block=64, verify=lambda x, y, n: (None, 2 * x, None),
    )  # fmt: skip
    tuned.run()
    found = {trial.config["RIGHT"]: trial for trial in tuned.trials}
    assert [found[right].status for right in (1000, 3, 2, 1)] == ["correct", *["correctness"] * 3]
    assert "in a launch after one that was right" in found[1].error
    assert found[2].times == () or found[2].times == []


def test_a_kernel_that_is_wrong_in_every_third_launch_is_wrong():
    text = """__device__ unsigned launches;
    __global__ void twice(const float* x, float* y, int n) {
      int i = threadIdx.x;
      if (launches % 3 != WRONG) y[i] = 2 * x[i];
      __syncthreads();
      if (i == 0) ++launches;
    }"""
    tuned = Session(
        text, Space(WRONG=[3, 0, 1, 2]), (X[:64], np.zeros(64, np.float32), 64),
        grid=1, block=64, verify=lambda x, y, n: (None, 2 * x, None),
    )  # fmt: skip
    tuned.run()
    found = {trial.config["WRONG"]: trial.status for trial in tuned.trials}
    assert found == {3: "correct", **dict.fromkeys((0, 1, 2), "correctness")}


def test_outputs_that_add_to_what_they_are_given_are_no_mistake():
    text = """__global__ void add(const float* x, float* sum, float* scratch, float* y, int n) {
      int i = blockIdx.x * BLOCK + threadIdx.x;
      if (i < n) { atomicAdd(sum, x[i]); scratch[i] = x[i]; y[i] = scratch[i] + WRONG; }
    }"""
    x, sum, scratch = np.ones(256, np.float32), np.zeros(1, np.float32), np.ones(256, np.float32)
    tuned = Session(
        text, Space(BLOCK=[32, 64], WRONG=[0, 1]), (x, sum, scratch, x.copy(), 256),
        grid="-(-n // BLOCK)", block="BLOCK",
        verify=lambda x, sum, scratch, y, n: (None, np.array([n]), None, x, None),
    )  # fmt: skip
    tuned.run()
    assert {trial.config["WRONG"]: trial.status for trial in tuned.trials} == {
        0: "correct",
        1: "correctness",
    }


def test_a_const_argument_is_compared_without_expected_values_too():
    text = """__global__ void twice(const float* x, float* y) {
      y[threadIdx.x] = 2 * x[threadIdx.x];
      if (SPOILS) const_cast<float*>(x)[3] = 0;
    }"""
    tuned = Session(text, Space(SPOILS=[0, 1]), (X[:32], X[:32].copy()), grid=1, block=32)
    tuned.run()
    assert [trial.status for trial in tuned.trials] == ["correct", "correctness"]
    assert tuned.trials[1].error.startswith("argument 0 (x) is const in the kernel's signature")


@pytest.mark.parametrize("verify", [None, lambda x, y: (None, 2 * x)])
def test_a_const_argument_that_later_launches_change_is_found(verify):
    """Each configuration that changes it is refused, whichever of them runs first."""
    text = """__device__ int launches;
    __global__ void twice(const float* x, float* y) {
      y[threadIdx.x] = 2 * x[threadIdx.x];
      if (threadIdx.x == 0 && ++launches > HONEST && HONEST < 100) const_cast<float*>(x)[3] = 0;
    }"""
    tuned = Session(
        text, Space(HONEST=[1, 100, 2, 4]), (X[:32], X[:32].copy()), grid=1, block=32, verify=verify
    )
    tuned.run()
    found = {trial.config["HONEST"]: trial for trial in tuned.trials}
    assert found[100].status == "correct"
    for launches in (1, 2, 4):
        assert found[launches].status == "correctness"
        assert "x) is const in the kernel's signature" in found[launches].error


def test_a_const_argument_is_compared_after_each_launch():
    """Two launches put back what one has changed."""
    text = """__global__ void twice(const float* x, float* y) {
      y[threadIdx.x] = 2 * fabsf(x[threadIdx.x]);
      if (SPOILS) const_cast<float*>(x)[threadIdx.x] = -x[threadIdx.x];
    }"""
    x, y = np.arange(1, 33, dtype=np.float32), np.zeros(32, np.float32)
    tuned = Session(
        text, Space(SPOILS=[0, 1]), (x, y), grid=1, block=32, verify=lambda x, y: (None, 2 * x)
    )
    tuned.run()
    assert [trial.status for trial in tuned.trials] == ["correct", "correctness"]
    assert "x) is const in the kernel's signature" in tuned.trials[1].error


def test_the_default_configuration_can_be_the_reference():
    text = SCALE.replace("a * x", "(VEC == 2 ? a : 3.0f) * x")
    tuned = session(text, verify="default", default={"BLOCK": 32, "VEC": 2})
    tuned.run()
    assert statuses(tuned) == {
        (block, vec): "correct" if vec == 2 else "correctness"
        for block in (32, 64, 128)
        for vec in (1, 2)
    }


def test_arrays_can_be_the_reference_and_tolerances_count():
    close = X * 2 * np.float32(1.001)
    assert session(verify=(None, close, None, None)).run() is None
    assert session(verify=(None, close, None, None), rtol=0.01).run() is not None
    assert session(verify=2 * X).run() is not None  # that of the one kw.Out
    assert session(verify=2 * X.astype(np.float64)).run() is not None  # of float32's precision
    assert session(verify=2.01 * X.astype(np.float64)).run() is None
    nan = X * 2
    nan[5] = math.nan
    assert session(verify=nan).run() is None


@pytest.mark.parametrize(
    ("dtype", "ctype"),
    [
        ("float64", "double"),
        ("int32", "int"),
        ("uint8", "unsigned char"),
        ("float16", "__half"),
        ("complex64", "float2"),
        ("bfloat16", "__nv_bfloat16"),
        ("i4,f4", "int2"),
    ],
)
def test_element_types_are_compared(dtype, ctype):
    text = f"""#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void copy(const {ctype}* x, {ctype}* y, int n) {{
      int i = blockIdx.x * BLOCK + threadIdx.x;
      if (i < n) y[i] = x[WRONG ? 0 : i];
    }}"""
    x = np.arange(50).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    tuned = Session(
        text, Space(BLOCK=[32], WRONG=[0, 1]), (x, kw.Out(np.empty_like(x)), 50),
        grid="-(-n // BLOCK)", block="BLOCK", verify=lambda x, y, n: (None, x, None),
    )  # fmt: skip
    tuned.run()
    assert statuses(tuned) == {(32, 0): "correct", (32, 1): "correctness"}


def test_equal_code_is_measured_once():
    of = space(LEFT=["a", "b"])
    with pytest.warns(RuntimeWarning, match="does not use LEFT"):
        tuned = session(of=of)
    tuned.run()
    assert len(tuned.trials) == 12
    assert sum(trial.same_as is not None for trial in tuned.trials) == 6


def scores(tuned):
    return {str(trial.config): trial.score for trial in tuned.trials}


def test_a_store_is_resumed_and_nothing_is_repeated(tmp_path):
    path = tmp_path / "store.jsonl"
    first = session(store=path, budget={"evaluations": 3}, strategy="random")
    first.run()
    again = session(store=path)
    best = again.run()
    assert len(again.trials) == 6
    assert sum(trial.resumed for trial in again.trials) == 3
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["kind"] for row in rows].count("trial") == 6
    third = session(store=path)
    once_more = third.run()
    assert best is not None and once_more is not None
    if kw.current_device().is_simulated:  # on a GPU the final runs again, and times are near
        assert once_more.config in [best.config, *best.ties]
    assert all(trial.resumed for trial in third.trials)
    assert scores(third) == scores(again)
    fresh = session(store=path, resume=False)
    fresh.run()
    assert not any(trial.resumed for trial in fresh.trials)
    other = session(SCALE + "\n// changed", store=path)
    other.run()
    assert not any(trial.resumed for trial in other.trials)


KILLED = textwrap.dedent(
    """
    import sys
    sys.path.insert(0, {folder!r})
    import tune_sessions as t
    tuned = t.session(store={store!r}, of=t.Space(BLOCK=[32 * i for i in range(1, 25)], VEC=[1, 2]))
    for trial in tuned:
        print(trial.number, flush=True)
    print("end", flush=True)
    """
)


def test_a_session_killed_at_any_moment_is_resumed(tmp_path):
    path = tmp_path / "store.jsonl"
    folder = str(pathlib.Path(__file__).parent)
    told = 0
    for wait in (1, 4, 9):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED.format(folder=folder, store=str(path))],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        for _ in range(wait):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        told = max(told, wait)
    tuned = session(store=path, of=Space(BLOCK=[32 * i for i in range(1, 25)], VEC=[1, 2]))
    tuned.run()
    assert len(tuned.trials) == 48
    assert sum(trial.resumed for trial in tuned.trials) >= told
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    configs = [tuple(row["config"].items()) for row in rows if row["kind"] == "trial"]
    assert len(configs) == len(set(configs)) == 48


def test_a_disk_that_refuses_loses_nothing_and_says_so(tmp_path):
    path = tmp_path / "missing" / "store.jsonl"
    tuned = session(store=path)
    with pytest.warns(RuntimeWarning, match="in memory alone") as warned:
        tuned.run()
    assert len(tuned.rows) == 8
    told = [str(warning.message) for warning in warned]
    assert len(told) == 2 and "refuses rows" in told[0]
    assert "is over, and 8 rows of it stayed" in told[1]
    with pytest.raises(kw.StoreError):
        session(store=tmp_path)


def test_a_store_stays_where_it_was_when_the_session_was_made(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    for store in ("store.jsonl", kw.tune.Store("store.jsonl")):
        tuned = session(store=store)
        monkeypatch.chdir(tmp_path / "elsewhere")
        tuned.run()
        monkeypatch.chdir(tmp_path)
    assert all(trial.resumed for trial in tuned.trials)
    assert not list((tmp_path / "elsewhere").iterdir())
    with pytest.raises(kw.InvalidArgument, match="a store of one file"):
        session(store=kw.tune.Store("store.jsonl", "other.jsonl"))


def test_two_sessions_share_a_store(tmp_path):
    path = tmp_path / "store.jsonl"
    sessions = [session(store=path, seed=seed) for seed in (1, 2)]
    threads = [threading.Thread(target=each.run) for each in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(each.trials) for each in sessions] == [6, 6]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = [row["kind"] for row in rows]
    assert kinds.count("session") == kinds.count("result") == 2
    third = session(store=path)
    third.run()
    assert all(trial.resumed for trial in third.trials)
