// Names a test case that runs for long, ends one that hangs, and lists the slowest at the end.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::testing {
namespace {

constexpr std::size_t kSlowest = 5;
constexpr double kSlow = 2;  // seconds
constexpr unsigned kLimit = 600;

/// The number of this environment variable, zero without it.
unsigned number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

/// The line of the running test case, made ahead: a signal handler may only write it.
struct Running {
  char text[256] = {};
  std::size_t bytes = 0;
  unsigned seconds = 0;
  unsigned limit = kLimit;
  unsigned period = 60;  // seconds between two lines about one test case
};
Running running;

void write_line(const char* head, std::size_t bytes) {
  // A failed write has no remedy here.
  [[maybe_unused]] auto written = ::write(STDERR_FILENO, head, bytes);
  written = ::write(STDERR_FILENO, running.text, running.bytes);
}

void at_alarm(int) {
  running.seconds += running.period;
  if (running.seconds >= running.limit) {
    constexpr char kHangs[] = "a test case hangs and is ended: ";
    write_line(kHangs, sizeof kHangs - 1);
    std::abort();
  }
  constexpr char kRuns[] = "still running: ";
  write_line(kRuns, sizeof kRuns - 1);
  ::alarm(running.period);
}

class Watchdog : public doctest::IReporter {
 public:
  explicit Watchdog(const doctest::ContextOptions&) {
    const unsigned limit = number_of("KERNWRIGHT_TEST_LIMIT");
    // A soak is one long test case.
    running.limit = (limit > 0 ? limit : kLimit) + number_of("KERNWRIGHT_SOAK");
    running.period = std::min(running.period, running.limit);
  }

  void test_case_start(const doctest::TestCaseData& test) override {
    name_ = std::string(test.m_name) + " (" + test.m_file.c_str() + ":" +
            std::to_string(test.m_line) + ")";
    running.bytes = std::min(name_.size(), sizeof running.text - 1);
    std::memcpy(running.text, name_.data(), running.bytes);
    running.text[running.bytes++] = '\n';
    running.seconds = 0;
    struct sigaction action = {};
    action.sa_handler = at_alarm;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGALRM, &action, nullptr);
    ::alarm(running.period);
  }
  void test_case_reenter(const doctest::TestCaseData&) override { ::alarm(running.period); }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    ::alarm(0);
    if (stats.seconds >= kSlow) slow_.emplace_back(stats.seconds, name_);
  }
  void test_run_end(const doctest::TestRunStats&) override {
    std::sort(slow_.rbegin(), slow_.rend());
    slow_.resize(std::min(slow_.size(), kSlowest));
    for (const auto& [seconds, name] : slow_) std::printf("%8.1f s  %s\n", seconds, name.c_str());
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  std::string name_;
  std::vector<std::pair<double, std::string>> slow_;
};

REGISTER_LISTENER("watchdog", 1, Watchdog);

}  // namespace
}  // namespace kernwright::testing
