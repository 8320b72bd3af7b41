// Levels, the sink, and the default line on stderr.
#include "base/log.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace kernwright;

namespace {

/// Restores level and sink.
struct LogGuard {
  LogLevel before = log_level();
  ~LogGuard() {
    set_log_level(before);
    set_log_sink({});
  }
};

struct Line {
  LogLevel level;
  std::string text;
};

}  // namespace

TEST_CASE("log: names of levels lead back to the level") {
  for (int i = 0; i <= static_cast<int>(LogLevel::debug); ++i) {
    const auto level = static_cast<LogLevel>(i);
    CHECK(log_level_from_name(log_level_name(level)) == level);
  }
  CHECK_FALSE(log_level_from_name("verbose").has_value());
  CHECK_FALSE(log_level_from_name("").has_value());
}

TEST_CASE("log: only messages up to the level reach the sink") {
  const LogGuard guard;
  std::vector<Line> lines;
  set_log_sink([&](LogLevel level, std::string_view text) {
    lines.push_back({level, std::string(text)});
  });
  set_log_level(LogLevel::warning);
  log(LogLevel::error, "e{}", 1);
  log(LogLevel::warning, "w{}", 2);
  log(LogLevel::info, "i{}", 3);
  log_message(LogLevel::off, "never");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].level == LogLevel::error);
  CHECK(lines[0].text == "e1");
  CHECK(lines[1].text == "w2");
  set_log_level(LogLevel::off);
  CHECK_FALSE(log_enabled(LogLevel::error));
  log(LogLevel::error, "e");
  CHECK(lines.size() == 2);
  set_log_level(LogLevel::debug);
  log_release_failure("stream 3", "it is gone");
  REQUIRE(lines.size() == 3);
  CHECK(lines[2].text == "could not release stream 3: it is gone");
}

TEST_CASE("log: a sink may log, replace itself, and throw") {
  const LogGuard guard;
  set_log_level(LogLevel::info);
  int inner = 0;
  set_log_sink([&](LogLevel, std::string_view text) {
    if (text == "outer") log(LogLevel::info, "inner");
    if (text == "inner") ++inner;
    if (text == "replace") {
      set_log_sink([&](LogLevel, std::string_view) { throw std::runtime_error("sink"); });
    }
  });
  log(LogLevel::info, "outer");
  CHECK(inner == 1);
  log(LogLevel::info, "replace");
  CHECK_NOTHROW(log(LogLevel::info, "thrown away"));
}

TEST_CASE("log: threads may log while the sink changes") {
  const LogGuard guard;
  set_log_level(LogLevel::info);
  std::atomic<int> seen{0};
  const LogSink count = [&](LogLevel, std::string_view) { ++seen; };
  set_log_sink(count);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 500; ++i) log(LogLevel::info, "{}", i);
    });
  }
  for (int i = 0; i < 100; ++i) set_log_sink(count);
  for (std::thread& thread : threads) thread.join();
  CHECK(seen == 2000);
}

TEST_CASE("log: the default sink writes one line to stderr") {
  const LogGuard guard;
  set_log_sink({});
  set_log_level(LogLevel::info);
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const int saved = dup(STDERR_FILENO);
  dup2(pipe_ends[1], STDERR_FILENO);
  log(LogLevel::info, "compiled {} in {} ms", "saxpy", 12);
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(pipe_ends[1]);
  char buffer[256];
  const ssize_t size = read(pipe_ends[0], buffer, sizeof buffer);
  close(pipe_ends[0]);
  REQUIRE(size > 0);
  CHECK(std::string(buffer, static_cast<std::size_t>(size)) ==
        "kernwright: info: compiled saxpy in 12 ms\n");
}
