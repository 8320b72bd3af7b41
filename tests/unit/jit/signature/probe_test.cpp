// The probe's question and the reading of the answer.
#include "jit/signature/probe.h"

#include <doctest/doctest.h>

#include "base/errors.h"
#include "jit/compile/compile_trace.h"
#include "unit/jit/jit_fixture.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace kernwright;
using namespace kernwright::testing;

namespace {

/// Compiles `text` and returns the parameters of its kernel `k`.
std::vector<Parameter> parameters_of(const LoadedNvrtc& nvrtc, const std::string& text) {
  return Compiler(nvrtc).compile(request_for(text)).kernel("k").parameters;
}

auto fields_of(const Parameter& p) {
  return std::tuple(p.name, p.type, p.kind, p.scalar, p.lanes, p.pointee_const, p.any_byte_pointee,
                    p.pointee_size, p.size, p.alignment, p.offset);
}

}  // namespace

TEST_CASE("probe: answers that are none are refused") {
  CHECK(is_probe_answer("_ZN17kernwright_probe_15kernwright_ask_IfEEvv"));
  CHECK_FALSE(is_probe_answer("_Z5saxpyfPKf"));
  CHECK_FALSE(is_probe_answer(kernel_type_probe("k")));
  for (const char* bad : {"", "_Z5saxpyfPKf", "_ZN17kernwright_probe_15kernwright_ask_IfEEvv",
                          "_ZN17kernwright_probe_15kernwright_ask_IEEvv"}) {
    CHECK_THROWS_AS(read_kernel_probe(bad), InvalidArgument);
  }
}

TEST_CASE("probe: no line of it reaches the object code") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const auto code = Compiler(nvrtc).compile(request_for(
        "__constant__ float c[4];\n__global__ void k(float* x, int n) { x[n] = c[n]; }"));
    CHECK_FALSE(contains(code.code, "kernwright"));
    CHECK_FALSE(contains(code.resource_cubin, "kernwright"));
  }
}

TEST_CASE("probe: numbers, pointers and vectors, with sizes and offsets") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const auto p = parameters_of(
        nvrtc,
        "__global__ void k(char a, const double* b, float4 c, short d, unsigned long long e,"
        "const float4* f, unsigned char* g, void* h, bool i, const float* const* j) {}");
    REQUIRE(p.size() == 10);
    CHECK(p[0].kind == ParameterKind::scalar);
    CHECK(p[0].scalar == ScalarType::int8);
    CHECK(p[1].kind == ParameterKind::pointer);
    CHECK(p[1].scalar == ScalarType::float64);
    CHECK(p[1].pointee_const);
    CHECK(p[1].pointee_size == 8);
    CHECK(p[1].offset == 8);
    CHECK(p[2].kind == ParameterKind::vector);
    CHECK(p[2].lanes == 4);
    CHECK(p[2].offset == 16);
    CHECK(p[2].alignment == 16);
    CHECK(p[3].offset == 32);
    CHECK(p[4].offset == 40);
    CHECK(p[4].type == "unsigned long long");
    CHECK(p[5].lanes == 4);
    CHECK(p[5].scalar == ScalarType::float32);
    CHECK(p[5].pointee_size == 16);
    CHECK(p[6].any_byte_pointee);
    CHECK_FALSE(p[6].pointee_const);
    CHECK_FALSE(p[7].scalar);
    CHECK(p[7].pointee_size == 0);
    CHECK(p[8].scalar == ScalarType::boolean);
    CHECK_FALSE(p[9].scalar);
    CHECK(p[9].pointee_const);
    CHECK(p[9].type == "const float* const*");
  }
}

