// The lexer alone: tokens are parts of the text, in its order, and come to an end.
#include "fuzz/targets.h"
#include "sim/ptx/parse/lexer.h"
#include "sim/ptx/parse/parser.h"

#include <stdexcept>
#include <string>

namespace kernwright::fuzz {

using namespace sim::ptx;

void ptx_tokens(std::string_view bytes) {
  const std::string text(bytes);  // on the heap, so that a read beyond it is seen
  const char* reached = text.data();
  std::int32_t line = 1;
  try {
    Lexer lexer(text);
    while (lexer.peek().kind != TokenKind::end) {
      const Token token = lexer.take();
      if (token.line < line) throw std::logic_error("a token stands before the last one's line");
      line = token.line;
      if (token.kind == TokenKind::punct) continue;
      if (token.text.data() < reached || token.text.end() > &*text.end())
        throw std::logic_error("a token is no part of the text behind the last one");
      reached = token.text.data() + token.text.size();
    }
  } catch (const PtxError&) {}
}

}  // namespace kernwright::fuzz
