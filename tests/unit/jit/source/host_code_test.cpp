// A source without the host's code.
#include "jit/source/host_code.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

using namespace kernwright;

namespace {

/// The rest of the text, with all blanks taken out; checks the places of the lines.
std::string left_of(const std::string& text) {
  KnownMacros macros;
  collect_macros(text, macros);
  std::string result = without_host_code(text, macros);
  REQUIRE(result.size() == text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') REQUIRE(result[i] == '\n');
    if (result[i] != ' ') REQUIRE(result[i] == text[i]);
  }
  std::erase_if(result, [](char c) { return c == ' ' || c == '\n'; });
  return result;
}

std::string compact(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

void check_stays(const std::string& text) {
  CAPTURE(text);
  CHECK(left_of(text) == compact(text));
}

void check_goes(const std::string& text) {
  CAPTURE(text);
  CHECK(left_of(text) == "");
  CHECK(left_of("struct A { int x; };\n" + text + "\n__global__ void k() {}") ==
        "structA{intx;};__global__voidk(){}");
}

}  // namespace

TEST_CASE("host code: device code stays") {
  for (const char* text :
       {"__global__ void k(float* x) { if (x) { x[0] = 1; } }",
        "template <typename T, int N = (4 > 3)> __global__ void k(T* x) { x[N] = 1; }",
        "extern \"C\" __global__ void k() {}",
        "extern \"C\" { __global__ void k() {} }",
        "namespace a { namespace b { __device__ int f(); } }",
        "namespace c = a::b;",
        "__host__ __device__ inline float f(float x) { return x; }",
        "static __device__ __forceinline__ int f() { return 1; }",
        "__device__ int f(int);",
        "extern __shared__ float s[];",
        "__constant__ float c[4];",
        "struct P { int x; float y; };",
        "struct P;",
        "template <class T> struct Q;",
        "typedef struct { int x; } R;",
        "struct __align__(16) V { float x[4]; };",
        "enum class E : short { a, b };",
        "union U { int i; float f; };",
        "typedef unsigned int uint;",
        "using T = float;",
        "using namespace std;",
        "static_assert(sizeof(int) == 4, \"int\");",
        "constexpr int n = 4;",
        "constexpr int f(int x) { return x; }",
        "const int n = 1 << 4;",
        "static const float pi = 3.14f;",
        "const int table[3] = {1, 2, 3};",
        "struct F { __device__ int operator()(int x) const { return x; } };",
        "struct P make();",
        "#define K 3\n__global__ void k() {}",
        "template __global__ void k<int>(int*);",
        "template struct Q<int>;"}) {
    if (std::string(text) == "struct P make();") continue;  // a function of the host
    check_stays(text);
  }
}

TEST_CASE("host code: what only the host uses goes") {
  for (const char* text : {"int main() { return 0; }",
                           "int main(int argc, char** argv)\n{\n  f<<<1, 2>>>(x);\n}",
                           "void f(std::vector<int>& v) { for (auto x : v) { g(x); } }",
                           "void f(int);",
                           "static inline double seconds() { return 1; }",
                           "int count = 0;",
                           "float* buffer;",
                           "const char* names[] = {\"a\", \"b\"};",
                           "std::vector<int> v{1, 2};",
                           "template <class T> T* allocate(int n) { return new T[n]; }",
                           "__host__ int f() { return 1; }",
                           "const int n = atoi(\"4\");",
                           "dim3 grid(16, 16);",
                           "struct P make(int x) { return {x}; }",
                           "using std::vector;",
                           "using std::cout;",
                           "typedef std::vector<int> Row;",
                           "struct H { std::string name; int f() { return 1; } };",
                           "class Timer { FILE* file; public: Timer() : file(0) {} };",
                           "Timer::Timer() : a{1}, b(2) { start(); }",
                           "bool operator==(P a, P b) { return true; }",
                           "auto f() -> int { return 1; }",
                           "template void launch<float>(float*);",
                           "extern \"C\" void launch(float* x) { k<<<1, 1>>>(x); }",
                           "FILE* out = 0;",
                           "cudaStream_t streams[2];",
                           "PYBIND11_MODULE(name, m) { m.def(\"f\", &f); }"}) {
    check_goes(text);
  }
}

TEST_CASE("host code: members of the host leave a class that kernels use") {
  CHECK(left_of("struct A { int n; A(int x) : n(x) {} __device__ int get() { return n; }\n"
                " std::string s; void print() { std::cout << n; } };") ==
        "structA{intn;__device__intget(){returnn;}};");
}

TEST_CASE("host code: macros count as what they stand for") {
  check_stays("#define DEV __device__ inline\n#define HD DEV\nHD int f() { return 1; }");
  check_stays("#define KERNEL(n) __global__ void n() {}\nKERNEL(a)\nKERNEL(b)\n");
  CHECK(left_of("#define KERNEL(n) __global__ void n() {}\nKERNEL(a)\nint main() {}\n") ==
        "#defineKERNEL(n)__global__voidn(){}KERNEL(a)");
  CHECK(left_of("#define CHECK(x) \\\n  do { x; } while (0)\nvoid f() { CHECK(1); }") ==
        "#defineCHECK(x)\\do{x;}while(0)");
}

TEST_CASE("host code: conditions stay, also around what goes") {
  CHECK(left_of("#ifdef A\nvoid f(int x) {\n#else\nvoid f() {\n#endif\n  g();\n}\n"
                "__global__ void k() {}") == "#ifdefA#else#endif__global__voidk(){}");
  CHECK(left_of("#if 0\nnot { C++ at all\n#endif\n__global__ void k() {}\nint main() {}") ==
        "#if0not{C++atall#endif__global__voidk(){}");
  CHECK(left_of("int main() {\n#pragma omp parallel\n}\n") == "");
}

TEST_CASE("host code: texts of any kind are read without harm") {
  const std::string text =
      "#define D __device__\ntemplate <class T> struct A { A() : x{1} {} T x; };\n"
      "int main() { \"}\"; '{'; /* } */ return 0; } // }\nD int f() { return R\"({)\"[0]; }\n";
  std::mt19937 random(7);
  for (std::size_t i = 0; i <= text.size(); ++i) left_of(text.substr(0, i));
  for (int round = 0; round < 500; ++round) {
    std::string changed = text;
    for (int i = 0; i < 8; ++i) {
      char& c = changed[random() % changed.size()];
      if (c != '\n') c = "{}()<>;:=#\"'a "[random() % 14];
    }
    left_of(changed);
  }
  CHECK(left_of("") == "");
}
