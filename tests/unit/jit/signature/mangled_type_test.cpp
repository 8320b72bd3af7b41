// Reading of mangled names, made by the host compiler.
#include "jit/signature/mangled_type.h"

#include <doctest/doctest.h>

#include <complex>
#include <random>
#include <typeinfo>

#include "base/errors.h"
#include "unit/jit/jit_fixture.h"

namespace mangled {

struct Params {
  int a;
};
enum class Mode : short { a };
namespace inner {
template <class T>
struct Box {
  struct Part {};
};
template <class T, int N, bool B>
struct Tile {};
template <class... T>
struct Pack {};
template <auto... N>
struct Numbers {};
}  // namespace inner
template <class... T>
struct Probe {};
template <class T>
struct Wrapped {};

}  // namespace mangled

using namespace kernwright;
using namespace kernwright::testing;

namespace {

/// Spelling of the arguments of Probe<T...>, from its name mangled by this compiler.
template <class... T>
std::string spelled() {
  const TypeRef probe = demangle_name(std::string("_Z") + typeid(mangled::Probe<T...>).name());
  REQUIRE(probe->text == "mangled::Probe");
  REQUIRE(probe->children.size() == 1);
  return spell(*probe->children[0]);
}

using mangled::Mode;
using mangled::Params;
using mangled::inner::Box;
using mangled::inner::Numbers;
using mangled::inner::Pack;
using mangled::inner::Tile;

}  // namespace

TEST_CASE("mangled types: every built-in type") {
  CHECK(spelled<bool, char, signed char, unsigned char>() ==
        "bool, char, signed char, unsigned char");
  CHECK(spelled<short, unsigned short, int, unsigned>() ==
        "short, unsigned short, int, unsigned int");
  CHECK(spelled<long, unsigned long, long long, unsigned long long>() ==
        "long, unsigned long, long long, unsigned long long");
  CHECK(spelled<float, double, long double, wchar_t, char16_t, char32_t, char8_t>() ==
        "float, double, long double, wchar_t, char16_t, char32_t, char8_t");
  CHECK(spelled<decltype(nullptr)>() == "decltype(nullptr)");
  CHECK(spelled<>() == "");
}

TEST_CASE("mangled types: pointers, qualifiers, references") {
  CHECK(spelled<float*, const float*, float* const*, const float* const*>() ==
        "float*, const float*, float* const*, const float* const*");
  CHECK(spelled<volatile int*, const volatile char*, void*, const void*>() ==
        "volatile int*, const volatile char*, void*, const void*");
  CHECK(spelled<float&, const int&, float&&>() == "float&, const int&, float&&");
  CHECK(spelled<float**, float***>() == "float**, float***");
}

TEST_CASE("mangled types: arrays and functions bind as in C++") {
  CHECK(spelled<float(*)[4], const float(*)[3][2], float(&)[8]>() ==
        "float (*)[4], const float (*)[3][2], float (&)[8]");
  CHECK(spelled<int (*)(float), void (*)(), void (*)(int, float*)>() ==
        "int (*)(float), void (*)(), void (*)(int, float*)");
  CHECK(spelled<int (*(*)(float))(char)>() == "int (*(*)(float))(char)");
  CHECK(spelled<int Params::*, int (Params::*)(float)>() ==
        "int mangled::Params::*, int (mangled::Params::*)(float)");
}

TEST_CASE("mangled types: classes, enums, nested names, templates") {
  CHECK(spelled<Params, const Params*, Mode>() ==
        "mangled::Params, const mangled::Params*, mangled::Mode");
  CHECK(spelled<Box<float>, Box<Box<int>>, Box<float>::Part>() ==
        "mangled::inner::Box<float>, mangled::inner::Box<mangled::inner::Box<int>>, "
        "mangled::inner::Box<float>::Part");
  CHECK(spelled<Tile<float, 4, true>, Tile<int, -3, false>>() ==
        "mangled::inner::Tile<float, 4, true>, mangled::inner::Tile<int, -3, false>");
  CHECK(spelled<Pack<>, Pack<int>, Pack<int, float>>() ==
        "mangled::inner::Pack<>, mangled::inner::Pack<int>, mangled::inner::Pack<int, float>");
  CHECK(spelled<Numbers<3u, 'a', 4ull>>() == "mangled::inner::Numbers<3, 97, 4>");
  CHECK(spelled<Numbers<Mode{2}>>() == "mangled::inner::Numbers<(mangled::Mode)2>");
  CHECK(spelled<std::complex<float>>() == "std::complex<float>");
}

TEST_CASE("mangled types: substitutions count as the compiler counts them") {
  CHECK(spelled<const float*, const float*, float, const float* const*, Box<const float*>,
                Box<const float*>*>() ==
        "const float*, const float*, float, const float* const*, "
        "mangled::inner::Box<const float*>, mangled::inner::Box<const float*>*");
  CHECK(spelled<int (*)(Params), Params, int (*)(Params), float(*)[4], float(*)[4]>() ==
        "int (*)(mangled::Params), mangled::Params, int (*)(mangled::Params), float (*)[4], "
        "float (*)[4]");
  CHECK(spelled<const volatile int*, volatile int*, const volatile int*, const int*>() ==
        "const volatile int*, volatile int*, const volatile int*, const int*");
  CHECK(spelled<mangled::Wrapped<const volatile short*>, const volatile short*, short**,
                mangled::Wrapped<short**>, short*, const short*>() ==
        "mangled::Wrapped<const volatile short*>, const volatile short*, short**, "
        "mangled::Wrapped<short**>, short*, const short*");
}

