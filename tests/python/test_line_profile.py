"""kw.line_profile: exact counts for each source line, beside what the source says they must be."""

import dataclasses
import html
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import kernwright as kw
from kernwright._sim import line_profile as line_profile_module

pytestmark = pytest.mark.usefixtures("sim")

TRANSPOSE = r"""
template <int kPad>
__global__ void transpose(const float* in, float* out, int n) {
    __shared__ float tile[32][32 + kPad];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];  // fill
    __syncthreads();
    out[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] =
        tile[threadIdx.x][threadIdx.y];  // drain
}
"""


def profile_of(source, grid, block, *arguments, name=None):
    kernel = kw.kernel(source, name)
    with kw.line_profile(kernel) as p:
        kernel[grid, block](*arguments)
    return p


def line_with(profile, text):
    (line,) = [line for line in profile.lines if text in line.source]
    return line.counts


def floats(n=1 << 14):
    return kw.zeros(n, "float32")


@pytest.mark.parametrize(("pad", "conflicts"), [(0, 31 * 128), (1, 0)])
def test_a_transpose_with_and_without_padding(pad, conflicts):
    x, y = kw.asarray(np.arange(64 * 64, dtype=np.float32)), floats(64 * 64)
    p = profile_of(TRANSPOSE, (2, 2), (32, 32), x, y, 64, name=f"transpose<{pad}>")
    assert (y.numpy().reshape(64, 64) == x.numpy().reshape(64, 64).T).all()
    fill, drain = line_with(p, "// fill"), line_with(p, "// drain")
    assert fill.global_loads == 128 and fill.sectors_per_request == 4 and fill.coalescing == 1
    assert fill.shared_stores == 128 and fill.bank_conflicts == 0
    assert drain.shared_loads == 128 and drain.bank_conflicts == conflicts
    assert p.total.bank_conflicts == conflicts
    assert list(p.launches.values()) == [1]


@pytest.mark.parametrize(
    ("index", "sectors", "ideal", "lines"),
    [
        ("i", 4, 4, 1),
        ("2 * i", 8, 4, 2),
        ("32 * i", 32, 4, 32),
        ("i + 1", 5, 4, 2),
        ("7", 1, 1, 1),
        ("31 - i", 4, 4, 1),
        ("i / 2", 2, 2, 1),
    ],
)
def test_coalescing(index, sectors, ideal, lines):
    source = f"""__global__ void load(const float* x, float* y) {{
    int i = threadIdx.x;
    float v = x[{index}];
    y[i] = v;
}}"""
    counts = line_with(profile_of(source, 1, 32, floats(), floats()), "float v")
    assert (counts.global_sectors, counts.global_ideal_sectors) == (sectors, ideal)
    assert counts.global_lines == lines
    assert counts.global_bytes == 128
    assert counts.coalescing == ideal / sectors


@pytest.mark.parametrize(
    ("type_", "index", "wavefronts", "ideal"),
    [
        ("float", "i", 1, 1),
        ("float", "2 * i", 2, 1),
        ("float", "32 * i", 32, 1),
        ("float", "33 * i", 1, 1),
        ("float", "0", 1, 1),
        ("double", "i", 2, 2),
        ("float4", "i", 4, 4),
        ("char", "i", 1, 1),
    ],
)
def test_bank_conflicts(type_, index, wavefronts, ideal):
    source = f"""__global__ void load({type_}* out) {{
    __shared__ {type_} s[1056];
    int i = threadIdx.x;
    for (int k = i; k < 1056; k += 32) s[k] = {type_}();
    __syncwarp();
    out[i] = s[{index}];  // here
}}"""
    out = floats()
    counts = line_with(profile_of(source, 1, 32, kw.Pointer(out.ptr)), "// here")
    assert counts.shared_loads == 1
    assert (counts.shared_wavefronts, counts.shared_ideal_wavefronts) == (wavefronts, ideal)


