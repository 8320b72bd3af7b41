// Suggestions for mistyped names.
#include "base/nearest_name.h"

#include <doctest/doctest.h>

#include <vector>

using namespace kernwright;

TEST_CASE("nearest name: small slips find their name, others none") {
  const std::vector<std::string> names{"saxpy", "scale", "reduce_rows"};
  CHECK(nearest_name("saxpi", names) == "saxpy");
  CHECK(nearest_name("reduce_row", names) == "reduce_rows");
  CHECK(nearest_name("scael", names) == "");
  CHECK(nearest_name("scal", names) == "scale");
  CHECK(nearest_name("matmul", names) == "");
  CHECK(nearest_name("", names) == "");
  CHECK(nearest_name("saxpy", std::vector<std::string>{"saxpy"}) == "");
  CHECK(nearest_name(std::string(100000, 'x'), names) == "");
}

TEST_CASE("nearest name: lists are cut") {
  std::vector<std::string> many;
  for (int i = 0; i < 40; ++i) many.push_back("kernel" + std::to_string(i));
  const std::string text = describe_names("zzz", many);
  CHECK(text.find("kernel31") != std::string::npos);
  CHECK(text.find("kernel32") == std::string::npos);
  CHECK(text.find("8 more") != std::string::npos);
  CHECK(describe_names("x", std::vector<std::string>{}) == ": there is none");
}
