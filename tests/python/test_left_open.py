"""Processes and threads that end inside of a `with` block of this package."""

import textwrap

import pytest
from children import run_child

import kernwright as kw

BLOCKS = {
    "stream": "open(kw.Stream())",
    "streams": "[open(kw.Stream()) for _ in range(5)]",
    "device": "open(kw.Device())",
    "capture": "open(kw.Graph().capture(kw.Stream()))",
    "checks": "open(kw.checks('init'))",
    "profile": "open(kw.profile())",
    "annotation": "open(kw.annotate('name'))",
    "line profile": "open(kw.line_profile())",
    "trace": "open(kw.trace(k))",
    "resource": "open(kw.memory.use(kw.memory.PoolResource()))",
    "generator": "g = (open(s) for s in [kw.Stream()]); next(g)",
    "nobody holds it": "kw.Stream().__enter__(); kw.Device().__enter__()",
}
SIMULATED = ("checks", "line profile", "trace")
PROGRAM = """
    import contextlib, threading
    import kernwright as kw
    k = kw.kernel("__global__ void k(int* a) {{ a[threadIdx.x] = 1; }}")
    a = kw.zeros(32, "i4")
    kept = contextlib.ExitStack()
    open = kept.enter_context
    def body():
        {block}
        k[1, 32](a)
    {call}
    print("ran")
"""


@pytest.mark.parametrize("place", ["main", "thread", "threads"])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_left_open_ends_quietly(name, place):
    if name in SIMULATED and not kw.current_device().is_simulated:
        pytest.skip("a tool of the simulated device")
    call = {
        "main": "body()",
        "thread": "t = threading.Thread(target=body); t.start(); t.join()",
        "threads": "for _ in range(4): t = threading.Thread(target=body); t.start(); t.join()",
    }[place]
    if place == "threads" and name not in ("stream", "device", "nobody holds it"):
        call = "body()"
    program = textwrap.dedent(PROGRAM).format(block=BLOCKS[name], call=call)
    ended = run_child(program, MALLOC_CHECK_="3", MALLOC_PERTURB_="165")
    assert ended.code == 0 and ended.out.strip().endswith("ran"), ended.err
    assert "corrupt" not in ended.err and "free()" not in ended.err


def test_a_thread_that_ends_lets_go_of_its_stream():
    ended = run_child("""
        import gc, threading, weakref
        import kernwright as kw
        streams = []
        def body():
            kw.Stream().__enter__()
        for _ in range(3):
            t = threading.Thread(target=body); t.start(); t.join()
        kw.synchronize()
        assert kw.current_stream().handle == kw.Stream.legacy().handle
    """)
    assert ended.code == 0, ended.err


def test_leaving_a_block_of_another_thread_raises():
    with pytest.raises(kw.Error, match="another thread"):
        kw.Stream().__exit__(None, None, None)
