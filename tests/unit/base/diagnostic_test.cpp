// How messages of a compiler are written.
#include "base/diagnostic.h"

#include <doctest/doctest.h>

using namespace kernwright;

TEST_CASE("diagnostic: place, severity and message on the first line") {
  Diagnostic diagnostic{.severity = Severity::error,
                        .message = "identifier \"x\" is undefined",
                        .file = "saxpy.cu",
                        .line = 3,
                        .column = 7,
                        .caret = {},
                        .hint = {}};
  CHECK(diagnostic.to_string() == "saxpy.cu:3:7: error: identifier \"x\" is undefined");
  diagnostic.caret = "  y = x;\n      ^";
  diagnostic.hint = "declare it";
  CHECK(diagnostic.to_string() ==
        "saxpy.cu:3:7: error: identifier \"x\" is undefined\n  y = x;\n      ^\nhint: declare it");
}

TEST_CASE("diagnostic: unknown parts leave no trace") {
  Diagnostic diagnostic;
  diagnostic.severity = Severity::warning;
  diagnostic.message = "m";
  CHECK(diagnostic.to_string() == "warning: m");
  diagnostic.column = 4;
  CHECK(diagnostic.to_string() == "warning: m");
  diagnostic.line = 2;
  diagnostic.column = 0;
  CHECK(diagnostic.to_string() == "line 2: warning: m");
  diagnostic.file = "f";
  CHECK(diagnostic.to_string() == "f:2: warning: m");
}

TEST_CASE("diagnostic: every severity has its word") {
  CHECK(std::string(severity_name(Severity::note)) == "note");
  CHECK(std::string(severity_name(Severity::remark)) == "remark");
  CHECK(std::string(severity_name(Severity::warning)) == "warning");
  CHECK(std::string(severity_name(Severity::error)) == "error");
}
