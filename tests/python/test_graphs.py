"""Graphs: recorded and refused calls of a capture, replay, updates, and kept objects."""

import gc
import os
import threading
import weakref

import numpy as np
import pytest

import kernwright as kw

SCALE = r"""
__global__ void scale(float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
__global__ void shift(float* x, float b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += b;
}
"""
N = 1000


@pytest.fixture(scope="module")
def kernels():
    return kw.module(SCALE)


@pytest.fixture
def x():
    return kw.asarray(np.arange(N, dtype=np.float32))


def test_replay_equals_eager(kernels, x):
    scale, shift = kernels["scale"], kernels["shift"]
    expected = np.arange(N, dtype=np.float32)
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream) as captured:
        assert captured == stream
        assert kw.current_stream() == stream
        assert graph.is_capturing and stream.is_capturing
        scale[4, 256](x, 0.5, N)
        shift[4, 256](x, 3.0, N)
        scale[4, 256, stream](x, 0.25, N)
    assert not graph.is_capturing and not stream.is_capturing
    assert np.array_equal(x.numpy(), expected)
    assert graph.node_count == 3
    assert [node.name for node in graph.nodes] == ["scale", "shift", "scale"]
    for _ in range(100):
        graph.launch(stream)
        expected = (expected * np.float32(0.5) + np.float32(3.0)) * np.float32(0.25)
    stream.synchronize()
    assert np.array_equal(x.numpy(), expected)


def test_nodes_tell_their_configuration(kernels, x):
    graph = kw.Graph()
    with graph.capture():
        kernels["scale"][(2, 2), 128, None, 64](x, 1.0, N)
    (node,) = graph.nodes
    assert (node.index, node.name) == (0, "scale")
    assert (node.grid, node.block, node.shared_bytes) == ((2, 2, 1), (128, 1, 1), 64)
    assert node.signature == "scale(float* x, float a, int n)"
    assert "scale" in repr(node) and "1 node on" in repr(graph)


def test_the_current_stream_is_captured_and_launched_on(kernels, x):
    stream, graph = kw.Stream(), kw.Graph()
    with stream:
        with graph.capture() as captured:
            kernels["shift"][4, 256](x, 1.0, N)
        assert captured == stream
        graph.launch()
    stream.synchronize()
    assert x.numpy()[0] == 1
    graph.launch(kw.Stream.per_thread())
    kw.Stream.per_thread().synchronize()
    graph.launch(kw.Stream.legacy())
    assert x.numpy()[0] == 3


def test_update_changes_arguments_between_replays(kernels, x):
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        kernels["shift"][4, 256](x, 0.0, N)
    node = graph.nodes[0]
    total = 0.0
    for step in range(20):
        graph.update(node, x, float(step), N)
        graph.launch(stream)
        total += step
    stream.synchronize()
    assert np.array_equal(x.numpy(), np.arange(N, dtype=np.float32) + np.float32(total))
    other = kw.zeros(N)
    graph.update(-1, other, 2.0, 10)
    graph.launch(stream)
    stream.synchronize()
    assert other.numpy().sum() == 20


def test_update_checks_arguments_like_a_launch(kernels, x):
    graph = kw.Graph()
    with graph.capture():
        kernels["scale"][4, 256](x, 2.0, N)
    node = graph.nodes[0]
    with pytest.raises(kw.ArgumentError, match="takes 3 arguments, 2 were given"):
        graph.update(node, x, 1.0)
    with pytest.raises(kw.ArgumentError, match="parameter 1"):
        graph.update(node, kw.zeros(N, np.int32), 1.0, N)
    with pytest.raises(kw.ArgumentRangeError):
        graph.update(node, x, 1.0, 2**31)
    with pytest.raises(kw.ArgumentError, match="around a launch"):
        graph.update(node, kw.InOut(np.ones(N, np.float32)), 1.0, N)
    with pytest.raises(kw.ArgumentError, match="nodes or its index"):
        graph.update("scale", x, 1.0, N)
    with pytest.raises(kw.InvalidArgument, match="no kernel 1: it has 1"):
        graph.update(1, x, 1.0, N)
    with pytest.raises(kw.InvalidArgument, match="another graph"):
        other = kw.Graph()
        with other.capture():
            kernels["scale"][4, 256](x, 2.0, N)
        other.update(node, x, 1.0, N)
    graph.launch()
    assert x.numpy()[1] == 2


