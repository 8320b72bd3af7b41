// Ranges as seen by a tool of NVTX.
#include "driver/nvtx.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

using namespace kernwright;

namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("nvtx: ranges nest in a domain of their own") {
  const std::string log =
      std::filesystem::temp_directory_path() / ("nvtx-" + std::to_string(::getpid()));
  CHECK(!Nvtx::open({FAKE_NVTX_FOLDER}).has_value());  // the library alone: nobody listens
  REQUIRE(::setenv("FAKE_NVTX_LOG", log.c_str(), 1) == 0);
  const std::optional<Nvtx> tool = Nvtx::open({"/nonexistent", FAKE_NVTX_FOLDER});
  ::unsetenv("FAKE_NVTX_LOG");
  REQUIRE(tool.has_value());
  tool->push("outer");
  tool->push("inner");
  tool->pop();
  tool->pop();
  CHECK(text_of(log) == "domain Kernwright\nbegin outer\nbegin inner\nend \nend \n");
  std::filesystem::remove(log);
}

TEST_CASE("nvtx: nothing happens where no tool has started the program") {
  if (std::getenv("NVTX_INJECTION64_PATH") != nullptr) return;  // one has
  CHECK(Nvtx::listener() == nullptr);
  const NvtxRange range("nobody hears this");
}
