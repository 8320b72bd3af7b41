"""Where products with some rows leave the kernels for few rows, on devices of 9.0."""

import pytest
from children import run_child

import kernwright as kw

TO_TILES = """
import sys
import numpy as np
import kernwright as kw
from kernwright.random import normal

def run(m, n, k, **extra):
    print("-- case", file=sys.stderr)
    x, w = normal((m, k), "bfloat16", seed=1), normal((n, k), "bfloat16", seed=2)
    expected = x.numpy().astype("f8") @ w.numpy().astype("f8").T
    if extra.get("residual") is not None:
        expected += extra["residual"].numpy().astype("f8")
    with kw.checks("memory", "init", "race", "sync") as report:
        results = [kw.nn.linear(x, w, **extra)] + ([] if extra else [kw.matmul(x, w.T)])
        kw.synchronize()
    report.raise_if_any()
    for got in results:
        off = np.linalg.norm(got.numpy().astype("f8") - expected)
        assert off <= 3e-3 * np.linalg.norm(expected)

"""


def test_more_rows_go_to_tiles_on_devices_of_9_0():
    if not kw.current_device().is_simulated:
        pytest.skip("the device is what it is")
    residual = 'residual=normal((33, 1024), "bfloat16")'
    cases = [
        "33, 1024, 4096",
        "17, 12288, 344",
        "32, 1024, 4096",
        "33, 1024, 4088",  # fewer elements
        "16, 12288, 344",
        "33, 1024, 4100",  # lines that tensor maps cannot take are copied
        "8, 1024, 4100",
        f"33, 1024, 4096, {residual}",
    ]
    program = TO_TILES + "".join(f"run({rows})\n" for rows in cases)
    ended = run_child(program, timeout=300, KERNWRIGHT_SIM_CAPABILITY="9.0", KERNWRIGHT_LOG="debug")
    assert ended.code == 0, ended.err
    logs = ended.err.split("-- case\n")[1:]
    assert len(logs) == len(cases)
    tiles = {case: "launch gemm<" in log for case, log in zip(cases, logs, strict=True)}
    assert {
        case: "launch skinny_" not in log for case, log in zip(cases, logs, strict=True)
    } == tiles
    assert {True, False} <= set(tiles.values())
    assert not tiles[cases[-1]]  # tiles have no residual
    for fewer, more in [(2, 0), (4, 1), (6, 5)]:  # rows of one layer
        assert tiles[cases[more]] or not tiles[cases[fewer]], cases[fewer]
