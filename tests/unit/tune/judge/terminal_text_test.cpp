// Texts for terminals and prompts.
#include "tune/judge/terminal_text.h"

#include <doctest/doctest.h>

#include "tune/judge/verdict.h"

using namespace kernwright;

TEST_CASE("terminal text: what a terminal obeys is spelled out") {
  CHECK(terminal_text("plain text, \t tabs and \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") ==
        "plain text, \t tabs and \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(terminal_text("\x1b[2J") == "\\x1b[2J");
  CHECK(terminal_text(std::string("\0\r\b\x7f", 4)) == "\\x00\\x0d\\x08\\x7f");
  CHECK_MESSAGE(terminal_text("\xc2\x9b") == "\\x9b", "a control character of two bytes");
  CHECK_MESSAGE(terminal_text("a\xe2\x80\xae"
                              "b") == "a\\u202eb",
                "from right to left");
  CHECK_MESSAGE(terminal_text("\xe2\x80\xa8") == "\\u2028", "a separator of lines");
  CHECK(terminal_text("\xef\xbb\xbf") == "\\ufeff");
  CHECK(terminal_text("a\nb") == "a\\nb");
  CHECK(terminal_text("a\nb\r\n", true) == "a\nb\\x0d\n");
  CHECK(terminal_text("").empty());
}

TEST_CASE("terminal text: bytes that are no UTF-8") {
  CHECK(terminal_text("\xff\x80 \xc3") == "\\xff\\x80 \\xc3");
  CHECK_MESSAGE(terminal_text("\xc0\xaf") == "\\xc0\\xaf", "longer than needed");
  CHECK_MESSAGE(terminal_text("\xed\xa0\x80") == "\\xed\\xa0\\x80", "a surrogate");
  CHECK_MESSAGE(terminal_text("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80", "beyond all");
  CHECK(terminal_text("\xe2\x82") == "\\xe2\\x82");
}

TEST_CASE("terminal text: long texts are cut") {
  CHECK(terminal_text(std::string(4000, 'x')) == std::string(4000, 'x'));
  CHECK(terminal_text(std::string(9000, 'x')) == std::string(4000, 'x') + " (and 5000 more bytes)");
}

TEST_CASE("terminal text: all texts of a verdict") {
  Verdict verdict;
  verdict.reason = "\x1b\n";
  verdict.warnings = {"\x1b"};
  verdict.diagnostics.emplace_back().message = "one\n\x1b";
  verdict.diagnostics.back().file = "\n";
  verdict.findings.emplace_back().message = "\x1b";
  verdict.findings.back().details = "one\ntwo\x1b";
  verdict.cases.emplace_back().message = "\x1b";
  make_terminal_text(verdict);
  CHECK(verdict.reason == "\\x1b\\n");
  CHECK(verdict.warnings[0] == "\\x1b");
  CHECK(verdict.diagnostics[0].message == "one\n\\x1b");
  CHECK(verdict.diagnostics[0].file == "\\n");
  CHECK(verdict.findings[0].message == "\\x1b");
  CHECK(verdict.findings[0].details == "one\ntwo\\x1b");
  CHECK(verdict.cases[0].message == "\\x1b");
}
