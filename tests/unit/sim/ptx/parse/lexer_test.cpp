// Tokens, their lines, and text that is none.
#include "sim/ptx/parse/lexer.h"
#include "unit/sim/ptx/ptx_fixture.h"

using namespace kernwright::sim::ptx;
using namespace kernwright::sim::ptx::testing;

namespace {

std::vector<Token> tokens_of(std::string_view text) {
  Lexer lexer(text);
  std::vector<Token> tokens;
  while (lexer.peek().kind != TokenKind::end) tokens.push_back(lexer.take());
  return tokens;
}

}  // namespace

TEST_CASE("lexer: fused text splits as spaced text does") {
  const std::vector<Token> fused = tokens_of("{.reg.b32 x;@!p bra $L_1;}");
  const std::vector<Token> spaced = tokens_of(" { .reg .b32 x ; @ ! p bra $L_1 ; } ");
  REQUIRE(fused.size() == spaced.size());
  for (std::size_t i = 0; i < fused.size(); ++i) {
    CHECK(fused[i].kind == spaced[i].kind);
    CHECK(fused[i].text == spaced[i].text);
  }
  CHECK(fused[1].is_dotted("reg"));
  CHECK_FALSE(fused[2].spaced);
  CHECK(spaced[2].spaced);
}

TEST_CASE("lexer: dotted words keep their colons") {
  const std::vector<Token> tokens = tokens_of("ld.global.L1::no_allocate.v2.f32 L:");
  REQUIRE(tokens.size() == 7);
  CHECK(tokens[2].is_dotted("L1::no_allocate"));
  CHECK(tokens[5].is_word("L"));
  CHECK(tokens[6].is(':'));
}

TEST_CASE("lexer: numbers of every form are one token") {
  for (const std::string_view text : {"0", "42U", "0x1F", "0b101", "017", "0f3F800000",
                                      "0d3FF0000000000000", "1.5", "1e10", "1.5e-3", "2E+4"}) {
    CAPTURE(std::string(text));
    const std::vector<Token> tokens = tokens_of(text);
    REQUIRE(tokens.size() == 1);
    CHECK(tokens[0].kind == TokenKind::number);
    CHECK(tokens[0].text == text);
  }
  CHECK(tokens_of("0x1e+4").size() == 3);  // the e is a digit there
  CHECK(tokens_of("[%r1+-4]").size() == 6);
}

TEST_CASE("lexer: comments count lines and vanish") {
  const std::vector<Token> tokens = tokens_of("a // x\n/* y\n z */ b\n\nc");
  REQUIRE(tokens.size() == 3);
  CHECK(tokens[0].line == 1);
  CHECK(tokens[1].line == 3);
  CHECK(tokens[2].line == 5);
}

TEST_CASE("lexer: strings") {
  const std::vector<Token> tokens = tokens_of(R"(.file 1 "a \" b.cu")");
  REQUIRE(tokens.size() == 3);
  CHECK(tokens[2].kind == TokenKind::string);
  CHECK(tokens[2].text == R"(a \" b.cu)");
}

TEST_CASE("lexer: what it refuses names the line") {
  CHECK(contains(error_of([] { tokens_of("a\n/* b"); }, 2), "comment"));
  CHECK(contains(error_of([] { tokens_of("\n\n\"abc\n\""); }, 3), "string"));
  CHECK(contains(error_of([] { tokens_of("a #"); }, 1), "'#'"));
  CHECK(contains(error_of([] { tokens_of("\x01"); }, 1), "0x01"));
  CHECK(tokens_of("").empty());
}
