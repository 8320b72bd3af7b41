"""Names and texts that compilers stumble over: they work, or the error says what helps."""

import itertools
import os

import pytest

import kernwright as kw

pytestmark = pytest.mark.usefixtures("sim")

TEXT = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = VALUE; }'


def result(text, **options):
    x = kw.zeros(1)
    kw.kernel(text, **options)[1, 1](x)
    return float(x)


def failure(kind, text, **options):
    with pytest.raises(kind) as error:
        result(text, **options)
    return str(error.value)


# Kernels by name.

MACRO = '#define MAKE(n) extern "C" __global__ void n(float* x) { x[0] = 1; }\nMAKE(aa) MAKE(bb)\n'


def test_kernels_of_macros_and_headers_are_listed():
    for name in ("cc", "cc<float>"):
        assert failure(kw.NameNotFound, MACRO, name=name).endswith(": aa, bb")
    header = "template <class T> __global__ void scale(T* x) {}\n" + MACRO
    text = '#include "h.h"\n__global__ void own(float* x) {}'
    said = failure(kw.NameNotFound, text, name="ab", headers={"h.h": header})
    for name in ("aa", "bb", "own", "scale"):
        assert name in said.rpartition("in <string>")[2]


def test_a_kernel_behind_a_false_if_is_not_listed():
    text = "#if 0\n__global__ void never(float* x) {}\n#endif\n__global__ void k(float* x) {}"
    said = failure(kw.NameNotFound, text, name="other")
    assert "never" not in said and "k" in said.rpartition("there is")[2]


# Clusters on a simulated device without them.

ROOM = 'extern "C" __global__ void k(float* x) {{ {} x[0] = 1; }}'


@pytest.mark.parametrize(
    "text",
    [
        'extern "C" __global__ void __cluster_dims__(2, 1, 1) k(float* x) { x[0] = 1; }',
        "#include <cooperative_groups.h>\n"
        + ROOM.format("cooperative_groups::this_cluster().sync();"),
        "#include <cooperative_groups.h>\n" + ROOM.format("cooperative_groups::cluster_group g;"),
        ROOM.format("x[1] = __clusterRelativeBlockRank();"),
        ROOM.format('asm volatile("barrier.cluster.arrive.aligned;");'),
        ROOM.format('asm volatile("wgmma.fence.sync.aligned;");'),
    ],
)
def test_what_needs_clusters_names_the_setting(text):
    if kw.current_device().compute_capability >= (9, 0):
        pytest.skip("this device has clusters")
    said = failure(kw.Error, text)
    assert "KERNWRIGHT_SIM_CAPABILITY=9.0" in said
    assert ("sm_90a" in said) == ("wgmma" in text)


def test_a_launch_in_clusters_names_the_setting():
    if kw.current_device().compute_capability >= (9, 0):
        pytest.skip("this device has clusters")
    kernel = kw.kernel(TEXT, defines={"VALUE": 1})
    with pytest.raises(kw.LaunchConfigError, match=r"KERNWRIGHT_SIM_CAPABILITY=9\.0"):
        kernel.launch(kw.LaunchConfig(grid=2, block=1, cluster=2), kw.zeros(1))


# Macros with names of CUDA's.


@pytest.mark.parametrize("name", ["T", "N", "x", "a", "y", "int2_", "threadIdx"])
def test_a_define_of_any_name(name):
    text = 'extern "C" __global__ void k(float* out) {{ out[0] = {}; }}'
    assert result(text.format(name), defines={name: 16}) == 16
    assert result(text.format(name), extra=[f"-D{name}=17"]) == 17
    assert result(text.format(name), extra=[f"-D{name}"]) == 1


