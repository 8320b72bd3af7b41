"""Several devices: naming them, copies and links between them, and arguments of the wrong one."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import kernwright as kw

N = 1000


def run_on_four(body: str) -> str:
    """Runs `body` in a process with four simulated devices whose streams run apart; its output."""
    environment = os.environ | {
        "KERNWRIGHT_DEVICE": "sim",
        "KERNWRIGHT_SIM_DEVICES": "4",
        "KERNWRIGHT_SIM_SEED": "3",
    }
    head = "import numpy as np, pytest, kernwright as kw\n"
    done = subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(body)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_devices_by_index_uuid_and_bus_id():
    run_on_four(
        """
        devices = kw.devices()
        assert len(devices) == 4
        for i, device in enumerate(devices):
            assert device == kw.Device(i) == kw.Device(f"sim:{i}")
            assert device == kw.Device(device.uuid) == kw.Device(device.pci_bus_id)
            assert device == kw.Device("0000" + device.pci_bus_id)
            with device:
                assert kw.current_device() == device
                assert kw.zeros(3).device == device
                assert kw.Stream().device == device
        assert kw.current_device() == devices[0]
        with pytest.raises(kw.DeviceNotFound, match="begins the UUIDs of 4 devices"):
            kw.Device(devices[0].uuid[:12])
        for wrong in (4, -1, 2**40, "sim:4", "GPU-", "GPU-nothing", "ffff:00:00.0", "7:7"):
            with pytest.raises(kw.DeviceNotFound):
                kw.Device(wrong)
        """
    )


def test_arrays_go_from_device_to_device():
    run_on_four(
        """
        x = kw.asarray(np.arange(1000, dtype=np.float32).reshape(10, 100))
        there = x.to(1)
        assert there.device == kw.Device(1) and there.ptr != x.ptr
        assert np.array_equal(there.numpy(), x.numpy())
        back = there.T.to(3).to(kw.Device(0))
        assert back.shape == (100, 10)
        assert np.array_equal(back.numpy(), x.numpy().T)
        assert x.to(0) is x
        assert x[0:0].to(2).shape == (0, 100)
        """
    )


def test_copies_between_devices_follow_the_streams_of_both():
    run_on_four(
        """
        k = kw.kernel('''__global__ void fill(float* x, float v, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] = v;
        }''')
        n = 100000
        first, second = kw.Stream(device=0), kw.Stream(device=1)
        x = kw.zeros(n)
        for round in range(10):
            with first:
                k.forall(n)(x, float(round), n)
                with second:
                    with first:
                        y = x.to(1)
            # The copy is behind the kernel on its stream; the next kernel overwrites the source.
            with second:
                z = y.to(0)
            assert set(z.numpy()) == {float(round)}
            first.wait(second)
            first.synchronize()
        """
    )


def test_links_between_devices():
    run_on_four(
        """
        a, b = kw.Device(0), kw.Device(1)
        assert a.can_access(a) and a.enable_peer_access(a)
        linked = a.can_access(b)
        assert a.enable_peer_access(b) == linked
        assert a.enable_peer_access(1) == linked
        with pytest.raises(kw.DeviceNotFound):
            a.can_access(9)
        """
    )


def test_arguments_of_another_device_are_refused_by_name():
    run_on_four(
        """
        k = kw.kernel('''__global__ void fill(float* x, int n) { if (n > 0) x[0] = n; }''')
        x, y = kw.zeros(8, device=0), kw.zeros(8, device=1)
        k[1, 1](x, 1)
        with pytest.raises(kw.ArgumentError, match="sim:1"):
            k[1, 1](y, 1)
        with kw.Device(1):
            k[1, 1](y, 2)
            with pytest.raises(kw.ArgumentError, match="sim:0"):
                k[1, 1](x, 1)
        assert (x.numpy()[0], y.numpy()[0]) == (1, 2)
        with pytest.raises(kw.ArgumentError, match="sim:1"):
            x[:] = y
        far = kw.Stream(device=1)
        with pytest.raises(kw.Error, match="sim:1"):
            kw.Event(device=0).record(far)
        with pytest.raises(kw.Error, match="sim:1"):
            kw.Event(device=0).elapsed_ms(kw.Event(device=1))
        with pytest.raises(kw.ArgumentError, match="sim:0"):
            k[1, 1, far](x, 1)
        graph = kw.Graph(device=0)
        with pytest.raises(kw.InvalidArgument, match="sim:1"):
            with graph.capture(far):
                pass
        with graph.capture():
            k[1, 1](x, 5)
        with pytest.raises(kw.InvalidArgument, match="sim:1"):
            graph.launch(far)
        with pytest.raises(kw.ArgumentError, match="sim:1"):
            graph.update(0, y, 1)
        engine = kw.TransferEngine(device=0)
        with pytest.raises(kw.ArgumentError, match="sim:1"):
            engine.download(y)
        with pytest.raises(kw.InvalidArgument, match="sim:1"):
            engine.download(x, after=far)
        """
    )


def test_each_device_has_its_own_code_and_memory():
    run_on_four(
        """
        k = kw.kernel('''__global__ void twice(float* x, int n) {
            int i = threadIdx.x; if (i < n) x[i] *= 2; }''')
        arrays = [kw.asarray(np.full(32, i, np.float32), device=i) for i in range(4)]
        streams = [kw.Stream(device=i) for i in range(4)]
        for _ in range(3):
            for array, stream in zip(arrays, streams):
                k[1, 32, stream](array, 32)
        for i, (array, stream) in enumerate(zip(arrays, streams)):
            stream.synchronize()
            assert array.device == kw.Device(i)
            assert (array.numpy() == 8 * i).all()
            with kw.Device(i):
                assert k.attributes.max_threads_per_block >= 32
        """
    )


def test_one_graph_on_each_of_four_devices():
    run_on_four(
        """
        k = kw.kernel('''__global__ void add(float* x, float v, int n) {
            int i = threadIdx.x; if (i < n) x[i] += v; }''')
        made = []
        for device in kw.devices():
            with device:
                x, graph = kw.zeros(32), kw.Graph()
                with graph.capture() as stream:
                    k[1, 32](x, 1.0, 32)
                    k[1, 32](x, 2.0, 32)
                assert graph.device == device
                made.append((x, graph, stream))
        for x, graph, stream in made * 5:
            graph.launch(stream)
        for x, graph, stream in made:
            stream.synchronize()
            assert (x.numpy() == 15).all()
        """
    )


@pytest.mark.skipif(len(kw.devices()) < 2, reason="needs two devices")
def test_two_devices_of_this_machine():
    x = kw.asarray(np.arange(N, dtype=np.float32), device=0)
    y = x.to(1)
    assert y.device == kw.Device(1)
    assert np.array_equal(y.numpy(), np.arange(N, dtype=np.float32))
    assert np.array_equal(y.to(0).numpy(), np.arange(N, dtype=np.float32))
