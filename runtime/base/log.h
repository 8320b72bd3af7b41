// A line of the library's log, formatted only if it is written.
#pragma once

#include "base/format.h"
#include "base/log_sink.h"

#include <utility>

namespace kernwright {

/// Formats and writes, but only when the level is enabled; a failure to format is ignored.
template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> pattern, Args&&... args) noexcept {
  if (!log_enabled(level)) return;
  try {
    log_message(level, kernwright::format(pattern, std::forward<Args>(args)...));
  } catch (...) {
    log_message(level, "(a log message could not be formatted)");
  }
}

}  // namespace kernwright
