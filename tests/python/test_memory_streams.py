"""Memory that passes between streams, in all legal orders of the simulated device, checked."""

import os
import subprocess
import sys

import pytest

PROGRAM = r'''
import sys
import numpy as np
import kernwright as kw

seed, kind = int(sys.argv[1]), sys.argv[2]
others = 39 if kind == "fortieth" else 0
TEXT = """
__global__ void write(int* x, int v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = v;
}
__global__ void check(OTHERS const int* x, int v, int n, int* wrong) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] != v) atomicAdd(wrong, 1);
}
""".replace("OTHERS", "".join(f"const int* p{i}," for i in range(others)))
write, check = kw.kernel(TEXT, "write"), kw.kernel(TEXT, "check")
# No room to grow: memory of one stream goes to another as soon as it is wanted there.
pool = kw.memory.PoolResource(overhead=1.0, smallest_segment=4096)
kw.memory.use(pool)
random = np.random.default_rng(seed)
streams = [kw.Stream() for _ in range(3)]
wrong = kw.zeros(1, np.int32)
kw.current_device().synchronize()
live = []
for step in range(400):
    if len(live) < 6 and random.random() < 0.6:
        stream, n = streams[random.integers(3)], int(random.integers(1, 3000))
        with stream:
            x = kw.empty(n, np.int32)
        write[(n + 255) // 256, 256, stream](x, step, n)
        live.append((x, step, n, stream))
    elif live:
        x, value, n, owner = live.pop(int(random.integers(len(live))))
        user = streams[random.integers(3)]
        if user != owner:
            user.wait(owner.record())
        argument = x
        if kind == "hidden":  # a raw address tells nobody that the stream uses the memory
            argument = kw.Pointer(x.ptr, np.int32)
        elif kind == "strided":
            argument = kw.strided(x)
        check[(n + 255) // 256, 256, user](*[wrong] * others, argument, value, n, wrong)
        del x, argument
for stream in streams:
    stream.synchronize()
stats = pool.stats()
print(int(wrong.item()), stats["hits"], stats["misses"])
'''


def run(seed, kind):
    environment = {
        **os.environ,
        "KERNWRIGHT_DEVICE": "sim",
        "KERNWRIGHT_SIM_SEED": str(seed),
        "KERNWRIGHT_CHECKS": "streams",
    }
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(seed), kind],
        capture_output=True, text=True, timeout=300, env=environment,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ("told", "strided", "fortieth"))
@pytest.mark.parametrize("seed", range(1, 5))
def test_memory_passes_between_streams_in_order(seed, kind):
    result = run(seed, kind)
    assert result.returncode == 0, result.stderr
    wrong, hits, misses = map(int, result.stdout.split())
    assert wrong == 0
    assert hits > 100 and misses < hits


def test_a_use_that_the_pool_was_not_told_of_is_found():
    results = [run(seed, "hidden") for seed in range(1, 5)]
    assert any(r.returncode != 0 and "DeviceFault" in r.stderr for r in results)
