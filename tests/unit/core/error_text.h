// Helpers for tests of messages: those of exceptions, and those of the log.
#pragma once

#include "base/log.h"

#include <string>
#include <string_view>
#include <vector>

namespace kernwright::testing {

/// The message of the Exception thrown by `call`; other exceptions pass.
template <typename Exception, typename Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Collects the lines logged while it lives.
struct LogLines {
  LogLines() {
    set_log_sink([this](LogLevel, std::string_view text) { lines.emplace_back(text); });
  }
  ~LogLines() { set_log_sink({}); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;
  std::vector<std::string> lines;
};

}  // namespace kernwright::testing
