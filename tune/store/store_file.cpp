// Appends rows to the disk under a lock; reads all valid rows and reports skipped lines.
#include "tune/store/store_file.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

namespace kernwright {
namespace {

/// Far beyond a file's contents: readers and writers of the lines themselves do not meet it.
constexpr std::uint64_t kLockOffset = std::uint64_t{1} << 62;
constexpr std::chrono::seconds kLockPatience{30};
constexpr std::array<std::string_view, 3> kKinds = {"session", "trial", "result"};

[[noreturn]] void fail_store(const std::string& path, const char* what, ssize_t result) {
  throw StoreError(format("the store {} cannot be {}: {}", path, what, describe_failure(result)),
                   static_cast<int>(-result));
}

/// Opens a regular file and tells its size.
FileHandle open_file(FileSystem& system, const std::string& path, int flags, std::uint64_t& size) {
  // A pipe must not hold the open.
  int opened = system.open(AT_FDCWD, path.c_str(), flags | O_NONBLOCK, 0666);
  while (opened == -EINTR) opened = system.open(AT_FDCWD, path.c_str(), flags | O_NONBLOCK, 0666);
  if (opened < 0) return {system, opened};
  FileHandle file(system, opened);
  struct stat status {};
  if (const int result = system.status(opened, status); result < 0)
    fail_store(path, "read", result);
  if (!S_ISREG(status.st_mode)) {
    const bool is_folder = S_ISDIR(status.st_mode);
    throw StoreError(
        format("the store {} is {}: name a file", path, is_folder ? "a folder" : "no regular file"),
        is_folder ? EISDIR : EINVAL);
  }
  size = static_cast<std::uint64_t>(status.st_size);
  return file;
}

/// Waits until this open file holds the lock; it ends with the file. Where the file system has no
/// locks there is none.
void lock_file(FileSystem& system, const std::string& path, const FileHandle& file) {
  const auto end = std::chrono::steady_clock::now() + kLockPatience;
  while (true) {
    const int result = system.try_lock(file.get(), kLockOffset);
    if (result != -EAGAIN && result != -EINTR) return;
    if (std::chrono::steady_clock::now() > end) {
      throw StoreError(format("the store {} was locked by another process for {} s: see what "
                              "holds it, or use another file",
                              path, kLockPatience.count()),
                       EAGAIN);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Brings the name of a new file to the disk, where the file system can.
void sync_folder(FileSystem& system, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const FileHandle handle(system, system.open(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY, 0));
  if (handle) system.sync(handle.get());
}

bool ends_in_mid_line(FileSystem& system, const std::string& path, const FileHandle& file,
                      std::uint64_t size) {
  if (size == 0) return false;
  char last = '\n';
  ssize_t result = system.read_at(file.get(), &last, 1, size - 1);
  while (result == -EINTR) result = system.read_at(file.get(), &last, 1, size - 1);
  if (result < 0) fail_store(path, "read", result);
  return last != '\n';
}

/// Whether these bytes, the first of a file, are of a store: blank, with a row of any version among
/// the lines, or with the beginning of one alone, as a killed process leaves it.
bool begins_a_store(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  bool is_blank = true;
  while (!head.empty()) {
    const std::size_t end = head.find('\n');
    const bool is_last = end == std::string_view::npos;
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(is_last ? head.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Row row = Row::parse(line, nullptr, false);
    if (row.is_object() && row.contains("v") && row.contains("kind")) return true;
    if (row.is_discarded() && is_blank && is_last && (line == "{" || line.starts_with("{\"")))
      return true;
    is_blank = false;
  }
  return is_blank;
}

/// Throws InvalidArgument for a file of another program: a row would spoil it.
void refuse_foreign(FileSystem& system, const std::string& path, const FileHandle& file,
                    std::uint64_t size) {
  constexpr std::uint64_t kHead = 1 << 20;
  std::string head(std::min(size, kHead), '\0');
  std::size_t count = 0;
  while (count < head.size()) {
    const ssize_t result =
        system.read_at(file.get(), head.data() + count, head.size() - count, count);
    if (result == -EINTR) continue;
    if (result < 0) fail_store(path, "read", result);
    if (result == 0) break;
    count += static_cast<std::size_t>(result);
  }
  head.resize(count);
  if (begins_a_store(head)) return;
  throw InvalidArgument(
      format("{} is no store of this library: none of its lines is a row. Nothing was written to "
             "it; name another file",
             path));
}

std::string row_line(const Row& row) {
  const auto is_text = [&](const char* name) {
    return row.contains(name) && row[name].is_string() &&
           !row[name].get_ref<const std::string&>().empty();
  };
  if (!row.is_object() || !is_text("kind") || !is_text("session")) {
    throw InvalidArgument("a row of a store is an object with the texts \"kind\" and \"session\"");
  }
  const std::string& kind = row["kind"].get_ref<const std::string&>();
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end())
    throw InvalidArgument(
        format("a row of the kind \"{}\": it is \"session\", \"trial\" or \"result\"", kind));
  Row whole = row;
  whole["v"] = kRowVersion;
  return whole.dump(-1, ' ', false, Row::error_handler_t::replace) + '\n';
}

/// Why this library cannot read the row; empty if it can.
std::string misfit(const Row& row) {
  if (!row.is_object()) return "is no JSON object";
  const auto version = row.find("v");
  if (version == row.end() || !version->is_number_integer()) return "has no version \"v\"";
  if (*version != kRowVersion) {
    return format("is of version {}, where this library reads version {}", version->dump(),
                  kRowVersion);
  }
  const auto kind = row.find("kind");
  const auto session = row.find("session");
  if (kind == row.end() || !kind->is_string()) return "has no \"kind\"";
  if (session == row.end() || !session->is_string()) return "has no \"session\"";
  const auto& name = kind->get_ref<const std::string&>();
  if (std::find(kKinds.begin(), kKinds.end(), name) == kKinds.end())
    return "is of a kind that this library does not know";
  return {};
}

/// Whether the line is a whole row of another kind than the one wanted, as this library writes it:
/// a journal has hundreds of trials for one result. A quote within a text has a backslash before
/// it.
bool is_other_kind(std::string_view line, std::string_view wanted) {
  if (wanted.empty() || !line.starts_with('{') || !line.ends_with('}')) return false;
  return std::any_of(kKinds.begin(), kKinds.end(), [&](std::string_view kind) {
    return kind != wanted && line.find(format("\"kind\":\"{}\",", kind)) != std::string_view::npos;
  });
}

/// The lines already reported by warn_lines() in this process. Thread-safe.
class WarnedLines {
 public:
  static WarnedLines& process() {
    static auto& lines = *new WarnedLines;
    return lines;
  }
  /// Whether the line is new here.
  bool add(const std::string& path, std::size_t line, const std::string& problem) {
    constexpr std::size_t kMost = 1 << 16;
    const std::lock_guard held(mutex_);
    if (lines_.size() >= kMost) lines_.clear();
    return lines_.emplace(path, line, problem).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::tuple<std::string, std::size_t, std::string>> lines_;
};

}  // namespace

std::vector<std::string> problem_texts(const std::vector<LineProblem>& problems) {
  struct Kind {
    const LineProblem* first;
    std::size_t more;
  };
  std::vector<Kind> kinds;
  for (const LineProblem& problem : problems) {
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) {
      return kind.first->what == problem.what;
    });
    if (known != kinds.end()) {
      ++known->more;
    } else {
      kinds.push_back({&problem, 0});
    }
  }
  std::vector<std::string> texts;
  for (const Kind& kind : kinds) {
    const std::string more = kind.more > 0 ? format(" (and {} more)", kind.more) : "";
    texts.push_back(format("line {}{} {}", kind.first->line, more, kind.first->what));
  }
  return texts;
}

void warn_lines(const std::string& path, const std::vector<LineProblem>& problems) {
  std::vector<LineProblem> fresh;
  for (const LineProblem& problem : problems) {
    if (WarnedLines::process().add(path, problem.line, problem.what)) fresh.push_back(problem);
  }
  if (fresh.empty()) return;
  std::string all;
  for (const std::string& text : problem_texts(fresh)) all += (all.empty() ? "" : "; ") + text;
  log(LogLevel::warning, "the store {} has lines that are not used: {}", path, all);
}

StoreFile::StoreFile(std::string path, FileSystem& system)
    : path_(std::move(path)), system_(&system) {
  if (path_.empty() || path_.find('\0') != std::string::npos)
    throw InvalidArgument("the path of a store is empty or has a NUL in it");
}

void StoreFile::append(const Row& row) { append_text(row_line(row)); }

void StoreFile::append_all(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) text += row_line(row);
  if (!text.empty()) append_text(std::move(text));
}

void StoreFile::append_text(std::string text) {
  const std::lock_guard held(mutex_);
  std::uint64_t size = 0;
  FileHandle file = open_file(*system_, path_, O_RDWR | O_CREAT | O_APPEND, size);
  if (!file) fail_store(path_, "opened for writing", file.get());
  lock_file(*system_, path_, file);
  struct stat status {};
  if (const int result = system_->status(file.get(), status); result < 0)
    fail_store(path_, "read", result);
  size = static_cast<std::uint64_t>(status.st_size);
  refuse_foreign(*system_, path_, file, size);
  if (ends_in_mid_line(*system_, path_, file, size)) text.insert(text.begin(), '\n');
  if (const int result = write_fully(*system_, file.get(), text.data(), text.size()); result < 0)
    fail_store(path_, "written", result);
  int result = system_->sync(file.get());
  while (result == -EINTR) result = system_->sync(file.get());
  if (result < 0) fail_store(path_, "brought to the disk", result);
  if (const int closed = file.reset(); closed < 0 && closed != -EINTR)
    fail_store(path_, "closed", closed);
  if (size == 0) sync_folder(*system_, path_);
}

void StoreFile::require_store() const {
  std::uint64_t size = 0;
  const FileHandle file = open_file(*system_, path_, O_RDONLY, size);
  if (file.get() == -ENOENT) return;
  if (!file) fail_store(path_, "read", file.get());
  refuse_foreign(*system_, path_, file, size);
}

StoreContents StoreFile::read(std::string_view kind, std::string_view session) const {
  std::uint64_t size = 0;
  const FileHandle file = open_file(*system_, path_, O_RDONLY, size);
  if (file.get() == -ENOENT) return {};
  if (!file) fail_store(path_, "read", file.get());
  std::string text(size, '\0');
  const ssize_t count = read_fully(*system_, file.get(), text.data(), text.size());
  if (count < 0) fail_store(path_, "read", count);
  text.resize(static_cast<std::size_t>(count));
  StoreContents contents = read_rows(text, kind, session);
  contents.exists = true;
  warn_lines(path_, contents.skipped);
  return contents;
}

StoreContents read_rows(std::string_view text, std::string_view kind, std::string_view session) {
  StoreContents contents;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const bool is_last = end == std::string_view::npos;
    text.remove_prefix(is_last ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (is_other_kind(line, kind)) continue;
    Row row = Row::parse(line, nullptr, false);
    if (row.is_discarded()) {
      contents.skipped.push_back({number, is_last ? "is cut short" : "is no JSON object"});
      continue;
    }
    if (std::string what = misfit(row); !what.empty()) {
      contents.skipped.push_back({number, std::move(what)});
      continue;
    }
    const auto is = [&](const char* name, std::string_view wanted) {
      return wanted.empty() || row[name].get_ref<const std::string&>() == wanted;
    };
    if (!is("kind", kind) || !is("session", session)) continue;
    contents.rows.push_back(std::move(row));
    contents.lines.push_back(number);
  }
  contents.problems = problem_texts(contents.skipped);
  return contents;
}

}  // namespace kernwright
