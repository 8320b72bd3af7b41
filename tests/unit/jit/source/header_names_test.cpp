// The header in memory for an #include.
#include "jit/source/header_names.h"

#include <doctest/doctest.h>

using namespace kernwright;

TEST_CASE("header names: a quoted name begins beside the header that includes it") {
  const std::map<std::string, std::string> headers{
      {"b.h", ""}, {"d/a.h", ""}, {"d/b.h", ""}, {"d/e/c.h", ""}};
  const auto meant = [&](const char* includer, const char* name, bool quoted = true) {
    return header_meant(headers, includer, {name, quoted, 1});
  };
  CHECK(meant("d/a.h", "b.h") == "d/b.h");
  CHECK(meant("d/a.h", "b.h", false) == "b.h");
  CHECK(meant("", "b.h") == "b.h");
  CHECK(meant("", "./b.h") == "b.h");
  CHECK(meant("", "d/../b.h") == "b.h");
  CHECK(meant("", "d//b.h", false) == "d/b.h");
  CHECK(meant("d/e/c.h", "../b.h") == "d/b.h");
  CHECK(meant("d/e/c.h", "../../b.h") == "b.h");
  CHECK(meant("d/e/c.h", "d/a.h") == "d/a.h");
  CHECK(meant("d/a.h", "../../b.h") == "");
  CHECK(meant("d/a.h", "none.h") == "");
  CHECK(meant("", "") == "");
}

TEST_CASE("header names: dots are followed as far as they stay below the beginning") {
  CHECK(plain_name("cuda/std/../std/array") == "cuda/std/array");
  CHECK(plain_name("./a//b.h") == "a/b.h");
  for (const char* same : {"", "a.h", "a/b.h", "../b.h", "a/../../b.h", "/a/b.h", "."}) {
    CHECK(plain_name(same) == same);
  }
}

TEST_CASE("header names: only the names change, and every line stays") {
  const std::string text =
      "#include \"a.h\"  // a.h\n#  include <b.h>\n#if __has_include(\"a.h\")\nint a_h;\n#endif\n";
  const auto renamed = with_includes_renamed(text, [](const IncludeDirective& include) {
    return include.name == "a.h" && include.quoted ? std::string("<x/y.h>") : std::string();
  });
  CHECK(renamed ==
        "#include <x/y.h>  \n#  include <b.h>\n#if __has_include(<x/y.h>)\nint a_h;\n#endif\n");
  const std::string compared = "#if A < 1 && __has_include( <b.h> ) && 2 > 1\n#endif\n";
  CHECK(with_includes_renamed(compared, [](const IncludeDirective& include) {
          return include.name == "b.h" ? std::string("\"c.h\"") : std::string("wrong");
        }) == "#if A < 1 && __has_include( \"c.h\" ) && 2 > 1\n#endif\n");
  CHECK(with_includes_renamed("", [](const auto&) { return std::string("x"); }) == "");
}
