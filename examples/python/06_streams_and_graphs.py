"""Streams, events, a graph with changing arguments, memory, and a profile."""

import numpy as np

import kernwright as kw

scale = kw.kernel("""
__global__ void scale(float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}""")

n = 1 << 20
grid = -(-n // 256)
x, y = kw.ones(n), kw.ones(n)

# Two streams run independently; an event makes one wait for the other.
first, second = kw.Stream(), kw.Stream(priority=-1)
ready = kw.Event()
kw.current_device().synchronize()
scale[grid, 256, first](x, 2.0, n)
ready.record(first)
second.wait(ready)
scale[grid, 256, second](x, 3.0, n)
scale[grid, 256, first](y, 5.0, n)
second.synchronize(timeout=10)
np.testing.assert_array_equal(x.numpy(), 6)

# Work is recorded once and launched many times, each time for about a third of the cost.
graph = kw.Graph()
with graph.capture(first):
    scale[grid, 256](x, 2.0, n)  # the captured stream is the current one here
    scale[grid, 256](y, 2.0, n)
for _ in range(3):
    graph.launch(first)
graph.update(graph.nodes[1], y, 0.5, n)
graph.launch(first)
first.synchronize()
print(f"{graph.node_count} nodes, launched 4 times")
np.testing.assert_array_equal(x.numpy(), 6 * 16)
np.testing.assert_array_equal(y.numpy(), 5 * 8 * 0.5)

# Within this block, the memory of arrays comes from a pool with a limit.
pool = kw.memory.PoolResource()
with kw.memory.use(kw.memory.LimitingAdaptor(pool, 64 << 20)):
    z = kw.zeros(n)
    try:
        kw.empty(64 << 20)
    except kw.OutOfMemory as error:
        print(str(error).splitlines()[0])
print(f"{kw.memory.stats()['used']} bytes of arrays are in use")

# A table of the work; profile.save_trace(path) writes a file for chrome://tracing.
with kw.profile() as profile:
    scale[grid, 256](z, 2.0, n)
    z.numpy()
print(profile)
