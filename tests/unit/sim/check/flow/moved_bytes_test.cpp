// The destination of bytes, compared with the instructions' results.
#include "sim/check/flow/moved_bytes.h"

#include "sim/ptx/parse/parser.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <string>

using namespace kernwright::sim;

namespace {

/// Registers as the window's are: %h b16, %r b32, %rd b64.
auto module_with(const std::string& body) {
  return ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n"
      ".reg .b16 %h<4>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n" +
      body + "\nret;\n}\n");
}

using Registers = std::map<std::string, std::uint64_t>;  ///< results by name

struct Case {
  std::string text;
  std::uint32_t operand;
  std::string source;  ///< the followed register
  std::function<Registers(std::uint64_t)> reference;
};

std::uint32_t number_of(const ptx::Function& function, const std::string& name) {
  for (std::uint32_t i = 0; i < function.registers.size(); ++i) {
    if (ptx::full_name(function.registers[i]) == name) return i;
  }
  FAIL("no register ", name);
  return 0;
}

/// Every byte of a window has to be the reference's byte of the source, with any value.
void check_case(const Case& one) {
  CAPTURE(one.text);
  const auto module = module_with(one.text);
  const ptx::Function& function = module->functions[0];
  const std::uint32_t source = number_of(function, one.source);
  const int bytes = ptx::bits(function.registers[source].type) / 8;
  const auto moved = move_bytes(function, function.body[0], one.operand, {source, 0, bytes, 8});
  REQUIRE(moved.has_value());
  for (const std::uint64_t value :
       std::array<std::uint64_t, 4>{0x0807060504030201, 0xf1e2d3c4b5a69788, 0, ~0ull}) {
    const Registers results = one.reference(value);
    std::array<bool, 8> is_there{};
    for (const ByteWindow& window : *moved) {
      const std::string name = ptx::full_name(function.registers[window.reg]);
      REQUIRE(results.contains(name));
      CHECK(window.count > 0);
      for (int i = 0; i < window.count; ++i) {
        const int from = window.byte - 8 + i;
        REQUIRE((from >= 0 && from < bytes));
        is_there[static_cast<std::size_t>(from)] = true;
        CHECK((results.at(name) >> 8 * (window.first + i) & 255) == (value >> 8 * from & 255));
      }
    }
    // Every byte with an influence on the result is in some window.
    for (int b = 0; b < bytes; ++b) {
      const std::uint64_t other = value ^ std::uint64_t{255} << 8 * b;
      CHECK(is_there[static_cast<std::size_t>(b)] == (one.reference(other) != results));
    }
  }
}

std::uint64_t low(std::uint64_t value, int bits) {
  return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

}  // namespace

TEST_CASE("moved bytes: copies, conversions and shifts") {
  const auto to = [](const char* name, int bits, auto f) {
    return [=](std::uint64_t x) { return Registers{{name, low(f(x), bits)}}; };
  };
  const auto same = [](std::uint64_t x) { return x; };
  check_case({"mov.b32 %r1, %r0;", 1, "%r0", to("%r1", 32, same)});
  check_case({"mov.b64 %rd1, %rd0;", 1, "%rd0", to("%rd1", 64, same)});
  check_case({"cvt.u16.u32 %h1, %r0;", 1, "%r0", to("%h1", 16, same)});
  check_case({"cvt.u32.u16 %r1, %h0;", 1, "%h0", to("%r1", 16, same)});
  check_case({"cvt.u64.u32 %rd1, %r0;", 1, "%r0", to("%rd1", 32, same)});
  check_case({"cvt.u32.u8 %r1, %r0;", 1, "%r0", to("%r1", 8, same)});
  check_case({"cvt.s16.s32 %h1, %r0;", 1, "%r0", to("%h1", 16, same)});
  for (const int by : {0, 8, 16, 24, 32}) {
    const auto right = [=](std::uint64_t x) { return by == 32 ? 0 : low(x, 32) >> by; };
    const auto left = [=](std::uint64_t x) { return x << by; };
    check_case({"shr.u32 %r1, %r0, " + std::to_string(by) + ";", 1, "%r0", to("%r1", 32, right)});
    check_case({"shl.b32 %r1, %r0, " + std::to_string(by) + ";", 1, "%r0", to("%r1", 32, left)});
    const auto far = [=](std::uint64_t x) { return x >> by; };
    check_case({"shr.b64 %rd1, %rd0, " + std::to_string(by) + ";", 1, "%rd0", to("%rd1", 64, far)});
  }
  const auto masked = [](std::uint64_t x) { return x & 0xff00ff; };
  check_case({"and.b32 %r1, %r0, 0xff00ff;", 1, "%r0", to("%r1", 32, masked)});
  check_case({"and.b32 %r1, 0xff00ff, %r0;", 2, "%r0", to("%r1", 32, masked)});
}

