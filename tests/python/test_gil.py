"""No call of the driver with the GIL held: it may wait for a thread in need of the GIL."""

import pytest
from children import run_child

# They look a value up and never wait.
LOOKUPS = {"cuCtxGetCurrent", "cuCtxSetCurrent", "cuDeviceGetAttribute", "cuGetErrorString"}

PROLOGUE = """
import gc
import numpy as np
import kernwright as kw
from kernwright._core import _faults as faults

faults.install("sim")
faults.watch_gil()
device = kw.current_device()
SAXPY = r'''
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}'''
"""

SCENARIOS = {
    "devices": """
device.memory_info(), device.uuid, device.pci_bus_id, device.driver_version
device.compute_capability, dict(device.attributes), kw.devices()
device.synchronize()
""",
    "launches": """
saxpy = kw.kernel(SAXPY)
x, y = kw.ones(1000), kw.zeros(1000)
saxpy[4, 256](2.0, x, y, 1000)
saxpy[4, 256, kw.Stream()](2.0, x, y, 1000)
saxpy.forall(1000)(2.0, kw.In(x.numpy()), y, 1000)
saxpy.launch(kw.LaunchConfig(4, 256, stream=kw.Stream()), 2.0, x, y, 1000)
saxpy.occupancy(256), saxpy.suggest_block(), saxpy.attributes, saxpy.report()
with kw.Stream():
    saxpy.forall(1000)(2.0, x, kw.Out(np.zeros(1000, np.float32)), 1000)
del saxpy
gc.collect()
""",
    "streams": """
stream, other = kw.Stream(priority=-1), kw.Stream.per_thread()
event = stream.record()
other.wait(event), other.wait(stream), event.record(other), event.record()
stream.done, stream.priority, stream.is_capturing, event.done
end = stream.record()
end.synchronize(), stream.synchronize(), end.elapsed_ms(event)
del stream, event, end
gc.collect()
""",
    "memory": """
block = kw.memory.alloc(1000)
block.free()
kw.memory.alloc(2000, kw.Stream())
kw.pinned(1000)
with kw.Stream() as stream:
    x = kw.empty(1000)
x.record_stream(kw.Stream())
x.record_stream(kw.Stream.borrow(stream.handle))
for resource in (kw.memory.AsyncResource(), kw.memory.PoolResource(), kw.memory.DeviceResource()):
    with kw.memory.use(resource):
        kw.zeros(100_000)
kw.memory.trim()
del x, stream, resource
gc.collect()
""",
    "graphs": """
saxpy = kw.kernel(SAXPY)
x, y = kw.ones(1000), kw.zeros(1000)
graph = kw.Graph()
with graph.capture():
    saxpy[4, 256](2.0, x, y, 1000)
    y[:] = x
graph.launch()
graph.launch(kw.Stream())
node = graph.nodes[0]
graph.update(node, 3.0, x, y, 1000)
graph.launch()
del graph, node, saxpy
gc.collect()
""",
    "transfers": """
engine = kw.TransferEngine()
sent = engine.upload(np.arange(100_000, dtype=np.float32))
x = sent.result()
sent.done, repr(sent)
fetched = engine.download(x).result()
y = kw.asarray(fetched)
y[::2] = x[::2]
y.numpy(), y.copy(), y.astype("float64"), y.to(device)
y.__dlpack__()
kw.asarray(x)
del engine, sent, x, y
gc.collect()
""",
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_call_of_the_driver_is_made_with_the_lock_held(name):
    ended = run_child(
        PROLOGUE + SCENARIOS[name] + "\nprint(*faults.names_called_with_gil())",
        KERNWRIGHT_DEVICE="sim",
    )
    assert (ended.code, ended.err) == (0, "")
    assert set(ended.out.split()) <= LOOKUPS


def test_a_call_with_the_lock_held_is_noticed():
    ended = run_child(
        PROLOGUE + "faults.call_with_gil()\nprint(*faults.names_called_with_gil())",
        KERNWRIGHT_DEVICE="sim",
    )
    assert ended.out.split() == ["cuDriverGetVersion"], ended.err
