// Reads the results of several files and ranks them for a query.
#include "tune/store/store.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace kernwright {
namespace {

struct PartRule {
  const char* name;
  double distance;  ///< the weight of the difference
};

// NOTE: a change of the source may be anything; another driver or compiler mostly changes nothing.
constexpr std::array<PartRule, kKeyParts> kParts = {{
    {"source", 1000},
    {"space", 20},
    {"device", 50},
    {"nvrtc", 3},
    {"driver", 2},
    {"policy", 5},
    {"objective", 300},
    {"problem", 0},  // by the sizes
}};

/// Distance for a problem value that is not a size, or is missing on one side.
constexpr double kOtherValue = 30;

struct Result {
  Row row;
  StoreKey key;
};

std::optional<Result> parse_result(Row row, std::vector<std::string>& problems) {
  try {
    if (!row.contains("config") || !row["config"].is_object())
      throw InvalidArgument("it has no \"config\"");
    for (const auto& [name, value] : row["config"].items()) parse_value(value);
    if (const auto time = row.find("median_ms");
        time != row.end() && time->is_number() && !(time->get<double>() > 0)) {
      throw InvalidArgument(
          format("its time is {} ms: times are numbers above 0", time->get<double>()));
    }
    StoreKey key = StoreKey::from_row(row);
    return Result{std::move(row), std::move(key)};
  } catch (const InvalidArgument& error) {
    problems.push_back(format("a result cannot be used: {}", error.what()));
    return std::nullopt;
  }
}

/// Facts for recognizing a changed file.
struct Stamp {
  bool exists = false;
  std::uint64_t inode = 0, size = 0;
  std::int64_t seconds = 0, nanoseconds = 0;
  bool operator==(const Stamp&) const = default;

  static Stamp from(FileSystem& system, const std::string& path) {
    struct stat status {};
    // A link is followed: its target is the file that changes.
    const FileHandle file(system, system.open(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK, 0));
    if (!file || system.status(file.get(), status) < 0) return {};
    return {true, static_cast<std::uint64_t>(status.st_ino),
            static_cast<std::uint64_t>(status.st_size), status.st_mtim.tv_sec,
            status.st_mtim.tv_nsec};
  }
};

double value_distance(const Value& a, const Value& b) {
  const auto* x = std::get_if<std::int64_t>(&a);
  const auto* y = std::get_if<std::int64_t>(&b);
  if (x == nullptr || y == nullptr) return values_equal(a, b) ? 0 : kOtherValue;
  if (*x == *y) return 0;
  if (*x <= 0 || *y <= 0) return kOtherValue;
  return std::fabs(std::log2(static_cast<double>(*x) / static_cast<double>(*y)));
}

std::string device_text(const DeviceClass& device) {
  return format("{} (sm_{}{}, {} SMs)", device.name, device.major, device.minor, device.sm_count);
}

class KeyComparison {
 public:
  KeyComparison(const StoreKey& wanted, const StoreKey& found) {
    // Without header files, the hash of the text equals source_hash().
    if (found.text.empty() || wanted.source != found.text)
      text(KeyPart::source, wanted.source, found.source);
    text(KeyPart::space, wanted.space, found.space);
    device(wanted.device, found.device);
    text(KeyPart::nvrtc, wanted.nvrtc, found.nvrtc);
    if (wanted.driver != 0 && wanted.driver != found.driver)
      differ(KeyPart::driver, format("{}", found.driver), format("{}", wanted.driver));
    text(KeyPart::policy, wanted.policy, found.policy);
    text(KeyPart::objective, wanted.objective, found.objective);
    problem(wanted.problem, found.problem);
  }

  std::vector<KeyDifference> differences;
  double distance = 0;
  double problem_distance = 0;  ///< also within a bucket

 private:
  void differ(KeyPart part, const std::string& found, const std::string& wanted) {
    const PartRule& rule = kParts[static_cast<std::size_t>(part)];
    differences.push_back(
        {part, format("{}: {}, not {}", rule.name, found.empty() ? "unknown" : found, wanted)});
    distance += rule.distance;
  }
  void text(KeyPart part, const std::string& wanted, const std::string& found) {
    if (!wanted.empty() && wanted != found) differ(part, found, wanted);
  }
  void device(const DeviceClass& wanted, const DeviceClass& found) {
    if (wanted == DeviceClass{} || wanted == found) return;
    differ(KeyPart::device, device_text(found), device_text(wanted));
    if (wanted.major != found.major || wanted.minor != found.minor) distance *= 2;
  }
  void problem(const ProblemValues& wanted, const ProblemValues& found) {
    std::string other;
    const auto note = [&](const std::string& name, const std::string& values) {
      other += format("{}{} {}", other.empty() ? "" : ", ", name, values);
    };
    for (const auto& [name, value] : wanted) {
      const auto same = found.find(name);
      const double apart = same == found.end() ? kOtherValue : value_distance(value, same->second);
      problem_distance += apart;
      if (same == found.end()) {
        note(name, format("unknown, not {}", value_text(value)));
      } else if (problem_bucket(value) != problem_bucket(same->second)) {
        note(name, format("{}, not {}", value_text(same->second), value_text(value)));
      }
    }
    for (const auto& [name, value] : found) {
      if (wanted.contains(name)) continue;
      problem_distance += kOtherValue;
      note(name, format("{}, not given", value_text(value)));
    }
    if (other.empty()) return;
    differences.push_back({KeyPart::problem, "problem: " + other});
    distance += 1 + problem_distance;
  }
};

/// The smaller of two results for one key is better; a device without a clock has only a score.
double stored_cost(const Row& row) {
  for (const char* name : {"median_ms", "score"}) {
    const auto cost = row.find(name);
    if (cost != row.end() && cost->is_number()) return cost->get<double>();
  }
  return HUGE_VAL;
}

}  // namespace

