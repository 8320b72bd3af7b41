// Decodes UTF-8, and spells out what should not be obeyed.
#include "tune/judge/terminal_text.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "base/format.h"
#include "tune/judge/verdict.h"

namespace kernwright {
namespace {

/// Of one text: names of a kernel may be as long as its text, and come in every message.
constexpr std::size_t kMostBytes = 4000;

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  ///< 0: no UTF-8
};

Character character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (bytes == 0 || first > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = first & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  const std::uint32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < least || code > 0x10ffff || is_surrogate) return {};
  return {code, bytes};
}

struct CodeRange {
  std::uint32_t first, last;
};

/// Control characters, invisible ones, marks of direction, separators of lines, tags.
constexpr CodeRange kObeyed[] = {{0x0, 0x1f},      {0x7f, 0x9f},      {0xad, 0xad},
                                 {0x61c, 0x61c},   {0x180e, 0x180e},  {0x200b, 0x200f},
                                 {0x2028, 0x202e}, {0x2060, 0x206f},  {0xfeff, 0xfeff},
                                 {0xfff0, 0xfffb}, {0xe0000, 0xe0fff}};

bool is_obeyed(std::uint32_t code) {
  return std::any_of(std::begin(kObeyed), std::end(kObeyed), [&](const CodeRange& range) {
    return code >= range.first && code <= range.last;
  });
}

void make_terminal_text(std::initializer_list<std::string*> texts) {
  for (std::string* const text : texts) *text = terminal_text(*text);
}

void make_terminal_text(JudgeFinding& found) {
  make_terminal_text(
      {&found.kind, &found.message, &found.hint, &found.file, &found.opcode, &found.allocation});
  found.details = terminal_text(found.details, true);
}

void make_terminal_text(CaseResult& result) {
  make_terminal_text({&result.message, &result.argument, &result.device});
  for (std::string& argument : result.arguments) argument = terminal_text(argument);
}

}  // namespace

std::string terminal_text(std::string_view text, bool keep_lines) {
  std::string result;
  while (!text.empty()) {
    if (result.size() >= kMostBytes) {
      result += format(" (and {} more bytes)", text.size());
      break;
    }
    const Character next = character_at(text);
    if (next.bytes == 0) {
      result += format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (next.code == '\n' && !keep_lines) {
      result += "\\n";
    } else if (next.code == '\n' || next.code == '\t' || !is_obeyed(next.code)) {
      result += text.substr(0, next.bytes);
    } else {
      result += next.code < 0x100 ? format("\\x{:02x}", next.code) : format("\\u{:04x}", next.code);
    }
    text.remove_prefix(std::max<std::size_t>(next.bytes, 1));
  }
  return result;
}

void make_terminal_text(Verdict& verdict) {
  verdict.reason = terminal_text(verdict.reason);
  for (Diagnostic& each : verdict.diagnostics) {
    each.message = terminal_text(each.message, true);
    each.file = terminal_text(each.file);
    each.caret = terminal_text(each.caret, true);
    each.hint = terminal_text(each.hint, true);
  }
  for (JudgeFinding& each : verdict.findings) make_terminal_text(each);
  for (CaseResult& each : verdict.cases) make_terminal_text(each);
  for (std::string& each : verdict.warnings) each = terminal_text(each);
}

}  // namespace kernwright
