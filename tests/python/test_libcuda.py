"""libcuda.so.1 of the package: its functions, each called as a program of the driver calls it."""

import os
import re
import subprocess
import sys

import pytest
from libcuda_program import passes, run

import kernwright as kw


def test_the_folder_is_told_by_python_and_by_the_command_line():
    assert os.path.isfile(os.path.join(kw.libcuda_path(), "libcuda.so.1"))
    command = [sys.executable, "-m", "kernwright", "libcuda"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout == kw.libcuda_path() + "\n"


def test_the_command_line_runs_a_program_on_it():
    script = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0)); raise SystemExit(7)"
    command = [sys.executable, "-m", "kernwright", "libcuda"]
    program = [*command, sys.executable, "-c", script]
    result = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (7, "0\n"), result.stderr
    program = [*command, "--", "no-such-program"]
    result = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert "'no-such-program' cannot be run" in result.stderr


def test_the_library_is_small_and_has_no_second_simulator():
    package = os.path.dirname(kw.__file__)
    extension = next(f for f in os.listdir(package) if f.startswith("_core.") and f.endswith(".so"))
    library = os.path.getsize(os.path.join(kw.libcuda_path(), "libcuda.so.1"))
    assert library < 200_000 < os.path.getsize(os.path.join(package, extension))


def test_names_without_version_and_per_thread_names_are_there():
    names = """cuLibraryLoadData cuLibraryGetKernel cuKernelGetFunction cuGetProcAddress
    cuGraphAddKernelNode cuDeviceGetMemPool cuStreamGetCaptureInfo_v3 cuStreamWaitEvent_ptsz
    cuCtxAttach cuMemAlloc cuMemFree cuMemcpyHtoD cuMemcpyDtoH cuCtxCreate cuCtxDestroy
    cuEventDestroy cuStreamDestroy cuModuleGetGlobal cuMemcpyHtoD_v2_ptds cuMemcpy_ptds
    cuLaunchKernel_ptsz cuLaunchKernelEx_ptsz cuGetProcAddress_v2_ptsz cuCtxCreate_v4
    cuMemsetD8_v2_ptds cuMemAllocAsync_ptsz cuGraphLaunch_ptsz cuIpcGetMemHandle"""
    passes(f"assert [n for n in {names.split()} if not hasattr(cu, n)] == []")


def test_a_program_of_names_without_version_runs():
    passes("""
module, function, address = c_void_p(), c_void_p(), c_uint64()
check("cuModuleLoadData", byref(module), PTX)
check("cuModuleGetFunction", byref(function), module, b"triple")
check("cuMemAlloc", byref(address), c_size_t(4 * N))
check("cuMemcpyHtoD", address, (c_uint * N)(*range(N)), c_size_t(4 * N))
number = c_uint(N)
pointers = (c_void_p * 2)(*(ctypes.cast(byref(v), c_void_p) for v in (address, number)))
assert launch(function, pointers) == 0
expect(address, 3)
symbol, size = c_uint64(), c_size_t()
check("cuModuleGetGlobal", byref(symbol), byref(size), module, b"scale")
assert size.value == 4
check("cuMemFree", address)
assert code("cuMemFree", address) != 0
""")


LIBRARY = """
library, kernel, function, module = c_void_p(), c_void_p(), c_void_p(), c_void_p()
check("cuLibraryLoadData", byref(library), PTX, None, None, 0, None, None, 0)
check("cuLibraryGetKernel", byref(kernel), library, b"triple")
"""


