"""Devices, streams and events."""

import pickle

import pytest

import kernwright as kw


def test_devices_are_listed_and_found_by_index_and_name(device):
    assert device in kw.devices()
    assert kw.Device() == device
    assert kw.Device(str(device)) == device
    assert kw.Device(0) == kw.devices()[0]
    assert hash(kw.Device(0)) == hash(kw.devices()[0])
    assert device != "sim" and device != 0


def test_device_describes_itself(device):
    assert device.name and device.uuid.startswith("GPU-")
    major, minor = device.compute_capability
    assert (major, minor) >= (7, 5)
    assert device.driver_version >= 12000
    assert device.is_simulated == str(device).startswith("sim")
    assert str(device).split(":")[0] in repr(device)


def test_attributes_by_name_and_number(device):
    attributes = device.attributes
    assert attributes["warp_size"] == attributes.warp_size == attributes[10] == 32
    assert attributes.multiprocessor_count >= 1
    assert attributes.max_threads_per_block == 1024
    assert attributes.max_shared_memory_per_block >= 48 * 1024
    assert attributes.compute_capability_major == device.compute_capability[0]
    assert "warp_size" in attributes and len(attributes) > 80
    assert set(attributes) <= set(dir(attributes))


def test_an_unknown_attribute_is_refused_with_the_nearest(device):
    with pytest.raises(KeyError, match="warp_size"):
        device.attributes["warp_sise"]
    with pytest.raises(AttributeError, match="multiprocessor_count"):
        device.attributes.multiprocesor_count
    with pytest.raises(kw.DriverError):
        device.attributes[99999]


def test_memory_info(device):
    free, total = device.memory_info()
    assert 0 < free <= total
    assert device.memory_info().total == total


def test_unknown_devices_are_refused():
    with pytest.raises(kw.DeviceNotFound, match="99"):
        kw.Device(99)
    with pytest.raises(kw.DeviceNotFound):
        kw.Device(-1)
    with pytest.raises(kw.Error, match="abacus"):
        kw.Device("abacus")
    with pytest.raises(TypeError):
        kw.Device(1.5)


def test_the_simulated_device_is_always_there():
    sim = kw.Device("sim")
    assert sim.is_simulated and sim.compute_capability == (8, 0)
    with sim:
        assert kw.current_device() == sim
        with kw.Device("sim"):
            assert kw.current_device() == sim
    assert kw.current_device() == kw.Device()


def test_leaving_a_device_after_an_exception(sim):
    class Stop(Exception):
        pass

    with pytest.raises(Stop):
        with kw.Device(0):
            raise Stop
    assert kw.current_device() == sim


def test_the_current_device_belongs_to_the_thread(device):
    import threading

    seen = []
    with kw.Device("sim"):
        thread = threading.Thread(target=lambda: seen.append(kw.current_device()))
        thread.start()
        thread.join()
    assert seen == [device]


def test_devices_pickle(device):
    assert pickle.loads(pickle.dumps(device)) == device


def test_streams_are_ordered_by_events(saxpy, device):
    first, second = kw.Stream(), kw.Stream(priority=-1)
    x, y = kw.ones(1000), kw.zeros(1000)
    device.synchronize()
    saxpy[4, 256, first](2.0, x, y, 1000)
    event = first.record()
    second.wait(event)
    saxpy[4, 256, second](3.0, x, y, 1000)
    second.synchronize()
    assert first.done and second.done and event.done
    assert (y.numpy() == 5).all()


def test_stream_protocol_and_identity(device):
    stream = kw.Stream()
    version, handle = stream.__cuda_stream__()
    assert version == 0 and handle == stream.handle != 0
    assert kw.Stream.borrow(stream.handle) == stream
    assert kw.Stream.borrow(stream) == stream
    assert kw.Stream.legacy().handle == 0
    assert stream.device == device
    assert stream != kw.Stream()
    assert hex(stream.handle) in repr(stream)


def test_with_stream_makes_it_current(saxpy):
    stream = kw.Stream()
    assert kw.current_stream().handle == 0
    with stream:
        assert kw.current_stream() == stream
        x, y = kw.ones(10), kw.zeros(10)
        saxpy[1, 32](1.0, x, y, 10)
        assert (y.numpy() == 1).all()
    assert kw.current_stream().handle == 0


def test_events_measure_time():
    start, end = kw.Event(), kw.Event()
    start.record()
    end.record()
    end.synchronize()
    assert end.elapsed_ms(start) >= 0
    assert start.done and end.done


def test_events_without_timing_measure_nothing():
    start, end = kw.Event(timing=False), kw.Event(timing=False)
    start.record()
    end.record()
    with pytest.raises(kw.Error):
        end.elapsed_ms(start)


def test_synchronize_takes_a_timeout(device):
    device.synchronize(timeout=10)
    kw.Stream().synchronize(timeout=0.5)
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError):
            device.synchronize(timeout=wrong)


def test_a_timeout_ends_the_wait(device):
    spin = kw.kernel(
        """__global__ void spin(long long cycles) {
            long long start = clock64();
            while (clock64() - start < cycles) {}
        }"""
    )
    spin.compile()
    stream = kw.Stream()
    if device.is_simulated:  # its clock stands still while it waits
        spin[1, 1, stream](1000)
        stream.synchronize(timeout=60)
        return
    spin[1, 1, stream](2_000_000_000)
    try:
        with pytest.raises(kw.Timeout):
            stream.synchronize(timeout=0.001)
    finally:
        stream.synchronize()


@pytest.mark.parametrize("wrong", ["a stream", 1.5, object()])
def test_what_is_no_stream_is_refused(saxpy, wrong):
    with pytest.raises(kw.ArgumentError, match="stream"):
        saxpy[1, 1, wrong]


def test_synchronize_waits_for_the_current_device():
    stream = kw.Stream()
    slow = kw.kernel("__global__ void slow(int* o) { for (int i = 0; i < 20000; ++i) o[0] += 1; }")
    out = kw.zeros(1, "i4")
    kw.synchronize()
    with stream:
        slow[1, 1](out)
    event = stream.record()
    assert kw.synchronize() is None
    assert event.done and stream.done
    kw.synchronize(timeout=10)
    kw.synchronize(10)
    with pytest.raises(kw.InvalidArgument):
        kw.synchronize(-1)
    with pytest.raises(kw.ArgumentError):
        kw.synchronize("soon")
    graph = kw.Graph()
    with graph.capture(kw.Stream()), pytest.raises(kw.CaptureError):
        kw.synchronize()


def test_a_reset_within_a_capture_is_refused():
    graph, x = kw.Graph(), kw.zeros(4)
    add = kw.kernel("__global__ void add(float* x) { x[threadIdx.x] += 1; }")
    with graph.capture(kw.Stream()):
        add[1, 4](x)
        with pytest.raises(kw.CaptureError, match="reset"):
            kw.Device().reset()
        add[1, 4](x)
    assert graph.node_count == 2
    graph.launch()
    assert x.numpy().tolist() == [2, 2, 2, 2]


def test_elapsed_milliseconds_of_the_simulated_device_say_so(sim):
    start, end = kw.Event(), kw.Event()
    start.record()
    end.record()
    end.synchronize()
    elapsed = end.elapsed_ms(start)
    assert isinstance(elapsed, float) and type(elapsed + 1) is float
    assert str(elapsed) == repr(elapsed) == f"{float(elapsed)!r} (simulated)"
    assert f"{elapsed:.3f}" == f"{float(elapsed):.3f}"
    assert pickle.loads(pickle.dumps(elapsed)) == elapsed
