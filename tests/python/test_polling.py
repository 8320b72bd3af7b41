"""Loops that poll shared memory: those that nobody can end are found at once, all others go on."""

import pytest
from children import run_child

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

TEXT = """
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void begin(unsigned long long* b, unsigned n) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
}
__device__ void arrive(unsigned long long* b) {
    asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" :: "r"(at(b)) : "memory");
}
__device__ bool done(unsigned long long* b) {
    unsigned r;
    asm volatile("{.reg .pred q; mbarrier.test_wait.parity.shared.b64 q, [%1], 0;" \
                 "selp.u32 %0, 1, 0, q;}" : "=r"(r) : "r"(at(b)) : "memory");
    return r;
}
__global__ void k(int* x, int n) {
    __shared__ unsigned long long b;
    __shared__ volatile int flag, other;
    int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) begin(&b, blockDim.x);
    flag = other = 0;
    __syncthreads();
    BODY
}"""

STUCK = {
    "a warp never arrives": "if (warp == 0) arrive(&b); while (!done(&b)) {}",
    "with pauses": "if (warp == 0) arrive(&b); while (!done(&b)) __nanosleep(20);",
    "one thread and a barrier": "if (threadIdx.x == 0) while (!done(&b)) {} __syncthreads();",
    "words of shared memory": "if (warp == 0) while (flag == 0) {} else while (other == 0) {}",
    "each for the other": "if (warp == 0) { while (!done(&b)) {} flag = 1; }"
    " else { while (flag == 0) {} arrive(&b); }",
    "with a clock that does not end it": """long long t = clock64();
    while (!done(&b)) if (clock64() - t > 1000) __nanosleep(100);""",
    "with a count that does not end it": """int i = 0;
    while (!done(&b)) if (i < 16) ++i; else __nanosleep(50);""",
}

ENDS = {
    "a count": "int i = 0; while (!done(&b) && i < 100000) ++i; x[0] = i;",
    "a count on the way": """int stop = 0, i = 0;
    while (!done(&b) && !stop) if (++i == 100000) stop = 1;
    x[0] = i;""",
    "the clock": """long long t = clock64();
    while (!done(&b) && clock64() - t < 3000000) {}
    x[0] = 100000;""",
    "a slow warp": """if (warp == 1) {
        int v = n;
        for (int i = 0; i < 100000; ++i) v = v * 5 + 1;
        x[1] = v;
    }
    arrive(&b);
    while (!done(&b)) {}
    x[0] = 100000;""",
    "another block": """if (blockIdx.x == 0) {
        if (warp == 1) while (((volatile int*)x)[2] == 0) {}
        arrive(&b);
        while (!done(&b)) {}
        x[0] = 100000;
    } else if (threadIdx.x == 0) {
        ((volatile int*)x)[2] = 1;
    }""",
    "turns": """int v = 0;
    for (int i = 0; i < 500; ++i) {
        if (warp == 0) { while (flag < i) {} other = i; }
        else { if (threadIdx.x == 32) flag = i; __syncwarp(); while (other < i) {} }
        v += 200;
    }
    x[0] = v;""",
    "a lock": """if (threadIdx.x % 32 == 0) {
        while (atomicCAS((int*)&flag, 0, 1) != 0) {}
        for (int i = 0; i < 20000; ++i) other = i;
        atomicExch((int*)&flag, 0);
    }
    x[0] = 100000;""",
}


def launch(body, blocks):
    x = kw.zeros(4, "int32")
    kw.kernel(TEXT.replace("BODY", body), name="k")[blocks, 64](x, 3)
    return int(x.numpy()[0])


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("body", STUCK.values(), ids=STUCK)
def test_what_nobody_can_end_is_found(body, seed):
    for blocks in (1, 5):
        with pytest.raises(kw.DeviceFault, match="nobody is left to change") as caught:
            if seed is None:
                launch(body, blocks)
            else:
                with kw.checks.schedule(seed):
                    launch(body, blocks)
        assert caught.value.kind == "sync"
        assert "wait for what they poll" in caught.value.report
        assert caught.value.line in (11, 21)  # done(), or the word that is read in place


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("body", ENDS.values(), ids=ENDS)
def test_what_ends_does_so(body, seed):
    if seed is None:
        assert launch(body, 2) == 100000
        with kw.checks("init", "race", "sync"):
            assert launch(body, 2) == 100000
    else:
        with kw.checks.schedule(seed):
            assert launch(body, 2) == 100000


CLUSTER = """
import kernwright as kw
text = '''
__global__ void __cluster_dims__(2, 1, 1) k(int* x, int n) {
    __shared__ volatile int flag;
    unsigned mine, other;
    flag = 0;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    mine = (unsigned)__cvta_generic_to_shared((void*)&flag);
    asm("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(other) : "r"(mine));
    if (blockIdx.x == 0) {
        int v = n;
        for (int i = 0; i < 300000; ++i) v = v * 5 + 1;
        x[1] = v;
        if (n == 3) asm volatile("st.shared::cluster.u32 [%0], 1;" :: "r"(other) : "memory");
    } else {
        while (flag == 0) {}
        x[0] = 7;
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}'''
kernel = kw.kernel(text)
x = kw.zeros(2, "int32")
kernel[2, 1](x, 3)
print(x.numpy()[0])
try:
    kernel[2, 1](x, 4)
    kw.current_device().synchronize()
except kw.DeviceFault as fault:
    print("nobody is left to change" in str(fault), "block (1, 0, 0), warp 0" in fault.report)
"""


@pytest.mark.parametrize("seed", ["", "4"])
def test_blocks_of_a_cluster_wait_for_each_other(seed):
    variables = {"KERNWRIGHT_DEVICE": "sim", "KERNWRIGHT_SIM_CAPABILITY": "9.0"}
    if seed:
        variables["KERNWRIGHT_SIM_SEED"] = seed
    ended = run_child(CLUSTER, **variables)
    assert ended.out.split("\n")[:2] == ["7", "True True"], ended
