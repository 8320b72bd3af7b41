// The names of the cache's layers in reports.
#include "jit/found_code.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright;

TEST_CASE("found code: each layer has its word, and code from elsewhere is object code") {
  CHECK(std::string(code_layer_name(CodeLayer::memory)) == "memory");
  CHECK(std::string(code_layer_name(CodeLayer::disk)) == "disk");
  CHECK(std::string(code_layer_name(CodeLayer::pack)) == "pack");
  CHECK(std::string(code_layer_name(CodeLayer::compiler)) == "compiled");
  CHECK(std::string(code_layer_name(FoundCode().layer)) == "object code");
}
