// The kernels and variables declared in a text.
#include "jit/source/kernel_scanner.h"

#include <doctest/doctest.h>

#include <random>

using namespace kernwright;

namespace {

KernelDeclaration only(std::string_view text) {
  const auto kernels = find_kernels(text);
  REQUIRE(kernels.size() == 1);
  return kernels[0];
}

std::string names(std::string_view text) {
  std::string result;
  for (const auto& k : find_kernels(text)) result += (result.empty() ? "" : ",") + k.name;
  return result;
}

std::string symbols(std::string_view text) {
  std::string result;
  for (const auto& s : scan_source(text).symbols) result += (result.empty() ? "" : ",") + s.name;
  return result;
}

}  // namespace

TEST_CASE("scanner: a plain kernel") {
  const auto kernel =
      only("\n__global__ void saxpy(float a, const float* x, float* y, int n) {\n}\n");
  CHECK(kernel.name == "saxpy");
  CHECK(kernel.line == 2);
  CHECK_FALSE(kernel.is_template);
  CHECK_FALSE(kernel.is_extern_c);
  CHECK(kernel.parameter_names == std::vector<std::string>{"a", "x", "y", "n"});
  CHECK(kernel.parameter_types.at(1) == "const float *");
}

TEST_CASE("scanner: extern \"C\", as prefix and as block") {
  CHECK(only("extern \"C\" __global__ void k(int n) {}").is_extern_c);
  CHECK(only("extern \"C\" {\n__global__ void k(int n) {}\n}").is_extern_c);
  const auto both = find_kernels("extern \"C\" { __device__ int f(); } __global__ void k() {}");
  REQUIRE(both.size() == 1);
  CHECK_FALSE(both[0].is_extern_c);
  CHECK(only("__global__ extern \"C\" void k(int n) {}").is_extern_c);
}

TEST_CASE("scanner: namespaces qualify names") {
  CHECK(names("namespace a { namespace b::c { __global__ void k(); } __global__ void l(); }"
              "__global__ void m();") == "a::b::c::k,a::l,m");
  CHECK(names("namespace { __global__ void k(); }") == "k");
  CHECK(names("inline namespace v1 { __global__ void k(); }") == "k");
  CHECK(names("namespace [[deprecated]] a { __global__ void k(); }") == "a::k");
  CHECK(names("namespace b = a; __global__ void k();") == "k");
  CHECK(names("using namespace a; __global__ void k();") == "k");
  CHECK(names("namespace a { __global__ void k(); } __global__ void a::k() {}") == "a::k");
}

TEST_CASE("scanner: templates and their specialisations") {
  const auto kernel =
      only("template <typename T, int N = (3 > 2)>\n__global__ void scale(T* x, T s) {}");
  CHECK(kernel.is_template);
  CHECK(kernel.parameter_names == std::vector<std::string>{"x", "s"});
  CHECK(only("template <class T> __global__ void k(T t) {}\n"
             "template <> __global__ void k<float>(float t) {}\n"
             "template __global__ void k<int>(int);")
            .is_template);
  CHECK(only("template <class T> struct S { T t; };\n__global__ void k() {}").is_template == false);
  CHECK(only("template struct S<int>;\n__global__ void k() {}").name == "k");
  CHECK(only("template <class... Ts> requires (sizeof...(Ts) > 1)\n__global__ void k(Ts... ts) {}")
            .parameter_names == std::vector<std::string>{"ts..."});
}

TEST_CASE("scanner: attributes, launch bounds and macros around the name") {
  for (const char* text : {
           "__global__ void __launch_bounds__(128, 2) k(int n) {}",
           "__global__ __launch_bounds__(128) void k(int n) {}",
           "__launch_bounds__(128) __global__ void k(int n) {}",
           "static __global__ void k(int n) {}",
           "__global__ static inline void k(int n) {}",
           "[[gnu::used]] __global__ void k [[x]] (int n) {}",
           "__global__ void __attribute__((x(1), y)) k(int n) {}",
           "__global__ void __cluster_dims__(2, 1, 1) k(int n) {}",
           "__global__ void BOUNDS(128) k(int n) {}",
           "__global__ void k(int n) noexcept {}",
           "__global__ auto k(int n) -> void {}",
           "KERNEL_API __global__ void k(int n);",
       }) {
    CAPTURE(text);
    const auto kernel = only(text);
    CHECK(kernel.name == "k");
    CHECK(kernel.parameter_names == std::vector<std::string>{"n"});
  }
  CHECK(names("__global__ void NAME(add)(float* x) {} __global__ void k();") == "k");
}

TEST_CASE("scanner: comments, strings and preprocessor lines hide kernels") {
  CHECK(
      names(
          "// __global__ void a();\n/* __global__ void b(); */\n"
          "#define K __global__ void c();\n"
          "const char* s = \"__global__ void d();\"; const char* r = R\"(__global__ void e();)\";\n"
          "__global__ void k();") == "k");
}

