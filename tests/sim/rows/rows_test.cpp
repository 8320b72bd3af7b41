// Every opcode of the ISA table that computes on registers, against what an H200 computed.
#include "sim/rows/carry_chains.h"
#include "sim/rows/row_vectors.h"
#include "unit/sim/device/device_fixture.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

const RowVectors& vectors() {
  static const RowVectors instance = read_row_vectors(KW_SIM_TEST_DATA "/rows/row_vectors.txt");
  return instance;
}

/// The forms that this device has, with those of later ones left out.
std::map<std::string, std::vector<RowForm>> forms_of(int capability) {
  RowVectors without;
  for (const auto& [opcode, result] : vectors()) {
    if (result == kRefused || result == kUnrecorded) without[opcode] = result;
  }
  auto stems = forms_by_stem(without);
  for (auto& [stem, forms] : stems) {
    std::erase_if(forms, [&](const RowForm& form) { return form.row->min_sm > capability; });
  }
  std::erase_if(stems, [](const auto& item) { return item.second.empty(); });
  return stems;
}

/// Lines of chains, whose names alone have a plus.
std::size_t recorded_chains() {
  return static_cast<std::size_t>(
      std::count_if(vectors().begin(), vectors().end(),
                    [](const auto& line) { return line.first.find('+') != std::string::npos; }));
}

int capability_of(const DriverApi& api) {
  int major = 0, minor = 0;
  api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  return major * 10 + minor;
}

std::vector<std::uint64_t> words_of(std::string_view line) {
  std::vector<std::uint64_t> words;
  for (line.remove_prefix(1); line.size() >= 16; line.remove_prefix(16)) {
    words.emplace_back();
    std::from_chars(line.data(), line.data() + 16, words.back(), 16);
  }
  return words;
}

double half_value(std::uint64_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = static_cast<double>(bits & 1023);
  const double sign = (bits >> 15 & 1) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

/// The numbers in one result word, by the last part of the opcode.
std::vector<double> values(const std::string& opcode, std::uint64_t word) {
  const std::string type = opcode.substr(opcode.rfind('.') + 1);
  const auto low = static_cast<std::uint32_t>(word);
  if (type == "f64") return {std::bit_cast<double>(word)};
  if (type == "f32") return {std::bit_cast<float>(low)};
  if (type == "f16") return {half_value(low & 0xffff)};
  if (type == "f16x2") return {half_value(low & 0xffff), half_value(low >> 16)};
  if (type == "bf16") return {std::bit_cast<float>(low << 16)};
  REQUIRE(type == "bf16x2");
  return {std::bit_cast<float>(low << 16), std::bit_cast<float>(low & 0xffff0000)};
}

struct Bound {
  double relative, absolute;
};

/// Twice the manual's largest error of each instruction of `x`: the GPU may be on the other side.
Bound bound_of(const RowForm& form, std::uint64_t x) {
  const std::string_view stem = form.row->stem;
  if (form.opcode.ends_with("bf16") || form.opcode.ends_with("bf16x2")) return {0x1p-6, 0x1p-132};
  if (form.opcode.ends_with("f16") || form.opcode.ends_with("f16x2")) return {0x1p-8, 0x1p-23};
  if (form.opcode.ends_with("f64")) return {0x1p-19, 0};  // the upper word alone is computed
  if (stem == "sin" || stem == "cos") {  // and two units in the last place of x in turns
    const double size = std::abs(std::bit_cast<float>(static_cast<std::uint32_t>(x)));
    return {0x1p-19, 0x1p-19 + (std::isfinite(size) ? size * 0x1p-22 : 0)};
  }
  if (stem == "tanh") return {0x1p-10, 0};
  if (stem == "lg2") return {0x1p-21, 0x1p-21};
  return {0x1p-21, 0x1p-148};
}

bool is_close(double gpu, double sim, Bound bound) {
  if (std::isnan(gpu) || std::isnan(sim)) return std::isnan(gpu) == std::isnan(sim);
  if (std::isinf(gpu) || std::isinf(sim)) return gpu == sim;
  if (gpu == 0 && sim == 0) return std::signbit(gpu) == std::signbit(sim);
  return std::abs(gpu - sim) <= bound.absolute + bound.relative * std::abs(gpu);
}

}  // namespace

TEST_CASE("rows: every opcode of the table has its line, and no other") {
  const std::vector<RowForm> forms = row_forms();
  CHECK(forms.size() + recorded_chains() == vectors().size());
  for (const RowForm& form : forms) {
    CHECK_MESSAGE(vectors().contains(form.opcode), form.opcode);
  }
}

TEST_CASE("rows: what the simulated device computes is what an H200 computed") {
  CurrentDevice device;
  const int capability = capability_of(device.api);
  std::size_t equal = 0;
  for (const auto& entry : forms_of(capability)) {
    const auto& stem = entry.first;  // clang 14 captures no names of a structured binding
    const auto& forms = entry.second;
    const std::string ptx = RowProgram(forms).ptx(capability >= 90 ? "sm_90" : "sm_80");
    std::vector<std::string> lines;
    INFO("stem ", stem);
    REQUIRE_NOTHROW(lines = run_rows(device.api, ptx.c_str(), forms));
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const std::string& expected = vectors().at(forms[i].opcode);
      if (forms[i].is_approximate()) {
        const auto gpu = words_of(expected), sim = words_of(lines[i]);
        REQUIRE(gpu.size() == kApproximations);
        const std::vector<std::uint64_t> input = RowProgram::input();
        for (unsigned thread = 0; thread < kApproximations; ++thread) {
          const auto theirs = values(forms[i].opcode, gpu[thread]);
          const auto ours = values(forms[i].opcode, sim[thread]);
          for (std::size_t part = 0; part < theirs.size(); ++part) {
            INFO(forms[i].opcode, " of ", input[thread * 4], " and ", input[thread * 4 + 1],
                 ": the GPU ", theirs[part], ", simulated ", ours[part]);
            CHECK(is_close(theirs[part], ours[part], bound_of(forms[i], input[thread * 4])));
          }
        }
        continue;
      }
      if (expected.front() == kDiffers) {
        CHECK_MESSAGE(lines[i] == expected.substr(expected.find(' ') + 1), forms[i].opcode);
        continue;
      }
      CHECK_MESSAGE(lines[i] == expected, forms[i].opcode);
      ++equal;
    }
  }
  CHECK(equal > 4000);
}

TEST_CASE(
    "rows: chains of carries and borrows are the arithmetic of wide numbers, and what a GPU "
    "computed") {
  CurrentDevice device;
  const std::vector<CarryChain> chains = carry_chains();
  const std::string target = capability_of(device.api) >= 90 ? "sm_90" : "sm_80";
  std::vector<std::vector<std::uint64_t>> words;
  REQUIRE_NOTHROW(words = run_chains(device.api, ChainProgram(chains).ptx(target).c_str(), chains));
  REQUIRE(words.size() == chains.size());
  std::size_t recorded = 0;
  for (std::size_t i = 0; i < chains.size(); ++i) {
    INFO(chains[i].name());
    CHECK(words[i] == expected_words(chains[i]));
    const auto found = vectors().find(chains[i].name());
    if (found == vectors().end()) continue;
    ++recorded;
    const std::string& line = found->second;
    const std::string expected = line.front() == kDiffers ? line.substr(line.find(' ') + 1) : line;
    CHECK(chain_line(words[i]) == expected);
  }
  // All or none: what a GPU computed is recorded at once.
  CHECK(recorded == recorded_chains());
  CHECK((recorded == 0 || recorded == chains.size()));
}