def test_capturing_again_updates_or_rebuilds(kernels, x):
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        kernels["shift"][4, 256](x, 1.0, N)
    node = graph.nodes[0]
    with graph.capture(stream):
        kernels["shift"][4, 256](x, 10.0, N)
    graph.launch(stream)
    graph.update(node, x, 100.0, N)  # the same structure: the node is still valid
    graph.launch(stream)
    with graph.capture(stream):
        kernels["shift"][4, 256](x, 1000.0, N)
        kernels["shift"][4, 256](x, 1000.0, N)
    assert graph.node_count == 2
    with pytest.raises(kw.InvalidArgument, match="earlier capture"):
        graph.update(node, x, 1.0, N)
    graph.launch(stream)
    stream.synchronize()
    assert x.numpy()[0] == 2110
    graph.reset()
    assert graph.node_count == 0 and graph.nodes == []
    with pytest.raises(kw.Error, match="capture some work first"):
        graph.launch(stream)


def test_streams_fork_and_join(kernels, x):
    main, side, graph = kw.Stream(), kw.Stream(), kw.Graph()
    y = kw.zeros(N)
    with graph.capture(main):
        kernels["shift"][4, 256](x, 1.0, N)
        side.wait(main.record())
        with side:
            assert side.is_capturing
            kernels["shift"][4, 256](y, 5.0, N)
        kernels["shift"][4, 256](x, 1.0, N)
        main.wait(side)
        kernels["scale"][4, 256](y, 2.0, N)
    assert graph.node_count == 4
    graph.launch(main)
    main.synchronize()
    assert (x.numpy()[0], y.numpy()[0]) == (2, 10)
    with pytest.raises(kw.CaptureError, match="not joined again"), graph.capture(main):
        side.wait(main.record())
        with side:
            kernels["shift"][4, 256](y, 5.0, N)
    graph.launch(main)
    main.synchronize()
    assert y.numpy()[0] == 30


def test_a_launch_on_the_legacy_stream_is_refused_while_a_stream_that_waits_for_it_captures(
    kernels, x
):
    graph, stream, legacy = kw.Graph(), kw.Stream.per_thread(), kw.Stream.legacy()
    shift = kernels["shift"]
    with graph.capture(stream):
        shift[4, 256, stream](x, 1.0, N)
        with pytest.raises(kw.CaptureError, match="legacy stream"):
            shift[4, 256, legacy](x, 1.0, N)
        shift[4, 256, stream](x, 1.0, N)
    assert graph.node_count == 2
    assert x.numpy()[0] == 0
    shift[4, 256, legacy](x, 1.0, N)
    assert x.numpy()[0] == 1


def forbidden(kernels, x, stream, event):
    """Every public call forbidden in a capture."""
    host = np.ones(N, np.float32)
    scale = kernels["scale"]
    return {
        "stream.synchronize": stream.synchronize,
        "stream.synchronize(timeout)": lambda: stream.synchronize(timeout=1),
        "stream.done": lambda: stream.done,
        "device.synchronize": stream.device.synchronize,
        "device.synchronize(timeout)": lambda: stream.device.synchronize(timeout=1),
        "event.synchronize": lambda: stream.record().synchronize(),
        "event.done": lambda: stream.record().done,
        "event.elapsed_ms": lambda: stream.record().elapsed_ms(event),
        "wait for an event from outside": lambda: stream.wait(event),
        "legacy stream joins": lambda: kw.Stream.legacy().wait(stream),
        "Array.numpy": x.numpy,
        "Array.item": lambda: x[0].item(),
        "repr(Array)": lambda: repr(x),
        "asarray": lambda: kw.asarray(host),
        "assignment of host values": lambda: x.__setitem__(slice(None), host),
        "In": lambda: scale[4, 256](kw.In(host), 1.0, N),
        "Out": lambda: scale[4, 256](kw.Out(host), 1.0, N),
        "InOut": lambda: scale[4, 256](kw.InOut(host), 1.0, N),
        "a second capture": lambda: kw.Graph().capture(stream).__enter__(),
    }


