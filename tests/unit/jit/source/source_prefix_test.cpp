// Where the leading includes of a text end.
#include "jit/source/source_prefix.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace kernwright;

namespace {

/// The prefix as text, "-" without one.
std::string prefix_of(const std::string& text) {
  const auto prefix = source_prefix(text, tokenize(text));
  if (!prefix) return "-";
  const std::string result = text.substr(0, prefix->bytes);
  CHECK(std::count(result.begin(), result.end(), '\n') == prefix->lines);
  return result;
}

}  // namespace

TEST_CASE("source prefix: up to the line of the last include") {
  CHECK(prefix_of("#include <a.h>\nint x;\n") == "#include <a.h>\n");
  CHECK(prefix_of("\n// text\n#define N 4\n#include <a.h>\n#define M 5\n\nint x;\n") ==
        "\n// text\n#define N 4\n#include <a.h>\n");
  CHECK(prefix_of("#include <a.h>\r\n#include \"b.h\"\r\nint x;") ==
        "#include <a.h>\r\n#include \"b.h\"\r\n");
  CHECK(prefix_of("#include <a.h>\nint x;\n#include <b.h>\n") == "#include <a.h>\n");
  CHECK(prefix_of("#include <a.h>\n") == "#include <a.h>\n");
}

TEST_CASE("source prefix: none without includes in front") {
  for (const char* text : {"int x;\n", "", "\n\n", "int x;\n#include <a.h>\n", "#include <a.h>",
                           "#define N 1\nint x;\n", "#line 3\n#include <a.h>\nint x;\n"}) {
    CAPTURE(text);
    CHECK(prefix_of(text) == "-");
  }
}

TEST_CASE("source prefix: conditions are closed in it") {
  CHECK(prefix_of("#if X\n#include <a.h>\n#else\n#include <b.h>\n#endif\n#define Y\nint x;") ==
        "#if X\n#include <a.h>\n#else\n#include <b.h>\n#endif\n");
  CHECK(prefix_of("#ifdef X\n#include <a.h>\nint x;\n#endif\n") == "-");
  CHECK(prefix_of("#ifdef X\n#ifndef Y\n#include <a.h>\n#endif\n#endif\nint x;") ==
        "#ifdef X\n#ifndef Y\n#include <a.h>\n#endif\n#endif\n");
}

TEST_CASE("source prefix: comments and continued lines stay whole") {
  CHECK(prefix_of("/* one\n   #if 0\n   two */\n#include <a.h>\nint x;\n") ==
        "/* one\n   #if 0\n   two */\n#include <a.h>\n");
  CHECK(prefix_of("#include <a.h> /* begins\nends */\nint x;\n") ==
        "#include <a.h> /* begins\nends */\n");
  CHECK(prefix_of("#include <a.h>  // said /* here\nint x;\n") ==
        "#include <a.h>  // said /* here\n");
  CHECK(prefix_of("#define A \\\n  #if\n#include <a.h>\nint x;\n") ==
        "#define A \\\n  #if\n#include <a.h>\n");
  CHECK(prefix_of("#include <a.h> /* never closed\n") == "-");
}
