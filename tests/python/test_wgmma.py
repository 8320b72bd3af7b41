"""A product of matrices the Hopper way: only compute capability 9.0 has wgmma."""

from pathlib import Path

import pytest
from children import run_child

import kernwright as kw

SOURCE = Path(__file__).resolve().parents[1] / "sim" / "sources" / "hopper_gemm.cu"
WAIT = 'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");'
RELEASE = "arrive(shared_address(&empty[s]));"

PROGRAM = """
import sys
import ml_dtypes, numpy as np, kernwright as kw
kernel = kw.kernel(sys.stdin.read(), name="hopper_gemm", lineinfo=True)
m, n, k = 128, 192, 448
random = np.random.default_rng(0)
a, b = (random.integers(-4, 5, (rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, n))
c, on_device = kw.zeros((m, n)), [kw.asarray(a), kw.asarray(b)]
maps = [kw.TensorMap(x, (64, 64), swizzle="128B") for x in on_device]
try:
    kernel[(n // 64, m // 64), 160](*maps, c, n, k)
    np.testing.assert_array_equal(c.numpy(), a.astype("f4") @ b.astype("f4").T)
    print("equal")
except kw.DeviceFault as fault:
    print(fault.kind, fault.line, fault)
"""


def environment_of_wgmma():
    device = kw.current_device()
    if device.is_simulated:
        return {"KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    if device.compute_capability != (9, 0):
        pytest.skip("wgmma is of compute capability 9.0 alone")
    return {}


def program_of(source):
    return PROGRAM.replace("sys.stdin.read()", repr(source))


def run(source, **environment):
    ended = run_child(program_of(source), **environment_of_wgmma(), **environment)
    assert ended.code == 0, ended.err
    assert "race" not in ended.err, ended.err
    return ended.out


def with_a_group_left_open(source):
    """Waits for the product before the last, whose stage it then gives back."""
    source = source.replace(WAIT, WAIT.replace(" 0;", " 1;"))
    source = source.replace(
        RELEASE, "if (i > 0) arrive(shared_address(&empty[(i - 1) % kStages]));"
    )
    return source.replace("const int lane", WAIT + "\n  const int lane")


def test_equal_to_numpy():
    assert run(SOURCE.read_text()) == "equal\n"


@pytest.mark.parametrize("seed", ["", "5", "77"])
def test_a_pipeline_that_leaves_a_group_open(seed):
    environment = {"KERNWRIGHT_SIM_SEED": seed} if seed else {}
    assert run(with_a_group_left_open(SOURCE.read_text()), **environment) == "equal\n"


def test_one_thread_may_give_a_stage_back_for_its_warpgroup():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    source = with_a_group_left_open(SOURCE.read_text())
    source = source.replace(
        "init(shared_address(&empty[s]), 128)", "init(shared_address(&empty[s]), 1)"
    )
    source = source.replace("if (i > 0) arrive", "if (i > 0 && threadIdx.x == 64) arrive")
    assert run(source, KERNWRIGHT_CHECKS="race,init") == "equal\n"


def test_sums_that_are_read_before_the_wait_are_found():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    source = with_a_group_left_open(SOURCE.read_text())
    source = source.replace(WAIT + "\n  const int lane", "const int lane")
    assert run(source) == "equal\n"  # ptxas waits there too
    line = next(i for i, text in enumerate(source.splitlines(), 1) if "c[(row +" in text)
    found = run_child(program_of(source), KERNWRIGHT_SIM_CAPABILITY="9.0", KERNWRIGHT_CHECKS="sync")
    assert found.out == "equal\n"
    assert f":{line} " in found.err and "is read while a wgmma may" in found.err, found.err


def test_without_any_wait_the_stage_that_is_given_back_is_found():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    source = SOURCE.read_text().replace(WAIT, "")
    assert run(source) == "equal\n"  # products are made when they are issued
    found = run_child(program_of(source), KERNWRIGHT_SIM_CAPABILITY="9.0", KERNWRIGHT_CHECKS="race")
    assert found.out == "equal\n"
    assert "asynchronous read and asynchronous write of the same shared memory" in found.err
    assert "wgmma.wait_group first" in found.err


PIPELINES = """
__device__ inline void multiply(float (&d)[4], unsigned long long a, unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
}
__device__ inline void multiply(float (&d)[4], const unsigned (&a)[4], unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8,"
      " 1, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ inline void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int left> __device__ inline void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}
struct Operands {
  unsigned long long a, b;
};
__device__ inline Operands ones() {
  __shared__ alignas(1024) unsigned short space[64 * 16 + 16 * 8];
  for (int i = threadIdx.x; i < 64 * 16 + 16 * 8; i += 128) space[i] = 0x3c00;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(space));
  return {base >> 4 | 0x0000000800400000ull, (base + 2048) >> 4 | 0x0000000800080000ull};
}
/// Two accumulators take turns: the compiler copies x in front of the wait.
__global__ void take_turns(float* out, int n) {
  const Operands m = ones();
  float x[4] = {}, y[4] = {}, sum = 0;
  begin(), multiply(x, m.a, m.b), commit();
  for (int i = 0; i < n; ++i) {
    begin(), multiply(y, m.a, m.b), commit(), wait<1>();
    sum += x[0];
    begin(), multiply(x, m.a, m.b), commit(), wait<1>();
    sum += y[0];
  }
  wait<0>();
  out[threadIdx.x] = sum + x[0];
}
/// The next A is made while the product runs: the compiler puts it where this A is.
__global__ void prepare(float* out, int n) {
  const Operands m = ones();
  float x[4] = {};
  unsigned a[4] = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
  for (int i = 0; i < n; ++i) {
    begin(), multiply(x, a, m.b), commit();
    unsigned next[4];
    const unsigned value = i % 2 ? 0x3c003c00 : 0x40004000;
    for (int j = 0; j < 4; ++j) next[j] = threadIdx.x + i > 1000 ? 0 : value;
    wait<0>();
    for (int j = 0; j < 4; ++j) a[j] = next[j];
  }
  out[threadIdx.x] = x[0];
}
"""
RUN_PIPELINE = """
import kernwright as kw
out = kw.zeros(128)
kw.kernel({source!r}, name={name!r}, lineinfo=True)[1, 128](out, 5)
print(set(out.numpy().tolist()))
"""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # x holds 16, 32, ... and so does y.
        ("take_turns", sum(16 * i for i in range(1, 6)) * 2 + 16 * 6),
        ("prepare", 16 * (1 + 2 + 1 + 2 + 1)),
    ],
)
def test_what_a_compiler_moves_in_front_of_a_wait_changes_no_result(name, value):
    program = RUN_PIPELINE.format(source=PIPELINES, name=name)
    ended = run_child(program, **environment_of_wgmma())
    assert ended.out == f"{{{float(value)}}}\n", ended.err


