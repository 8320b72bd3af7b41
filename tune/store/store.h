// Results of sessions, found by their key.
#pragma once

#include "tune/store/store_file.h"
#include "tune/store/store_key.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kernwright {

/// A member of the key, as a difference between a result and the query.
enum class KeyPart : std::uint8_t {
  source,
  space,
  device,
  nvrtc,
  driver,
  policy,
  objective,
  problem,
};
inline constexpr std::size_t kKeyParts = 8;

/// "source", "space", ...
const char* key_part_name(KeyPart part) noexcept;

struct KeyDifference {
  KeyPart part;
  std::string text;  ///< "driver: 12080, not 13000"
};

/// A result valid for a query, or nearly.
struct StoreMatch {
  Row row;
  std::string path;                        ///< of its file
  std::vector<KeyDifference> differences;  ///< empty: an exact hit
  double distance = 0;                     ///< for ranks: 0 for an exact hit
};

/// Lines of a file with useless rows.
using RowCheck = std::function<std::vector<LineProblem>(const StoreContents&)>;

/// The results in several files; changed files are read again. Writes nothing. Thread-safe.
class Store {
 public:
  /// Reads the files. A missing one has no results, and may come later. Throws StoreError for a
  /// folder or an unreadable file.
  explicit Store(std::vector<std::string> paths, FileSystem& system = FileSystem::real());
  /// Adds rows from outside the files, such as those of a package. `name` is for messages.
  void add(std::string name, std::string_view text);

  /// The results of this kernel, nearest first. Exact hits: equal source hash, space hash, device,
  /// NVRTC, driver, policy and objective as far as the query has them, and every problem value in
  /// the same bucket. Among them the one for the nearest problem comes first, of those for one
  /// problem the fastest, then the newest. A row without a member of the query is no exact hit.
  /// Reads changed files; throws as the constructor.
  std::vector<StoreMatch> find(const StoreKey& query);

  /// Every result, in the order of the files and lines.
  std::vector<Row> results();
  /// The useless lines of the files, as "PATH: line 3 is cut short", and the missing files. All
  /// lines are looked into, also those of no result; `check` tells the errors of rows.
  std::vector<std::string> problems(const RowCheck& check = {});

 private:
  struct Source;

  void refresh();

  FileSystem* system_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Source>> sources_;
};

}  // namespace kernwright
