// Cuts NVRTC's log into messages.
#include "jit/compile/diagnostics.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/format.h"

namespace kernwright {
namespace {

constexpr std::string_view kPragma = "#pragma nv_mangled_name ";
constexpr std::size_t kIndent = 2;  ///< blanks before the source line that a message quotes

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

struct SeverityWord {
  std::string_view word;
  Severity severity;
};

/// Removes "error: ", "warning #177-D: " and the like from the front of `text`.
std::optional<Severity> take_severity(std::string_view& text) {
  static constexpr std::array kWords{SeverityWord{"catastrophic error", Severity::error},
                                     SeverityWord{"internal error", Severity::error},
                                     SeverityWord{"fatal", Severity::error},
                                     SeverityWord{"error", Severity::error},
                                     SeverityWord{"warning", Severity::warning},
                                     SeverityWord{"remark", Severity::remark},
                                     SeverityWord{"note", Severity::note},
                                     SeverityWord{"info", Severity::note}};
  for (const auto& [word, severity] : kWords) {
    if (!text.starts_with(word)) continue;
    auto rest = text.substr(word.size());
    const auto colon = rest.find(':');
    const std::string_view between = trimmed(rest.substr(0, colon));
    const bool number = between.starts_with("#") && between.find(' ') == std::string_view::npos;
    if (colon == std::string_view::npos || (!between.empty() && !number)) continue;
    text = trimmed(rest.substr(colon + 1));
    return severity;
  }
  return std::nullopt;
}

/// "file(12): error: text": the place may itself contain parentheses and colons.
std::optional<Diagnostic> source_header(std::string_view line) {
  for (auto close = line.find("): "); close != std::string_view::npos;
       close = line.find("): ", close + 1)) {
    auto digits = close;
    while (digits > 0 && line[digits - 1] >= '0' && line[digits - 1] <= '9') --digits;
    const auto count = close - digits;
    if (count == 0 || count > 9 || digits < 2 || line[digits - 1] != '(') continue;
    std::string_view rest = line.substr(close + 3);
    const auto severity = take_severity(rest);
    if (!severity) continue;
    Diagnostic result;
    result.severity = *severity;
    result.file = std::string(line.substr(0, digits - 1));
    for (auto i = digits; i < close; ++i) result.line = result.line * 10 + (line[i] - '0');
    result.message = std::string(rest);
    return result;
  }
  return std::nullopt;
}

/// "ptxas error   : text", "nvrtc: error: text", "ptxas application ptx input, line 23; error   :
/// text".
std::optional<Diagnostic> tool_header(std::string_view line) {
  constexpr std::array<std::string_view, 3> kTools{"ptxas", "nvrtc", "nvvm"};
  const bool known = std::any_of(kTools.begin(), kTools.end(),
                                 [&](std::string_view tool) { return line.starts_with(tool); });
  if (!known) return std::nullopt;
  for (const std::string_view mark : {"; ", ": ", " "}) {
    const auto at = line.find(mark);
    if (at == std::string_view::npos) continue;
    std::string_view rest = line.substr(at + mark.size());
    if (const auto severity = take_severity(rest)) {
      Diagnostic result;
      result.severity = *severity;
      result.message = format("{}: {}", line.substr(0, at), rest);
      return result;
    }
  }
  return std::nullopt;
}

bool is_caret_line(std::string_view line) { return trimmed(line) == "^"; }

/// Lines that follow a header: continued text, the quoted source line with its caret.
class MessageReader {
 public:
  explicit MessageReader(std::string_view log) : log_(log) {}

  std::vector<LogMessage> run() {
    while (!log_.empty()) {
      const auto end = log_.find('\n');
      line(log_.substr(0, end));
      log_.remove_prefix(end == std::string_view::npos ? log_.size() : end + 1);
    }
    continue_message();
    return std::move(messages_);
  }

 private:
  void line(std::string_view text) {
    auto header = source_header(text);
    if (!header) header = tool_header(text);
    if (header) {
      continue_message();
      messages_.push_back({std::move(*header), {}});
      is_open_ = true;
    } else if (trimmed(text).empty()) {
      continue_message();
      is_open_ = false;
    } else if (is_open_ && text.starts_with("  ")) {
      detail(text);
    }
  }

  void detail(std::string_view text) {
    LogMessage& message = messages_.back();
    if (is_caret_line(text) && !quoted_.empty()) {
      const auto column = text.find('^');
      message.diagnostic.column = static_cast<int>(column - kIndent + 1);
      message.diagnostic.caret = format("{}\n{}", quoted_.substr(kIndent), text.substr(kIndent));
      quoted_ = {};
      return;
    }
    if (const auto at = text.find(kPragma); at != std::string_view::npos) {
      message.name_expression = std::string(trimmed(text.substr(at + kPragma.size())));
    }
    continue_message();
    quoted_ = text;
  }

  /// A line that no caret followed was no source: "argument types are: (...)", "detected during".
  void continue_message() {
    if (quoted_.empty()) return;
    messages_.back().diagnostic.message += "\n" + std::string(trimmed(quoted_));
    quoted_ = {};
  }

  std::string_view log_;
  std::string_view quoted_;
  bool is_open_ = false;
  std::vector<LogMessage> messages_;
};

}  // namespace

std::vector<LogMessage> parse_compile_log(std::string_view log) { return MessageReader(log).run(); }

void shift_lines(std::vector<Diagnostic>& diagnostics, std::string_view file, int first_line) {
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.file == file && diagnostic.line > 0) diagnostic.line += first_line - 1;
  }
}

std::string summarize(const std::vector<Diagnostic>& diagnostics, const std::string& source_name,
                      std::string_view log) {
  const auto is_error = [](const Diagnostic& d) { return d.severity == Severity::error; };
  const auto count = std::count_if(diagnostics.begin(), diagnostics.end(), is_error);
  auto first = std::find_if(diagnostics.begin(), diagnostics.end(), is_error);
  if (first == diagnostics.end()) {
    return format("{} did not compile; the compiler said:\n{}", source_name, log);
  }
  // An unknown type makes the compiler stumble over the whole declaration first: say the cause.
  const auto cause = std::find_if(first, diagnostics.end(), [&](const Diagnostic& d) {
    return is_error(d) && d.file == first->file && d.line == first->line &&
           d.message.starts_with("identifier ");
  });
  if (cause != diagnostics.end()) first = cause;
  return format("{} did not compile:\n{}\n({} error{}; the whole log is kept with this error)",
                source_name, first->to_string(), count, count == 1 ? "" : "s");
}

}  // namespace kernwright
