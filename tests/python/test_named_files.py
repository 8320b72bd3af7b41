"""Files that a user names, or that a text names: only what is meant is read, and never for ever."""

import os
import pathlib
import subprocess
import sys

import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

TEXT = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1 + blockIdx.x; }'


def loaders():
    path = pathlib.Path
    return {
        "ObjectCode.load": kw.ObjectCode.load,
        "ObjectCode.from_ptx": lambda name: kw.ObjectCode.from_ptx(path(name)),
        "ObjectCode.from_cubin": lambda name: kw.ObjectCode.from_cubin(path(name)),
        "use_pack": kw.use_pack,
        "kernel": lambda name: kw.kernel(path(name)),
        "module": lambda name: kw.module(path(name)),
        "pack": lambda name: kw.pack("/dev/null/x", records=[name], archs=["sm_80"]),
    }


@pytest.mark.parametrize("loader", list(loaders()))
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, loader):
    load = loaders()[loader]
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 5 << 30)  # with nothing in it
    for name, reason in (
        (tmp_path / "pipe", "a pipe, no regular file"),
        ("/dev/zero", "a device, no regular file"),
        (tmp_path, "a folder, no regular file"),
        (tmp_path / "missing", "does not exist"),
        (tmp_path / "large", "has 5368709120 bytes; the limit is "),
    ):
        with pytest.raises(kw.Error) as error:
            load(str(name))
        assert reason in str(error.value) and str(name) in str(error.value)


def test_a_header_that_is_too_large_is_refused(tmp_path):
    (tmp_path / "large.h").touch()
    os.truncate(tmp_path / "large.h", 5 << 30)
    kernel = kw.kernel(f'#include "large.h"\n{TEXT}', include_dirs=[tmp_path])
    with pytest.raises(kw.InvalidArgument, match=r"large\.h.*has 5368709120 bytes; the limit"):
        kernel[1, 32](kw.zeros(32))


SECRET = "__device__ int secret_word;"


def observed(kernel):
    """All that traces, profiles and reports of a launch show."""
    x = kw.zeros(32)
    with kw.trace(kernel) as trace, kw.line_profile(kernel) as named:
        kernel[1, 32](x)
    with kw.line_profile() as unnamed:
        kernel[1, 32](x)
    with kw.checks("race") as report:
        kernel[2, 32](x)
    assert len(report) > 0
    shown = [str(trace), trace.to_json(), report.to_html()]
    for profile in (named, unnamed):
        shown += [str(profile), profile.annotated(), profile.to_html(), profile.to_json()]
    return shown


def test_a_line_directive_shows_no_file_that_was_not_compiled(tmp_path):
    secret = tmp_path / "secret.h"
    secret.write_text(f"{SECRET}\n" * 9)
    for name in (secret, "/etc/passwd"):
        for shown in observed(kw.kernel(f'#line 1 "{name}"\n{TEXT}')):
            assert "secret_word" not in shown and "root:" not in shown
    ptx = kw.Program(f'#line 1 "{secret}"\n{TEXT}', kw.ProgramOptions(lineinfo=True)).compile("ptx")
    assert str(secret) in ptx.code.decode()
    for shown in observed(kw.kernel(ptx)):
        assert "secret_word" not in shown


def test_lines_of_files_that_were_compiled_are_shown(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "folder" / "body.h").write_text(
        "__device__ void put(float* x) {\n  x[threadIdx.x] = 7 + blockIdx.x;  // of a header\n}\n"
    )
    source = tmp_path / "source.cu"
    source.write_text(
        '#include "body.h"\nextern "C" __global__ void k(float* x) {\n  put(x);  // of a file\n}'
    )
    kernel = kw.kernel(source, include_dirs=[tmp_path / "link" / ".." / "link"])
    for shown in observed(kernel):
        assert "// of a header" in shown
    profile = observed(kernel)[-2]
    assert "// of a file" in profile


def test_lines_of_a_string_are_shown_without_naming_its_kernel():
    kernel = kw.kernel("""
        extern "C" __global__ void k(float* x) {
            x[threadIdx.x] = 3 + blockIdx.x;  // of a string
        }""")
    for shown in observed(kernel):
        assert "// of a string" in shown