def test_what_cannot_be_captured_is_refused_and_the_capture_survives(kernels, x):
    stream, graph, event = kw.Stream(), kw.Graph(), kw.Event()
    event.record(stream)
    with graph.capture(stream):
        kernels["shift"][4, 256](x, 1.0, N)
        for name, call in forbidden(kernels, x, stream, event).items():
            with pytest.raises(kw.CaptureError):
                call()
                pytest.fail(f"{name} was not refused")
        kernels["shift"][4, 256](x, 1.0, N)
        with pytest.raises(kw.CaptureError):
            graph.launch(stream)
        with pytest.raises(kw.CaptureError):
            graph.update(0, x, 1.0, N)
        with pytest.raises(kw.CaptureError):
            graph.reset()
    assert graph.node_count == 2
    graph.launch(stream)
    stream.synchronize()
    assert x.numpy()[0] == 2


def test_a_refusal_names_the_call_that_the_user_wrote(x):
    def mine():
        kw.asarray([1.0])

    with kw.Graph().capture(kw.Stream()):
        for call, words in (
            (lambda: kw.unique_values(x), r"^kw\.unique_values\(\): "),
            (lambda: x[x > 1], r"^kw\.Array\.__getitem__\(\): "),
            (lambda: x.numpy(), r"^kw\.Array\.numpy\(\): "),
            (lambda: kw.time_kernel(mine), r"^kw\.asarray\(\): |^kw\.time_kernel\(\): "),
        ):
            with pytest.raises(kw.CaptureError, match=words):
                call()


def test_what_has_nothing_to_do_with_a_capture_goes_on(kernels, x, device):
    stream, other, graph = kw.Stream(), kw.Stream(), kw.Graph()
    with graph.capture(stream):
        device.memory_info()
        late = kw.kernel(SCALE.replace("scale", "late"), "late")  # compiled and loaded here
        late[4, 256](x, 2.0, N)
        assert late.occupancy(256) > 0
        kw.Event(), kw.Stream()
        kernels["shift"][4, 256, other](x, 1.0, N)
        other.synchronize()
        assert other.done
        event = other.record()
        event.synchronize()
    assert graph.node_count == 1
    graph.launch(other)
    other.synchronize()
    assert x.numpy()[1] == 4


def test_a_thread_beside_the_capture_works_on(kernels, x):
    stream, graph = kw.Stream(), kw.Graph()
    seen = []

    def work():
        own = kw.Stream()
        y = kw.zeros(N)
        kw.current_device()
        kernels["shift"][4, 256, own](y, 7.0, N)
        own.synchronize()
        with own:
            seen.append(y.numpy()[0])

    with graph.capture(stream):
        kernels["shift"][4, 256](x, 1.0, N)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [7]
    assert graph.node_count == 1


def test_a_failing_body_leaves_the_graph_as_it_was(kernels, x):
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        kernels["shift"][4, 256](x, 1.0, N)
    with pytest.raises(RuntimeError, match="never mind"), graph.capture(stream):
        kernels["shift"][4, 256](x, 2.0, N)
        raise RuntimeError("never mind")
    assert kw.current_stream() == kw.Stream.legacy()
    assert graph.node_count == 1
    graph.launch(stream)
    stream.synchronize()
    assert x.numpy()[0] == 1


def test_streams_that_cannot_be_captured(kernels):
    graph = kw.Graph()
    with pytest.raises(kw.CaptureError, match="legacy"), graph.capture(kw.Stream.legacy()):
        pass
    with pytest.raises(kw.ArgumentError), graph.capture("stream"):
        pass
    scope = graph.capture(kw.Stream())
    with pytest.raises(kw.Error, match="never entered"):
        scope.__exit__(None, None, None)
    with graph.capture(kw.Stream()):
        pass
    assert graph.node_count == 0
    graph.launch()


