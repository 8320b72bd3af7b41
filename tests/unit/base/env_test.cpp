// The table of environment variables and the reading of their values.
#include "base/env.h"

#include "base/errors.h"
#include "unit/base/environment_guard.h"

#include <doctest/doctest.h>

#include <algorithm>

#include <set>

using namespace kernwright;
using test::EnvironmentGuard;

namespace {

using Words = std::vector<std::string>;

std::string message_of(void (*call)()) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("environment: every row has a name of its own, a meaning and a valid default") {
  std::set<std::string> names;
  for (const EnvVariable& row : env_table()) {
    CAPTURE(row.name);
    CHECK(std::string(row.name).rfind("KERNWRIGHT_", 0) == 0);
    CHECK(names.insert(row.name).second);
    CHECK(std::string(row.meaning).size() > 10);
    const EnvironmentGuard guard(row.name, nullptr);
    CHECK_FALSE(env_is_set(row.id));
    CHECK(env_text(row.id) == row.default_value);
    switch (row.kind) {
      case EnvKind::text:
      case EnvKind::path:
        break;
      case EnvKind::choice:
        CHECK_NOTHROW(env_choice(row.id));
        break;
      case EnvKind::list:
        CHECK_NOTHROW(env_list(row.id));
        break;
      case EnvKind::integer:
      case EnvKind::bytes:
        CHECK_NOTHROW(env_number(row.id));
        break;
    }
  }
}

TEST_CASE("environment: an empty variable counts as unset") {
  const EnvironmentGuard guard("KERNWRIGHT_SIM_DEVICES", "");
  CHECK_FALSE(env_is_set(Env::sim_devices));
  CHECK(env_number(Env::sim_devices) == 1);
}

TEST_CASE("environment: numbers are whole, in range and read to their end") {
  const EnvironmentGuard guard("KERNWRIGHT_SIM_DEVICES", "8");
  CHECK(env_number(Env::sim_devices) == 8);
  for (const char* wrong : {"0", "65", "-1", "+1", "1x", "1K", " 1", "1 ", "0x2", "1.0", "many",
                            "99999999999999999999999"}) {
    CAPTURE(wrong);
    guard.set(wrong);
    CHECK_THROWS_AS(env_number(Env::sim_devices), InvalidArgument);
  }
  guard.set("many");
  const std::string message = message_of([] { env_number(Env::sim_devices); });
  CHECK(message.find("KERNWRIGHT_SIM_DEVICES=many") != std::string::npos);
  CHECK(message.find("from 1 to 64") != std::string::npos);
}

TEST_CASE("environment: bytes take a power of 1024") {
  const EnvironmentGuard guard("KERNWRIGHT_SIM_MEMORY", "3G");
  CHECK(env_number(Env::sim_memory) == (std::uint64_t{3} << 30));
  guard.set("2048k");
  CHECK(env_number(Env::sim_memory) == (std::uint64_t{2} << 20));
  guard.set("1073741824");
  CHECK(env_number(Env::sim_memory) == (std::uint64_t{1} << 30));
  for (const char* wrong : {"1P", "GG", "1GG", "2T", "512K", "99999999999999999T"}) {
    CAPTURE(wrong);
    guard.set(wrong);
    CHECK_THROWS_AS(env_number(Env::sim_memory), InvalidArgument);
  }
}

TEST_CASE("environment: choices are whole words of the table") {
  const EnvironmentGuard guard("KERNWRIGHT_SIM_ISA", "avx2");
  CHECK(env_choice(Env::sim_isa) == "avx2");
  for (const char* wrong : {"AVX2", "avx", "avx2|avx512", "|", "sse"}) {
    CAPTURE(wrong);
    guard.set(wrong);
    CHECK_THROWS_AS(env_choice(Env::sim_isa), InvalidArgument);
  }
}

TEST_CASE("environment: lists are split at commas and blanks, all means every word") {
  const EnvironmentGuard guard("KERNWRIGHT_CHECKS", nullptr);
  CHECK(env_list(Env::checks).empty());
  guard.set("race, sync");
  CHECK(env_list(Env::checks) == Words{"race", "sync"});
  guard.set(",,init,");
  CHECK(env_list(Env::checks) == Words{"init"});
  guard.set("all");
  CHECK(env_list(Env::checks) == Words{"memory", "init", "race", "sync", "streams"});
  guard.set("race,bounds");
  CHECK_THROWS_AS(env_list(Env::checks), InvalidArgument);
}

TEST_CASE("environment: reading a variable as another kind is an error") {
  CHECK_THROWS_AS(env_number(Env::log), InvalidArgument);
  CHECK_THROWS_AS(env_choice(Env::checks), InvalidArgument);
  CHECK_THROWS_AS(env_list(Env::sim_isa), InvalidArgument);
}

TEST_CASE("environment: unknown variables are told with the nearest that is known") {
  const EnvironmentGuard typo("KERNWRIGHT_SIM_THREAD", "4");
  const EnvironmentGuard stem("KERNWRIGT_DEVICE", "sim");
  const EnvironmentGuard lower("kernwright_cache", "off");
  const EnvironmentGuard far("KERNWRIGHT_ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ", "1");
  const EnvironmentGuard known("KERNWRIGHT_LOG", "warning");
  const EnvironmentGuard test("KERNWRIGHT_TEST_SOMETHING", "1");
  const EnvironmentGuard other("KERNEL_VERSION", "1");
  const Words found = describe_unknown_variables();
  const auto says = [&](const std::string& name, const std::string& advice) {
    return std::count_if(found.begin(), found.end(), [&](const std::string& text) {
             return text.find(" " + name + " ") != std::string::npos &&
                    text.find(advice) != std::string::npos;
           }) == 1;
  };
  CHECK(found.size() == 4);
  CHECK(says("KERNWRIGHT_SIM_THREAD", "did you mean KERNWRIGHT_SIM_THREADS?"));
  CHECK(says("KERNWRIGT_DEVICE", "did you mean KERNWRIGHT_DEVICE?"));
  CHECK(says("kernwright_cache", "did you mean KERNWRIGHT_CACHE?"));
  CHECK(says("KERNWRIGHT_ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZ", "there is: KERNWRIGHT_DEVICE, "));
}
