// How a compiler's message is written for a person.
#include "base/diagnostic.h"

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

}  // namespace kernwright
