// Every field that decides a result decides the key.
#include "jit/cache_key.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

TEST_CASE("cache key: any change of what decides the result changes it") {
  using Change = std::function<void(CompileRequest&, IncludeClosure&, LoadedNvrtc&)>;
  const std::vector<Change> changes{
      [](auto&, auto&, auto&) {},
      [](auto& r, auto&, auto&) { r.source.text += " "; },
      [](auto& r, auto&, auto&) { r.source.name = "other.cu"; },
      [](auto& r, auto&, auto&) { r.source.first_line = 2; },
      [](auto& r, auto&, auto&) { r.source.directory = "/d"; },
      [](auto& r, auto&, auto&) { r.options.arch = "sm_90"; },
      [](auto& r, auto&, auto&) { r.options.std = "c++20"; },
      [](auto& r, auto&, auto&) {
        r.options.defines = {{"A", "1"}};
      },
      [](auto& r, auto&, auto&) {
        r.options.defines = {{"A", ""}};
      },
      [](auto& r, auto&, auto&) {
        r.options.headers = {{"A", "1"}};
      },
      [](auto& r, auto&, auto&) { r.options.include_dirs = {"A"}; },
      [](auto& r, auto&, auto&) { r.options.extra = {"A"}; },
      [](auto& r, auto&, auto&) { r.options.fast_math = true; },
      [](auto& r, auto&, auto&) { r.options.lineinfo = true; },
      [](auto& r, auto&, auto&) { r.options.device_debug = true; },
      [](auto& r, auto&, auto&) { r.options.max_registers = 1; },
      [](auto& r, auto&, auto&) { r.options.opt_level = 1; },
      [](auto& r, auto&, auto&) { r.options.opt_level = 0; },
      [](auto& r, auto&, auto&) { r.options.minimal = Tristate::on; },
      [](auto& r, auto&, auto&) { r.options.pch = Tristate::on; },
      [](auto& r, auto&, auto&) { r.target.kind = CodeKind::cubin; },
      [](auto& r, auto&, auto&) { r.target.nvrtc_arch = "sm_90"; },
      [](auto& r, auto&, auto&) { r.target.label = "compute_90"; },
      [](auto& r, auto&, auto&) { r.names = {"k"}; },
      [](auto& r, auto&, auto&) {
        r.names = {"k", "l"};
      },
      [](auto& r, auto&, auto&) {
        r.names = {"l", "k"};
      },
      [](auto& r, auto&, auto&) { r.with_declared = false; },
      [](auto& r, auto&, auto&) { r.header_folders = {"/cuda"}; },
      [](auto&, auto& c, auto&) {
        c.files = {{"/a.h", {1, 2}}};
      },
      [](auto&, auto& c, auto&) {
        c.files = {{"/a.h", {1, 3}}};
      },
      [](auto&, auto&, auto& n) { n.path = "/other/libnvrtc.so"; },
      [](auto&, auto&, auto& n) { n.minor = 6; },
  };
  std::set<Hash128> keys;
  for (const Change& change : changes) {
    CompileRequest request = request_for("__global__ void k() {}");
    IncludeClosure included;
    LoadedNvrtc nvrtc;
    nvrtc.path = "/libnvrtc.so";
    nvrtc.major = 13;
    nvrtc.minor = 5;
    change(request, included, nvrtc);
    CHECK(keys.insert(cache_key(request, included, nvrtc)).second);
    CHECK(keys.contains(cache_key(request, included, nvrtc)));
  }
}

TEST_CASE("cache key: the timeout does not decide the result") {
  CompileRequest request = request_for("__global__ void k() {}");
  const LoadedNvrtc nvrtc;
  const Hash128 before = cache_key(request, {}, nvrtc);
  request.options.timeout = std::chrono::milliseconds(5);
  CHECK(cache_key(request, {}, nvrtc) == before);
}
