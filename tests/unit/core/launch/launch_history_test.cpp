// The ring of last launches: order, limits, forgetting, and writers racing readers.
#include "core/launch/launch_history.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <thread>

using namespace kernwright;

namespace {

SourceLocation resolve(const void* origin, std::uint64_t position) {
  return {static_cast<const char*>(origin), static_cast<int>(position)};
}

LaunchSite site(const char* file, std::uint64_t line) { return {file, line, resolve}; }

}  // namespace

TEST_CASE("launch site: text where it is known, nothing where it is not or cannot be told") {
  CHECK(LaunchSite{}.to_string().empty());
  CHECK(site("app.py", 12).to_string() == "app.py:12");
  CHECK(site("app.py", 0).to_string() == "app.py");
  CHECK(site("", 3).to_string().empty());
  const LaunchSite throwing{nullptr, 0, [](const void*, std::uint64_t) -> SourceLocation {
                              throw std::runtime_error("no");
                            }};
  CHECK(throwing.to_string().empty());
  const int line = __LINE__ + 1;
  const std::string here = LaunchSite::here().to_string();
  // From the root of the project on: no folder of the machine that it was built on.
  CHECK(here == "tests/unit/core/launch/launch_history_test.cpp:" + std::to_string(line));
  CHECK(LaunchSite::here("/opt/app.cpp", 3).to_string() == "/opt/app.cpp:3");
}

TEST_CASE("kernel tag: keeps names of every length, cutting long ones") {
  CHECK(KernelTag("", "").name().empty());
  CHECK(KernelTag("saxpy", "s").name() == "saxpy");
  const std::string fits(63, 'k');
  CHECK(KernelTag(fits, "").name() == fits);
  const std::string cut = KernelTag(std::string(64, 'k'), "").name();
  CHECK(cut == std::string(60, 'k') + "...");
  CHECK(KernelTag("a", "x").lowered_hash == KernelTag("b", "x").lowered_hash);
  CHECK(KernelTag("a", "x").lowered_hash != KernelTag("a", "y").lowered_hash);
  CHECK(KernelTag("a", "x").first_line == 1);
  CHECK(KernelTag("a", "x", {"app.py", 41}).first_line == 41);
  CHECK(KernelTag("a", "x", {"app.py", 41}).file_hash == KernelTag::hash("app.py"));
}

TEST_CASE("history: newest first, equal neighbours counted, no more than its capacity") {
  LaunchHistory history;
  CHECK(history.describe().empty());
  history.note(KernelTag("first", "1"), {});
  for (int i = 0; i < 3; ++i) history.note(KernelTag("fill", "2"), site("app.py", 9));
  history.note(KernelTag("saxpy", "3"), site("app.py", 12));
  CHECK(history.describe() == "saxpy (app.py:12), fill x 3 (app.py:9), first");
  for (std::size_t i = 0; i < 2 * LaunchHistory::kCapacity; ++i) {
    history.note(KernelTag("k" + std::to_string(i), ""), {});
  }
  const auto entries = history.entries();
  REQUIRE(entries.size() == LaunchHistory::kCapacity);
  CHECK(entries.front().kernel.name() == "k15");
  CHECK(entries.back().kernel.name() == "k8");
}

TEST_CASE("history: launches that ended well are forgotten, later ones stay") {
  LaunchHistory history;
  history.note(KernelTag("a", ""), {});
  const std::uint64_t position = history.position();
  history.note(KernelTag("b", ""), {});
  history.forget_until(position);
  CHECK(history.describe() == "b");
  history.forget_until(0);
  CHECK(history.describe() == "b");
  history.forget_until(history.position());
  CHECK(history.describe().empty());
}

TEST_CASE("history: what readers see while threads write is always one whole launch") {
  LaunchHistory history;
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int w = 0; w < 3; ++w) {
    writers.emplace_back([&, w] {
      const std::string name(8 + 8 * static_cast<std::size_t>(w), static_cast<char>('a' + w));
      const KernelTag tag(name, name);
      while (!stop) history.note(tag, site("file", static_cast<std::uint64_t>(w) + 1));
    });
  }
  int seen = 0;
  int torn = 0;
  for (int round = 0; round < 20000 || seen == 0; ++round) {
    for (const auto& entry : history.entries()) {
      ++seen;
      const std::string name = entry.kernel.name();
      const auto writer = static_cast<std::size_t>(entry.site.position - 1);
      if (writer > 2 || name != std::string(8 + 8 * writer, static_cast<char>('a' + writer)) ||
          entry.kernel.lowered_hash != KernelTag::hash(name)) {
        ++torn;
      }
    }
  }
  stop = true;
  for (auto& writer : writers) writer.join();
  CHECK(torn == 0);
  CHECK(seen > 0);
}

TEST_CASE(
    "launch history: first lines are known by kernel and file, of the newest many thousands") {
  const auto line = [](const std::string& name) {
    return KernelTag::find_first_line(name, "lines.py");
  };
  KernelTag("first", "first", {"lines.py", 7});
  CHECK(line("first") == 7);
  CHECK(KernelTag::find_first_line("first", "other.py") == 1);
  KernelTag("first", "first", {"lines.py", 9});
  CHECK(line("first") == 9);
  for (std::uint64_t i = 0; i < 70000; ++i)
    KernelTag("k", "k" + std::to_string(i), {"lines.py", static_cast<int>(2 + i % 100)});
  CHECK(line("k69999") == 2 + 69999 % 100);
  CHECK(line("k69000") == 2 + 69000 % 100);
  CHECK(line("first") == 1);
}
