// A message of the log as a line of stderr.
#pragma once

#include "base/log_sink.h"

#include <string_view>

namespace kernwright {

/// Writes "kernwright: warning: message" to stderr, whatever the level of the log. One write, so
/// that lines of several threads do not mix.
void write_log_line(LogLevel level, std::string_view message);

}  // namespace kernwright
