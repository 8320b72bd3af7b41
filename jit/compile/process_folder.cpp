// Makes, registers and removes folders for temporary files.
#include "jit/compile/process_folder.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/per_process.h"

namespace kernwright {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStem = "kernwright-";
constexpr std::time_t kLeftoverAge = 24 * 3600;  ///< seconds

/// The folders of this process for removal at its exit.
struct FolderRegistry {
  std::mutex mutex;
  bool is_begun = false;
  std::set<std::string> folders;
};

FolderRegistry& folder_registry() { return per_process<FolderRegistry>(); }

void remove_folder(const std::string& path) noexcept {
  std::error_code error;
  fs::remove_all(path, error);
}

void remove_all_at_exit() {
  // A compiling thread could hold the lock: then the folders stay, and a later process removes
  // them.
  FolderRegistry& registry = folder_registry();
  const std::unique_lock lock(registry.mutex, std::try_to_lock);
  if (!lock) return;
  for (const std::string& path : registry.folders) remove_folder(path);
}

std::string temporary_root() {
  const char* given = std::getenv("TMPDIR");
  return given != nullptr && given[0] == '/' ? given : "/tmp";
}

/// The process in a folder's name, 0 for foreign names.
pid_t owner_of(const std::string& name) {
  if (!name.starts_with(kStem)) return 0;
  pid_t pid = 0;
  const char* begin = name.data() + kStem.size();
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(begin, end, pid);
  const bool is_ours = error == std::errc() && rest != end && *rest == '-' && pid > 0;
  return is_ours ? pid : 0;
}

}  // namespace

void remove_leftover_folders(const std::string& root) {
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const pid_t pid = owner_of(entry->path().filename().string());
    if (pid == 0 || (::kill(pid, 0) == 0 || errno != ESRCH)) continue;
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) != 0) continue;
    if (std::time(nullptr) - status.st_mtime < kLeftoverAge) continue;
    if (S_ISDIR(status.st_mode) && status.st_uid == ::geteuid()) {
      remove_folder(entry->path().string());
    }
  }
}

ProcessFolder::ProcessFolder(const std::string& purpose) {
  const std::string root = temporary_root();
  FolderRegistry& registry = folder_registry();
  const std::lock_guard lock(registry.mutex);
  if (!std::exchange(registry.is_begun, true)) {
    remove_leftover_folders(root);
    // Handlers run before the end of libraries opened earlier, such as NVRTC.
    std::atexit(remove_all_at_exit);
  }
  std::string pattern = format("{}/{}{}-{}-XXXXXX", root, kStem, ::getpid(), purpose);
  if (::mkdtemp(pattern.data()) == nullptr) {
    log(LogLevel::debug, "no temporary folder can be made in {}", root);
    return;
  }
  name_ = std::move(pattern);
  opened_ = SecureDirectory::open(FileSystem::real(), name_);
  path_ = opened_.fixed_path();
  if (path_.empty()) log(LogLevel::debug, "{} is not used: {}", name_, opened_.reason());
  registry.folders.insert(name_);
}

ProcessFolder::~ProcessFolder() {
  if (name_.empty()) return;
  FolderRegistry& registry = folder_registry();
  const std::lock_guard lock(registry.mutex);
  // In a forked child the folder is the parent's.
  if (registry.folders.erase(name_) > 0) remove_folder(name_);
}

std::string ProcessFolder::subfolder(const std::string& name) const {
  if (path_.empty()) return {};
  const std::string result = path_ + "/" + name;
  if (::mkdir(result.c_str(), 0700) == 0 || errno == EEXIST) return result;
  return {};
}

}  // namespace kernwright
