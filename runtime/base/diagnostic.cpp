// How a compiler's message is written for a person.
#include "base/diagnostic.h"

#include "base/errors.h"
#include "base/format.h"

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

std::string Diagnostic::to_string() const {
  std::string text = file;
  if (line > 0) text += format("{}{}", text.empty() ? "line " : ":", line);
  if (line > 0 && column > 0) text += format(":{}", column);
  if (!text.empty()) text += ": ";
  text += format("{}: {}", severity_name(severity), message);
  if (!caret.empty()) text += "\n" + caret;
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
