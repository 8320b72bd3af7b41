"""The sync check of values shuffled from lanes that take no part: found at their use, and nowhere
else."""

import pathlib
import sys

import numpy as np
import pytest

import kernwright as kw

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sim"))
import corpus

pytestmark = pytest.mark.usefixtures("sim")

HEADERS = {
    "cg::": "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n",
    "half": "#include <cuda_fp16.h>\n",
}
HEAD = """__global__ void k(const int* x, int* y, int n) {
    int i = threadIdx.x, v = x[i];
    """
FULL, EIGHT = "0xffffffffu", "0xffu"
# Kernels (n is 100), their number of threads, and the mistake.
USED = {
    "sum in a loop": (
        f"for (int d = n / 6; d; d /= 2) v += __shfl_xor_sync({FULL}, v, d); y[i] = v;",
        50,
        "block of 50 threads",
    ),
    "copied first": (
        f"int w = __shfl_sync({FULL}, v, 31), u = w; if (n > 99) u = w * 3; y[i] = u;",
        40,
        "block of 40 threads",
    ),
    "chosen": (f"int w = __shfl_down_sync({FULL}, v, 8); y[i] = i < 30 ? w : 0;", 24, "24 threads"),
    "an index": (f"y[__shfl_down_sync({FULL}, i, 9)] = 1;", 24, "block of 24 threads"),
    "atomic": (f"atomicMax(y, __shfl_sync({FULL}, v, 20));", 16, "block of 16 threads"),
    "a pair of halves": (
        f"__half2 h = __floats2half2_rn(v, 1); for (int d = 16; d; d /= 2) "
        f"h = __hadd2(h, __shfl_down_sync({FULL}, h, d)); if (i == 0) y[0] = __low2float(h);",
        24,
        "block of 24 threads",
    ),
    "a double": (
        f"double s = v; for (int d = 16; d; d /= 2) s += __shfl_down_sync({FULL}, s, d); "
        "if (i == 0) y[0] = s;",
        24,
        "block of 24 threads",
    ),
    "by another lane": (
        f"v = __shfl_down_sync({FULL}, v, 4); v = __shfl_sync({FULL}, v, 23); y[i] = v;",
        24,
        "lane 23 reads from lane 27",
    ),
    "a tile": (
        "auto tile = cg::tiled_partition<32>(cg::this_thread_block()); "
        "for (int d = 16; d; d /= 2) v += tile.shfl_down(v, d); if (i == 0) y[0] = v;",
        20,
        "block of 20 threads",
    ),
    "those who are active": (
        "if (i < 20) { v += __shfl_down_sync(__activemask(), v, 8); y[i] = v; }",
        32,
        "member mask 0x000fffff leaves out",
    ),
    "exited": (
        f"if (i >= 9) return; v += __shfl_xor_sync({FULL}, v, 8); y[i] = v;",
        32,
        "which has exited",
    ),
}
NOT_USED = {
    "by a select": (
        f"int w = __shfl_down_sync({FULL}, v, 1); y[i] = i + 1 < blockDim.x ? w : 0;",
        40,
    ),
    "in a branch": (f"int w = __shfl_down_sync({FULL}, v, 1); if (i < 39) y[i] = w;", 40),
    "behind &&": (
        f"int w = __shfl_down_sync({FULL}, v, 1); if (i < 39 && w == v + 1) y[i] = w + 1;",
        40,
    ),
    "from a sum": (f"int w = __shfl_down_sync({FULL}, v, 1); if (i < 39) v += w; y[i] = v;", 40),
    "by lanes whose sum nobody reads": (
        f"if (i < 8) {{ for (int d = 4; d; d /= 2) v += __shfl_down_sync({EIGHT}, v, d); "
        "if (i == 0) y[0] = v; }",
        32,
    ),
    "by such lanes in a loop": (
        f"if (i < 8) {{ for (int d = n / 25; d; d /= 2) v += __shfl_down_sync({EIGHT}, v, d); "
        "if (i == 0) y[0] = v; }",
        32,
    ),
    "overwritten, twice": (
        f"for (int t = 0; t < 2; ++t) {{ int w = x[i] + t; for (int d = n / 25; d; d /= 2) {{ "
        f"int u = __shfl_down_sync({FULL}, w, d); if (i + d < blockDim.x) w += u; }} y[i] = w; }}",
        24,
    ),
    "a scan": (
        f"for (int d = 1; d < 32; d *= 2) {{ int u = __shfl_up_sync({FULL}, v, d); "
        "if (i % 32 >= d) v += u; } y[i] = v;",
        40,
    ),
    "lanes that are numbered": (
        "if (i % 3 == 0) { auto g = cg::coalesced_threads(); "
        "for (int d = 8; d; d /= 2) v += g.shfl_down(v, d); y[i] = v; }",
        32,
    ),
    "small tiles": (
        "auto tile = cg::tiled_partition<16>(cg::this_thread_block()); "
        "for (int d = 8; d; d /= 2) v += tile.shfl_xor(v, d); y[i] = v;",
        48,
    ),
    "the lane itself": (f"y[i] = __shfl_sync({FULL}, v, i % 32);", 40),
}


def findings(body, threads, debug=False):
    options = kw.ProgramOptions(device_debug=True) if debug else kw.ProgramOptions(lineinfo=True)
    headers = "".join(text for word, text in HEADERS.items() if word in body)
    if package := corpus.lacks_headers_of(headers):
        pytest.skip(f"needs the headers of {package}")
    kernel = kw.kernel(headers + HEAD + body + "\n}", name="k", options=options)
    with kw.checks(*(["sync"] if debug else [])) as report:
        kernel[1, threads](kw.asarray(np.arange(64, dtype=np.int32)), kw.zeros(64, "int32"), 100)
    return report


@pytest.mark.parametrize("case", USED)
def test_what_is_used_is_found(case):
    body, threads, text = USED[case]
    report = findings(body, threads)
    assert {finding.kind for finding in report} == {"sync"}
    assert "in a shuffle" in str(report) and text in str(report), str(report)
    assert "use at" in str(report)


@pytest.mark.parametrize("debug", [False, True], ids=["optimised", "debug"])
@pytest.mark.parametrize("case", NOT_USED)
def test_what_is_dropped_is_not_found(case, debug):
    findings(*NOT_USED[case], debug=debug).raise_if_any()


def test_who_reads_from_whom_and_who_uses_it():
    report = findings(f"v = __shfl_down_sync({FULL}, v, 4);\n    y[i] = v;", 30)
    (finding,) = report
    assert "lane 26 reads from lane 30 in a shuffle" in str(finding)
    assert finding.thread == (26, 0, 0)
    assert finding.lines == (3, 4)
    assert finding.count == 2  # lanes 26 and 27: from lane 28 on, a lane reads its own value
    assert "launch whole warps" in finding.hint


def test_without_the_sync_check_nothing_is_found():
    kernel = kw.kernel(HEAD + USED["atomic"][0] + "\n}", name="k")
    with kw.checks("init", "race") as report:
        kernel[1, 16](kw.asarray(np.arange(64, dtype=np.int32)), kw.zeros(64, "int32"), 100)
    report.raise_if_any()
