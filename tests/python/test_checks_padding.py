"""The init check of structs copied as a whole: unwritten padding is no mistake, on any way; an
unwritten member is one, once it is used."""

import random

import pytest
from children import run_child

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

COUNT, THREADS = 200, 64
BLOCKS = -(-COUNT // THREADS)

SIZES = {"char": 1, "bool": 1, "short": 2, "int": 4, "float": 4, "double": 8, "int64": 8}
SIZES |= {"float2": 8, "float4": 16}
STRUCTS = {
    "bytes before words": [("char", "a"), ("int", "b"), ("char", "c")],
    "a word behind a double": [("double", "a"), ("int", "b"), ("char", "c")],
    "three floats": [("float4", "v"), ("float", "a"), ("float", "b"), ("float", "c")],
    "holes of every size": [
        *(("short", "a"), ("char", "b"), ("int64", "c")),
        *(("short", "d"), ("float", "e"), ("bool", "f")),
    ],
    "vectors": [("float4", "v"), ("char", "a"), ("float2", "w"), ("double", "b")],
}


def alignment_of(fields):
    return max(SIZES[kind] for kind, _ in fields)


def size_of(fields):
    """As CUDA lays structs out."""
    end = 0
    for kind, _ in fields:
        end += -end % SIZES[kind] + SIZES[kind]
    return end + -end % alignment_of(fields)


KERNELS = """
typedef long long int64;
struct Whole { MEMBERS };
#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return
__global__ void make(Whole* x, int n) { INDEX; WRITE; }
__global__ void copy(const Whole* x, Whole* y, int n) { INDEX; y[i] = x[i]; }
__global__ void copy_some(const Whole* x, Whole* y, int n) { INDEX; if (i % 3) y[i] = x[i]; }
__global__ void swap(Whole* x, int n) {
    INDEX; if (i % 2 || i + 1 >= n) return;
    Whole first = x[i]; x[i] = x[i + 1]; x[i + 1] = first;
}
__global__ void stage(const Whole* x, Whole* y, int n) {
    __shared__ alignas(16) char memory[64 * sizeof(Whole)];
    Whole* tile = reinterpret_cast<Whole*>(memory);
    int t = threadIdx.x, begin = blockIdx.x * 64, last = min(63, n - 1 - begin);
    if (t <= last) tile[t] = x[begin + t];
    __syncthreads();
    if (t <= last) y[begin + t] = tile[last - t];
}
__global__ void stage_async(const Whole* x, Whole* y, int n) {
    constexpr int kPiece = sizeof(Whole) % 16 ? 4 : 16;
    __shared__ alignas(16) char tile[64 * sizeof(Whole)];
    int t = threadIdx.x, begin = blockIdx.x * 64, count = min(64, n - begin);
    for (int at = t * kPiece; at < count * sizeof(Whole); at += 64 * kPiece) {
        unsigned to = (unsigned)__cvta_generic_to_shared(tile) + at;
        const char* from = reinterpret_cast<const char*>(x + begin) + at;
        if (kPiece == 16)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from));
        else
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(from));
    }
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    if (t < count) y[begin + t] = reinterpret_cast<Whole*>(tile)[count - 1 - t];
}
__global__ void through_local(const Whole* x, Whole* y, int n, int k) {
    INDEX; Whole own[3];
    for (int j = 0; j < 3; ++j) own[j] = x[i];
    y[i] = own[k];
}
__device__ __noinline__ Whole pass(Whole one) { return one; }
__global__ void by_value(const Whole* x, Whole* y, int n) { INDEX; y[i] = pass(x[i]); }
struct Pair { int key; Whole value; };
__global__ void nested(const Whole* x, Whole* y, int n, Pair* pairs) {
    INDEX; pairs[i].key = i; pairs[i].value = x[i]; Pair pair = pairs[i]; y[i] = pair.value;
}
__global__ void sum(const Whole* x, double* y, int n) {
    INDEX; const Whole& one = x[i]; y[i] = SUM;
}
__global__ void compare(const unsigned* x, int* y, int n) { INDEX; y[i] = x[i] > 7; }
"""
WAYS = ("copy", "stage", "stage_async", "through_local", "by_value", "nested", "copy_some", "swap")


class Way:
    """Kernels for one struct, and arrays of it."""

    def __init__(self, fields, left_out=(), debug=False):
        leaves = []
        for kind, name in fields:
            parts = {"float2": "xy", "float4": "xyzw"}.get(kind)
            leaves += [f"{name}.{part}" for part in parts] if parts else [name]
        size, written = size_of(fields), [leaf for leaf in leaves if leaf not in left_out]
        text = KERNELS.replace("MEMBERS", " ".join(f"{kind} {name};" for kind, name in fields))
        text = text.replace("WRITE", " ".join(f"x[i].{leaf} = i % 2;" for leaf in written))
        text = text.replace("SUM", " + ".join(f"one.{leaf}" for leaf in leaves))
        self.text, self.size, self.leaves = text, size, len(leaves)
        self.options = kw.ProgramOptions(device_debug=debug)
        self.x, self.y = (kw.empty(COUNT * size, "uint8") for _ in range(2))
        pair = max(4, alignment_of(fields)) + size
        self.pairs = kw.empty(COUNT * (pair + -pair % 4), "uint8")

    def __call__(self, name, *arguments):
        kw.kernel(self.text, name=name, options=self.options)[BLOCKS, THREADS](*arguments)

    def go(self, name):
        """One step from x to y in one of the ways; other bytes stay."""
        if name == "swap":
            self("swap", self.x, COUNT)
            return
        if name == "copy_some":
            self("copy", self.x, self.y, COUNT)
        more = {"through_local": [1], "nested": [self.pairs]}.get(name, [])
        self(name, self.x, self.y, COUNT, *more)
        self.x, self.y = self.y, self.x

    def sums(self):
        result = kw.zeros(COUNT, "float64")
        self("sum", self.x, result, COUNT)
        return result.numpy()


@pytest.mark.parametrize("debug", [False, True], ids=["optimised", "debug"])
@pytest.mark.parametrize("struct", STRUCTS)
def test_padding_may_be_copied(struct, debug):
    with kw.checks("init", "race") as report:
        way = Way(STRUCTS[struct], debug=debug)
        way("make", way.x, COUNT)
        for name in WAYS:
            way.go(name)
            assert not report, (name, str(report))
        sums = way.sums()
    assert not report, str(report)
    assert sorted(sums) == [0] * (COUNT // 2) + [way.leaves] * (COUNT // 2)


@pytest.mark.parametrize("debug", [False, True], ids=["optimised", "debug"])
@pytest.mark.parametrize("name", [way for way in WAYS if way != "by_value"])
@pytest.mark.parametrize("struct, member", [("bytes before words", "c"), ("vectors", "w.y")])
def test_a_member_that_nobody_wrote_is_found_where_it_is_used(struct, member, name, debug):
    with kw.checks("init") as report:
        way = Way(STRUCTS[struct], left_out=[member], debug=debug)
        way("make", way.x, COUNT)
        way.go(name)
        way.sums()
    assert {finding.kind for finding in report} == {"init"}
    # A wholly unwritten word does not show its object.
    places = [name, "sum"] if member == "c" else ["sum"]
    assert any(place in finding.kernel for finding in report for place in places), str(report)


def test_padding_that_is_compared_is_found():
    with kw.checks("init") as report:
        way = Way(STRUCTS["a word behind a double"])
        way("make", way.x, COUNT)
        way.go("copy")
        way("compare", kw.Pointer(way.x.ptr), kw.zeros(COUNT, "int32"), COUNT)
    assert ["compare" in finding.kernel for finding in report] == [True]


@pytest.mark.parametrize("name", ["copy", "stage", "stage_async", "swap"])
def test_an_object_that_nobody_wrote_is_found_where_it_is_copied(name):
    with kw.checks("init") as report:
        way = Way(STRUCTS["bytes before words"])
        way("make", way.x, COUNT - 1)
        way.go(name)
    assert {finding.kind for finding in report} == {"init"}
    assert all(name in finding.kernel for finding in report)


# One line: compilers give different lines to a statement of several.
LOAD = (
    'asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes'
    ' [%0], [%1], %2, [%3];" :: "r"(to), "l"(x), "r"(1024), "r"(at) : "memory");'
)
BULK = """
import numpy as np, kernwright as kw
kernel = kw.kernel('''
struct alignas(16) One { float a, b, c; };
__global__ void make(One* x, int n) {
    if (threadIdx.x < n) { One& one = x[threadIdx.x]; one.a = 1; one.b = 2; MORE }
}
__global__ void move(const One* x, float* y, One* z) {
    __shared__ alignas(16) One tile[64];
    __shared__ alignas(8) unsigned long long bar;
    unsigned at = __cvta_generic_to_shared(&bar), to = __cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(at), "r"(1024));
        LOAD
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; w: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;"
                 " @!p bra w; }" :: "r"(at) : "memory");
    One one = tile[63 - threadIdx.x];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;"
                     :: "l"(z), "r"(to) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    y[threadIdx.x] = one.a + one.b + one.c;
}
'''.replace("MORE", MORE), name=NAME, arch="compute_90a")
""".replace("LOAD", LOAD)


@pytest.mark.parametrize(
    "more, count, place",
    [
        ("one.c = 3;", 64, None),
        ("", 64, "One one = tile"),
        ("one.c = 3;", 63, LOAD),
    ],
)
def test_bulk_copies_take_padding_along(more, count, place):
    text = BULK.split("'''")[1].splitlines()
    lines = [number for number, line in enumerate(text, 1) if place and place in line]
    program = f"""MORE, NAME = {more!r}, 'make'{BULK}make, NAME = kernel, 'move'{BULK}
with kw.checks() as report:
    x, y = kw.empty(1024, "uint8"), kw.zeros(64, "float32")
    make[1, 64](x, {count})
    z = kw.empty(1024, "uint8")
    kernel[1, 64](x, y, z)
    again = kw.zeros(64, "float32")
    kernel[1, 64](z, again, x)
print([finding.kind for finding in report], [finding.line for finding in report])
"""
    environment = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    ended = run_child(program, **environment)
    assert (ended.code, ended.out) == (0, f"{['init'] * len(lines)} {lines}\n"), ended.err


@pytest.mark.parametrize("seed", range(12))
def test_random_structs_go_random_ways(seed):
    choose = random.Random(seed)
    kinds = choose.choices(list(SIZES), k=choose.randint(1, 6))
    fields = [(kind, f"m{i}") for i, kind in enumerate(kinds)]
    ways = [way for way in WAYS if way != "stage_async" or size_of(fields) % 4 == 0]
    ways = choose.choices(ways, k=4)
    last = fields[-1][1]
    for left_out in ((), (last, f"{last}.y")):
        if left_out:  # the check does not follow values into a call
            ways = ["copy" if way == "by_value" else way for way in ways]
        with kw.checks("init") as report:
            way = Way(fields, left_out, debug=bool(seed % 2))
            way("make", way.x, COUNT)
            for name in ways:
                way.go(name)
            sums = way.sums()
        if left_out:
            assert report, (fields, ways)
        else:
            assert not report, (fields, ways, str(report))
            assert sorted(sums) == [0] * (COUNT // 2) + [way.leaves] * (COUNT // 2)
