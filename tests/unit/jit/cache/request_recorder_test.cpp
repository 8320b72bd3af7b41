// The file of compile requests: written by many processes, read back as items of a pack.
#include "jit/cache/request_recorder.h"

#include <doctest/doctest.h>

#include "base/errors.h"
#include "unit/base/child_process.h"
#include "unit/base/environment_guard.h"
#include "unit/jit/cache/code_cache_fixture.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

const std::string kFill = "template <class T> __global__ void fill(T* x, T a) { *x = a; }\n";

}  // namespace

TEST_CASE("record: requests of several processes become the items of a pack") {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "requests.jsonl";
  const test::EnvironmentGuard guard("KERNWRIGHT_RECORD", path.c_str());
  std::vector<pid_t> children;
  for (int process = 0; process < 8; ++process) {
    children.push_back(test::start_child([&] {
      for (int i = 0; i < 20; ++i) {
        OwnedRequest request(kFill + std::string(5000, '/') + std::to_string(i % 10));
        request.options.defines = {{"A\"B", "\xff\n"}};
        request.options.max_registers = 32;
        CodeRequest wanted = request.get();
        wanted.names = {"fill<float>"};
        record_request(wanted);
      }
      return 0;
    }));
  }
  for (const pid_t child : children) CHECK(test::wait_for(child) == 0);
  const std::string lines = test::read_text(path);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 80);
  CHECK_THROWS_AS(read_record(path), Error);  // such a define is refused, with its line
  std::filesystem::remove(path);
  OwnedRequest request(kFill);
  request.options.defines = {{"A", "\"quoted\""}};
  request.options.max_registers = 32;
  request.options.opt_level = 2;
  request.options.std = "c++20";
  request.refresh();
  CodeRequest wanted = request.get();
  wanted.names = {"fill<float>"};
  record_request(wanted);
  record_request(wanted);
  wanted.target.arch = "sm_80";
  record_request(wanted);
  const auto items = read_record(path);
  REQUIRE(items.size() == 1);
  CHECK(items[0].source.text == kFill);
  CHECK(items[0].names == std::vector<std::string>{"fill<float>"});
  CHECK(items[0].options.defines.at("A") == "\"quoted\"");
  CHECK(items[0].options.max_registers == 32);
  CHECK(items[0].options.opt_level == 2);
  CHECK(program_fields(items[0].source, items[0].options).text == request.fields.text);
  CHECK(items[0].with_members);
  wanted.with_members = false;
  record_request(wanted);
  REQUIRE(read_record(path).size() == 2);
  CHECK_FALSE(read_record(path)[1].with_members);
}

TEST_CASE("record: lines that are no requests are named") {
  const test::TemporaryDirectory folder;
  for (const char* line : {"{", "[]", "{\"source\": 3}", "{\"source\": \"\"}",
                           "{\"source\": \"x\", \"options\": {\"pch\": 7}}",
                           "{\"source\": \"x\", \"options\": {\"std\": \"c++99\"}}"}) {
    test::write_text(folder / "r", std::string("\n") + line + "\n");
    const std::string said = thrown_by<Error>([&] { read_record(folder / "r"); }).what();
    CHECK(contains(said, (folder / "r") + ":2"));
  }
  CHECK_THROWS_AS(read_record(folder / "none"), Error);
}

TEST_CASE("record: what a program asks for is written down") {
  const test::TemporaryDirectory folder;
  const std::string path = folder / "requests.jsonl";
  const test::EnvironmentGuard guard("KERNWRIGHT_RECORD", path.c_str());
  CodeCacheFolder cache;
  const OwnedRequest request(kKernel);
  const auto open = cache.open();
  open->get(request.get());
  open->get(request.get());
  CHECK(read_record(path).size() == 1);
  CHECK(read_record(path)[0].source.text == kKernel);
}