def test_a_library_tells_its_kernels():
    passes(
        LIBRARY
        + """
count = c_uint()
check("cuLibraryGetKernelCount", byref(count), library)
assert count.value == 2
assert code("cuLibraryGetKernel", byref(kernel), library, b"no") == 500
kernels = (c_void_p * 2)()
check("cuLibraryEnumerateKernels", kernels, 2, library)
assert kernel.value in list(kernels) and None not in list(kernels)
name, owner = c_char_p(), c_void_p()
check("cuKernelGetName", byref(name), kernel)
assert name.value == b"triple"
check("cuKernelGetLibrary", byref(owner), kernel)
assert owner.value == library.value

offset, size = c_size_t(), c_size_t()
check("cuKernelGetParamInfo", kernel, c_size_t(1), byref(offset), byref(size))
assert (offset.value, size.value) == (8, 4)
assert code("cuKernelGetParamInfo", kernel, c_size_t(2), byref(offset), byref(size)) == 1
for call in ("cuKernelGetParamCount", "cuFuncGetParamCount"):
    check(call, kernel, byref(size))
    assert size.value == 2

check("cuLibraryUnload", library)
assert code("cuLibraryUnload", library) == 400
assert code("cuKernelGetName", byref(name), kernel) == 400
assert code("cuKernelGetFunction", byref(function), kernel) == 400
assert code("cuLibraryLoadData", byref(library), None, None, None, 0, None, None, 0) == 1
assert code("cuLibraryLoadData", byref(library), b"no PTX", None, None, 0, None, None, 0) != 0
"""
    )


def test_kernels_of_a_library_run_wherever_functions_do():
    passes(
        LIBRARY
        + """
check("cuKernelGetFunction", byref(function), kernel)
address, pointers, number = upload()
assert launch(function, pointers) == 0
assert launch(kernel, pointers) == 0  # a kernel for a function
expect(address, 9)
shape = [c_uint(v) for v in (8, 1, 1, 128, 1, 1, 0)]
check("cuLaunchCooperativeKernel", kernel, *shape, None, pointers)
expect(address, 27)

value = c_int()
check("cuKernelSetAttribute", 8, 50_000, kernel, 0)  # dynamic shared memory
check("cuKernelGetAttribute", byref(value), 8, kernel, 0)
assert value.value == 50_000
check("cuFuncGetAttribute", byref(value), 8, kernel)
assert value.value == 50_000
assert code("cuKernelSetAttribute", 8, 1 << 30, kernel, 0) == 1
assert code("cuKernelSetAttribute", 8, 0, kernel, 99) == 101
check("cuKernelSetCacheConfig", kernel, 1, 0)
assert code("cuKernelSetCacheConfig", kernel, 9, 0) == 1
check("cuFuncSetCacheConfig", kernel, 1)
blocks, threads = c_int(), c_int()
check("cuOccupancyMaxPotentialBlockSizeWithFlags", byref(blocks), byref(threads), kernel, None,
      c_size_t(0), 0, 0)
assert threads.value >= 32
check("cuOccupancyMaxActiveBlocksPerMultiprocessor", byref(blocks), kernel, 128, c_size_t(0))
assert blocks.value >= 1
check("cuFuncLoad", kernel)
state = c_int(5)
check("cuFuncIsLoaded", byref(state), kernel)
assert state.value == 1

symbol, size = c_uint64(), c_size_t()
check("cuLibraryGetGlobal", byref(symbol), byref(size), library, b"scale")
assert size.value == 4
check("cuMemcpyHtoD_v2", symbol, byref(c_uint(5)), c_size_t(4))
assert launch(kernel, pointers) == 0
expect(address, 27 * 5)
assert code("cuLibraryGetManaged", byref(symbol), byref(size), library, b"scale") == 500
check("cuLibraryGetModule", byref(module), library)
check("cuModuleGetFunction", byref(function), module, b"nothing")
check("cuLibraryUnload", library)
assert launch(kernel, pointers) == 400
"""
    )


