"""Kernel.report(): where the time went and what the kernel uses."""

import itertools
import os

import pytest

import kernwright as kw
from kernwright import _core

serial = itertools.count()


def fresh(body="x[threadIdx.x] *= 2;", prelude="", **options):
    return kw.kernel(
        f"{prelude}__global__ void fresh(float* x) {{ {body} }} // {os.getpid()} {next(serial)}\n",
        **options,
    )


def test_of_a_kernel_that_was_compiled(device):
    kernel = fresh("__shared__ float s[64]; s[threadIdx.x] = x[0]; __syncthreads(); x[1] = s[3];")
    report = kernel.report()
    assert report.name == "fresh" and report.device == device.name
    assert report.answered == "compiled" and report.attempts == 1 and report.minimal
    assert report.pch == "not used"
    assert report.ready_ms > 0 and report.compile_ms > 0
    assert report.shared_bytes == 256 and report.registers == kernel.attributes.registers > 0
    assert report.occupancy == kernel.occupancy(report.block) > 0
    assert {"scan", "headers"} < set(report.phases) and report.headers == []
    assert sum(report.phases.values()) <= report.profile_ms * 1.5
    assert report.spill_store_bytes == report.spill_load_bytes == 0
    text = str(report)
    for part in ("compiled", "registers", "occupancy", "scan", "whole compile", "not used"):
        assert part in text


def test_without_the_extra_compile():
    report = fresh().report(phases=False)
    assert report.phases == {} and report.profile_ms is None and report.spill_load_bytes is None
    assert "for this report" not in str(report)


def test_the_second_kernel_of_a_source_is_answered_by_memory():
    if os.environ.get("KERNWRIGHT_CACHE") == "off":
        pytest.skip("the caches are off")
    text = f"__global__ void twin(float* x) {{ *x = 1; }} // {os.getpid()} {next(serial)}"
    assert kw.kernel(text, fast_math=False).compile().report(phases=False).answered == "compiled"
    assert kw.module(text)["twin"].report(phases=False).answered == "memory"


def test_another_kernel_of_a_module_is_answered_as_the_module_was():
    if os.environ.get("KERNWRIGHT_CACHE") == "off":
        pytest.skip("the caches are off")
    text = f"__global__ void a(int* x) {{ *x = 1; }} // {os.getpid()} {next(serial)}\n"
    text += "__global__ void b(int* x) { *x = 2; }\n"
    module = kw.module(text)
    assert module["a"].report(phases=False).answered == "compiled"
    assert kw.module(text + " ")["a"].report(phases=False).answered == "compiled"
    other = kw.module(text)
    assert other["a"].report(phases=False).answered == "memory"
    # Loaded already, whatever was asked for last.
    assert module["b"].report(phases=False).answered == "compiled"


def test_headers_and_precompiled_headers(tmp_path):
    (tmp_path / "near.h").write_text("#define TWO 2\n")
    version = tuple(int(part) for part in _core.nvrtc_status()["version"].split("."))
    knows_them = version >= (12, 8)
    for expected in ("not used", "made", "used") if knows_them else ("not used",) * 3:
        kernel = fresh(
            "x[0] = TWO;", f'#include "near.h"\n#define N{next(serial)}\n', include_dirs=[tmp_path]
        )
        report = kernel.report()
        assert report.pch == expected
        assert report.headers[-1] == str(tmp_path / "near.h")
    assert expected in str(report)


def test_of_object_code(device):
    code = kw.Program("__global__ void k(int* x) { *x = 1; }", kw.ProgramOptions()).compile("ptx")
    report = code.kernel("k").report()
    assert report.answered == "object code" and report.phases == {}
    assert "no source" in str(report)