def test_a_graph_keeps_what_it_uses():
    module = kw.module(SCALE.replace("float a", "float a "))
    x = kw.asarray(np.ones(N, np.float32))
    view = x[10:20]
    stream, graph = kw.Stream(), kw.Graph()
    with graph.capture(stream):
        module["scale"][1, 32](view, 3.0, 10)
        y = view.copy()
        module["shift"][1, 32](y, 1.0, 10)
    del module, x
    gc.collect()
    graph.launch(stream)
    stream.synchronize()
    assert list(y.numpy()) == [4] * 10
    del y
    graph.launch(stream)
    stream.synchronize()
    assert list(view.numpy()) == [9] * 10
    held = weakref.ref(graph)
    del graph
    assert held() is None


def test_events_inside_a_graph_can_be_timed(kernels, x):
    stream, graph = kw.Stream(), kw.Graph()
    start, end = kw.Event(), kw.Event()
    with graph.capture(stream):
        stream.record(start, external=True)
        kernels["shift"][4, 256](x, 1.0, N)
        end.record(stream, external=True)
    assert graph.node_count == 3
    graph.launch(stream)
    end.synchronize()
    assert end.elapsed_ms(start) >= 0


def test_memory_made_in_a_capture_is_the_graphs_own(kernels):
    stream, graph = kw.Stream(), kw.Graph()
    source = kw.asarray(np.arange(N, dtype=np.float32))
    with graph.capture(stream):
        made = [source.copy() for _ in range(4)]
        kernels["scale"][4, 256](made[3], 2.0, N)
        made[0][:] = made[3]
    assert len({array.ptr for array in made}) == 4
    for round_ in range(3):
        graph.launch(stream)
        stream.synchronize()
        assert np.array_equal(made[0].numpy(), 2 * np.arange(N, dtype=np.float32)), round_
    first = made[0]
    del graph, made
    gc.collect()
    assert first.numpy()[1] == 2


def test_launches_from_several_threads(kernels, x):
    graph = kw.Graph()
    with graph.capture():
        kernels["shift"][4, 256](x, 1.0, N)
    failures = []

    def work():
        try:
            stream = kw.Stream()
            for _ in range(25):
                graph.launch(stream)
            stream.synchronize()
        except Exception as error:  # shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert x.numpy()[0] == 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_told(kernels, x):
    graph = kw.Graph()
    with graph.capture():
        kernels["shift"][4, 256](x, 1.0, N)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            graph.launch()
        except kw.Error as error:
            code = 0 if "fork" in str(error) else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def operations(x):
    """Every public operation with work on arrays: its result on replay, or a refusal."""
    host = np.arange(N, dtype=np.float32)
    return {
        "empty": (lambda: kw.empty(N), None),
        "zeros": (lambda: kw.zeros(N), np.zeros(N)),
        "ones": (lambda: kw.ones(N), np.ones(N)),
        "full": (lambda: kw.full(N, 3.5), np.full(N, 3.5)),
        "zeros_like": (lambda: kw.zeros_like(x), np.zeros(N)),
        "full_like": (lambda: kw.full_like(x, 2), np.full(N, 2)),
        "copy": (x.copy, host),
        "astype": (lambda: x.astype("float64"), host),
        "transposed copy": (lambda: x.reshape(10, 100).T.copy(), host.reshape(10, 100).T),
        "strided reshape": (lambda: x[::2].reshape(20, 25), host[::2].reshape(20, 25)),
        "view": (lambda: x[3:7], host[3:7]),
        "to the same device": (lambda: x.to(x.device), host),
    }


@pytest.mark.parametrize("name", list(operations(kw.empty(N))))
def test_every_operation_is_recorded_and_replayed(x, name):
    stream, graph = kw.Stream(), kw.Graph()
    call, expected = operations(x)[name]
    with graph.capture(stream):
        made = call()
    for _ in range(2):
        graph.launch(stream)
        stream.synchronize()
        if expected is not None:
            assert np.array_equal(made.numpy(), expected)


def test_assignments_are_recorded_and_replayed(x):
    stream, graph = kw.Stream(), kw.Graph()
    y = kw.zeros(N)
    with graph.capture(stream):
        y[:] = x
        y[10:20] = 7
        y[::2] = x[::2]
    assert graph.node_count > 0
    assert (y.numpy() == 0).all()
    for _ in range(2):
        graph.launch(stream)
        stream.synchronize()
        expected = np.arange(N, dtype=np.float32)
        expected[11:20:2] = 7
        assert np.array_equal(y.numpy(), expected)
        y[:] = 0
