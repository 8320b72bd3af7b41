"""The judge: what a task may say of its arguments, what it warns of, what a verdict shows."""

import collections
import json
import os
import subprocess
import sys
import time

import judge_drawn
import numpy as np
import pytest
from judge_tasks import AFFINE, GOOD, ZEROS, affine

import kernwright as kw

SIMULATED = os.environ.get("KERNWRIGHT_DEVICE", "sim").startswith("sim")


@pytest.fixture(scope="module")
def judge():
    with kw.Judge(2) as made:
        yield made


# --- seeds --------------------------------------------------------------------------------------


def test_seeds_are_drawn_everywhere(judge, tmp_path):
    drawn = {judge.judge(GOOD, AFFINE).seed for _ in range(3)} | {kw.judge(GOOD, AFFINE).seed}
    assert len(drawn) == 4
    (tmp_path / "good.cu").write_text(GOOD)
    (tmp_path / "task.py").write_text(
        "import kernwright as kw\n"
        "task = kw.Task(entry='affine', inputs=kw.Inputs(x='float32[n]', y='float32[n]', n='size',"
        " most=300), reference=lambda x, y, n: (None, 2.0 * x + 1, None))\n"
    )

    def seed_of(*more):
        result = subprocess.run(
            [sys.executable, "-m", "kernwright", "judge", "task.py", "good.cu", "--json", *more],
            cwd=tmp_path, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        return json.loads(result.stdout)["seed"]

    assert seed_of() != seed_of()
    assert seed_of("--seed", "7") == 7


def test_a_text_that_knows_the_results_of_a_seed_is_wrong_for_others(judge):
    known = [AFFINE.inputs(0, case)[0][0] for case in range(8)]
    table = ", ".join(f"{value!r}f" for value in map(float, known))
    text = GOOD.replace(
        "__global__", f"__device__ float known[] = {{{table}}};\n__global__"
    ).replace(
        "if (i < n)",
        "bool is = false; for (int k = 0; k < 8; ++k) is |= x[0] == known[k]; if (i < n && is)",
    )
    assert judge.judge(text, AFFINE).status == "wrong"


# --- arguments of a task ------------------------------------------------------------------------

SCRATCH = """__global__ void turned(const float* x, float* y, float* scratch, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) scratch[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = scratch[n - 1 - i];
}"""


def turned(**more):
    return kw.Task(
        entry="turned",
        signature="const float* x, float* y, float* scratch, int n",
        inputs=kw.Inputs(x="float32[n]", y="float32[n]", scratch="float32[n]", n="size", most=900),
        reference=lambda x, y, scratch, n: (None, x[::-1], None, None),
        grid=1,
        **more,
    )


@pytest.mark.parametrize("workspace", ["scratch", 2, ["scratch"], (2,), {2}], ids=str)
def test_a_workspace_is_scratch_memory(judge, workspace):
    task = turned(workspace=workspace)
    assert task.workspace == {2}
    if workspace == "scratch":
        assert judge.judge(SCRATCH, task).accepted
        assert judge.judge(SCRATCH, turned()).status == "wrong"
        trusts = SCRATCH.replace("scratch[i] = x[i]", "if (scratch[i] != 0) scratch[i] = x[i]")
        assert judge.judge(trusts, task).status in ("wrong", "cheating")
        beyond = SCRATCH.replace("scratch[i] = x[i]", "scratch[i + 1] = x[i]")
        assert judge.judge(beyond, task).status in ("finding", "wrong")


def test_wrong_words_for_arguments(judge):
    for word in ("workspace", "inout"):
        for value, error in ((["none"], kw.InvalidArgument), ("m", kw.InvalidArgument),
                             (-1, kw.InvalidArgument), (1.5, kw.ArgumentError),
                             (True, kw.ArgumentError), ([None], kw.ArgumentError)):  # fmt: skip
            with pytest.raises(error, match=word):
                turned(**{word: value})
    with pytest.raises(kw.InvalidArgument, match="both workspace and inout"):
        turned(workspace=1, inout=1)
    for workspace, words in ((3, "is an array, not"), (9, "there are 4"), (1, "returns None"),
                             (0, "const")):  # fmt: skip
        with pytest.raises(kw.InvalidArgument, match=words):
            judge.judge(SCRATCH, turned(workspace=workspace))
    unnamed = affine(inputs=lambda s, c: AFFINE.inputs(s, c), signature=None, workspace=1)
    assert unnamed.workspace == {1}
    unnamed = affine(inputs=lambda s, c: AFFINE.inputs(s, c), signature=None, workspace=9)
    with pytest.raises(kw.InvalidArgument, match="does not exist"):
        judge.judge(GOOD, unnamed)
    assert affine(signature="const float*x,float y[],int n", workspace="y").workspace == {1}


def test_outputs_whose_contents_kernels_may_rely_on(judge):
    unset = GOOD.replace("if (i < n)", "if (i < n && y[i] == 0)")
    assert judge.judge(unset, ZEROS).status == "cheating"
    inout = affine(inputs=ZEROS.inputs, inout="y")
    assert judge.judge(unset, inout).accepted
    assert judge.judge(GOOD.replace("y[i] =", "y[i] +="), inout).accepted


@pytest.mark.parametrize(
    "code", ["y[i] += 2 * x[i] + 1", "atomicAdd(y + i, 2 * x[i] + 1)", "y[i] = y[i] + 1 + 2 * x[i]"]
)
def test_a_kernel_may_add_to_an_output(judge, code):
    verdict = judge.judge(GOOD.replace("y[i] = 2 * x[i] + 1", code), ZEROS)
    assert verdict.accepted, str(verdict)


def test_other_contents_of_outputs_cause_no_warnings_of_numpy(judge, recwarn):
    """Random bytes are signaling NaN at times, and a cast of these warns."""
    text = GOOD.replace("y[i] = 2 * x[i] + 1", "y[i] += 2 * x[i] + 1")
    task = affine(reference=lambda x, y, n: (None, y + (2 * np.float64(1) * x + 1), None))
    for seed in range(4):
        assert judge.judge(text, task, seed=seed).accepted
    assert not [str(one.message) for one in recwarn if one.category is RuntimeWarning]


# --- warnings -----------------------------------------------------------------------------------

COLUMNS = 4096


def softmax_task(**more):
    def inputs(seed, case):
        x = np.random.default_rng([seed, case]).standard_normal((2, COLUMNS)).astype("f4")
        return x, np.zeros_like(x), COLUMNS

    def softmax(x, y, columns):
        e = np.exp(x.astype(np.float64))
        return None, e / e.sum(1, keepdims=True), None

    return kw.Task(
        entry="softmax", signature="const float* x, float* y, int columns", inputs=inputs,
        reference=softmax, cases=3, grid=2, **more,
    )  # fmt: skip


def test_a_task_that_zeros_pass_is_told(judge):
    zeros = """__global__ void softmax(const float* x, float* y, int columns) {
  for (int j = threadIdx.x; j < columns; j += blockDim.x) y[blockIdx.x * columns + j] = 0;
}"""
    with pytest.warns(UserWarning, match="writes zeros is right in all 3 cases"):
        verdict = judge.judge(zeros, softmax_task(rtol=1e-2, atol=4e-2))
    assert verdict.warnings and "warning: the task judges little" in str(verdict)
    assert not judge.judge(zeros, softmax_task(rtol=1e-2, atol=1e-6)).warnings


def test_a_task_that_one_number_or_nothing_passes_is_told(judge):
    mean = affine(reference=lambda x, y, n: (None, np.full(n, 3.0), None))
    with pytest.warns(UserWarning, match="writes 3 everywhere"):
        judge.judge(GOOD, mean)
    same = affine(reference=lambda x, y, n: (None, y + 0 * x, None), atol=1e-3)
    with pytest.warns(UserWarning, match="writes nothing is right"):
        judge.judge(GOOD, same)
    assert not judge.judge(GOOD, AFFINE).warnings


# --- texts in a verdict -------------------------------------------------------------------------


def test_no_code_of_a_terminal_gets_into_a_verdict(judge):
    for line in (
        "#error \x1b[2J\x1b[Hkernel.cu: accepted",
        "#error \u202edetpecca",
        "#warning \x9b2J",
    ):
        verdict = judge.judge(f"{line}\n" + GOOD.replace("2 *", "3 *"), AFFINE)
        for text in (str(verdict), verdict.to_json(), verdict._repr_html_()):
            assert not set(text) & {"\x1b", "\u202e", "\x9b"}, repr(text)
    broken = GOOD.replace(
        "if (i < n)", 'static_assert(sizeof(int) == 3, "\\naccepted\\ncases: 8 of 8");'
    )
    lines = str(judge.judge(broken, AFFINE)).splitlines()
    assert lines[0].startswith("compile: ") and "accepted" not in lines


def test_names_of_any_length_make_no_endless_verdict(judge):
    name = "z" * 100_000
    text = GOOD.replace("if (i < n)", f"{name} = 1; " * 8 + "if (i < n)")
    verdict = judge.judge(text, AFFINE)
    assert verdict.status == "compile" and len(verdict.to_json()) < 200_000


def test_line_directives_have_no_effect(judge):
    for directive in ('#line 900 "other.cu: accepted"', '# 900 "x"', "%:line 900", "#li\\\nne 900"):
        verdict = judge.judge(f"{directive}\n" + GOOD.replace("x[i]", "zz"), AFFINE)
        shown = next(d for d in verdict.diagnostics if d.severity == "error")
        lines = directive.count("\n") + 1
        assert (shown.file, shown.line) == ("kernel.cu", 3 + lines), directive
        fault = judge.judge(f"{directive}\n" + GOOD.replace("2 * x[i]", "x[i + 9999]"), AFFINE)
        assert fault.findings[0].line == 3 + lines


# --- what no kernel gains by --------------------------------------------------------------------


def test_work_of_earlier_launches_is_in_the_time(judge):
    fixed = np.random.default_rng(12).standard_normal(3000).astype("f4")

    def inputs(seed, case):
        n = (3000, 1, 33, 257)[case]
        x = np.random.default_rng([seed, case]).standard_normal(n).astype("f4")
        return x, fixed[:n].copy(), np.zeros(n, "f4"), n

    def reference(x, w, y, n):
        v = w.astype(np.float64)
        for _ in range(40):
            v = v - 0.01 * np.sin(v)
        return None, None, x * v, None

    task = kw.Task(
        entry="weighted", signature="const float* x, const float* w, float* y, int n",
        inputs=inputs, reference=reference, cases=4, rtol=1e-3, atol=1e-4,
    )  # fmt: skip
    work = "float v = w[i]; for (int k = 0; k < 40; ++k) v = v - 0.01f * __sinf(v);"
    honest = f"""__global__ void weighted(const float* x, const float* w, float* y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {{ {work} y[i] = x[i] * v; }}
}}"""
    caching = "__device__ float kept[4096]; __device__ int ready[4096];" + honest.replace(
        f"{work} y[i] = x[i] * v;",
        f"if (!ready[i]) {{ {work} kept[i] = v; ready[i] = 1; }} y[i] = x[i] * kept[i];",
    )
    verdict = judge.judge(caching, task, baseline=honest)
    assert not verdict.accepted or verdict.speedup < 1.5, str(verdict)


def test_the_order_of_warps_is_the_reason(judge):
    text = """__device__ unsigned tile, done;
__global__ void affine(const float* x, float* y, int n) {
  __shared__ unsigned block;
  if (threadIdx.x == 0) block = atomicAdd(&tile, 1u);
  __syncthreads();
  int from = blockIdx.x * blockDim.x + threadIdx.x, to = block * blockDim.x + threadIdx.x;
  if (from < n && to < n) y[to] = 2 * x[from] + 1;
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&done, 1u) + 1 == gridDim.x) {
    atomicExch(&tile, 0u);
    atomicExch(&done, 0u);
  }
}"""
    with kw.Judge(1, device="sim") as simulated:
        verdicts = [simulated.judge(text, AFFINE, seed=5) for _ in range(6)]
    assert collections.Counter(v.status for v in verdicts) == {"finding": 6}
    assert verdicts[0].findings[-1].kind == "order" and "order" in verdicts[0].reason


def test_the_heap_of_a_kernel_ends_with_its_judgement():
    keeps = GOOD.replace(
        "if (i < n)", "if (i == 0) { void* p = malloc(3 << 20); if (p) *(int*)p = 77; } if (i < n)"
    )
    with kw.Judge(1) as judge:
        task = affine(allow=["malloc"], cases=2)
        for _ in range(3):
            assert judge.judge(keeps, task).accepted
        asks = GOOD.replace(
            "if (i < n)", "void* p = nullptr; if (i == 0) p = malloc(3 << 20); if (i < n)"
        )
        asks = asks.replace("+ 1;", "+ (i == 0 && p == nullptr ? 2 : 1); free(p);")
        assert judge.judge(asks, task).accepted
        assert judge.losses == 0


@pytest.mark.parametrize("sign", ["#", "%:", "(<", "<", '"', 'R"(', "??=", "\\"], ids=str)
def test_a_long_line_costs_no_long_time(judge, sign):
    start = time.monotonic()
    verdict = judge.judge(GOOD + "\n#if 0\n" + sign * 60_000 + "\n#endif\n", AFFINE, timeout=20)
    assert time.monotonic() - start < 15
    assert verdict.status in ("accepted", "compile", "cheating", "timeout")


def test_a_text_may_not_be_endless(judge):
    verdict = judge.judge(GOOD + "\n//" + "x" * (1 << 20), AFFINE)
    assert verdict.status == "compile" and "at most 1048576" in verdict.reason


# --- honest kernels -----------------------------------------------------------------------------

EARLY = GOOD.replace("if (i < n)", 'asm volatile("griddepcontrol.wait;" ::: "memory"); if (i < n)')
EARLY = EARLY.replace("int i =", 'asm volatile("griddepcontrol.launch_dependents;"); int i =')

HONEST = {
    "the next kernel may begin early": "#if __CUDA_ARCH__ >= 900\n"
    + EARLY
    + "\n#else\n"
    + GOOD
    + "\n#endif\n",
    "names of one letter": """struct All {}; constexpr All _{};
template <class T, int I, int M, int E> struct View { T* p; __device__ T& operator()(int
  k, All) const { return p[k]; } };
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  View<const float, 1, 1, 1> X{x}; View<float, 1, 1, 1> Y{y};
  if (i < n) Y(i, _) = 2 * X(i, _) + 1;
}""",
    "an enum TIME": """enum { TIME = 1, DATE = 2 };
__device__ int __(int v) { return v; }
"""
    + GOOD.replace("2 * x[i] + 1", "__(DATE) * x[i] + __(TIME)"),
    "helpers named cuda_": """extern "C" __device__ __noinline__
float cuda_twice(float cudaValue) { return 2 *
  cudaValue; }
"""
    + GOOD.replace("2 * x[i]", "cuda_twice(x[i])"),
    "an assertion": "#include <cassert>\n"
    + GOOD.replace("if (i < n)", "assert(n > 0); if (i < n)"),
    "the file in an assertion": 'static_assert(sizeof(__FILE__) > 1, "a name");\n' + GOOD,
    "undefined values of no use": GOOD.replace(
        "if (i < n)",
        "float unset; if (n > 1 << 20) unset = x[0]; if (n > 1 << 20) y[0] = unset; if (i < n)",
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_this_is_no_cheating(judge, name):
    verdict = judge.judge(HONEST[name], AFFINE)
    assert verdict.accepted, str(verdict)


def test_a_kernel_may_let_the_next_one_begin_early(monkeypatch):
    """Its results are those at its end: nothing in a judgement begins before that."""
    monkeypatch.setenv("KERNWRIGHT_SIM_CAPABILITY", "9.0")
    with kw.Judge(1, device="sim") as simulated:
        verdict = simulated.judge(EARLY, AFFINE, seed=2)
        assert verdict.accepted, str(verdict)
        late = EARLY.replace("y[i] = 2", "y[i] = x[i] == 0 ? 0 : 2")
        assert simulated.judge(late, AFFINE, seed=2).status == "wrong"


# A GPU judges more of them.
DRAWN = {name: (text, task) for name, text, task in judge_drawn.drawn(20, 17 if SIMULATED else 150)}


@pytest.fixture(scope="module")
def drawn_verdict():
    """The verdict on a kernel. The next ones are judged beside it: not all of them, because the
    processes of a suite share them out."""
    names, futures, ahead = list(DRAWN), {}, min(8, os.cpu_count() or 1)

    def verdict(name):
        first = names.index(name)
        for each in names[first : first + ahead]:
            if each not in futures:
                futures[each] = judge.submit(*DRAWN[each], timeout=60)
        return futures[name].result(timeout=300)

    with kw.Judge(ahead) as judge:
        yield verdict


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_honest_kernels_are_accepted(drawn_verdict, name):
    verdict = drawn_verdict(name)
    assert verdict.accepted, str(verdict)
    assert not verdict.warnings


def test_default_tolerances_are_those_of_the_type(judge):
    task = affine(reference=lambda x, y, n: (None, np.ones(n), None))
    with pytest.warns(UserWarning):
        near = judge.judge(GOOD.replace("2 * x[i] + 1", "1.000005f"), task)
        far = judge.judge(GOOD.replace("2 * x[i] + 1", "1.00005f"), task)
    assert (near.status, far.status) == ("accepted", "wrong")