def test_a_library_is_of_every_context(tmp_path):
    (tmp_path / "empty.ptx").write_text("")
    passes(
        f"folder = {str(tmp_path)!r}"
        + """
with open(folder + "/k.ptx", "wb") as file: file.write(PTX)
def load(library, path):
    given = (folder + path).encode()
    return code("cuLibraryLoadFromFile", byref(library), given, None, None, 0, None, None, 0)
library, kernel = c_void_p(), c_void_p()
check("cuCtxSetCurrent", None)  # a library needs no context
assert load(library, "/k.ptx") == 0
check("cuLibraryGetKernel", byref(kernel), library, b"triple")
check("cuKernelSetAttribute", 8, 60_000, kernel, 1)
assert code("cuKernelGetFunction", byref(c_void_p()), kernel) == 201  # no context is current
for device in (0, 1):
    context = c_void_p()
    check("cuDevicePrimaryCtxRetain", byref(context), device)
    check("cuCtxSetCurrent", context)
    address, pointers, number = upload()
    assert launch(kernel, pointers) == 0
    expect(address, 3)
    value = c_int()
    check("cuFuncGetAttribute", byref(value), 8, kernel)
    assert (value.value == 60_000) == (device == 1)
assert [load(library, path) for path in ("/no.ptx", "/empty.ptx", "")] == [301, 200, 200]
""",
        KERNWRIGHT_SIM_DEVICES="2",
    )


@pytest.mark.parametrize("call", ["cuModuleLoadData", "cuModuleLoadFatBinary", "cuLibraryLoadData"])
@pytest.mark.parametrize("image", [b"\x7fELF" + bytes(60), b"\x50\xed\x55\xba" + bytes(60)])
def test_machine_code_is_refused_with_a_code_and_a_line_in_the_log(call, image):
    rest = ", None, None, 0, None, None, 0" if "Library" in call else ""
    said = passes(f"""
made = c_void_p()
assert code({call!r}, byref(made), {image!r}{rest}) == 209  # NO_BINARY_FOR_GPU
assert made.value is None
""")
    assert re.search("error.*PTX text.*machine code.*compute_80", said)


def test_contexts_and_streams_are_told():
    passes("""
again, version, flags, device = c_void_p(), c_uint(), c_uint(9), c_int(9)
check("cuCtxAttach", byref(again), 0)
assert again.value == context.value
assert code("cuCtxAttach", byref(again), 1) == 1
check("cuCtxDetach", again)
check("cuCtxGetApiVersion", context, byref(version))
assert version.value == 3020
check("cuCtxGetFlags", byref(flags))
assert flags.value == 0
check("cuCtxSetFlags", 4)
assert code("cuCtxSetFlags", 1 << 20) == 1
check("cuDevicePrimaryCtxSetFlags_v2", 0, 4)
assert code("cuDevicePrimaryCtxSetFlags", 99, 4) == 101
check("cuCtxGetDevice_v2", byref(device), context)
assert device.value == 0
check("cuCtxSynchronize_v2", context)
assert code("cuCtxGetDevice_v2", byref(device), c_void_p(0x123)) == 201

stream, of, green = c_void_p(), c_void_p(), c_void_p(7)
check("cuStreamCreate", byref(stream), 0)
device.value = 9
check("cuStreamGetDevice", stream, byref(device))
assert device.value == 0
check("cuStreamGetCtx_v2", stream, byref(of), byref(green))
assert (of.value, green.value) == (context.value, None)
check("cuProfilerStart")
check("cuProfilerStop")
check("cuCtxDetach", context)
assert code("cuCtxGetDevice", byref(device)) == 201
assert code("cuCtxDestroy", None) == 1
""")