def test_divergence_and_active_threads():
    source = """__global__ void part(int* out) {
    int i = threadIdx.x, sum = 0;
    for (volatile int k = 0; k < i; ++k)
        sum += k * i;  // body
    out[i] = sum;
}"""
    p = profile_of(source, 1, 32, kw.zeros(32, "int32"))
    assert p.total.divergent_branches >= 31
    body = line_with(p, "// body")
    assert body.thread_instructions % sum(range(32)) == 0
    assert body.active_threads == sum(range(32)) / 31
    straight = profile_of(
        "__global__ void go(int* out) { if (blockIdx.x) out[threadIdx.x] = 1; }",
        2,
        32,
        kw.zeros(32, "int32"),
    )
    assert straight.total.branches == 2 and straight.total.branch_efficiency == 1
    assert straight.total.active_threads == 32


def test_early_exits():
    source = """__global__ void some(float* x, int n) {
    if (threadIdx.x >= n) return;
    x[threadIdx.x] = 1;  // store
}"""
    for n, stores in ((64, 2), (33, 2), (32, 1), (1, 1), (0, 0)):
        p = profile_of(source, 1, 64, floats(), n)
        counts = sum((line.counts for line in p.lines if "store" in line.source), type(p.total)())
        assert counts.global_stores == stores
        assert counts.global_bytes == 4 * n


def test_atomics():
    source = """__global__ void vote(int* x) {
    int old = atomicAdd(x + threadIdx.x % 4, 1);  // four
    atomicExch(x + 8 + threadIdx.x, old);  // own
}"""
    p = profile_of(source, 3, 64, kw.zeros(128, "int32"))
    four, own = line_with(p, "// four"), line_with(p, "// own")
    assert (four.atomics, four.atomic_threads, four.atomic_passes) == (6, 192, 6 * 8)
    assert (own.atomics, own.atomic_passes, own.atomic_conflicts) == (6, 6, 0)


def test_local_memory():
    source = """__global__ void pick(int* out, int n) {
    int a[16];
    for (int k = 0; k < 16; ++k) a[(k * n) % 16] = k;
    out[threadIdx.x] = a[(threadIdx.x + n) % 16];
}"""
    total = profile_of(source, 1, 32, kw.zeros(32, "int32"), 3).total
    assert total.local_stores == 16 and total.local_loads == 1
    assert total.local_bytes == 17 * 128
    assert total.local_sectors > 16 * 4


def test_inlined_functions_keep_their_lines():
    source = """
__device__ float three(float v) {
    return v / 3.0f;  // callee
}
__global__ void first(float* x) { x[threadIdx.x] = three(x[threadIdx.x]); }
__global__ void second(float* x) { x[threadIdx.x] = three(x[threadIdx.x]) + 1; }
"""
    module = kw.module(source)
    x = floats()
    with kw.line_profile() as p:
        module["first"][1, 32](x)
        module["second"][1, 64](x)
        module["second"][1, 64](x)
    assert sorted(p.launches.values()) == [1, 2]
    callees = [line for line in p.lines if "// callee" in line.source]
    assert len(callees) == 2
    counts = {("first" in line.kernel): line.counts.instructions for line in callees}
    assert counts[False] == 4 * counts[True] > 0


def test_only_the_kernels_that_were_named(saxpy):
    other = kw.kernel("__global__ void other(float* x) { x[0] = 1; }")
    x = floats()
    with kw.line_profile(saxpy) as p:
        other[1, 1](x)
        saxpy[1, 32](2.0, x, x, 32)
    assert len(p.launches) == 1
    assert p.total.thread_instructions > 0 and p.total.global_bytes == 3 * 128


def test_no_launches_and_empty_grids(saxpy):
    with kw.line_profile() as p:
        with pytest.raises(kw.LaunchConfigError):
            saxpy[0, 32](2.0, floats(), floats(), 32)
    assert p.lines == [] and p.launches == {}
    assert str(p) == p.annotated() == "no launches\n"
    assert "no launches" in p.to_html()
    assert p.total.active_threads is None and p.total.coalescing is None


def test_a_text_without_a_file_is_shown_when_its_kernel_is_named():
    text = "".join(["__global__ void made(float* x) {\n", "    x[threadIdx.x] = 5;\n", "}"])
    kernel = kw.kernel(text)
    with kw.line_profile(kernel) as p:
        kernel[1, 32](floats())
    assert "x[threadIdx.x] = 5;" in p.annotated() and "x[threadIdx.x] = 5;" in str(p)