const char* key_part_name(KeyPart part) noexcept {
  return kParts[static_cast<std::size_t>(part)].name;
}

struct Store::Source {
  std::string path;
  std::optional<StoreFile> file;  ///< none for rows without one
  std::optional<Stamp> stamp;     ///< of the last read
  std::vector<Result> results;
  std::vector<std::string> skipped;   ///< of the last read
  std::vector<std::string> unusable;  ///< results

  void take(StoreContents contents) {
    skipped = std::move(contents.problems);
    unusable.clear();
    results.clear();
    for (Row& row : contents.rows) {
      if (auto result = parse_result(std::move(row), unusable))
        results.push_back(*std::move(result));
    }
  }
};

Store::Store(std::vector<std::string> paths, FileSystem& system) : system_(&system) {
  for (std::string& path : paths) {
    auto source = std::make_shared<Source>();
    source->path = path;
    source->file.emplace(std::move(path), system);
    sources_.push_back(std::move(source));
  }
  refresh();
}

void Store::add(std::string name, std::string_view text) {
  auto source = std::make_shared<Source>();
  source->path = std::move(name);
  source->take(read_rows(text, "result"));
  for (const auto* problems : {&source->skipped, &source->unusable}) {
    for (const std::string& problem : *problems)
      log(LogLevel::warning, "the store {}: {}", source->path, problem);
  }
  const std::lock_guard held(mutex_);
  sources_.push_back(std::move(source));
}

void Store::refresh() {
  for (const auto& source : sources_) {
    if (!source->file) continue;
    // Taken first: rows appended during the read then count as a change.
    const Stamp now = Stamp::from(*system_, source->path);
    if (source->stamp == now) continue;
    source->take(source->file->read("result"));
    source->stamp = now;
  }
}

std::vector<StoreMatch> Store::find(const StoreKey& query) {
  struct Found {
    const Result* result;
    const std::string* path;
    KeyComparison comparison;
    std::size_t place;
  };
  const std::lock_guard held(mutex_);
  refresh();
  std::vector<Found> found;
  for (const auto& source : sources_) {
    for (const Result& result : source->results) {
      if (result.key.kernel != query.kernel) continue;
      found.push_back({&result, &source->path, KeyComparison(query, result.key), found.size()});
    }
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    const KeyComparison &x = a.comparison, &y = b.comparison;
    if (x.distance != y.distance) return x.distance < y.distance;
    if (x.problem_distance != y.problem_distance) return x.problem_distance < y.problem_distance;
    if (a.result->key.problem != b.result->key.problem)
      return a.result->key.problem < b.result->key.problem;
    const double p = stored_cost(a.result->row), q = stored_cost(b.result->row);
    if (p != q) return p < q;
    return a.place > b.place;
  });
  std::vector<StoreMatch> matches;
  for (Found& match : found) {
    matches.push_back({match.result->row, *match.path, std::move(match.comparison.differences),
                       match.comparison.distance});
  }
  return matches;
}

std::vector<Row> Store::results() {
  const std::lock_guard held(mutex_);
  refresh();
  std::vector<Row> rows;
  for (const auto& source : sources_) {
    for (const Result& result : source->results) rows.push_back(result.row);
  }
  return rows;
}

std::vector<std::string> Store::problems(const RowCheck& check) {
  const std::lock_guard held(mutex_);
  refresh();
  std::vector<std::string> all;
  for (const auto& source : sources_) {
    std::vector<std::string> texts = source->skipped;
    if (source->file) {
      const StoreContents whole = source->file->read();
      std::vector<LineProblem> lines = whole.skipped;
      if (check) {
        const std::vector<LineProblem> more = check(whole);
        lines.insert(lines.end(), more.begin(), more.end());
      }
      std::stable_sort(lines.begin(), lines.end(),
                       [](const auto& a, const auto& b) { return a.line < b.line; });
      texts = problem_texts(lines);
      if (!whole.exists) texts.emplace_back("there is no such file");
    }
    texts.insert(texts.end(), source->unusable.begin(), source->unusable.end());
    for (const std::string& text : texts) all.push_back(format("{}: {}", source->path, text));
  }
  return all;
}

}  // namespace kernwright
