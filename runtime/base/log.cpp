// The process-wide log: an atomic level and a sink under a lock.
#include "base/log.h"

#include "base/env.h"
#include "base/format.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <string>

namespace kernwright {

namespace {

constexpr std::array<const char*, 5> kNames = {"off", "error", "warning", "info", "debug"};

LogLevel level_from_environment() noexcept {
  try {
    return *log_level_from_name(env_choice(Env::log));
  } catch (const std::exception& error) {
    try {
      write_log_line(LogLevel::warning, error.what());
    } catch (...) {
      // Out of memory: there is nothing to say it with.
    }
    return LogLevel::warning;
  }
}

struct LogState {
  std::atomic<LogLevel> level = level_from_environment();
  std::mutex mutex;
  std::shared_ptr<const LogSink> sink;  // null: the default one
};

/// Leaked on purpose: destructors of other statics may still log.
LogState& log_state() {
  static auto* const instance = new LogState;
  return *instance;
}

}  // namespace

const char* log_level_name(LogLevel level) noexcept {
  const auto index = static_cast<std::size_t>(level);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::optional<LogLevel> log_level_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

LogLevel log_level() noexcept { return log_state().level.load(std::memory_order_relaxed); }

void set_log_level(LogLevel level) noexcept {
  log_state().level.store(level, std::memory_order_relaxed);
}

void set_log_sink(LogSink sink) {
  auto next = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock(log_state().mutex);
  log_state().sink.swap(next);
}

bool log_enabled(LogLevel level) noexcept { return level != LogLevel::off && level <= log_level(); }

void log_message(LogLevel level, std::string_view message) noexcept {
  if (!log_enabled(level)) return;
  try {
    std::shared_ptr<const LogSink> sink;
    {
      const std::lock_guard lock(log_state().mutex);
      sink = log_state().sink;
    }
    if (sink) {
      (*sink)(level, message);
    } else {
      write_log_line(level, message);
    }
  } catch (...) {
    // A failing log must not change the program's work.
  }
}

void log_release_failure(std::string_view object, std::string_view error) noexcept {
  log(LogLevel::error, "could not release {}: {}", object, error);
}

void write_log_line(LogLevel level, std::string_view message) {
  const std::string line = format("kernwright: {}: {}\n", log_level_name(level), message);
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace kernwright