def test_one_profile_at_a_time(saxpy):
    with kw.line_profile() as p:
        with pytest.raises(kw.InvalidArgument, match="counted already"):
            with kw.line_profile():
                pass
        with kw.profile():
            saxpy[1, 32](2.0, floats(), floats(), 32)
    assert p.total.instructions > 0


def test_wrong_arguments_and_gpus(monkeypatch):
    with pytest.raises(kw.ArgumentError, match="takes kernels, got str"):
        kw.line_profile("saxpy")

    class Gpu:
        name = "NVIDIA Something"
        is_simulated = False

    monkeypatch.setattr("kernwright._sim.watch._core.current_device", Gpu)
    with pytest.raises(kw.InvalidArgument, match="a line profile needs the simulated device"):
        with kw.line_profile():
            pass


def test_annotated_text_html_json_and_files(tmp_path):
    p = profile_of(TRANSPOSE, (2, 2), (32, 32), floats(), floats(), 64, name="transpose<0>")
    whole = pathlib.Path(__file__).read_text().splitlines()
    for line in p.lines:
        assert line.source == whole[line.file_line - 1]
    text = p.annotated()
    (row,) = [row for row in text.splitlines() if "// drain" in row]
    assert "3968" in row.split()
    page = p.to_html()
    assert page.startswith("<!doctype html>") and "// drain" in page
    assert "data-name='conflicts'>3968" in page
    assert "&lt;int kPad&gt;" in page or "<int kPad>" not in page
    data = json.loads(p.to_json())
    assert sum(line["counts"]["instructions"] for line in data["lines"]) == p.total.instructions
    for name, start in (("p.json", "{"), ("p.html", "<!doctype"), ("p.cu", "/"), ("p.txt", "tra")):
        p.save(tmp_path / name)
        assert (tmp_path / name).read_text().startswith(start)


def test_kernels_have_the_names_of_their_source_in_every_form_for_readers():
    p = profile_of(TRANSPOSE, 1, (32, 32), floats(), floats(), 32, name="transpose<1>")
    assert next(iter(p.launches)).startswith("_Z")
    assert "transpose<1>: 1" in str(p) and "_Z" not in str(p)
    for text in (p.to_html(), p._repr_html_()):
        assert "Line profile of transpose<1> (1 launch)" in html.unescape(text)
        assert "_Z" not in text


def test_columns_without_values_are_left_out():
    p = profile_of("__global__ void one(int* x) { *x = 1; }", 1, 32, kw.zeros(1, "int32"))
    names = ["cost", "instr.", "threads", "global", "sect/req", "ideal"]
    assert str(p).splitlines()[1].split() == [*names, "line"]
    assert p.annotated().splitlines()[1].split() == [*names, "line", "source"]
    assert set(re.findall(r"data-name='(.*?)'", p.to_html())) == set(names)


def test_cost_and_advice_are_those_of_the_counts():
    p = profile_of(TRANSPOSE, (2, 2), (32, 32), floats(), floats(), 64, name="transpose<0>")
    fill, drain = line_with(p, "// fill"), line_with(p, "// drain")
    for c in (fill, drain, p.total):
        assert c.cost == c.instructions + 4 * (c.shared_wavefronts + c.atomic_passes) + 2 * (
            c.global_sectors + c.local_sectors
        )
    assert drain.advice.startswith("Bank conflicts: 32.0 passes") and "Pad the rows" in drain.advice
    assert fill.advice.startswith("Instructions: warps execute 1280.")
    assert type(fill)().advice == ""
    table = str(p).splitlines()
    costs = [float(row.split()[0][:-1]) for row in table if re.match(r" +[0-9.]+%", row)]
    assert costs[:-1] == sorted(costs[:-1], reverse=True) and costs[-1] == 100
    assert costs[0] == pytest.approx(100 * drain.cost / p.total.cost, abs=0.06)
    at = next(i for i, row in enumerate(table) if row.endswith("// drain") and "%" not in row)
    assert table[at + 1] == f"  {drain.advice}"
    page = html.unescape(p.to_html())
    assert drain.advice in page and "The shade of a line is its cost" in page
    shades = re.findall(r"--heat: ([0-9.]+)%'><td class=number>[0-9]+<td class=source>(.*)", page)
    heat = {source.strip(): float(value) for value, source in shades}
    (hot,) = [value for source, value in heat.items() if "// drain" in source]
    (warm,) = [value for source, value in heat.items() if "// fill" in source]
    assert warm / hot == pytest.approx(fill.cost / drain.cost, abs=0.01)
    assert fill.instructions > 0.8 * drain.instructions  # which would shade them nearly alike


