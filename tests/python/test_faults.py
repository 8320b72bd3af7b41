"""Faults of the driver as Python meets them: a process each, with planned faults."""

import textwrap

import pytest
from children import run_child

PROLOGUE = r"""
import gc, time
import numpy as np
import kernwright as kw
from kernwright._core import _faults as faults

faults.install({device!r})
faults.forbid_late_calls()
device = kw.current_device()


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    return None
"""


def run(code, device="gpu"):
    wanted = "cuda" if device == "gpu" else "sim"
    ended = run_child(
        PROLOGUE.format(device=device) + textwrap.dedent(code),
        KERNWRIGHT_DEVICE=wanted,
        KERNWRIGHT_SIM_DEVICES="3",
    )
    # A destructor logs an error instead of throwing it.
    lines = [line for line in ended.err.splitlines() if "error: could not release cu" not in line]
    assert (ended.code, lines) == (0, [])


CODES = {
    1: "DriverError",
    2: "OutOfMemory",
    201: "DriverError",
    304: "DriverError",
    700: "DeviceLost",
    702: "DeviceLost",
    710: "DeviceLost",
    714: "DeviceLost",
    715: "DeviceLost",
    716: "DeviceLost",
    717: "DeviceLost",
    718: "DeviceLost",
    719: "DeviceLost",
    999: "DriverError",
}


@pytest.mark.parametrize("code", CODES)
def test_a_code_of_the_driver_becomes_its_exception(code):
    run(f"""
    faults.arm("cuCtxSynchronize", {code})
    error = raised(device.synchronize)
    assert type(error) is kw.{CODES[code]}, repr(error)
    assert isinstance(error, MemoryError) == ({code} == 2)
    if {code} != 2:
        assert error.code == {code} and error.name.startswith("CUDA_ERROR_")
    assert "cuCtxSynchronize" in str(error) or {code} == 2
    assert device.lost == isinstance(error, kw.DeviceLost)
    """)


def test_a_lost_device_says_so_at_once_and_for_good_and_others_go_on():
    run("""
    arrays = [kw.zeros(16) for _ in range(10)]
    stream, event = kw.Stream(), kw.Event()
    other = kw.Device(1)
    faults.arm("cuStreamSynchronize", 700, sticky=True)
    first = raised(stream.synchronize)
    assert type(first) is kw.DeviceLost and "cuda:0" in str(first)
    assert device.lost and not other.lost
    calls = faults.calls()
    begin = time.monotonic()
    for _ in range(200):
        for use in (device.synchronize, device.memory_info, stream.synchronize, event.synchronize,
                    lambda: kw.zeros(4), arrays[0].numpy, lambda: kw.Stream(),
                    lambda: kw.pinned(4)):
            error = raised(use)
            assert type(error) is kw.DeviceLost and str(error) == str(first), repr(error)
    assert (time.monotonic() - begin) / 1600 < 1e-3
    assert faults.calls() == calls
    with other:
        assert (kw.ones(5).numpy() == 1).all()
        kw.Stream().synchronize()
    calls = faults.calls()
    del arrays, stream, event
    gc.collect()
    assert faults.calls() == calls
    """)


def test_reset_brings_a_lost_device_back():
    run("""
    old = kw.ones(16)
    stream = kw.Stream()
    same = kw.Device(0)
    faults.arm("cuCtxSynchronize", 719, sticky=True)
    assert type(raised(device.synchronize)) is kw.DeviceLost
    device.reset()
    assert not device.lost and not same.lost
    assert device == kw.current_device() == kw.Device(0) == same == kw.devices()[0]
    assert hash(device) == hash(kw.Device(0))
    for use in (old.numpy, stream.synchronize, lambda: old[::2].numpy()):
        error = raised(use)
        assert type(error) is kw.DeviceLost and "was reset" in str(error), repr(error)
    fresh = kw.ones(16)
    assert (fresh.numpy() == 1).all()
    with same:
        kw.Stream().synchronize()
    device.synchronize()
    assert device.memory_info().total > 0
    calls = faults.calls()
    del old, stream
    gc.collect()
    assert faults.calls() == calls
    """)


