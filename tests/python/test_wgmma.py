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


def run(source, **environment):
    device = kw.current_device()
    if device.is_simulated:
        environment["KERNWRIGHT_SIM_CAPABILITY"] = "9.0"
    elif device.compute_capability != (9, 0):
        pytest.skip("wgmma is of compute capability 9.0 alone")
    program = PROGRAM.replace("sys.stdin.read()", repr(source))
    ended = run_child(program, **environment)
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
    source = SOURCE.read_text().replace(WAIT, "")
    line = next(i for i, text in enumerate(source.splitlines(), 1) if "c[(row +" in text)
    found = run(source)
    assert found.startswith(f"sync {line} ") and "wgmma.wait_group come first" in found


def test_a_stage_given_back_too_early_is_found():
    if not kw.current_device().is_simulated:
        pytest.skip("only the simulated device looks")
    source = SOURCE.read_text().replace("kStages = 3", "kStages = 1")
    source = source.replace(WAIT, WAIT.replace(" 0;", " 1;"))
    found = run(source.replace("const int lane", WAIT + "\n  const int lane"))
    assert found.startswith("sync ") and "was changed before the wgmma.wait_group" in found
