// Numbers of plans by table, and how often a family's kernels are compiled.
#include "kernels_src/launch_choices.h"

#include "base/errors.h"
#include "base/format.h"
#include "jit/compile/compile_trace.h"
#include "jit/compile_only.h"
#include "kernels_src/family.h"
#include "kernels_src/products/kernel_choices.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

int values_of(std::int64_t extent, std::size_t element) {
  return choose(LaunchChoice::softmax_values, test::device(), extent, element, 7);
}

/// Constants make variables in the code, as those of the library's headers do.
const std::string kTwoKernels = R"(#include <kernwright/elements.cuh>
using namespace kernwright;
constexpr int kSome = 3;
template <int N> __global__ void first(int* x) { *x = N * kSome; }
template <int N> __global__ void second(int* x) { *x += N; }
)";

/// A text in no cache.
std::string new_text() {
  return kTwoKernels +
         format("// {}\n", std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace

TEST_CASE("launch choices: a table names the device or its architecture, and classes of shapes") {
  const std::string arch = format("sm_{}", test::device().compute_capability().number());
  const std::string mine = R"({"softmax.values": {"short/4": 8}})";
  const std::string others =
      R"({"softmax.values": {"short/4": 4, "long/2": 4, "middle/8": 5}, "no.such": {"a": 1}})";
  use_launch_table(format(R"({{"format": 1, "devices": {{"{}": {}, "{}": {}}}}})",
                          test::device().name(), mine, arch, others));
  CHECK(values_of(1, 4) == 8);
  CHECK(values_of(1024, 4) == 8);
  CHECK(values_of(1025, 4) == 7);
  CHECK(values_of(8193, 2) == 4);
  CHECK(values_of(8192, 2) == 7);
  CHECK(values_of(5000, 8) == 7);  // 5 is no candidate
  CHECK_THROWS_AS(use_launch_table("{}"), InvalidArgument);
  CHECK(values_of(1, 4) == 8);
  use_launch_table(R"({"format": 1, "devices": {}})");
  CHECK(values_of(1, 4) == 7);
  use_launch_table(std::nullopt);
}

TEST_CASE("launch choices: a thread that measures takes a candidate, and no other thread does") {
  const LaunchCandidate sixteen{LaunchChoice::softmax_values, 16}, three{sixteen.choice, 3};
  CHECK_THROWS_WITH_AS(pin_launches({&three, 1}), "3 is no candidate of softmax.values",
                       InvalidArgument);
  const int before = values_of(1, 4), other = 7;
  const auto pinned = pin_launches({&sixteen, 1});
  CHECK(values_of(1, 4) == before);
  set_pinned_launches(pinned.get());
  CHECK(values_of(1, 4) == 16);
  CHECK(values_of(8192, 2) == 16);
  CHECK(choose(LaunchChoice::norm_values, test::device(), 1, 4, other) != 16);
  int elsewhere = 0;
  std::thread([&] { elsewhere = values_of(1, 4); }).join();
  CHECK(elsewhere == before);
  set_pinned_launches(nullptr);
  CHECK(values_of(1, 4) == before);
}

TEST_CASE("launch choices: candidates rise and names are unique") {
  std::vector<std::string> names;
  for (const LaunchChoiceInfo& info : launch_choices()) {
    names.push_back(format("{}.{}", info.family, info.name));
    CHECK(std::is_sorted(info.candidates.begin(), info.candidates.end()));
    CHECK(info.candidates.size() > 1);
    CHECK(info.candidates.front() > 0);
  }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK(shape_class(ChoiceMeasure::whole, (1 << 20) + 1, 16) == "middle/16");
}

TEST_CASE("families: one compile makes the kernels of a call, and constants cost no second one") {
  const Family family("two.cu", new_text());
  const auto both = [] { return std::vector<std::string>{"first<1>", "second<2>"}; };
  const LazyKernel& first = family.instance(InstanceKey().add(1, 3), both);
  first.on(test::device());
  const auto code = family.program().object_code(test::device(), "first<1>");
  REQUIRE(code->trace);
  CHECK(code->trace->attempts == 1);
  CHECK(code->kernels.size() == 2);
  const auto name_of_second = [] { return std::string("second<2>"); };
  const LazyKernel& second = family.instance(InstanceKey().add(2, 3), name_of_second);
  second.on(test::device());
  CHECK(second.object_code(test::device()) == code);
  const auto name_of_other = [] { return std::string("second<3>"); };
  const LazyKernel& other = family.instance(InstanceKey().add(3, 3), name_of_other);
  CHECK(other.object_code(test::device()) != code);
}

TEST_CASE("families: a key refuses a value that would share its number with another") {
  CHECK(InstanceKey().add(7, 3).add(true, 1) == 15);
  CHECK_THROWS_WITH_AS(InstanceKey().add(8, 3),
                       "a kernel's key has no place for 8 in 3 bits: 3 of 64 bits are used",
                       std::logic_error);
  CHECK_THROWS_AS(InstanceKey().add(-1, 3), std::logic_error);
  CHECK_THROWS_AS(InstanceKey().add(0, 60).add(0, 5), std::logic_error);
  CHECK(InstanceKey().add(0, 60).add(9, 4) == 9);
}

TEST_CASE("families: what is compiled only is not launched") {
  const Family family("only.cu", new_text());
  const auto name_of_kernel = [] { return std::string("first<5>"); };
  const LazyKernel& kernel = family.instance(InstanceKey().add(1, 3), name_of_kernel);
  const std::int32_t zero = 0;
  const Array x = Array::from_host(test::device(), &zero, {1}, ScalarType::int32);
  const LaunchConfig config{.grid = {1}, .block = {1}, .stream = Stream::legacy(test::device())};
  std::int32_t seen = -1;
  {
    CompileOnly scope;
    launch(kernel.on(test::device()), config, x.address());
    scope.finish();
  }
  x.to_host(&seen);
  CHECK(seen == 0);
  launch(kernel.on(test::device()), config, x.address());
  x.to_host(&seen);
  CHECK(seen == 15);
}
