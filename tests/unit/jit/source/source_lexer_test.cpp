// Tokens of C++ text.
#include "jit/source/source_lexer.h"

#include <doctest/doctest.h>

#include <string>

using namespace kernwright;

namespace {

std::string joined(std::string_view text) {
  std::string result;
  for (const Token& token : tokenize(text).tokens) {
    result += (result.empty() ? "" : "|") + std::string(token.text);
  }
  return result;
}

}  // namespace

TEST_CASE("lexer: words, numbers and punctuation") {
  CHECK(joined("int x1=0x1Fu+1'000.5e-3f;") == "int|x1|=|0x1Fu|+|1'000.5e-3f|;");
  CHECK(joined("a::b->c>>=d") == "a|::|b|->|c|>|>|=|d");
  CHECK(joined(".5f+x.y") == ".5f|+|x|.|y");
  CHECK(joined("") == "");
}

TEST_CASE("lexer: comments and preprocessor lines are no tokens") {
  CHECK(joined("a // b\nc /* d\n e */ f") == "a|c|f");
  CHECK(joined("a // b \\\n still comment\nc") == "a|c");
  CHECK(joined("#define X __global__ \\\n void hidden()\nint a;") == "int|a|;");
  CHECK(joined("  # pragma once /* x\n y */ z\nint a;") == "int|a|;");
  CHECK(joined("a # b") == "a|#|b");
}

TEST_CASE("lexer: strings, characters and raw strings are one token") {
  CHECK(joined(R"(a "x\"y" 'c' '\'' b)") == R"(a|"x\"y"|'c'|'\''|b)");
  CHECK(joined("R\"(a\n\"b\")\" c") == "R\"(a\n\"b\")\"|c");
  CHECK(joined("u8R\"xy(a)\" )x\" )xy\" c") == "u8R\"xy(a)\" )x\" )xy\"|c");
  CHECK(joined("\"never closed\nint a;") == "\"never closed|int|a|;");
}

TEST_CASE("lexer: lines are counted through comments, continuations and raw strings") {
  const auto tokens = tokenize("a\n/*\n*/ b\nR\"(\n\n)\" c \\\nd").tokens;
  REQUIRE(tokens.size() == 5);
  CHECK(tokens[0].line == 1);
  CHECK(tokens[1].line == 3);
  CHECK(tokens[2].line == 4);
  CHECK(tokens[3].line == 6);
  CHECK(tokens[4].line == 7);
}

TEST_CASE("lexer: include lines with their name, kind and line") {
  const auto includes =
      tokenize("#include <a/b.h>\n  #  include \"c.h\" // x\n#include MACRO\n#include <open\n")
          .includes;
  REQUIRE(includes.size() == 2);
  CHECK(includes[0].name == "a/b.h");
  CHECK_FALSE(includes[0].quoted);
  CHECK(includes[1].name == "c.h");
  CHECK(includes[1].quoted);
  CHECK(includes[1].line == 2);
  CHECK(tokenize("// #include <x>\n/*\n#include <y>\n*/ \"#include <z>\"").includes.empty());
}

TEST_CASE("lexer: every cut of an awkward text ends") {
  const std::string text =
      "R\"d(x)d\" /* c */ // e\\\n#define A \"x\" \\\n '\\'' \"\\\" 1e+5 :: -> \xff\xfe \\";
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    for (std::size_t length = 0; begin + length <= text.size(); ++length) {
      const auto result = tokenize(std::string_view(text).substr(begin, length));
      CHECK(result.tokens.size() <= length);
    }
  }
}