TEST_CASE("probe: structs, enums, arrays and functions") {
  const auto p = parameters_of(
      newest_nvrtc(),
      "struct P { char c; double d; }; enum class E : short { a }; enum F { b };"
      "template <class T, int N> struct V { T t[N]; };"
      "__global__ void k(P p, E e, F f, V<float, 3> v, P* q, struct Unknown* u, int (*g)(float),"
      "float m[3][4], const P c) {}");
  REQUIRE(p.size() == 9);
  CHECK(p[0].kind == ParameterKind::aggregate);
  CHECK(p[0].size == 16);
  CHECK(p[0].alignment == 8);
  CHECK(p[1].kind == ParameterKind::scalar);
  CHECK(p[1].scalar == ScalarType::int16);
  CHECK(p[1].type == "E");
  CHECK((p[2].scalar == ScalarType::int32 || p[2].scalar == ScalarType::uint32));
  CHECK(p[3].type == "V<float, 3>");
  CHECK(p[3].size == 12);
  CHECK(p[4].pointee_size == 16);
  CHECK(p[5].pointee_size == 0);
  CHECK(p[6].kind == ParameterKind::pointer);
  CHECK(p[6].type == "int (*)(float)");
  CHECK(p[7].type == "float (*)[4]");
  CHECK(p[7].scalar == ScalarType::float32);
  CHECK(p[8].type == "P");
}

TEST_CASE("probe: the user's macros do not disturb it") {
  const std::string text =
      "#define N 1024\n#define T float\n#define A 3\n#define P *\n#define U 1\n#define of x\n"
      "#define probe y\n#define size 8\n#define type int\n#define value 0\n"
      "__global__ void k(T* x, int n) {}";
  const auto p = parameters_of(newest_nvrtc(), text);
  REQUIRE(p.size() == 2);
  CHECK(p[0].type == "float*");
}

TEST_CASE("probe: texts that end in odd ways keep their types") {
  for (const char* ending :
       {"", "\n", " // comment", " // comment \\", " /* comment */", "\n#if 0\nx\n#endif"}) {
    CAPTURE(ending);
    const auto p =
        parameters_of(newest_nvrtc(), std::string("__global__ void k(float* x) {}") + ending);
    REQUIRE(p.size() == 1);
    CHECK(p[0].type == "float*");
  }
}

TEST_CASE("probe: the short question has the answer of the long one") {
  // Each spelled plainly and, beside it, so that only the long question can serve: through a macro
  // or a typedef of the text, which its declaration does not give away as a type of the language.
  const std::string types[] = {
      "bool",    "char",      "signed char", "unsigned char", "short",     "unsigned short",
      "int",     "unsigned",  "long",        "unsigned long", "long long", "unsigned long long",
      "float",   "double",    "size_t",      "char1",         "char2",     "uchar3",
      "char4",   "short2",    "ushort3",     "short4",        "int2",      "uint3",
      "int4",    "float1",    "float2",      "float3",        "float4",    "double2",
      "double3", "longlong2", "long3"};
  std::string text, plain, hidden;
  for (std::size_t i = 0; i < std::size(types); ++i) {
    const std::string n = std::to_string(i);
    text += "typedef " + types[i] + " hidden_" + n + ";\n";
    const std::string separator = i == 0 ? "" : ", ";
    plain += separator + types[i] + " v" + n + ", const " + types[i] + "* __restrict__ p" + n +
             ", " + types[i] + "* const* q" + n;
    hidden += separator + "hidden_" + n + " v" + n + ", const hidden_" + n + "* __restrict__ p" +
              n + ", hidden_" + n + "* const* q" + n;
  }
  text += "__global__ void k(" + plain + ", void* z) {}\n";
  text += "extern \"C\" __global__ void with_hidden(" + hidden + ", void* z) {}\n";
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const auto code = Compiler(nvrtc).compile(request_for(text));
    CHECK(code.trace->attempts == 1);
    const std::vector<Parameter>& p = code.kernel("k").parameters;
    const std::vector<Parameter>& long_form = code.kernel("with_hidden").parameters;
    REQUIRE(p.size() == 3 * std::size(types) + 1);
    REQUIRE(long_form.size() == p.size());
    for (std::size_t i = 0; i < p.size(); ++i) {
      CAPTURE(p[i].name);
      CHECK(fields_of(p[i]) == fields_of(long_form[i]));
    }
  }
}

TEST_CASE("probe: a macro that makes another type of a word of the language is seen through") {
  const auto code = Compiler(newest_nvrtc())
                        .compile(request_for("struct P { char c; double d; };\n"
                                             "#define float P\n#define short const P\n"
                                             "__global__ void k(float x, short* y, int n) {}"));
  CHECK(code.trace->attempts == 2);
  const std::vector<Parameter>& p = code.kernel("k").parameters;
  REQUIRE(p.size() == 3);
  CHECK(p[0].kind == ParameterKind::aggregate);
  CHECK(p[0].type == "P");
  CHECK(p[0].size == 16);
  CHECK(p[1].pointee_size == 16);
  CHECK(p[1].pointee_const);
  CHECK(p[2].offset == 24);
}

