// A file of rows, one JSON object a line: the journal of sessions and the store of their results.
#pragma once

#include "base/file_system.h"
#include "tune/store/row.h"

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// An unusable line.
struct LineProblem {
  std::size_t line = 0;  ///< counted from 1
  std::string what{};    ///< "is no JSON object"
};

/// One text for each kind: "line 7 (and 2 more) is no JSON object".
std::vector<std::string> problem_texts(const std::vector<LineProblem>& problems);
/// Logs a warning for lines of the file not yet reported by this process.
void warn_lines(const std::string& path, const std::vector<LineProblem>& problems);

/// The contents of a StoreFile, in the order of its lines.
struct StoreContents {
  std::vector<Row> rows;
  std::vector<std::size_t> lines;     ///< where each row stands
  std::vector<LineProblem> skipped;   ///< in order
  std::vector<std::string> problems;  ///< the texts of these
  bool exists = false;                ///< whether there is a file
};

/// Several processes and threads may append to one file and read it at the same time; files merge
/// with `cat`. Lines are appended and never changed. The file is opened for each call, so a moved
/// or replaced one is noticed. Thread-safe.
class StoreFile {
 public:
  /// Touches no file. Throws InvalidArgument for an empty path or one with a NUL.
  explicit StoreFile(std::string path, FileSystem& system = FileSystem::real());

  const std::string& path() const noexcept { return path_; }

  /// Adds one line and returns when it is on the disk. Makes the file (not its folder). "v" is
  /// added. Under a lock; an unfinished line of a killed process is closed first.
  ///
  /// Throws InvalidArgument for a row other than an object, or without "kind" or "session" as
  /// strings, and for a file without any row of a store; StoreError if the file cannot be opened or
  /// written (a full disk). The row may be appended again then: a reader skips the rest of a failed
  /// call.
  void append(const Row& row);
  /// The same for several rows: one write, one wait for the disk.
  void append_all(const std::vector<Row>& rows);

  /// Throws InvalidArgument for a file that append() would refuse as no store; StoreError for a
  /// folder, or an unreadable file.
  void require_store() const;

  /// The rows of one kind and one session; empty: of all. Other lines are skipped, told in
  /// `problems` and logged as a warning, each once in this process. With a `kind`, apparent rows of
  /// another one are not looked into. A missing file has no rows. Throws StoreError for a folder,
  /// or an unreadable file.
  StoreContents read(std::string_view kind = {}, std::string_view session = {}) const;

 private:
  void append_text(std::string text);

  std::string path_;
  FileSystem* system_;
  std::mutex mutex_;
};

/// The rows within `text`, as StoreFile::read() tells them. `path` is for messages.
StoreContents read_rows(std::string_view text, std::string_view kind = {},
                        std::string_view session = {});

}  // namespace kernwright
