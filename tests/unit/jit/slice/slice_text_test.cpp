// Where the words for slices land in a text, and the texts that are refused.
#include "jit/slice/slice_text.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace kernwright;

namespace {

const std::string kFrame = "const uint3 kernwright_first, const uint3 kernwright_grid";

/// The text behind the lines that every sliced text begins with.
std::string sliced(const std::string& text, SliceForm form = {}) {
  const std::string made = slice_text({.text = text, .directory = {}}, {}, form).source.text;
  const std::string front = "#include <kernwright/slices.cuh>\n#line 1\n";
  REQUIRE(made.starts_with(front));
  return made.substr(front.size());
}

}  // namespace

TEST_CASE("slice text: parameters come first, and each body begins with the index") {
  CHECK(sliced("__global__ void f(int n) { g(n); }") ==
        "__global__ void f(" + kFrame + ", int n) { KERNWRIGHT_SLICE_  g(n); }");
  CHECK(sliced("__global__ void f() {}") ==
        "__global__ void f(" + kFrame + ") { KERNWRIGHT_SLICE_ }");
  CHECK(sliced("__global__ void f(void) {}") ==
        "__global__ void f(" + kFrame + ") { KERNWRIGHT_SLICE_ }");
  CHECK(sliced("__global__ void f(int n);") == "__global__ void f(" + kFrame + ", int n);");
  CHECK(sliced("__global__ void f(int n) {}", {.yields = true}) ==
        "__global__ void f(" + kFrame +
            ", unsigned* kernwright_order, unsigned* kernwright_next, int n) {" +
            " KERNWRIGHT_SLICE_ }");
}

TEST_CASE("slice text: attributes and bounds in front of the name are no parameters") {
  CHECK(sliced("extern \"C\" __global__ void __launch_bounds__(256, 2) f(int n) {}") ==
        "extern \"C\" __global__ void __launch_bounds__(256, 2) f(" + kFrame +
            ", int n) { KERNWRIGHT_SLICE_ }");
  CHECK(sliced("template <class T, int N = (1 > 0)> __global__ void f(T (&x)[N]) {}") ==
        "template <class T, int N = (1 > 0)> __global__ void f(" + kFrame +
            ", T (&x)[N]) { KERNWRIGHT_SLICE_ }");
  CHECK(sliced("template __global__ void f<float, 4>(float* x);") ==
        "template __global__ void f<float, 4>(" + kFrame + ", float* x);");
  CHECK(sliced("__global__ void BOUNDS(128) f(int n) {}") ==
        "__global__ void BOUNDS(128) f(" + kFrame + ", int n) { KERNWRIGHT_SLICE_ }");
}

TEST_CASE("slice text: kernels made by macros, and macros that mark kernels") {
  CHECK(
      sliced(
          "#define MAKE(T) \\\n  __global__ void k_##T(T* x) { \\\n    x[0] = 1; }\nMAKE(int)\n") ==
      "#define MAKE(T) \\\n  __global__ void k_##T(" + kFrame +
          ", T* x) { KERNWRIGHT_SLICE_  \\\n    x[0] = 1; }\nMAKE(int)\n");
  CHECK(sliced("#define KERNEL extern \"C\" __global__ void\nKERNEL f(int n) {}\n") ==
        "#define KERNEL extern \"C\" __global__ void\nKERNEL f(" + kFrame +
            ", int n) { KERNWRIGHT_SLICE_ }\n");
  CHECK(sliced("__global__ void NAME(add)(int n) {}") ==
        "__global__ void NAME(add)(" + kFrame + ", int n) { KERNWRIGHT_SLICE_ }");
}

TEST_CASE("slice text: words in comments and strings, and device functions, stay") {
  const std::string text =
      "// __global__ void f(int n) {}\n"
      "const char* s = \"__global__ void f(int) {}\";\n"
      "__device__ int g(int n) { return blockIdx.x; }\n";
  CHECK(sliced(text) == text);
}

TEST_CASE("slice text: no line moves") {
  const std::string text = "#include <a>\n\n__global__\nvoid f(\n  int n)\n{\n  g(n);\n}\n";
  const std::string made = sliced(text);
  CHECK(std::count(made.begin(), made.end(), '\n') == std::count(text.begin(), text.end(), '\n'));
  CHECK(made.find("  g(n);\n}\n") != std::string::npos);
}

TEST_CASE("slice text: headers given as text are changed too") {
  ProgramOptions options;
  options.headers["k.cuh"] = "__global__ void f(int n) {}";
  const SlicedText made =
      slice_text({.text = "#include \"k.cuh\"\n", .directory = {}}, options, {.in_shared = true});
  CHECK(made.options.headers.at("k.cuh") ==
        "__global__ void f(" + kFrame + ", int n) { KERNWRIGHT_SLICE_ }");
  CHECK(made.options.headers.contains("kernwright/slices.cuh"));
  CHECK(made.options.defines.contains("KERNWRIGHT_SLICE_SHARED_"));
  CHECK_FALSE(made.options.defines.contains("KERNWRIGHT_SLICE_YIELDS_"));
}

TEST_CASE("slice text: an index that is read by assembler or builtin is refused by its name") {
  const auto refused = [](const std::string& text, const std::string& word) {
    try {
      sliced(text);
    } catch (const NotSliceable& error) {
      return std::string(error.what()).find(word) != std::string::npos;
    }
    return false;
  };
  CHECK(refused("__device__ void g() { asm(\"mov.u32 %0, %%ctaid.x;\" : \"=r\"(x)); }", "%ctaid"));
  CHECK(
      refused("__device__ void g() { asm(\"mov.u32 %0, %%nctaid.y;\" : \"=r\"(x)); }", "%nctaid"));
  CHECK(refused("int x = __nvvm_read_ptx_sreg_ctaid_x();", "sreg_ctaid"));
  CHECK(refused("dim3 c = __clusterIdx();", "__clusterIdx"));
  CHECK_FALSE(refused("asm(\"mov.u32 %0, %%cluster_ctaid.x;\" : \"=r\"(x));", "ctaid"));
  CHECK_FALSE(refused("// %ctaid\n", "%ctaid"));
}

TEST_CASE("slice text: odd texts come back, whatever they are") {
  for (const char* const text :
       {"__global__", "__global__ void f(", "__global__ void f(int", "#define", "#define A(",
        "#define A __global__ void f(", "__global__ void f<(", "template <", "\"", "/*"}) {
    CHECK_NOTHROW(sliced(text));
  }
}

TEST_CASE("slice text: a text with the name of the words asks in its loop") {
  const Source text{.text = "__global__ void f() { g(KERNWRIGHT_YIELD_WORDS); }", .directory = {}};
  const SlicedText yielding = slice_text(text, {}, {.yields = true});
  CHECK(yielding.asks_in_loop);
  CHECK(yielding.options.defines.contains("KERNWRIGHT_SLICE_LOOP_"));
  const SlicedText plain = slice_text(text, {}, {});
  CHECK_FALSE(plain.asks_in_loop);
  CHECK_FALSE(plain.options.defines.contains("KERNWRIGHT_SLICE_LOOP_"));
  const Source other{.text = "__global__ void f() {}", .directory = {}};
  CHECK_FALSE(slice_text(other, {}, {.yields = true}).asks_in_loop);
}