def test_pools_and_places_of_memory_are_told():
    passes("""
class Place(ctypes.Structure):
    _fields_ = [("kind", c_int), ("id", c_int)]
class Properties(ctypes.Structure):
    _fields_ = [("a", c_int), ("h", c_int), ("place", Place), ("w", c_void_p), ("r", c_uint64 * 9)]
stream, address, used = c_void_p(), c_uint64(), c_uint64()
check("cuStreamCreate", byref(stream), 0)
standard, pool, now = c_void_p(), c_void_p(), c_void_p()
check("cuDeviceGetDefaultMemPool", byref(standard), 0)
check("cuDeviceGetMemPool", byref(now), 0)
assert now.value == standard.value
check("cuMemPoolCreate", byref(pool), byref(Properties(1, 0, Place(1, 0))))
check("cuDeviceSetMemPool", 0, pool)
check("cuMemGetMemPool", byref(now), byref(Place(1, 0)), 1)
assert now.value == pool.value
check("cuMemGetDefaultMemPool", byref(now), byref(Place(1, 0)), 1)
assert now.value == standard.value
assert code("cuMemGetMemPool", byref(now), byref(Place(2, 0)), 1) == 801
check("cuMemAllocAsync", byref(address), c_size_t(4096), stream)
check("cuMemPoolGetAttribute", pool, 7, byref(used))
assert used.value >= 4096
check("cuMemFreeAsync", address, stream)
assert code("cuDeviceSetMemPool", 0, c_void_p(5)) != 0
check("cuMemPoolDestroy", pool)
check("cuDeviceGetMemPool", byref(now), 0)
assert now.value == standard.value
check("cuMemSetMemPool", byref(Place(1, 0)), 1, standard)
check("cuMemAllocAsync_ptsz", byref(address), c_size_t(64), None)

check("cuMemAllocManaged", byref(address), c_size_t(4096), 1)
assert code("cuMemPrefetchAsync_v2", address, c_size_t(4096), Place(1, 0), 1, stream) == 1
check("cuMemAdvise_v2", address, c_size_t(4096), 3, Place(1, 0))
assert code("cuMemAdvise_v2", address, c_size_t(4096), 3, Place(1, 99)) == 101
check("cuMemPrefetchAsync_v2", address, c_size_t(4096), Place(2, 0), 0, stream)
check("cuMemPrefetchAsync_v2_ptsz", address, c_size_t(4096), Place(1, 0), 0, None)
""")


def test_callbacks_come_after_earlier_work():
    passes("""
seen = []
function = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p)(lambda *a: seen.append(a))
stream, graph = c_void_p(), c_void_p()
check("cuStreamCreate", byref(stream), 0)
check("cuStreamAddCallback", stream, function, c_void_p(77), 0)
check("cuStreamSynchronize", stream)
assert seen == [(stream.value, 0, 77)]
assert code("cuStreamAddCallback", stream, None, None, 0) == 1
assert code("cuStreamAddCallback", stream, function, None, 1) == 1
check("cuStreamBeginCapture_v2", stream, 2)
assert code("cuStreamAddCallback", stream, function, None, 0) == 900
check("cuStreamEndCapture", stream, byref(graph))
""")


def test_the_linker_takes_one_ptx_text(tmp_path):
    said = passes(
        f"folder = {str(tmp_path)!r}"
        + """
with open(folder + "/k.ptx", "wb") as file: file.write(PTX)
state, image, size, module = c_void_p(), c_void_p(), c_size_t(), c_void_p()
def add(kind, data, size):
    return code("cuLinkAddData_v2", state, kind, data, c_size_t(size), b"a", 0, None, None)
check("cuLinkCreate_v2", 0, None, None, byref(state))
assert code("cuLinkComplete", state, byref(image), byref(size)) == 1  # nothing was added
data = ctypes.create_string_buffer(PTX)
assert add(0, data, len(PTX)) == 209
assert add(1, data, len(PTX) + 1) == 0
assert add(1, data, len(PTX)) == 801
check("cuLinkComplete", state, byref(image), byref(size))
check("cuModuleLoadData", byref(module), image)
check("cuLinkDestroy", state)
assert code("cuLinkDestroy", state) == 400
check("cuLinkCreate", 0, None, None, byref(state))
assert code("cuLinkAddFile", state, 1, (folder + "/no").encode(), 0, None, None) == 301
check("cuLinkAddFile_v2", state, 1, (folder + "/k.ptx").encode(), 0, None, None)
check("cuLinkComplete", state, byref(image), byref(size))
assert size.value == len(PTX) + 1
"""
    )
    assert "links PTX alone" in said and "links one PTX text" in said


