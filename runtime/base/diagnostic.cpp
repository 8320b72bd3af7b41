// How a compiler's message is written for a person.
#include "base/diagnostic.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace kernwright {

const char* severity_name(Severity severity) noexcept {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::remark:
      return "remark";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "unknown";
}

namespace {

// A line of generated code may have a million characters.
constexpr std::size_t kMostShown = 240;
constexpr std::size_t kBeside = 80;  ///< characters on each side of the caret, in longer lines

/// The begin of each UTF-8 character, and the end.
std::vector<std::size_t> character_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) starts.push_back(i);
  }
  starts.push_back(text.size());
  return starts;
}

/// The line and its caret, or the part of a long line that is around the caret.
std::string excerpt(const std::string& caret) {
  const auto end = caret.find('\n');
  const std::string_view line = std::string_view(caret).substr(0, end);
  if (line.size() <= kMostShown) return caret;
  const std::string_view below =
      end == std::string::npos ? std::string_view() : std::string_view(caret).substr(end + 1);
  const auto starts = character_starts(line);
  const std::size_t count = starts.size() - 1;
  const std::size_t at = std::min(below.find('^'), count);
  if (below.empty() || at == count) return std::string(line.substr(0, starts[kBeside])) + "...";
  const std::size_t first = at > kBeside ? at - kBeside : 0;
  const std::size_t last = std::min(at + kBeside, count);
  std::string text = first > 0 ? "..." : "";
  text += line.substr(starts[first], starts[last] - starts[first]);
  if (last < count) text += "...";
  text += "\n";
  if (first > 0) text += "   ";
  return text.append(below.substr(first));  // what stands before the caret has a byte a character
}

}  // namespace

std::string Diagnostic::to_string() const {
  std::string text = file;
  if (line > 0) text += format("{}{}", text.empty() ? "line " : ":", line);
  if (line > 0 && column > 0) text += format(":{}", column);
  if (!text.empty()) text += ": ";
  text += format("{}: {}", severity_name(severity), message);
  if (!caret.empty()) text += "\n" + excerpt(caret);
  if (!hint.empty()) text += "\nhint: " + hint;
  return text;
}

namespace {

constexpr std::uint32_t kMaxName = std::uint32_t{1} << 20;
constexpr std::uint32_t kMaxMessage = std::uint32_t{8} << 20;

}  // namespace

void write(ByteWriter& out, const Diagnostic& diagnostic) {
  out.u8(static_cast<std::uint8_t>(diagnostic.severity));
  out.text(diagnostic.message);
  out.text(diagnostic.file);
  out.i32(diagnostic.line);
  out.i32(diagnostic.column);
  out.text(diagnostic.caret);
  out.text(diagnostic.hint);
}

Diagnostic read_diagnostic(ByteReader& in) {
  Diagnostic diagnostic;
  const std::uint8_t severity = in.u8();
  if (severity > static_cast<std::uint8_t>(Severity::error)) {
    throw Error(format("a compiler message has the impossible severity {}", severity));
  }
  diagnostic.severity = static_cast<Severity>(severity);
  diagnostic.message = in.text(kMaxMessage);
  diagnostic.file = in.text(kMaxName);
  diagnostic.line = in.i32();
  diagnostic.column = in.i32();
  diagnostic.caret = in.text(kMaxMessage);
  diagnostic.hint = in.text(kMaxName);
  return diagnostic;
}

}  // namespace kernwright