def test_a_define_that_breaks_the_preamble_keeps_the_others():
    text = "template <int K> __global__ void k(float* o) { o[0] = K + MAX(1, 2) + FLAG + line; }"
    defines = {"T": 16, "MAX(p, q)": "((p) > (q) ? (p) : (q))", "FLAG": "", "line": "__LINE__"}
    assert result("\n\n" + text, name="k<T>", defines=defines) == 16 + 2 + 1 + 3
    said = failure(kw.CompileError, "\n\n" + text + "\nint wrong = ;", name="k<T>", defines=defines)
    assert ":4:" in said.replace(f"{__file__}:", "<string>:") or "<string>:4" in said
    assert not any(d.severity == "error" for d in kw.lint("\n\n" + text, defines=defines))


def test_a_macro_that_breaks_a_header_of_cudas_is_named():
    text = '#define __hadd 3\n#include <cuda_fp16.h>\nextern "C" __global__ void k(float* o) {}'
    said = failure(kw.CompileError, text)
    if "cannot open source file" in said:
        pytest.skip("needs the headers of CUDA")
    assert said.count("the macro __hadd replaces a name in CUDA's own headers") == 1


# Names of headers with dots.


def test_dots_in_names_of_headers_in_memory_are_followed():
    value = "#pragma once\n#define VALUE 5\n"
    for include in ('"../c/d.h"', "<a/c/d.h>", "<a/c/../c/d.h>", "<a/./c//d.h>"):
        headers = {"a/b/x.h": f"#include {include}\n", "a/c/d.h": value}
        assert result('#include "a/b/x.h"\n' + TEXT, headers=headers) == 5
    for include in ('"a/../c/d.h"', "<a/../c/d.h>", "<./c/d.h>"):
        assert result(f"#include {include}\n" + TEXT, headers={"c/d.h": value}) == 5
        probe = f"#if __has_include({include})\n#define VALUE 6\n#endif\n"
        assert result(probe + TEXT, headers={"c/d.h": value}) == 6


def test_dots_in_names_of_other_headers_are_followed(tmp_path):
    (tmp_path / "d.h").write_text("#define VALUE 8\n")
    (tmp_path / "b").symlink_to(os.path.join(tmp_path.root, "usr"))
    for include in ("<b/../d.h>", '"b/../d.h"', "<./d.h>"):
        assert result(f"#include {include}\n" + TEXT, include_dirs=[tmp_path]) == 8
    text = "#include <cuda/std/../std/array>\n" + TEXT
    try:
        kw.kernel("#include <cuda/std/array>\n" + TEXT, defines={"VALUE": 9}).compile()
    except kw.CompileError:
        pytest.skip("needs CUDA's C++ library")
    assert result(text, defines={"VALUE": 9}) == 9


def test_dots_that_leave_all_folders_are_refused(tmp_path):
    headers = {"a/b/x.h": '#include "../c/d.h"\n'}
    said = failure(kw.InvalidArgument, '#include "a/b/x.h"\n' + TEXT, headers=headers)
    assert 'leaves the folders of headers by ".."' in said
    assert 'give headers the text of "a/c/d.h"' in said
    for include in ('"../d.h"', "<../d.h>", "<a/../../d.h>"):
        said = failure(kw.InvalidArgument, f"#include {include}\n", include_dirs=[tmp_path])
        assert 'leaves the folders of headers by ".."' in said and "give headers" not in said


def test_dots_behind_a_link_reach_no_other_folder(tmp_path):
    for folder in ("headers", "other/sub"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "headers" / "link").symlink_to(tmp_path / "other" / "sub")
    (tmp_path / "other" / "secret.h").write_text("#define VALUE 1\n")
    for text in (
        "#include <link/../secret.h>\n",
        '#define H "link/../secret.h"\n#include H\n',
        "#if __has_include(<link/../secret.h>)\n#endif\n",
    ):
        said = failure(kw.InvalidArgument, text + TEXT, include_dirs=[tmp_path / "headers"])
        assert 'leaves the folders of headers by ".."' in said


# Headers of the host.


@pytest.mark.parametrize("name", ["thrust/sort.h", "cub/device/device_reduce.cuh"])
def test_algorithms_of_the_host_are_named_as_such(name):
    said = failure(kw.CompileError, f"#include <{name}>\n" + TEXT, defines={"VALUE": 1})
    if "cannot open source file" in said:
        pytest.skip("needs CUDA's C++ library")
    assert said.count("for host code: their algorithms") == 1
    assert "kw.sort" in said and "cub/block" in said


