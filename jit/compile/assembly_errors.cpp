// From the assembler's line to the source's.
#include "jit/compile/assembly_errors.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/errors.h"
#include "jit/compile/ptx_source_lines.h"

namespace kernwright {
namespace {

constexpr std::string_view kArch = "--gpu-architecture=sm_";
constexpr std::string_view kLineInfo = "--generate-line-info";
constexpr int kNear = 60;  ///< lines around the one of the table in which an `asm` may stand

bool has_place(const LogMessage& message) { return message.ptx_line > 0; }

/// Words of the instruction, the most specific first: quoted ones of the message, then the opcode.
std::vector<std::string> words_of(std::string_view message, std::string_view instruction) {
  std::vector<std::string> words;
  for (auto open = message.find('\''); open != std::string_view::npos;) {
    const auto close = message.find('\'', open + 1);
    if (close == std::string_view::npos) break;
    const std::string_view word = message.substr(open + 1, close - open - 1);
    if (instruction.find(word) != std::string_view::npos) words.emplace_back(word);
    open = message.find('\'', close + 1);
  }
  const auto begin =
      std::min(instruction.find_first_of("abcdefghijklmnopqrstuvwxyz"), instruction.size());
  instruction.remove_prefix(begin);
  words.emplace_back(instruction.substr(0, instruction.find_first_of(" \t;,")));
  std::erase(words, std::string());
  return words;
}

/// The line nearest to `place` with one of the words, and the column of the word in it.
void refine(Diagnostic& diagnostic, std::string_view text, const std::vector<std::string>& words) {
  const int place = diagnostic.line;
  for (const std::string& word : words) {
    for (int i = 0; i <= 2 * kNear; ++i) {
      const int line = i % 2 == 1 ? place + (i + 1) / 2 : place - i / 2;
      if (line < 1) continue;
      const std::string_view source = line_of_text(text, line);
      const auto at = source.find(word);
      if (at == std::string_view::npos) continue;
      diagnostic.line = line;
      diagnostic.column = static_cast<int>(
          1 + std::count_if(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(at),
                            [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
      return;
    }
  }
}

/// The options with those of a line table; for PTX alone where `is_virtual`.
std::vector<std::string> with_lines(std::vector<std::string> options, bool is_virtual) {
  for (std::string& option : options) {
    if (is_virtual && option.starts_with(kArch)) {
      option = "--gpu-architecture=compute_" + option.substr(kArch.size());
    }
  }
  const bool has_lines = std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return option == kLineInfo || option == "--device-debug";
  });
  if (!has_lines) options.emplace_back(kLineInfo);
  return options;
}

/// The messages of the same compile with a line table: they give lines of the PTX.
std::optional<std::vector<LogMessage>> messages_with_lines(const LoadedNvrtc& nvrtc,
                                                           const FailedCompile& failed,
                                                           const CompilerTexts& texts,
                                                           const CompileDeadline& deadline) {
  NvrtcUnit unit(nvrtc, failed.text, failed.path, texts.headers);
  if (unit.compile(with_lines(failed.options, false), deadline)) return std::nullopt;
  return parse_compile_log(unit.log());
}

void locate(LogMessage& message, const std::string& ptx, const CompilerTexts& texts) {
  SourceLine place = source_of_ptx_line(ptx, message.ptx_line);
  if (place.line == 0) return;
  place.file = name_as_given(place.file, texts);
  Diagnostic& diagnostic = message.diagnostic;
  diagnostic.file = place.file;
  diagnostic.line = place.line;
  if (const auto colon = diagnostic.message.find(": "); colon != std::string::npos) {
    diagnostic.message = "ptxas" + diagnostic.message.substr(colon);
  }
  const auto header = texts.headers.find(place.file);
  const std::string_view instruction = line_of_text(ptx, message.ptx_line);
  const auto words = words_of(diagnostic.message, instruction);
  if (place.file == texts.name) {
    refine(diagnostic, texts.text, words);
  } else if (header != texts.headers.end()) {
    refine(diagnostic, header->second, words);
  }
}

}  // namespace

void locate_assembly_errors(const LoadedNvrtc& nvrtc, const FailedCompile& failed,
                            const CompilerTexts& texts, const CompileDeadline& deadline,
                            std::vector<LogMessage>& messages) {
  if (std::none_of(messages.begin(), messages.end(), has_place)) return;
  try {
    if (with_lines(failed.options, false) != failed.options) {
      auto again = messages_with_lines(nvrtc, failed, texts, deadline);
      if (!again || again->size() != messages.size()) return;
      messages = std::move(*again);
    }
    NvrtcUnit unit(nvrtc, failed.text, failed.path, texts.headers);
    if (!unit.compile(with_lines(failed.options, true), deadline)) return;
    const std::string ptx = unit.ptx();
    for (LogMessage& message : messages) {
      if (has_place(message)) locate(message, ptx, texts);
    }
  } catch (const Timeout&) {
    // The error itself is known; only its place is not.
  }
}

}  // namespace kernwright
