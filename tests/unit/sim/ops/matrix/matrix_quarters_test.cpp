// mma.sync.m8n8k4 of f16: four products of quarters of the warp, in every layout and type.
#include "unit/sim/ops/matrix/matrix_reference.h"
#include "unit/sim/ops/memory/memory_ops_runner.h"

#include <cstdint>
#include <string>

namespace kernwright::sim {
namespace {

using Bits = std::vector<std::uint32_t>;  // [register][lane]

constexpr int kLanesOfWarp = 32;

double value_of_a(int quarter, int row, int k) { return (quarter * 5 + row * 3 + k * 7) % 13 - 6; }
double value_of_b(int quarter, int k, int column) {
  return (quarter * 3 + k * 5 + column * 11) % 15 - 7;
}
double value_of_c(int quarter, int row, int column) { return quarter + row * 8 - column; }

void put_half(Bits& image, int lane, int e, double value) {
  image[static_cast<std::size_t>(e / 2 * kLanesOfWarp + lane)] |= encode_float(value, 5, 10)
                                                                  << (16 * (e % 2));
}

/// The manual's tables. `upper`: the lane is 16 or higher.
MatrixPlace place_of_sum(bool wide, int lane, int i) {
  const int upper = lane >= 16 ? 4 : 0;
  if (!wide) return {lane % 4 + upper, i};
  return {(lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)};
}

void put_sum(Bits& image, bool wide, int lane, int i, double value) {
  if (!wide) return put_half(image, lane, i, value);
  image[static_cast<std::size_t>(i * kLanesOfWarp + lane)] =
      std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

struct Form {
  std::string a, b, d, c;
};

std::string registers(const std::string& prefix, int first, int count) {
  std::string list = "{";
  for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ", ") + prefix + std::to_string(first + i);
  return list + "}";
}

Bits run(const Form& form, const Bits& a, const Bits& b, const Bits& c, int sums) {
  std::string body =
      "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d3, [p2];\n"
      "ld.param.u64 %d4, [p3]; mul.wide.u32 %d10, %r0, 4;\n";
  for (int i = 1; i <= 4; ++i)
    body += "add.s64 %d" + std::to_string(i) + ", %d" + std::to_string(i) + ", %d10;\n";
  const auto load = [&](const std::string& reg, int index, int count, const std::string& from) {
    for (int i = 0; i < count; ++i)
      body += "ld.global.b32 " + reg + std::to_string(index + i) + ", [" + from + "+" +
              std::to_string(i * 128) + "];\n";
  };
  const int in_c = static_cast<int>(c.size()) / kLanesOfWarp;
  const std::string c_name = form.c == "f32" ? "%f" : "%r", d_name = form.d == "f32" ? "%f" : "%r";
  load("%r", 1, 2, "%d1");
  load("%r", 3, 2, "%d2");
  load(c_name, 8, in_c, "%d3");
  body += "mma.sync.aligned.m8n8k4." + form.a + "." + form.b + "." + form.d + ".f16.f16." + form.c +
          " " + registers(d_name, 8, sums) + ", {%r1, %r2}, {%r3, %r4}, " +
          registers(c_name, 8, in_c) + ";\n";
  for (int i = 0; i < sums; ++i)
    body += "st.global.b32 [%d4+" + std::to_string(i * 128) + "], " + d_name +
            std::to_string(8 + i) + ";\n";
  OpsRunner runner;
  const auto to = runner.allocate(static_cast<std::size_t>(sums) * 128);
  const auto report = runner.run(body, {runner.upload(a), runner.upload(b), runner.upload(c), to});
  INFO(body);
  REQUIRE(report.message == "");
  return runner.download<std::uint32_t>(to, static_cast<std::size_t>(sums) * kLanesOfWarp);
}

void check(const Form& form) {
  const bool wide_c = form.c == "f32", wide_d = form.d == "f32";
  const int sums = wide_d ? 8 : 4;
  Bits a(64), b(64), c((wide_c ? 8u : 4u) * 32), expected(static_cast<std::size_t>(sums) * 32);
  for (int lane = 0; lane < kLanesOfWarp; ++lane) {
    const int quarter = lane % 16 / 4, upper = lane >= 16 ? 4 : 0;
    for (int i = 0; i < 4; ++i) {
      const MatrixPlace in_a =
          form.a == "row" ? MatrixPlace{lane % 4 + upper, i} : MatrixPlace{i + upper, lane % 4};
      const MatrixPlace in_b =
          form.b == "row" ? MatrixPlace{lane % 4, i + upper} : MatrixPlace{i, lane % 4 + upper};
      put_half(a, lane, i, value_of_a(quarter, in_a.row, in_a.column));
      put_half(b, lane, i, value_of_b(quarter, in_b.row, in_b.column));
    }
    for (int i = 0; i < 8; ++i) {
      const MatrixPlace in_c = place_of_sum(wide_c, lane, i);
      put_sum(c, wide_c, lane, i, value_of_c(quarter, in_c.row, in_c.column));
      const MatrixPlace at = place_of_sum(wide_d, lane, i);
      double sum = value_of_c(quarter, at.row, at.column);
      for (int k = 0; k < 4; ++k)
        sum += value_of_a(quarter, at.row, k) * value_of_b(quarter, k, at.column);
      put_sum(expected, wide_d, lane, i, sum);
    }
  }
  INFO(form.a << " " << form.b << " " << form.d << " " << form.c);
  CHECK(run(form, a, b, c, sums) == expected);
}

TEST_CASE("mma: m8n8k4 of f16 multiplies in quarters of the warp") {
  for (const std::string a : {"row", "col"})
    for (const std::string b : {"row", "col"}) {
      check({a, b, "f16", "f16"});
      check({a, b, "f32", "f16"});
      check({a, b, "f32", "f32"});
    }
}

}  // namespace
}  // namespace kernwright::sim