TEST_CASE("moved bytes: registers are packed, unpacked and permuted") {
  check_case({"mov.b32 {%h1, %h2}, %r0;", 1, "%r0", [](std::uint64_t x) {
                return Registers{{"%h1", x & 0xffff}, {"%h2", x >> 16 & 0xffff}};
              }});
  check_case({"mov.b64 {%r1, %r2}, %rd0;", 1, "%rd0", [](std::uint64_t x) {
                return Registers{{"%r1", x & 0xffffffff}, {"%r2", x >> 32}};
              }});
  check_case({"mov.b64 {_, %r2}, %rd0;", 1, "%rd0", [](std::uint64_t x) {
                return Registers{{"%r2", x >> 32}};
              }});
  check_case({"mov.b32 %r1, {%h0, %h1};", 1, "%h0", [](std::uint64_t x) {
                return Registers{{"%r1", x & 0xffff}};
              }});
  check_case({"mov.b64 %rd1, {%r1, %r0};", 1, "%r0", [](std::uint64_t x) {
                return Registers{{"%rd1", x << 32}};
              }});
  check_case({"mov.b64 %rd1, {%h0, %h1, %h0, %h2};", 1, "%h0", [](std::uint64_t x) {
                return Registers{{"%rd1", (x & 0xffff) | (x & 0xffff) << 32}};
              }});
  for (const std::uint64_t selector : {0x3210u, 0x0123u, 0x7610u, 0x5410u, 0x0000u, 0x4567u}) {
    const auto permuted = [=](std::uint64_t a, std::uint64_t b) {
      std::uint64_t result = 0;
      for (int i = 0; i < 4; ++i) {
        const std::uint64_t both = (a & 0xffffffff) | b << 32;
        result |= (both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
      }
      return Registers{{"%r2", result}};
    };
    const std::string number = std::to_string(selector);
    check_case({"prmt.b32 %r2, %r0, %r1, " + number + ";", 1, "%r0",
                [=](std::uint64_t x) { return permuted(x, 0); }});
    check_case({"prmt.b32 %r2, %r1, %r0, " + number + ";", 2, "%r0",
                [=](std::uint64_t x) { return permuted(0, x); }});
  }
}

TEST_CASE("moved bytes: fields of whole bytes") {
  check_case({"bfi.b32 %r2, %r0, %r1, 8, 16;", 1, "%r0", [](std::uint64_t x) {
                return Registers{{"%r2", (x & 0xffff) << 8}};
              }});
  check_case({"bfi.b32 %r2, %r1, %r0, 8, 16;", 2, "%r0", [](std::uint64_t x) {
                return Registers{{"%r2", x & 0xff0000ff}};
              }});
  check_case({"bfe.u32 %r2, %r0, 16, 8;", 1, "%r0", [](std::uint64_t x) {
                return Registers{{"%r2", x >> 16 & 255}};
              }});
  check_case({"bfe.u64 %rd2, %rd0, 24, 40;", 1, "%rd0", [](std::uint64_t x) {
                return Registers{{"%rd2", x >> 24}};
              }});
}

TEST_CASE("moved bytes: what computes with them") {
  const auto moves = [](const std::string& text, std::uint32_t operand, const char* source) {
    CAPTURE(text);
    const auto module = module_with(text);
    const ptx::Function& function = module->functions[0];
    const std::uint32_t number = number_of(function, source);
    const int bytes = ptx::bits(function.registers[number].type) / 8;
    return move_bytes(function, function.body[0], operand, {number, 0, bytes, 0}).has_value();
  };
  CHECK_FALSE(moves("add.s32 %r1, %r0, 1;", 1, "%r0"));
  CHECK_FALSE(moves("shr.u32 %r1, %r0, 4;", 1, "%r0"));
  CHECK_FALSE(moves("shr.u32 %r1, %r2, %r0;", 2, "%r0"));
  CHECK_FALSE(moves("shr.s32 %r1, %r0, 8;", 1, "%r0"));
  CHECK_FALSE(moves("shl.b32 %r1, %r0, %r2;", 1, "%r0"));
  CHECK_FALSE(moves("cvt.s32.s16 %r1, %h0;", 1, "%h0"));
  CHECK_FALSE(moves("cvt.rn.f32.u32 %r1, %r0;", 1, "%r0"));
  CHECK_FALSE(moves("cvt.sat.u8.u32 %r1, %r0;", 1, "%r0"));
  CHECK_FALSE(moves("prmt.b32 %r1, %r2, %r3, %r0;", 3, "%r0"));
  CHECK_FALSE(moves("prmt.b32 %r1, %r0, %r2, 0x8210;", 1, "%r0"));
  CHECK_FALSE(moves("prmt.b32.f4e %r1, %r0, %r2, 1;", 1, "%r0"));
  CHECK_FALSE(moves("bfe.s32 %r1, %r0, 8, 8;", 1, "%r0"));
  CHECK_FALSE(moves("bfe.u32 %r1, %r0, 4, 8;", 1, "%r0"));
  CHECK_FALSE(moves("bfi.b32 %r1, %r0, %r2, 4, 8;", 1, "%r0"));
  // Setting other bits leaves those of the source in place.
  CHECK(moves("or.b32 %r1, %r0, %r2;", 1, "%r0"));
  CHECK(moves("and.b32 %r1, %r0, %r2;", 1, "%r0"));
  CHECK(moves("bfi.b32 %r1, %r2, %r0, 4, 8;", 2, "%r0"));
}
