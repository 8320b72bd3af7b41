"""Sources written for nvcc: headers of the host, and host code, left out for the device."""

import subprocess
import sys

import numpy as np
import pytest

import kernwright as kw

SAMPLE = """\
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <vector>

#include <cuda_runtime.h>
#include <device_launch_parameters.h>
#include "helper_cuda.h"
#include "clamp.h"

using namespace std;

#define CHECK(call)                                   \\
  do {                                                \\
    cudaError_t e = call;                             \\
    if (e != cudaSuccess) { std::cerr << e; exit(1); } \\
  } while (0)

static const int kScale = 2;
std::vector<float> results;

template <typename T>
__global__ void scale(T* x, uint32_t n)
{
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(n > 0);
  if (i < n) x[i] = clamped(x[i] * kScale, T(5)) + std::sqrt(T(0)) + std::max(T(0), T(1));
}

__global__ void scale_floats(float* x, uint32_t n)
{
  uint32_t i = threadIdx.x;
  if (i < n) x[i] *= kScale;
}

static double seconds() { return std::chrono::now(); }

int main(int argc, char** argv)
{
  float* x;
  CHECK(cudaMalloc(&x, 4));
  scale<float><<<1, 1>>>(x, 1);
  printf("%f\\n", seconds());
  return 0;
}
"""
CLAMP = (
    "#pragma once\n#include <string>\n"
    "template <class T> __device__ T clamped(T a, T b) { return std::min(a, b); }\n"
    "inline std::string name_of(int x) { return std::to_string(x); }\n"
)


# A text in a folder of its own is compiled in every run, and most of that time goes into headers of
# std:: for the device. Tests of what is left out, lines and changes go without those.
SHORT = SAMPLE.replace("  assert(n > 0);\n", "  ;\n").replace("uint32_t", "unsigned")
SHORT = SHORT.replace("std::sqrt(T(0)) + std::max(T(0), T(1))", "sqrtf(0) + max(0, 1)")
for header in ("algorithm", "cassert", "cmath", "cstdint"):
    SHORT = SHORT.replace(f"#include <{header}>\n", "")
SHORT_CLAMP = CLAMP.replace("std::min(a, b)", "min(a, b)")


@pytest.fixture
def sample(tmp_path):
    (tmp_path / "clamp.h").write_text(CLAMP)
    path = tmp_path / "sample.cu"
    path.write_text(SAMPLE)
    return path


@pytest.fixture
def short_sample(tmp_path):
    (tmp_path / "clamp.h").write_text(SHORT_CLAMP)
    path = tmp_path / "sample.cu"
    path.write_text(SHORT)
    return path


def test_a_whole_program_gives_its_kernels(device, sample):
    module = kw.module(sample, strip_host=True)
    assert module.names == ["scale", "scale_floats"]
    x = kw.asarray(np.arange(4, dtype=np.float32))
    module["scale<float>"][1, 4](x, 4)
    np.testing.assert_array_equal(x.numpy(), [1, 3, 5, 6])


def test_the_same_from_texts(device):
    kernel = kw.kernel(SAMPLE, "scale_floats", headers={"clamp.h": CLAMP}, strip_host=True)
    x = kw.ones(3)
    kernel[1, 3](x, 3)
    np.testing.assert_array_equal(x.numpy(), [2, 2, 2])
    assert kernel._program.text == SAMPLE


def test_without_the_option_the_error_names_it(short_sample):
    with pytest.raises(kw.CompileError, match="strip_host=True"):
        kw.module(short_sample).compile()


def test_lines_stay_where_they_are(short_sample):
    short_sample.write_text(SHORT.replace("x[i] *= kScale", "x[i] *= kSkale"))
    found = kw.lint(short_sample, strip_host=True)[0]
    row = short_sample.read_text().split("\n")[found.line - 1]
    assert (found.file, row[found.column - 1 :][:6]) == (str(short_sample), "kSkale")
    (short_sample.parent / "clamp.h").write_text(SHORT_CLAMP.replace("min(a, b)", "min(a, c)"))
    with pytest.raises(kw.CompileError) as caught:
        kw.kernel(short_sample, "scale<float>", strip_host=True).compile()
    places = {(d.file, d.line) for d in caught.value.diagnostics if d.severity == "error"}
    assert (str(short_sample.parent / "clamp.h"), 3) in places


