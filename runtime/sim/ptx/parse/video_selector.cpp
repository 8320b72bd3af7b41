// The parts before and after the operands of video instructions.
#include "sim/ptx/parse/video_selector.h"

#include "base/format.h"
#include "sim/ptx/parse/selectors.h"

namespace kernwright::sim::ptx {
namespace {

/// 1 for words, 2 for halves, 4 for bytes; 0: no video instruction.
int count_parts(std::string_view stem) {
  if (stem.front() != 'v' || stem == "vote") return 0;
  return stem.back() == '2' ? 2 : stem.back() == '4' ? 4 : 1;
}

/// ".b2" and ".h1" of the instructions on words.
bool read_part(std::string_view text, Selector& selector) {
  if (text.size() != 2) return false;
  const int limit = text[0] == 'b' ? 4 : text[0] == 'h' ? 2 : 0;
  const int part = text[1] - '0';
  if (part < 0 || part >= limit) return false;
  selector.parts = static_cast<std::uint16_t>((text[0] == 'b' ? 1 : 5) + part);
  return true;
}

/// ".h32", ".b7654": the source of every part, the highest first.
bool read_sources(std::string_view text, int parts, Selector& selector) {
  const char letter = parts == 2 ? 'h' : 'b';
  if (text.size() != static_cast<std::size_t>(parts) + 1 || text[0] != letter) return false;
  for (const char digit : text.substr(1)) {
    if (digit < '0' || digit >= '0' + 2 * parts) return false;
    selector.parts = static_cast<std::uint16_t>(selector.parts << 4 | (digit - '0'));
  }
  return true;
}

/// ".h10", ".b20": the written parts, in falling order.
bool read_mask(std::string_view text, int parts, Selector& selector) {
  const char letter = parts == 2 ? 'h' : 'b';
  if (text.size() < 2 || text[0] != letter) return false;
  int before = parts;
  for (const char digit : text.substr(1)) {
    const int part = digit - '0';
    if (part < 0 || part >= before) return false;
    selector.parts = static_cast<std::uint16_t>(selector.parts | 1 << part);
    before = part;
  }
  return true;
}

}  // namespace

bool take_minus(TokenReader& reader, const Instruction& instruction) {
  if (instruction.stem != "vmad" || !reader.peek().is('-') ||
      reader.peek_next().kind != TokenKind::word) {
    return false;
  }
  return reader.accept('-');
}

void take_selector(TokenReader& reader, Instruction& instruction, bool negated) {
  const int parts = count_parts(instruction.stem);
  const std::size_t index = instruction.operands.size() - 1;
  Selector selector;
  selector.negated = negated;
  if (parts != 0 && reader.peek().kind == TokenKind::dotted) {
    const std::string_view text = reader.take().text;
    const Operand& operand = instruction.operands.back();
    selector.given = true;
    const bool good = parts == 1   ? read_part(text, selector)
                      : index == 0 ? read_mask(text, parts, selector)
                                   : read_sources(text, parts, selector);
    if (!good || index > 2 || operand.kind != OperandKind::reg) {
      reader.fail(format("operand {} of {} has no part .{}", index + 1, instruction.opcode,
                         text.substr(0, 60)));
    }
  }
  instruction.selectors |= pack_selector(selector, index < 3 ? index : 3);
}

}  // namespace kernwright::sim::ptx
