// The syntax-only pass: places, hints, accepted texts, and its cost.
#include "jit/compile/lint.h"

#include <doctest/doctest.h>

#include "base/errors.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

std::vector<Diagnostic> lint_text(const std::string& text, const ProgramOptions& options = {}) {
  return lint(newest_nvrtc(), Source{text, "some file.py", 10, ""}, options);
}

constexpr const char* kGood = R"(
template <typename T> __device__ T twice(T x) { return x + x; }
__global__ void k(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = twice(x[i]);
}
)";

}  // namespace

TEST_CASE("lint: a good text gives nothing") {
  for (const LoadedNvrtc& library : real_nvrtcs()) {
    CAPTURE(library.path);
    CHECK(lint(library, Source{kGood, "k.cu", 1, ""}).empty());
  }
  CHECK(lint_text("#include <cuda_fp16.h>\n__global__ void k(__half* x) { *x = __hneg(*x); }\n")
            .empty());
}

TEST_CASE("lint: errors and warnings at the user's lines") {
  const auto found = lint_text(
      "__global__ void k(float* x) {\n"
      "  int unused;\n"
      "  x[0] = missing;\n"
      "}\n");
  REQUIRE(found.size() == 2);
  CHECK(found[1].severity == Severity::warning);
  CHECK(found[1].line == 11);
  CHECK(found[1].column == 7);
  CHECK(found[0].severity == Severity::error);
  CHECK(found[0].file == "some file.py");
  CHECK(found[0].line == 12);
  CHECK(found[0].column == 10);
  CHECK(found[0].message.find("missing") != std::string::npos);
}

TEST_CASE("lint: functions without a space are the device's") {
  CHECK(lint_text("float f(float x) { return x; }\n"
                  "__global__ void k(float* x) { *x = f(*x); }\n")
            .empty());
  CHECK(lint_text("#include <cuda_fp16.h>\nfloat f(float x) { return x; }\n"
                  "__global__ void k(float* x) { *x = f(*x); }\n")
            .empty());
}

TEST_CASE("lint: names that the smallest set of declarations lacks are found") {
  CHECK(lint_text("__global__ void k(cudaTextureObject_t t, float* x) "
                  "{ *x = tex2D<float>(t, 0.f, 0.f); }\n")
            .empty());
}

TEST_CASE("lint: options count") {
  ProgramOptions options;
  CHECK(lint_text("__global__ void k(int* x) { *x = WIDTH; }\n").size() == 1);
  options.defines["WIDTH"] = "4";
  CHECK(lint_text("__global__ void k(int* x) { *x = WIDTH; }\n", options).empty());
  options.headers["mine.h"] = "constexpr int mine = 3;\n";
  CHECK(lint_text("#include \"mine.h\"\n__global__ void k(int* x) { *x = mine; }\n", options)
            .empty());
  options.arch = "sm_90";
  CHECK(lint_text("#if __CUDA_ARCH__ != 900\n#error not for this one\n#endif\n", options).empty());
}

TEST_CASE("lint: a missing header is an error at its line") {
  const auto found = lint_text("\n#include \"not/there.h\"\n__global__ void k() {}\n");
  REQUIRE(found.size() == 1);
  CHECK(found[0].severity == Severity::error);
  CHECK(found[0].line == 11);
}

TEST_CASE("lint: headers beside a file") {
  const TemporaryFolder folder;
  folder.write("beside.h", "__device__ inline int one() { return 1; }\n");
  Source source{"#include \"beside.h\"\n__global__ void k(int* x) { *x = one(); }\n", "k.cu", 1,
                folder.path().string()};
  CHECK(lint(newest_nvrtc(), source).empty());
  source.directory.clear();
  CHECK(lint(newest_nvrtc(), source).size() >= 1);
}

TEST_CASE("lint: what no compile would take is refused") {
  CHECK_THROWS_AS(lint_text(""), InvalidArgument);
  CHECK_THROWS_AS(lint_text(std::string("int a;\0int b;", 13)), InvalidArgument);
  ProgramOptions options;
  options.extra = {"--no-such-option"};
  CHECK_THROWS_AS(lint_text(kGood, options), InvalidArgument);
  CHECK(lint_text(kGood).empty());
}

TEST_CASE("lint: templates are read and not instantiated") {
  const std::string text =
      "template <int N> __device__ int f() { static_assert(N > 2, \"small\"); return N; }\n"
      "template <typename T> __global__ void k(T* x) { *x = f<1>() + T::none; }\n";
  CHECK(lint_text(text).empty());
  const auto found = lint_text(text + "template <typename T> __global__ void l(T* x { }\n");
  REQUIRE(found.size() >= 1);
  CHECK(found[0].line == 12);
}