def test_a_stripped_header_that_changes_is_read_again(device, short_sample):
    values = []
    for limit in ("a", "b"):
        text = SHORT_CLAMP.replace("min(a, b)", f"max({limit}, {limit})")
        (short_sample.parent / "clamp.h").write_text(text)
        x = kw.ones(1)
        kw.kernel(short_sample, "scale<float>", strip_host=True)[1, 1](x, 1)
        values.append(x.item())
    assert values == [3, 6]


def test_the_command_compiles_device_code_alone(short_sample):
    compile = [sys.executable, "-m", "kernwright", "compile", str(short_sample)]
    command = [*compile, "--arch", "compute_80"]
    command += ["--emit", "ptx", "-o", "-"]
    plain = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert plain.returncode == 1
    assert "--device-only" in plain.stderr
    done = subprocess.run([*command, "--device-only"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert ".entry _Z12scale_floatsPfj(" in done.stdout


LIBRARY = {
    "algorithm": ("std::max(1, 2) + std::min(5, 3)", 5),
    "array": ("std::array<int, 2>{{3, 4}}[1]", 4),
    "limits": ("std::numeric_limits<unsigned char>::max()", 255),
    "type_traits": ("std::is_same<int, std::remove_const_t<const int>>::value", 1),
    "utility": ("std::make_pair(1, 2.5).second", 2.5),
    "tuple": ("std::get<1>(std::make_tuple(1, 2))", 2),
    "numeric": ("std::gcd(12, 18)", 6),
    "functional": ("std::plus<int>()(1, 2)", 3),
    "complex": ("std::complex<float>(3, 4).imag()", 4),
}
PLAIN = {
    "cmath": ("std::sqrt(16.0f) + sqrt(9) + std::abs(-1.5) + (std::isinf(INFINITY) ? 1 : 0)", 9.5),
    "math.h": ("exp(0) + pow(2, 3) + floorf(2.5f) + (M_PI > 3)", 12),
    "cstdint": ("sizeof(std::uint64_t) + sizeof(int16_t) + UINT8_MAX", 265),
    "stdint.h": ("(uint8_t)257 + INT64_C(3)", 4),
    "climits": ("INT_MAX == 2147483647 && CHAR_BIT == 8", 1),
    "limits.h": ("UINT_MAX == 4294967295u", 1),
    "cfloat": ("FLT_MAX > 3e38f && DBL_EPSILON < 1e-15", 1),
    "float.h": ("FLT_EPSILON * 8388608", 1),
    "cstddef": ("sizeof(std::size_t) + offsetof(float4, z)", 16),
    "cstdlib": ("std::abs(-3)", 3),
    "cstring": ("(std::memset(o, 0, 8), 4)", 4),
    "string.h": ("(memset(o, 0, 8), 4)", 4),
    "cassert": ("(assert(true), 5)", 5),
    "cuda_runtime.h": ("CUDART_VERSION >= 12000", 1),
    "cuda.h": ("sizeof(CUtensorMap) == 128 && CUDA_VERSION >= 12000", 1),
    "vector_types.h": ("make_float4(1, 2, 3, 4).w", 4),
    "crt/host_defines.h": ("1", 1),
}


@pytest.mark.parametrize("name", [*PLAIN, *LIBRARY])
def test_a_header_of_the_host_serves_kernels(device, name):
    expression, expected = {**PLAIN, **LIBRARY}[name]
    o = kw.zeros(1, "float64")
    text = (
        f"#include <{name}>\n__global__ void f(double* o) {{ double v = {expression}; o[0] = v; }}"
    )
    kw.kernel(text)[1, 1](o)
    assert o.item() == expected


def test_headers_of_the_host_and_of_cuda_fit_together(device):
    text = "".join(f"#include <{name}>\n" for name in PLAIN)
    text += "#include <cuda/std/cstdint>\n#include <cuda/std/cmath>\n#include <cuda_fp16.h>\n"
    text += "using namespace std;\n__global__ void f(double* o) { uint32_t x = 3; o[0] = x; }"
    o = kw.zeros(1, "float64")
    kw.kernel(text)[1, 1](o)
    assert o.item() == 3


def test_the_users_own_header_of_such_a_name_wins(tmp_path, device):
    (tmp_path / "math.h").write_text("#define OWN 7\n")
    text = '#include "math.h"\n__global__ void f(double* o) { o[0] = OWN; }'
    for options in ({"headers": {"math.h": "#define OWN 7\n"}}, {"include_dirs": [str(tmp_path)]}):
        o = kw.zeros(1, "float64")
        kw.kernel(text, **options)[1, 1](o)
        assert o.item() == 7
