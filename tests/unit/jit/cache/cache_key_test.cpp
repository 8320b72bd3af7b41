// Every field that decides a result decides the key, and nothing else does.
#include "jit/cache/cache_key.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

/// All inputs of a key.
struct Request {
  Source source;
  ProgramOptions options;
  CompileSelection selection{{CodeKind::ptx, "sm_80", "compute_80"}, {}, true, false};
  CompilerIdentity compiler;
  std::vector<std::string> toolkits;

  CacheKey key() const {
    return cache_key(program_fields(source, options), selection, compiler, toolkits);
  }
  CacheKey packed() const { return pack_key(program_fields(source, options), selection); }
};

Request request() {
  Request r;
  r.source.text = "__global__ void k() {}";
  r.compiler.major = 13;
  r.compiler.minor = 5;
  return r;
}

using Change = std::function<void(Request&)>;

/// The inputs that decide the code on any machine.
const std::vector<Change>& changes_of_code() {
  static const std::vector<Change> changes{
      [](Request&) {},
      [](Request& r) { r.source.text += " "; },
      [](Request& r) { r.source.text.assign(1000, 'x'); },
      [](Request& r) { r.source.text.assign(1000, 'y'); },
      [](Request& r) { r.options.std = "c++20"; },
      [](Request& r) { r.options.defines["A"] = "1"; },
      [](Request& r) { r.options.defines["A"] = ""; },
      [](Request& r) { r.options.headers["A"] = "1"; },
      [](Request& r) { r.options.extra = {"A"}; },
      [](Request& r) { r.options.fast_math = true; },
      [](Request& r) { r.options.device_debug = true; },
      [](Request& r) { r.options.max_registers = 1; },
      [](Request& r) { r.options.opt_level = 1; },
      [](Request& r) { r.options.opt_level = 0; },
      [](Request& r) { r.options.minimal = Tristate::on; },
      [](Request& r) { r.options.pch = Tristate::on; },
      [](Request& r) { r.selection.target.kind = CodeKind::cubin; },
      [](Request& r) { r.selection.target.nvrtc_arch = "sm_90"; },
      [](Request& r) { r.selection.target.label = "compute_90"; },
      [](Request& r) { r.selection.names = {"k"}; },
      [](Request& r) {
        r.selection.names = {std::string("k"), "l"};
      },
      [](Request& r) {
        r.selection.names = {std::string("l"), "k"};
      },
      [](Request& r) { r.selection.with_declared = false; },
      [](Request& r) { r.selection.lineinfo = true; },
      [](Request& r) { r.selection.with_members = false; },
  };
  return changes;
}

/// The inputs that decide it on this machine besides.
const std::vector<Change>& changes_of_machine() {
  static const std::vector<Change> changes{
      [](Request& r) { r.source.name = "other.cu"; },
      [](Request& r) { r.source.directory = "/d"; },
      [](Request& r) { r.options.include_dirs = {"A"}; },
      [](Request& r) { r.toolkits = {"/cuda"}; },
      [](Request& r) { r.compiler.minor = 6; },
      [](Request& r) { r.compiler.library_size = 1; },
      [](Request& r) { r.compiler.builtins = sha256("other builtins"); },
  };
  return changes;
}

}  // namespace

TEST_CASE("cache key: any change of what decides the result changes it") {
  std::set<Sha256Digest> keys, packed;
  for (const Change& change : changes_of_code()) {
    Request r = request();
    change(r);
    CHECK(keys.insert(r.key().digest).second);
    CHECK(packed.insert(r.packed().digest).second);
    CHECK(r.key().digest == sha256(r.key().fields));
  }
  for (const Change& change : changes_of_machine()) {
    Request r = request();
    change(r);
    CHECK(keys.insert(r.key().digest).second);
    CHECK(r.packed().digest == request().packed().digest);
  }
}

TEST_CASE(
    "cache key: where the text stands, the timeout and the arch of the request do not decide it") {
  Request r = request();
  r.source.first_line = 77;
  r.options.timeout = std::chrono::milliseconds(5);
  r.options.arch = "sm_80";
  r.compiler.library_path = "/elsewhere/libnvrtc.so";
  CHECK(r.key().digest == request().key().digest);
  CHECK(r.packed().digest == request().packed().digest);
}

TEST_CASE("cache key: no value can pretend to be another field") {
  Request one = request(), other = request();
  one.options.defines = {{"A", "x\n=:1:y"}};
  other.options.defines = {{"A", "x"}, {"=", "y"}};
  CHECK(one.key().digest != other.key().digest);
  one = other = request();
  one.options.extra = {"-a", "-b"};
  other.options.extra = {"-a\n-:2:-b"};
  CHECK(one.key().digest != other.key().digest);
}
