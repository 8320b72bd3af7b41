"""The device under test: the one of KERNWRIGHT_DEVICE, the simulated one by default."""

import gc
import glob
import importlib.util
import os

import kept_cache
import pytest

os.environ.setdefault("KERNWRIGHT_DEVICE", "sim")
if "KERNWRIGHT_CACHE_DIR" not in os.environ:  # the user's own cache is no place for tests
    kept_cache.use(os.environ)

import kernwright as kw

# Processes side by side share the GPUs out among them, before one of them looks for devices.
number = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
if number and os.environ["KERNWRIGHT_DEVICE"] != "sim":
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = visible.split(",") if visible else glob.glob("/dev/nvidia[0-9]*")
    if len(gpus) > 1:
        mine = int(number) % len(gpus)
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[mine] if visible else str(mine)

# Its nodes are simulated: a host with a GPU and without Ray loses nothing.
if os.environ["KERNWRIGHT_DEVICE"] != "sim" and not importlib.util.find_spec("ray"):
    collect_ignore = ["test_tune_cluster.py"]

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *("bfloat16", "float8_e4m3fn", "float8_e5m2"),
]

SAXPY = r"""
__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keeps the garbage collector away from the collected tests, which live to the end anyway.

    They are 600,000 objects: each of some hundred full collections in the tests took 0.36 s.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    config.pluginmanager.register(FailuresAtOnce(config))


class FailuresAtOnce:
    """Names each failed test when it fails, before a time limit may end the run."""

    def __init__(self, config):
        self.terminal = config.pluginmanager.get_plugin("terminalreporter")

    def pytest_runtest_logreport(self, report):
        if report.failed and self.terminal is not None:
            said = str(report.longrepr).strip().splitlines()
            reasons = [line for line in said if line.startswith("E ")] or said[-1:]
            self.terminal.write_line(f"\nFAILED {report.nodeid} {' '.join(reasons)[:300]}")


@pytest.fixture(autouse=True)
def idle_device():
    """Every test starts and ends on the default device; a fault left by one fails this one."""
    before = kw.current_device()
    yield
    assert kw.current_device() == before
    before.synchronize()


@pytest.fixture
def device():
    return kw.current_device()


@pytest.fixture
def sim():
    """The simulated device, also where the other tests run on a GPU."""
    with kw.Device("sim") as device:
        yield device


@pytest.fixture(scope="session")
def saxpy():
    return kw.kernel(SAXPY)
