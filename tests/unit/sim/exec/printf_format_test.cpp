// CUDA's printf rules on packed argument buffers.
#include "sim/exec/printf_format.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

namespace kernwright::sim {
namespace {

/// Packs arguments at their natural alignment, as nvcc does.
class Arguments {
 public:
  template <typename T>
  Arguments& add(T value) {
    while (bytes_.size() % sizeof(T) != 0) bytes_.push_back(0xee);
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  std::optional<std::uint64_t> read(std::uint64_t offset, std::uint32_t bytes) const {
    if (offset + bytes > bytes_.size()) return std::nullopt;
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + offset, bytes);
    return value;
  }

 private:
  std::vector<unsigned char> bytes_;
};

std::optional<PrintfResult> run(const std::string& format, const Arguments& arguments) {
  return format_printf(
      format,
      [&](std::uint64_t offset, std::uint32_t bytes) { return arguments.read(offset, bytes); },
      [](std::uint64_t address, std::size_t limit) -> std::optional<std::string> {
        if (address == 1) return std::nullopt;
        return std::string("text at ") + std::to_string(address).substr(0, limit);
      });
}

std::string text(const std::string& format, const Arguments& arguments = {}) {
  const auto result = run(format, arguments);
  REQUIRE(result.has_value());
  return result->text;
}

TEST_CASE("printf: plain text, percent signs, an empty format") {
  CHECK(text("") == "");
  CHECK(text("no arguments\n") == "no arguments\n");
  CHECK(text("100%%|%%d") == "100%|%d");
}

TEST_CASE("printf: integers with flags, width, precision and size") {
  CHECK(text("%d|%i|%5d|%-5d|%05d|%+d|% d",
             Arguments().add(-7).add(7).add(42).add(42).add(42).add(42).add(42)) ==
        "-7|7|   42|42   |00042|+42| 42");
  CHECK(text("%u %x %X %o %#x %.4d",
             Arguments().add(4000000000u).add(255u).add(255u).add(8u).add(255u).add(7)) ==
        "4000000000 ff FF 10 0xff 0007");
  CHECK(text("%hd %hhd %hu %hhu", Arguments().add(70000).add(300).add(70000).add(300)) ==
        "4464 44 4464 44");
  CHECK(text("%hhd", Arguments().add(200)) == "-56");
}

TEST_CASE("printf: 64-bit arguments stand at multiples of 8") {
  CHECK(
      text("%d %ld %lld %lu %llx", Arguments().add(1).add(-2ll).add(-3ll).add(~0ull).add(~0ull)) ==
      "1 -2 -3 18446744073709551615 ffffffffffffffff");
  CHECK(text("%d %f %d %zu", Arguments().add(1).add(2.5).add(3).add(4ull)) == "1 2.500000 3 4");
}

TEST_CASE("printf: floating point") {
  CHECK(text("%f %.2f %e %g %G %a",
             Arguments().add(1.5).add(2.345).add(12345.678).add(1e-10).add(1e10).add(1.0)) ==
        "1.500000 2.35 1.234568e+04 1e-10 1E+10 0x1p+0");
  CHECK(text("%8.3f|%-8.1f|%+.0f", Arguments().add(3.14159).add(2.0).add(-0.4)) ==
        "   3.142|2.0     |-0");
  CHECK(text("%f %f", Arguments()
                          .add(std::bit_cast<double>(0x7ff0000000000000ull))
                          .add(std::bit_cast<double>(0x7ff8000000000000ull))) == "inf nan");
}

TEST_CASE("printf: stars take int arguments, a negative width means left") {
  CHECK(text("%*d|%-*d|%.*f", Arguments().add(5).add(42).add(5).add(42).add(2).add(3.14159)) ==
        "   42|42   |3.14");
  CHECK(text("%*d|", Arguments().add(-5).add(42)) == "42   |");
  CHECK(text("%.*d|", Arguments().add(-1).add(42)) == "42|");
}

TEST_CASE("printf: characters, strings and pointers") {
  CHECK(text("%c%c", Arguments().add(65).add(66)) == "AB");
  CHECK(text("[%s]", Arguments().add(77ull)) == "[text at 77]");
  CHECK(text("[%14s]", Arguments().add(77ull)) == "[    text at 77]");
  CHECK(text("[%s]", Arguments().add(0ull)) == "[(null)]");
  CHECK(text("%p", Arguments().add(0x1234ull)) == "0x1234");
}

TEST_CASE("printf: an unknown conversion is printed as written and takes nothing") {
  CHECK(text("%y %d", Arguments().add(3)) == "%y 3");
  CHECK(text("%n %d", Arguments().add(3)) == "%n 3");
  CHECK(text("ends with %") == "ends with %");
  CHECK(text("ends with %5") == "ends with %5");
}

TEST_CASE("printf: counts its arguments and stops where a buffer cannot be read") {
  CHECK(run("%d %s %*d", Arguments().add(1).add(5ull).add(2).add(3))->arguments == 4);
  CHECK(run("nothing", {})->arguments == 0);
  CHECK_FALSE(run("%d %d", Arguments().add(1)).has_value());
  CHECK_FALSE(run("%s", Arguments().add(1ull)).has_value());
}

TEST_CASE("printf: absurd widths are cut to the size of a GPU's buffer") {
  CHECK(text("%99999999999d", Arguments().add(1)).size() == 1 << 20);
}

}  // namespace
}  // namespace kernwright::sim
