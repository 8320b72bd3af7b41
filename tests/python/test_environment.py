"""Settings of the environment: NVRTC and its builtins, drivers, devices; a process each."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest


def run(code, **environment):
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=env
    )


def test_a_missing_nvrtc_names_the_places_searched(tmp_path):
    result = run(
        """
        import kernwright as kw
        try:
            kw.kernel("__global__ void f() {}").compile()
        except kw.NvrtcNotFound as error:
            assert isinstance(error, ImportError)
            print(error)
        """,
        KERNWRIGHT_NVRTC=str(tmp_path / "nowhere"),
        KERNWRIGHT_CACHE="memory",  # code cached on the disk loads without NVRTC
    )
    assert "nowhere" in result.stdout and "KERNWRIGHT_NVRTC" in result.stdout, result.stderr


def test_missing_builtins_are_named(tmp_path):
    import nvidia

    library = next(
        file
        for folder in nvidia.__path__
        for file in sorted(pathlib.Path(folder).rglob("libnvrtc.so*"))
        if "alt" not in file.name
    )
    (tmp_path / library.name).symlink_to(library)
    result = run(
        """
        import kernwright as kw
        try:
            kw.kernel("__global__ void f() {}").compile()
        except kw.NvrtcNotFound as error:
            print(error)
        """,
        KERNWRIGHT_NVRTC=str(tmp_path / library.name),
        KERNWRIGHT_CACHE="memory",
    )
    # A symbolic link leads to the folder with the builtins; a bare copy has none beside it.
    if not result.stdout:
        (tmp_path / library.name).unlink()
        (tmp_path / library.name).write_bytes(library.read_bytes())
        result = run(
            """
            import kernwright as kw
            try:
                kw.kernel("__global__ void f() {}").compile()
            except kw.NvrtcNotFound as error:
                print(error)
            """,
            KERNWRIGHT_NVRTC=str(tmp_path / library.name),
            KERNWRIGHT_CACHE="off",
        )
    assert "builtins" in result.stdout, result.stdout + result.stderr


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="there is a GPU here")
def test_a_gpu_asked_for_and_absent_raises():
    for name in ("cuda", "cuda:0"):
        result = run(
            """
            import kernwright as kw
            try:
                kw.zeros(1)
            except kw.Error as error:
                print(type(error).__name__, error)
            """,
            KERNWRIGHT_DEVICE=name,
        )
        assert "CUDA driver" in result.stdout or "no GPU" in result.stdout, result.stderr
        assert result.stdout.startswith(("DriverNotFound", "DeviceNotFound"))


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="there is a GPU here")
def test_without_a_gpu_the_simulated_device_is_taken():
    result = run(
        "import kernwright as kw; print(kw.current_device().is_simulated)", KERNWRIGHT_DEVICE="auto"
    )
    assert result.stdout.strip() == "True"
    assert "simulated device" in result.stderr


LITTLE_ADDRESS_SPACE = """
    import resource
    import numpy as np
    import kernwright as kw
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + (60 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    x = kw.arange(1000, dtype="float32")
    assert (x.numpy() == np.arange(1000)).all()
    print(kw.current_device().memory_info().total >> 20)
"""


def test_a_process_with_little_address_space_has_a_smaller_simulated_device():
    result = run(LITTLE_ADDRESS_SPACE, KERNWRIGHT_DEVICE="sim")
    assert result.returncode == 0, result.stderr
    assert 64 <= int(result.stdout) < 4096
    assert re.search(r"sim:0 has [\d.]+ [MG]iB of memory instead of 4 GiB", result.stderr)
    result = run(LITTLE_ADDRESS_SPACE, KERNWRIGHT_DEVICE="sim", KERNWRIGHT_SIM_MEMORY="4G")
    assert result.returncode != 0
    assert "KERNWRIGHT_SIM_MEMORY" in result.stderr and "ulimit -v" in result.stderr


def test_an_unknown_device_in_the_environment():
    result = run(
        """
        import kernwright as kw
        try:
            kw.zeros(1)
        except kw.Error as error:
            print(error)
        """,
        KERNWRIGHT_DEVICE="abacus",
    )
    assert "abacus" in result.stdout and "KERNWRIGHT_DEVICE" in result.stdout