# Odd bytes in names and texts.

FOLDERS = ["blank ", "tab\t", 'quo"te', "it's", "\u4e2d\u6587", "a=b", "back\\slash", "per%s"]


@pytest.mark.parametrize("name", FOLDERS)
def test_include_folders_of_any_name(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "v.h").write_text("#define VALUE 4\n")
    (folder / "k.cu").write_text('#include "v.h"\n' + TEXT)
    assert result("#include <v.h>\n" + TEXT, include_dirs=[folder]) == 4
    assert result(folder / "k.cu") == 4


def test_bytes_that_are_no_text_are_refused_by_name(tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(folder)
    for given in (folder, os.fsdecode(folder)):
        with pytest.raises(kw.InvalidArgument, match="not UTF-8: the compiler"):
            kw.kernel(TEXT, include_dirs=[given])
    for options, what in (
        ({"headers": {"h.h": "\udcff"}}, r"headers\['h.h'\] has a lone surrogate at index 0"),
        ({"headers": {"\udcff.h": ""}}, "headers .a key. has a lone surrogate"),
        ({"defines": {"A": "1\udcff"}}, r"defines\['A'\] has a lone surrogate at index 1"),
        ({"extra": ["-DA=\udcff"]}, "extra .an item. has a lone surrogate at index 4"),
        ({"arch": "sm_\udcff"}, "arch has a lone surrogate"),
        ({"std": "\udcff"}, "std has a lone surrogate"),
    ):
        with pytest.raises(kw.InvalidArgument, match=what):
            kw.kernel(TEXT, **options)


def test_names_with_a_nul_or_a_lone_surrogate():
    module = kw.module("__device__ int v[4];\n" + TEXT, defines={"VALUE": 1})
    code = kw.Program(TEXT, kw.ProgramOptions(defines={"VALUE": 1})).compile("ptx")
    for call, kind in (
        (lambda bad: kw.Device("sim" + bad), kw.InvalidArgument),
        (lambda bad: kw.zeros(4, device="sim" + bad), kw.InvalidArgument),
        (lambda bad: module.symbol("v" + bad), (kw.NameNotFound, kw.InvalidArgument)),
        (lambda bad: code.kernel("k" + bad), (kw.NameNotFound, kw.InvalidArgument)),
        (lambda bad: kw.Program(TEXT).compile("ptx" + bad), kw.InvalidArgument),
        (lambda bad: kw.kernel(TEXT, std="c++17" + bad)[1, 1](kw.zeros(1)), kw.InvalidArgument),
        (lambda bad: kw.kernel(TEXT, arch="sm_80" + bad), kw.InvalidArgument),
        (lambda bad: kw.kernel(TEXT, name="k" + bad)[1, 1](kw.zeros(1)), kw.InvalidArgument),
    ):
        with pytest.raises(kind) as error:
            call("\0end")
        assert any(words in str(error.value) for words in ("?end", "NUL", "null character"))
        with pytest.raises(kw.Error, match="lone surrogate at index"):
            call("\udcff")


@pytest.mark.parametrize("statements", [0, 40, 4000])
def test_a_message_shows_a_long_line_around_its_caret(statements):
    many = "o[0] += 1; " * statements
    text = f"__global__ void f(float* o) {{ {many}/* \u00e4\u4e2d */\to[0] = bad; {many}}}"
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel(text).compile()
    message = str(caught.value)
    assert len(message) < 800
    line, caret = next(
        pair for pair in itertools.pairwise(message.splitlines()) if pair[1].strip() == "^"
    )
    assert line[caret.index("^") :].startswith("bad; ")
    assert line[caret.index("^") - 8 :].startswith("\to[0] = ")
    assert caught.value.diagnostics[0].column == text.index("bad") + 1
    for part in line.strip(".").split("+= 1; ")[1:-1]:
        assert part in text
