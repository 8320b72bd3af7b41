// JSON strings: whatever goes in comes out of a reader.
#include "base/json_text.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace kernwright;

TEST_CASE("json text: a reader gets the same text back") {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  for (const std::string& text :
       {std::string(), all, std::string("\"\\\n"), std::string("\xc3\xa9")})
    CHECK(nlohmann::json::parse(json_string(text)) == text);
}