TEST_CASE("mangled types: names as NVRTC makes them") {
  const auto last = [](const char* mangled) { return spell(*demangle_name(mangled)); };
  CHECK(last("_Z5saxpyfPKfPfi") == "saxpy");
  CHECK(last("_ZN4cuda3std3__47complexIfEE") == "cuda::std::complex<float>");
  CHECK(last("_ZN4cuda3std3__45arrayIiLm4EEE") == "cuda::std::array<int, 4>");
  CHECK(last("_ZN3cub15_V_300100_SM_805BlockE") == "cub::Block");
  CHECK(last("_Z1kI6__halfE") == "k<__half>");
  CHECK(last("_Z1kIDhE") == "k<_Float16>");
  CHECK(last("_Z1kIDF16_DF16bE") == "k<_Float16, __bf16>");
  CHECK(last("_ZN41_GLOBAL__N__00000000_4_k_cu_fc8b17b7_72561kE") == "(anonymous namespace)::k");
  CHECK(last("_Z1kIL_Z1fvEE") == "k<&f>");
}

TEST_CASE("mangled types: foreign and mutilated names are refused") {
  for (const char* bad : {"", "_Z", "saxpy", "_ZN", "_ZN1a", "_Z9a", "_Z1kIS_", "_Z1kIS9_E", "_ZS_",
                          "_Z1kI", "_Z1kIPE", "_Z1kIA4fE", "_Z1kIFE", "_Z99999999999999999999a",
                          "_Z1kIT_E", "_Z1kIDpfE", "_Z1kIU3foofE", "_ZNE", "_Z1kIXadL_Z1fvEEE"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(demangle_name(bad), InvalidArgument);
  }
  std::string deep = "_Z1kI";
  deep.append(100000, 'P');
  CHECK(contains(thrown_by<InvalidArgument>([&] { demangle_name(deep + "fE"); }).what(),
                 "nested too deeply"));
}

TEST_CASE("mangled types: substitutions that double are stopped by size") {
  // Each Pack holds the one before twice: 2^30 names when written out.
  std::string name = "_Z1kI1AIiiE";
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (int i = 0; i < 30; ++i) {
    const std::string previous = std::string("S") + digits[static_cast<std::size_t>(i + 1)] + "_";
    name += "S0_I" + previous + previous + "E";
  }
  CHECK_THROWS_AS(spell(*demangle_name(name + "E")), InvalidArgument);
}

TEST_CASE("mangled types: any change of a name is read or refused, never worse") {
  const std::string name =
      "_ZN17kernwright_probe_5probeINS_6layoutIJNS_9parameterIffJLy4ELy4ELy0EEEENS2_IPKfS5_"
      "JLy8ELy8E"
      "Ly4EEEENS2_IPFiiES8_JLy8ELy8ELy0EEEENS2_IPA4_fSB_JLy8ELy8ELy16EEEEEEEEEvv";
  std::mt19937 random(11);
  const std::string alphabet = "_ZNSIJELPKVFA0123456789abcdefixyDT";
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string changed = name;
    const auto edits = 1 + random() % 3;
    for (unsigned i = 0; i < edits; ++i) {
      changed[random() % changed.size()] = alphabet[random() % alphabet.size()];
    }
    if (random() % 4 == 0) changed.resize(random() % changed.size());
    try {
      spell(*demangle_name(changed));
      ++read;
    } catch (const InvalidArgument&) {}
  }
  CHECK(read > 0);
  CHECK(read < 20000);
}

TEST_CASE("mangled types: parameters of functions, template parameters replaced") {
  const auto list = [](const char* mangled) {
    std::string result;
    for (const TypeRef& type : demangle_function(mangled).parameters) {
      result += (result.empty() ? "" : ", ") + spell(*type);
    }
    return result;
  };
  CHECK(list("_Z1kv") == "");
  CHECK(list("_Z1kPfS_PKf") == "float*, float*, const float*");
  CHECK(list("_ZN1n1kEPNS_1SES1_") == "n::S*, n::S*");
  CHECK(list("_Z1fI1SEvPfT_PS2_PKS2_") == "float*, S, S*, const S*");
  CHECK(list("_ZN1n1fIfiEEvPT_S2_T0_") == "float*, float*, int");
  CHECK(list("_Z1fIfJidEEvT_DpT0_") == "float, int, double");
  CHECK(list("_Z1hPfUliE_") == "float*, (lambda)");
  for (const char* bad : {"_Z1k", "_Z1kT_", "_Z1fIfEv", "_Z1fIfEvT0_", "_Z1fIJidEEvDpPT_", "k",
                          "_Z1fIfEvDTplfp_fp_E"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(demangle_function(bad), InvalidArgument);
  }
}