TEST_CASE("scanner: members and local declarations are no kernels of the program") {
  CHECK(names("struct S { __global__ static void m(); friend __global__ void f(); };\n"
              "__device__ void g() { extern __shared__ int x[]; }\n__global__ void k() {}") == "k");
}

TEST_CASE("scanner: a definition completes a declaration") {
  const auto kernel =
      only("__global__ void k(float*, int);\n__global__ void k(float* x, int n) {}");
  CHECK(kernel.parameter_names == std::vector<std::string>{"x", "n"});
}

TEST_CASE("scanner: device variables") {
  CHECK(
      symbols("__device__ int a; __constant__ float b[3] = {1, 2, 3}, c; static __device__ P p{1};"
              "namespace n { __managed__ double d; } extern \"C\" { __constant__ char e[4]; }") ==
      "a,b,c,p,n::d,e");
  CHECK(symbols("__device__ const float* const q = nullptr; __device__ alignas(16) int r[4];"
                "__device__ int s __attribute__((aligned(8)));") == "q,r,s");
  CHECK(symbols("__device__ void f(int x) {} __device__ __forceinline__ float g(float) {}"
                "template <class T> __device__ T t; __device__ int operator+(P, P);"
                "__global__ void k() { __shared__ int l[4]; }") == "");
}

TEST_CASE("scanner: mutilated texts never hurt") {
  const std::string text =
      "namespace a { extern \"C\" { template <class T, int N> __global__ void __launch_bounds__(3) "
      "k(T (*f)(int), float a[4] = {1}, T... r) noexcept { } __constant__ int s[3] = {1}; } }";
  for (std::size_t i = 0; i <= text.size(); ++i) {
    CHECK_NOTHROW(scan_source(text.substr(0, i)));
    CHECK_NOTHROW(scan_source(text.substr(i)));
  }
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string changed = text;
    for (int i = 0; i < 4; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    CHECK_NOTHROW(scan_source(changed));
  }
  const std::string deep(100000, '{');
  CHECK(scan_source(deep + "__global__ void k();").kernels.empty());
  CHECK_NOTHROW(scan_source("__global__ void k(" + std::string(100000, '(')));
  CHECK_NOTHROW(scan_source("template " + std::string(100000, '<')));
}

TEST_CASE("kernels: whether a text shows all of them") {
  const auto is_whole = [](std::string_view text) { return scan_source(text).is_whole; };
  CHECK(is_whole("__global__ void k(float* x) {}"));
  CHECK(is_whole(
      "#include <cuda_fp16.h>\n#define N 4\n__global__ void k();\n__global__ void k() {}"));
  CHECK(is_whole(""));
  for (const char* text :
       {"#include \"k.cuh\"\n", "#ifdef A\n__global__ void k() {}\n#endif", " # if 1\n#endif",
        "#define K __global__ void\nK k() {}", "#define A B\n#include A\n",
        "__global__ void (k)(int) {}", "__attribute__((global)) void k() {}",
        "template <class T> __global__ void t(T) {} template __global__ void t<int>(int);"}) {
    CAPTURE(text);
    CHECK_FALSE(is_whole(text));
  }
}

TEST_CASE("scanner: constants of the host's kind, which are no symbols") {
  const auto constants = [](std::string_view text) {
    std::string names;
    for (const std::string& name : scan_source(text).constants) names += name + " ";
    return names;
  };
  CHECK(constants("constexpr int kN = 4; const float table[2] = {1, 2};") == "kN table ");
  CHECK(
      constants("static constexpr unsigned a = f(1, 2), b{3}; namespace n { const int c = 1; }") ==
      "a b n::c ");
  CHECK(
      constants("namespace { constexpr Pair<int, 2> p = {1, 2}; } inline constexpr auto q = 1;") ==
      "p q ");
  CHECK(constants("__device__ const int a = 1; const __constant__ float b[4]; "
                  "constexpr __device__ int c = 2;") == "");
  CHECK(constants("const float* f(const float* x) { const int inner = 1; } constexpr int g();") ==
        "");
  CHECK(constants("template <int N> constexpr int v = N; struct S { static const int m = 1; };") ==
        "");
  CHECK(constants("const __global__ void k(const int n) {}") == "");
  CHECK(constants("constexpr int broken = {") == "broken ");
  CHECK(constants("int const a = 1, *const b = 0; const float* const c = nullptr; const int d;") ==
        "a b c d ");
  CHECK(constants("const int f(const int x); const int g = f(const_cast<const int&>(1)); ") ==
        "g ");
  // Each word is read once or twice, however many there are.
  std::string words;
  for (int i = 0; i < 50000; ++i) words += "const ";
  CHECK(constants(words) == "");
}

TEST_CASE("symbols: a variable of a type that is defined with it") {
  CHECK(symbols("__device__ struct { int z; } a, b[2]; __device__ struct S { int q; } c;"
                "__device__ struct T { int q; }; __device__ int d;") == "a,b,c,d");
}
