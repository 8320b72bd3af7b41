// A session on the disk: its subject, each trial as it ends, and its result.
#pragma once

#include "tune/session/session_rows.h"
#include "tune/store/store_file.h"
#include "tune/store/store_key.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// Rows of one session in a store. A failed write loses nothing: its rows are kept and written with
/// the next one. Not thread-safe.
class SessionJournal {
 public:
  /// Touches no file. `about` holds the members of the session row beside its key. For a resumed
  /// session the members "launch", "arguments", "checked" and "scored" must be equal; with other
  /// "limits", trials ended by the old ones are repeated.
  SessionJournal(std::string path, StoreKey key, Row about, const Space& space);

  /// The session's name in its rows.
  const std::string& id() const noexcept { return id_; }
  const StoreFile& file() const noexcept { return file_; }

  /// Trials of earlier sessions about the same, by index; the last one of each counts. Their
  /// sessions are named in this one's row. A trial names its own subject, so it counts even if its
  /// session's row was lost. Useless trials bring a warning, each once in a process. Empty if the
  /// key tells too little (no source hash).
  std::map<std::uint64_t, Trial> earlier();

  // Return when the row is on the disk, or was kept: see unsaved().
  void begin();
  void record(const Trial& trial);
  /// Nothing is written where all trials failed.
  void conclude(const SessionResult& result);

  /// Rows not written so far, and the reason.
  std::size_t unsaved() const noexcept { return kept_.size(); }
  const std::string& failure() const noexcept { return failure_; }

 private:
  void append(Row row);
  /// A hash of everything that must be equal between sessions.
  std::string about_hash() const;

  StoreFile file_;
  std::string id_;
  StoreKey key_;
  Row about_;
  const Space& space_;
  std::vector<std::string> resumed_;
  std::vector<Row> kept_;
  std::string failure_;
};

}  // namespace kernwright