def test_a_stage_given_back_too_early_is_found():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    source = SOURCE.read_text().replace("kStages = 3", "kStages = 1")
    source = source.replace(WAIT, WAIT.replace(" 0;", " 1;"))
    source = source.replace("const int lane", WAIT + "\n  const int lane")
    assert run(source) == "equal\n"
    found = run_child(program_of(source), KERNWRIGHT_SIM_CAPABILITY="9.0", KERNWRIGHT_CHECKS="race")
    assert "asynchronous read and asynchronous write of the same shared memory" in found.err
    assert "wgmma.wait_group first" in found.err


def test_tensor_core_code_in_a_header_asks_for_the_architecture_too(tmp_path):
    fence = '__device__ inline void fence() { asm volatile("wgmma.fence.sync.aligned;"); }'
    (tmp_path / "fence_file.h").write_text(fence)
    program = f"""
import kernwright as kw
text = '#include "%s"\\n__global__ void k(int* o) {{ fence(); o[threadIdx.x] = 1; }}'
for name, options in [
    ("fence_text.h", {{"headers": {{"fence_text.h": {fence!r}}}}}),
    ("fence_file.h", {{"include_dirs": [{str(tmp_path)!r}]}}),
]:
    out = kw.zeros(128, "int32")
    kw.kernel(text % name, name="k", **options)[1, 128](out)
    assert out.numpy().sum() == 128
"""
    ended = run_child(program, **environment_of_wgmma())
    assert ended.code == 0, ended.err