TEST_CASE("probe: device variables") {
  const auto code = Compiler(newest_nvrtc())
                        .compile(request_for("struct P { int a; }; __constant__ float c[3][4];"
                                             "namespace n { __device__ const P p = {1}; }"
                                             "__device__ float4 v[2]; __device__ double* q;"
                                             "__global__ void k() {}"));
  REQUIRE(code.symbols.size() == 4);
  const SymbolType& c = code.symbol_types.at("c");
  CHECK(c.type == "float [3][4]");
  CHECK(c.scalar == ScalarType::float32);
  CHECK(c.shape == std::vector<std::size_t>{3, 4});
  CHECK(code.symbol_types.at("n::p").type == "const P");
  CHECK_FALSE(code.symbol_types.at("n::p").scalar);
  CHECK(code.symbol_types.at("v").lanes == 4);
  CHECK(code.symbol_types.at("q").type == "double*");
}

TEST_CASE("probe: macros named like words of the language do not disturb it") {
  for (const std::string word :
       {"class struct", "template oops", "typename class", "namespace x", "decltype(x) int",
        "sizeof(x) 3", "alignof(x) 64", "unsigned short", "long char", "void int", "bool int",
        "enum struct", "typedef x", "__attribute__(x)", "global device", "true 0",
        "struct class"}) {
    CAPTURE(word);
    const auto p = parameters_of(newest_nvrtc(),
                                 "struct S { double d; }; __global__ void k(S s, float* o, S* q) {"
                                 "o[0] = s.d; }\n#define " +
                                     word + "\n");
    REQUIRE(p.size() == 3);
    CHECK(p[0].size == 8);
    CHECK(p[0].alignment == 8);
    CHECK(p[1].scalar == ScalarType::float32);
    CHECK(p[2].pointee_size == 8);
  }
}

TEST_CASE("probe: pointers to enums have the enum's integer") {
  const auto p = parameters_of(newest_nvrtc(),
                               "enum class E : short { a }; enum F : unsigned char { b };"
                               "__global__ void k(E* e, const F* f, E (*g)[2], E* const* h) {}");
  REQUIRE(p.size() == 4);
  CHECK(p[0].scalar == ScalarType::int16);
  CHECK(p[0].type == "E*");
  CHECK(p[1].scalar == ScalarType::uint8);
  CHECK(p[1].pointee_const);
  CHECK_FALSE(p[1].any_byte_pointee);
  CHECK(p[2].scalar == ScalarType::int16);
  CHECK_FALSE(p[3].scalar);
}

TEST_CASE("probe: members of structs, wherever they are declared") {
  auto request = request_for(
      "#include \"s.h\"\nstruct Base { int id; };\n"
      "template <class T> struct alignas(16) Box : Base { T lo[2][3]; float4 v; E e; void* p;\n"
      "  int bits : 3; static const int fixed = 1; __device__ int get() { return id; }\n"
      " private: int hidden; };\n"
      "__global__ void k(Box<double> b, const Inner* i, Inner (*a)[2], struct Unknown* u) {}");
  request.options.headers["s.h"] =
      "enum class E : short { a }; struct Inner { char c; double d; union { int x; float y; }; };";
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const auto code = Compiler(nvrtc).compile(request);
    const auto& p = code.kernel("k").parameters;
    const auto& box = p[0].fields;
    REQUIRE(box.size() == 5);
    const std::vector<std::string> names{"id", "lo", "v", "e", "p"};
    const std::vector<std::size_t> offsets{0, 8, 64, 80, 88};
    for (std::size_t i = 0; i < box.size(); ++i) {
      CHECK(box[i].name == names[i]);
      CHECK(box[i].offset == offsets[i]);
    }
    CHECK(box[1].shape == std::vector<std::size_t>{2, 3});
    CHECK(box[1].scalar == ScalarType::float64);
    CHECK(box[1].size == 48);
    CHECK(box[2].lanes == 4);
    CHECK(box[3].scalar == ScalarType::int16);
    CHECK(box[4].scalar == ScalarType::uint64);
    for (const std::size_t i : {1, 2}) {
      REQUIRE(p[i].fields.size() == 5);  // bytes 16 to 20 twice, as members of a union
      CHECK(p[i].fields[1].name == "d");
      CHECK(p[i].fields[1].offset == 8);
      CHECK(p[i].fields[3].offset == 16);
    }
    CHECK(p[3].fields.empty());
    CHECK_FALSE(contains(code.log, "1427"));
  }
}