def test_the_null_stream_of_per_thread_functions_is_the_thread_s():
    passes("""
identity, legacy, thread = c_uint64(), c_uint64(), c_uint64()
check("cuStreamGetId", None, byref(legacy))
check("cuStreamGetId", c_void_p(2), byref(thread))
check("cuStreamGetId_ptsz", None, byref(identity))
assert identity.value == thread.value != legacy.value
for flags, expected in ((0, legacy), (1, legacy), (2, thread)):
    function, status = c_void_p(), c_int()
    check("cuGetProcAddress_v2", b"cuStreamGetId", byref(function), 12000, c_uint64(flags),
          byref(status))
    call = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)(function.value)
    assert call(None, ctypes.addressof(identity)) == 0
    assert identity.value == expected.value
function = c_void_p()
check("cuGetProcAddress_v2_ptsz", b"cuStreamGetId", byref(function), 12000, c_uint64(0), None)
call = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)(function.value)
assert call(None, ctypes.addressof(identity)) == 0 and identity.value == thread.value
check("cuGetProcAddress", b"cuInit", byref(function), 12000, c_uint64(0))
assert code("cuGetProcAddress", b"cuNo", byref(function), 12000, c_uint64(0)) == 500

module, function = c_void_p(), c_void_p()
check("cuModuleLoadData", byref(module), PTX)
check("cuModuleGetFunction", byref(function), module, b"triple")
address, pointers, number = upload()
check("cuStreamBeginCapture_v2", c_void_p(2), 2)
assert launch(function, pointers, "cuLaunchKernel_ptsz") == 0  # recorded
class Config(ctypes.Structure):
    _fields_ = [*((n, c_uint) for n in ("gx", "gy", "gz", "bx", "by", "bz", "s")),
                ("stream", c_void_p), ("a", c_void_p), ("n", c_uint)]
config = Config(8, 1, 1, 128, 1, 1)
check("cuLaunchKernelEx_ptsz", byref(config), function, pointers, None)  # recorded
assert config.stream is None
graph, count = c_void_p(), c_size_t()
check("cuStreamEndCapture_ptsz", None, byref(graph))
check("cuGraphGetNodes", graph, None, byref(count))
assert count.value == 2
expect(address, 1)
assert launch(function, pointers, "cuLaunchKernel_ptsz") == 0
check("cuStreamSynchronize_ptsz", None)
expect(address, 3)
""")


def test_what_is_not_there_says_so_and_is_found_by_no_look_up():
    said = passes("""
assert code("cuIpcGetMemHandle", None, c_uint64(0)) == 801
function, status = c_void_p(), c_int()
check("cuGetProcAddress_v2", b"cuIpcGetMemHandle", byref(function), 13000, c_uint64(0),
      byref(status))
assert (function.value, status.value) == (None, 1)
""")
    assert "the simulated device has no cuIpcGetMemHandle" in said


def test_kernwright_takes_it_for_no_gpu():
    code = "import kernwright as kw; print(kw._core.driver_status()['reason'])"
    assert "is the simulated device for other programs" in run(code).stdout
    code = "import kernwright as kw; print([d.is_simulated for d in kw.devices()])"
    assert run(code, KERNWRIGHT_DEVICE="auto").stdout == "[True]\n"


def test_without_the_extension_it_says_what_is_missing(tmp_path):
    (tmp_path / "libcuda").mkdir()
    with open(os.path.join(kw.libcuda_path(), "libcuda.so.1"), "rb") as file:
        (tmp_path / "libcuda/libcuda.so.1").write_bytes(file.read())
    code = "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))"
    result = run(code, LD_LIBRARY_PATH=str(tmp_path / "libcuda"))
    assert result.stdout == "303\n"  # SHARED_OBJECT_INIT_FAILED
    assert "kernwright's extension cannot be loaded" in result.stderr
