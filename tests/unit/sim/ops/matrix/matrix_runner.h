// Runs one matrix instruction on register images, for tests of mma and mma.sp.
#pragma once

#include "unit/sim/ops/matrix/matrix_reference.h"
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kernwright::sim {

/// Registers of a fragment as memory: [register][lane].
class Image {
 public:
  Image(int registers, int bits)
      : bits_(bits), words_(static_cast<std::size_t>(registers) * 32, 0) {}
  void put(int reg, int lane, int e, int element_bits, std::uint64_t value) {
    words_[static_cast<std::size_t>(reg * 32 + lane)] |= value << (e * element_bits);
  }
  std::uint64_t get(int reg, int lane) const {
    return words_[static_cast<std::size_t>(reg * 32 + lane)];
  }
  std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> out;
    for (const std::uint64_t word : words_)
      for (int b = 0; b < bits_ / 8; ++b) out.push_back(static_cast<std::uint8_t>(word >> (8 * b)));
    return out;
  }

 private:
  int bits_;
  std::vector<std::uint64_t> words_;
};

/// C's element as stored in a register of the sums.
inline std::uint64_t encode_sum(const std::string& type, double value) {
  if (type == "f32") return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (type == "f64") return std::bit_cast<std::uint64_t>(value);
  if (type == "f16") return encode_float(value, 5, 10);
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
}

/// The metadata of mma.sp, a word for each lane, and its selector.
struct Sparsity {
  std::vector<std::uint32_t> metadata;
  int selector = 0;
};

namespace matrix_runner {

inline std::string register_name(const std::string& type, int index) {
  const std::string prefix = type == "f32" ? "%f" : type == "f64" ? "%g" : "%r";
  return prefix + std::to_string(index);
}

/// f32, f64, or b32 for all else.
inline std::string register_type(const std::string& type) {
  return type == "f32" || type == "f64" ? type : "b32";
}

/// Loads `count` registers from [address], 32 lanes each, and names them as a vector operand.
inline std::string load_fragment(std::string& body, const std::string& type, int first, int count,
                                 const std::string& address) {
  const int bytes = type == "f64" ? 8 : 4;
  std::string list = "{";
  body += "mul.wide.u32 %d10, %r0, " + std::to_string(bytes) + "; add.s64 %d10, " + address +
          ", %d10;\n";
  for (int i = 0; i < count; ++i) {
    const std::string reg = register_name(type, first + i);
    body += "ld.global." + register_type(type) + " " + reg + ", [%d10+" +
            std::to_string(i * 32 * bytes) + "];\n";
    list += (i == 0 ? "" : ", ") + reg;
  }
  return list + "}";
}

}  // namespace matrix_runner

/// Runs `opcode` on registers of A, B and C, of which `registers` says the numbers; returns D's as
/// memory. `sums` is the type of C.
template <typename T>
std::vector<T> run_product(const std::string& opcode, int factor_bits, const std::string& sums,
                           const Image& a, const Image& b, const Image& c,
                           const std::array<int, 3>& registers,
                           const Sparsity* sparsity = nullptr) {
  using namespace matrix_runner;
  OpsRunner runner;
  const std::string factor = factor_bits == 64 ? "f64" : "b32";
  std::string body;
  for (int i = 0; i < 5; ++i)
    body += "ld.param.u64 %d" + std::to_string(i + 1) + ", [p" + std::to_string(i) + "];\n";
  const int first = factor == "f64" ? 0 : 1, first_sum = sums == "f64" ? 12 : 17;
  const auto list_a = load_fragment(body, factor, first, registers[0], "%d1");
  const auto list_b = load_fragment(body, factor, first + 8, registers[1], "%d2");
  const auto list_c = load_fragment(body, sums, first_sum, registers[2], "%d3");
  std::string more;
  if (sparsity != nullptr) {
    load_fragment(body, "b32", 30, 1, "%d5");
    more = ", %r30, " + std::to_string(sparsity->selector);
  }
  // D takes C's registers: the instruction must read all before it writes.
  body += opcode + " " + list_c + ", " + list_a + ", " + list_b + ", " + list_c + more + ";\n";
  const std::size_t size = sums == "f64" ? 8 : 4;
  body += "mul.wide.u32 %d10, %r0, " + std::to_string(size) + "; add.s64 %d10, %d4, %d10;\n";
  for (int i = 0; i < registers[2]; ++i)
    body += "st.global." + register_type(sums) + " [%d10+" +
            std::to_string(static_cast<std::size_t>(i) * 32 * size) + "], " +
            register_name(sums, first_sum + i) + ";\n";
  const auto count = static_cast<std::size_t>(registers[2]) * 32;
  const auto to = runner.allocate(count * size);
  const auto metadata =
      runner.upload(sparsity != nullptr ? sparsity->metadata : std::vector<std::uint32_t>(32));
  const auto report = runner.run(body, {runner.upload(a.bytes()), runner.upload(b.bytes()),
                                        runner.upload(c.bytes()), to, metadata});
  INFO(body);
  REQUIRE(report.message == "");
  return runner.download<T>(to, count);
}

}  // namespace kernwright::sim