TEST_CASE("probe: members of members, behind the member that has them") {
  const std::string text =
      "struct V { float x, y, z; }; struct Empty {}; class Closed { int q; };\n"
      "union U { int i; V v; }; struct Node { Node* next; V pos; };\n"
      "struct P { V pos; short id; Node nodes[2][3]; U u; Empty empty; Closed closed; float3 f; "
      "};\n"
      "__global__ void k(P p, const P* q, Node* n, U u) {}\n__device__ P s[2];";
  const std::vector<std::pair<std::string, std::size_t>> members{
      {"pos", 0},          {"pos.x", 0},        {"pos.y", 4},        {"pos.z", 8},
      {"id", 12},          {"nodes", 16},       {"nodes.next", 16},  {"nodes.pos", 24},
      {"nodes.pos.x", 24}, {"nodes.pos.y", 28}, {"nodes.pos.z", 32}, {"u", 160},
      {"u.i", 160},        {"u.v", 160},        {"u.v.x", 160},      {"u.v.y", 164},
      {"u.v.z", 168},      {"closed", 176},     {"f", 180}};
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const auto code = Compiler(nvrtc).compile(request_for(text));
    CHECK(code.trace->attempts == 1);
    const auto& p = code.kernel("k").parameters;
    for (const auto* fields : {&p[0].fields, &p[1].fields, &code.symbol_types.at("s").fields}) {
      std::vector<std::pair<std::string, std::size_t>> found;
      for (const StructField& field : *fields) {
        const bool is_union = field.name.ends_with('.');
        if (!is_union) found.emplace_back(field.name, field.offset);
      }
      CHECK(found == members);
    }
    CHECK(p[2].fields.size() == 5);
    CHECK(p[2].fields.at(0).scalar == ScalarType::uint64);
    CHECK(std::any_of(p[3].fields.begin(), p[3].fields.end(), [](const StructField& field) {
      return field.name.empty() && field.offset == 0 && field.size == 12;
    }));
  }
}

TEST_CASE("probe: names of members that are none, and errors that only it brings to light") {
  const auto p = parameters_of(newest_nvrtc(),
                               "template <class T> struct Bad { T x; };\n"
                               "struct S { float asm_; int operator=(int); int z; };\n"
                               "#define z zz\n"
                               "__global__ void k(Bad<void>* b, float* o, S s) {}\n"
                               "__global__ void other(S s, int n) {}");
  REQUIRE(p.size() == 3);
  CHECK(p[1].scalar == ScalarType::float32);
}

TEST_CASE("probe: types of variables") {
  const auto code =
      Compiler(newest_nvrtc())
          .compile(request_for(
              "enum class E : short { a }; typedef float real; struct S { int a; float b; };\n"
              "__device__ E e; __constant__ real r[2][3]; __device__ float2 v[4]; __device__ S* "
              "p;\n"
              "__device__ S s[2]; __managed__ E m; __device__ struct { int q; } u;\n"
              "namespace { __device__ S hidden; } template <int N> __device__ double t[N];\n"
              "__global__ void k(double* o) { o[0] = t<3>[0] + hidden.a + u.q + s[0].a + r[0][0]; "
              "}"));
  const auto& types = code.symbol_types;
  CHECK(types.at("e").scalar == ScalarType::int16);
  CHECK(types.at("r").shape == std::vector<std::size_t>{2, 3});
  CHECK(types.at("r").scalar == ScalarType::float32);
  CHECK(types.at("v").lanes == 2);
  CHECK(types.at("p").scalar == ScalarType::uint64);
  CHECK(types.at("s").fields.size() == 2);
  CHECK(types.at("m").scalar == ScalarType::int16);
  CHECK(types.at("u").fields.size() == 1);
  CHECK(types.at("hidden").fields.at(1).offset == 4);
  CHECK(types.at("t<3>").scalar == ScalarType::float64);
}