def test_reset_of_the_simulated_device_and_its_kernels():
    run(
        """
    kernel = kw.kernel("__global__ void k(float* p) { p[threadIdx.x] = 3; }")
    a = kw.zeros(8)
    kernel[1, 8](a)
    bound = kernel[1, 8]
    assert (a.numpy() == 3).all()
    device.reset()
    b = kw.zeros(8)
    assert raised(lambda: kernel[1, 8](a)) is not None
    kernel[1, 8](b)
    bound(b)
    assert (b.numpy() == 3).all()
    assert type(raised(a.numpy)) is kw.DeviceLost
    """,
        device="sim",
    )


def test_a_device_may_be_reset_within_its_block():
    run(
        """
    with device:
        with kw.Device(0) as inner:
            inner.reset()
            kw.ones(3)
        kw.ones(3)
        device.reset()
    assert kw.current_device() == device and (kw.ones(4).numpy() == 1).all()
    """,
        device="sim",
    )


def test_a_reset_that_the_driver_refuses():
    run("""
    kept = kw.ones(4)
    faults.arm("cuDevicePrimaryCtxReset", 999)
    error = raised(device.reset)
    assert type(error) is kw.DeviceLost and "new process" in str(error)
    assert not device.lost and (kept.numpy() == 1).all()
    """)


def test_want_of_memory_passes_when_the_cause_does():
    run("""
    kept = kw.ones(4)
    for function in ("cuMemAllocAsync", "cuMemAlloc"):
        faults.arm(function, 2, forever=True)
        # The pool may have room of its own: ask for what it has not.
        error = raised(lambda: kw.zeros(1 << 24))
        fired = faults.fired()
        faults.disarm()
        assert error is None or isinstance(error, kw.OutOfMemory), repr(error)
        assert (error is not None) == (fired > 0)
        if error is not None:
            assert error.requested >= 4 << 24 and isinstance(error, MemoryError)
        assert kw.zeros(1 << 24).size == 1 << 24
    assert (kept.numpy() == 1).all()
    """)


@pytest.mark.parametrize("device", ["gpu", "sim"])
def test_each_call_of_a_program_fails_once(device):
    run(
        """
    def program():
        a = kw.asarray(np.arange(12.0).reshape(3, 4))
        stream = kw.Stream()
        event = stream.record()
        stream.wait(event)
        b = a.T[::-1]
        event.synchronize()
        assert (b.numpy() == np.arange(12.0).reshape(3, 4).T[::-1]).all()
        host = kw.pinned(16)
        host[:] = 1
        device.synchronize()

    program()
    for number in range(1, 2000):
        faults.arm("", 999, number)
        error = raised(program)
        fired, function = faults.fired(), faults.last_function()
        faults.disarm()
        if not fired:
            assert error is None
            break
        assert error is None or isinstance(error, kw.Error), (number, function, error)
        if error is None:
            quiet = ("Destroy", "Free", "Unload", "Ctx", "Event", "Wait", "Captur", "Pool", "Query")
            assert any(word in function for word in quiet), (number, function)
        program()
    else:
        raise AssertionError("the program does not end")
    """,
        device=device,
    )


@pytest.mark.parametrize(
    ("what", "count", "message"),
    [
        ("init.shared.b64 [%0], %1;", 0, "a count from 1 to 1048575 (operand value 0)"),
        ("init.shared.b64 [%0], %1;", 1 << 20, "from 1 to 1048575 (operand value 1048576)"),
        ("arrive.shared.b64 _, [%0];", 0, "the mbarrier was not initialised\n"),
        (
            "init.shared.b64 [%0], 2; mbarrier.arrive.noComplete.shared.b64 _, [%0], %1;",
            3,
            "more arrivals than the current phase waits for (operand value 3)",
        ),
    ],
)
def test_mbarrier_faults_name_the_operand_at_fault(sim, what, count, message):
    program = f"""
        import kernwright as kw
        kernel = kw.kernel(r'''__global__ void k(int* x, unsigned count) {{
            __shared__ unsigned long long barrier[8];
            unsigned at = (unsigned)__cvta_generic_to_shared(barrier + 3);
            asm volatile("mbarrier.{what}" :: "r"(at), "r"(count) : "memory");
            x[0] = barrier[0];
        }}''')
        try:
            kernel[1, 1](kw.zeros(1, "int32"), {count})
        except kw.DeviceFault as error:
            print(error)
    """
    ended = run_child(program, KERNWRIGHT_DEVICE="sim")
    assert message in ended.out, ended.out + ended.err
    assert "14829735431805717965" not in ended.out  # the value of unwritten memory
