// The library's one log without formatting: levels, and a sink that can be replaced.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace kernwright {

enum class LogLevel : std::uint8_t { off, error, warning, info, debug };

/// "off", "error", "warning", "info" or "debug".
const char* log_level_name(LogLevel level) noexcept;
std::optional<LogLevel> log_level_from_name(std::string_view name) noexcept;

/// The level up to which messages are written: KERNWRIGHT_LOG until set_log_level() is called.
LogLevel log_level() noexcept;
void set_log_level(LogLevel level) noexcept;

/// Takes the messages instead of the default sink, one line to stderr each. An empty function
/// restores the default. The sink runs on the logging thread, with no lock held, and may log or
/// replace the sink itself; its exceptions are ignored.
using LogSink = std::function<void(LogLevel, std::string_view)>;
void set_log_sink(LogSink sink);

/// Whether a message of this level would be written: ask before building a costly one.
bool log_enabled(LogLevel level) noexcept;

/// Writes one message. Never throws; safe from any thread and from destructors.
void log_message(LogLevel level, std::string_view message) noexcept;

/// Writes "kernwright: warning: message" to stderr, whatever the level of the log. One write, so
/// that lines of several threads do not mix.
void write_log_line(LogLevel level, std::string_view message);

/// For destructors: a resource could not be released. `object` says which, `error` why.
void log_release_failure(std::string_view object, std::string_view error) noexcept;

}  // namespace kernwright