PROGRAM = """
import sys, numpy as np, kernwright as kw
kernel = kw.kernel('''__global__ void mix(float* x, int* c, int n) {
    __shared__ float s[96];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    s[threadIdx.x * 2 % 96] = x[i * 3 % n];
    for (int k = 0; k < i % 7; ++k) x[i] += s[k];
    atomicAdd(c + i % 5, 1);
}''')
with kw.Device("sim"), kw.line_profile() as p:
    kernel[50, 96](kw.zeros(5000, "float32"), kw.zeros(5, "int32"), 4500)
print(p.to_json())
"""


def test_counts_do_not_depend_on_the_number_of_host_threads(tmp_path):
    script = tmp_path / "mix.py"
    script.write_text(PROGRAM)
    found = {
        subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "KERNWRIGHT_SIM_THREADS": threads, "KERNWRIGHT_SIM_ISA": isa},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads, isa in (("1", "auto"), ("2", "auto"), ("5", "baseline"))
    }
    assert len(found) == 1
    assert json.loads(found.pop())["lines"]


def test_the_documentation_tells_the_weights_of_the_cost():
    nothing = line_profile_module.Counts()
    weights = {
        field: dataclasses.replace(nothing, **{field: 1}).cost
        for field in ("instructions", "shared_wavefronts", "atomic_passes", "global_sectors")
    }
    instruction, wavefront, atomic, sector = weights.values()
    assert wavefront == atomic
    page = pathlib.Path(__file__, "../../../docs/trace_and_profile.md").resolve()
    assert (
        f"{instruction} for each instruction of a warp, {wavefront} for each pass over shared "
        "memory and for each of an atomic operation, "
        f"{sector} for each sector of global and of local memory"
    ) in " ".join(page.read_text().split())


CLUSTERS = """
import kernwright as kw
kernel = kw.kernel('''
__global__ void __cluster_dims__(2, 1, 1) swap(int* out) {
    __shared__ int mine;
    unsigned rank, address = (unsigned)__cvta_generic_to_shared(&mine);
    int other;
    if (threadIdx.x == 0) mine = blockIdx.x + 100;
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(rank ^ 1));
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(other) : "r"(address) : "memory");
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    if (threadIdx.x == 0) out[blockIdx.x] = other;
}''', arch="compute_90a")
out = kw.zeros(4, "int32")
with kw.trace(kernel, block=3, thread=0) as t, kw.line_profile(kernel) as p:
    kernel[4, 64](out)
assert out.numpy().tolist() == [101, 100, 103, 102]
(remote,) = [s for s in t.steps if "ld.shared::cluster" in s.instruction]
assert remote.writes[0].after == 102 and remote.accesses[0].before == (102,)
(store,) = [s for s in t.steps if "st.global" in s.instruction]
assert store.accesses[0].after == (102,)
waits = [s for s in t.steps if s.instruction.startswith("barrier.cluster.wait")]
assert len(waits) == 2 and all(s.complete for s in t.steps)
syncs = [line.counts for line in p.lines if "barrier.cluster" in line.source]
assert [c.instructions for c in syncs] == [2 * 8, 2 * 8]  # arrive and wait of eight warps
assert p.total.uncounted == 8 and p.total.shared_stores == 4 and p.total.global_stores == 4
for text in (p.to_text(), p.to_html()):
    assert "8 instructions move memory in ways that no request counts: their traffic" in text
"""


def test_clusters(tmp_path):
    script = tmp_path / "clusters.py"
    script.write_text(CLUSTERS)
    environment = {
        **os.environ,
        "KERNWRIGHT_DEVICE": "sim",
        "KERNWRIGHT_SIM_CAPABILITY": "9.0",
    }
    run = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