def test_cudas_headers_are_shown():
    with pytest.raises(kw.CompileError) as error:
        kw.kernel(f"#define __hadd 3\n#include <cuda_fp16.h>\n{TEXT}").compile()
    files = {d.file for d in error.value.diagnostics if "cuda_fp16" in d.file}
    if not files:
        pytest.skip("needs the headers of CUDA")
    for file in files:
        assert "__hadd" in kw._core._shown_text(file, 1)
        assert kw._core._shown_text(f"{file}/../../../../../../../etc/passwd", 1) is None


PTX = kw.Program(TEXT, kw.ProgramOptions(arch="sm_80")).compile("ptx").code.decode()


@pytest.mark.parametrize("front", ["", "\ufeff", "\n\n", "\ufeff// a comment\n/* .version 1 */\n"])
def test_ptx_as_text_in_every_form(tmp_path, front):
    text = front + PTX[PTX.index(".version") :]
    (tmp_path / "k.ptx").write_text(text, encoding="utf-8")
    for kernel in (
        kw.kernel(text),
        kw.kernel(text.encode()),
        kw.kernel(tmp_path / "k.ptx"),
        kw.module(text)["k"],
        kw.ObjectCode.from_ptx(text).kernel("k"),
        kw.ObjectCode.from_ptx(text.encode()).kernel("k"),
        kw.ObjectCode.load(tmp_path / "k.ptx").kernel("k"),
    ):
        x = kw.zeros(32)
        kernel[1, 32](x)
        assert (x.numpy() == 1).all()


def test_code_of_another_kind_says_what_it_is(tmp_path):
    cubin = kw.Program(TEXT).compile("cubin").code
    with pytest.raises(
        kw.InvalidArgument, match=r"a cubin for sm_.*not PTX: load it with from_cubin\(\)"
    ):
        kw.ObjectCode.from_ptx(cubin)
    with pytest.raises(
        kw.InvalidArgument, match=r"PTX for .*not a cubin: load it with from_ptx\(\)"
    ):
        kw.ObjectCode.from_cubin(PTX)
    for front, what in (
        (b"\x50\xed\x55\xba\x01\x00\x10\x00", "a fat binary; take a cubin.*cuobjdump"),
        (b"\x7fELF\x02\x01", "an ELF file of the host"),
        (b"!<arch>\n", "a library of object files"),
        (b"\xed\x43\x4e\x7f", "LTO-IR"),
    ):
        image = front + bytes(200)
        (tmp_path / "image").write_bytes(image)
        for load in (
            lambda image=image: kw.kernel(image),
            lambda image=image: kw.ObjectCode.from_ptx(image),
            lambda image=image: kw.ObjectCode.from_cubin(image),
            lambda: kw.kernel(tmp_path / "image"),
            lambda: kw.ObjectCode.load(tmp_path / "image"),
        ):
            with pytest.raises(kw.Error, match=what):
                load()
    for text, what in (
        (PTX.encode("utf-16"), "UTF-16; save it as UTF-8"),
        ("hello\nthere", r"begins with a line such as \.version"),
        ("", "there are none"),
    ):
        with pytest.raises(kw.Error, match=what):
            kw.ObjectCode.from_ptx(text)
    with pytest.raises(kw.InvalidArgument, match="lone surrogate"):
        kw.ObjectCode.from_ptx(".version 8.0\n\udc80")


def test_a_relative_name_is_no_file_of_the_current_folder(tmp_path):
    """A text without a file is called <string>, and a header in memory by its name alone."""
    (tmp_path / "h.h").write_text(f"{SECRET}\n" * 9)
    code = (
        "import kernwright as kw\n"
        f"k = kw.kernel('#include \"h.h\"\\n' + {TEXT!r}.replace('k(', 'k2('),"
        f" headers={{'h.h': {TEXT!r}}}, name='k')\n"
        "with kw.line_profile() as p: k[1, 32](kw.zeros(32))\n"
        "print(p.annotated(), p)\n"
    )
    environment = {**os.environ, "KERNWRIGHT_DEVICE": "sim"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "x[threadIdx.x] = 1 + b" in done.stdout and "secret_word" not in done.stdout
