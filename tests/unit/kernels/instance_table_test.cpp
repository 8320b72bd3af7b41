// Kernels by key: growth, equal hashes, threads that look while others add.
#include "kernels_src/instance_table.h"

#include "jit/program.h"

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

using namespace kernwright;
using kernels::InstanceTable;

namespace {

std::unique_ptr<LazyKernel> kernel_named(const std::string& name) {
  static const auto& program = *new Program(
      {.text = "template <int n> __global__ void k() {}", .name = "k.cu", .directory = {}});
  return std::make_unique<LazyKernel>(program, name, std::vector<std::string>());
}

}  // namespace

TEST_CASE("an instance table keeps every kernel where it was while it grows") {
  InstanceTable table;
  std::map<std::uint64_t, const LazyKernel*> expected;
  // Multiples of 2^60 share their upper bits after the hash; 0 is a key like any other.
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::uint64_t key = i < 16 ? i << 60 : i * 0x1000193;
    CHECK(table.find(key) == nullptr);
    const std::string name = "k<" + std::to_string(i) + ">";
    const LazyKernel& added = table.add(key, kernel_named(name));
    CHECK(added.name() == name);
    expected[key] = &added;
    for (const auto& [known, kernel] : expected) REQUIRE(table.find(known) == kernel);
  }
  CHECK(table.find(0xFFFF'FFFF'FFFF'FFFF) == nullptr);
}

TEST_CASE("the first kernel of a key stays") {
  InstanceTable table;
  const LazyKernel& first = table.add(7, kernel_named("k<1>"));
  CHECK(&table.add(7, kernel_named("k<2>")) == &first);
  CHECK(table.find(7)->name() == "k<1>");
}

TEST_CASE("threads find in an instance table what others add") {
  InstanceTable table;
  constexpr std::uint64_t kKeys = 200;
  std::atomic<std::uint64_t> added = 0;
  std::atomic<int> wrong = 0;
  const auto look = [&] {
    for (std::uint64_t known = 0; known < kKeys; known = added.load()) {
      for (std::uint64_t key = 0; key < known; ++key) {
        const LazyKernel* const kernel = table.find(key);
        if (kernel == nullptr || kernel->name() != "k<" + std::to_string(key) + ">") ++wrong;
      }
    }
  };
  std::thread first(look), second(look);
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    table.add(key, kernel_named("k<" + std::to_string(key) + ">"));
    added.store(key + 1);
  }
  first.join();
  second.join();
  CHECK(wrong.load() == 0);
}
