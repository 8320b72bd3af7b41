// Starting, watching and killing a child.
#include "worker/child_process.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>
#include <thread>

#include "base/format.h"
#include "base/regular_file.h"

extern char** environ;  // NOLINT: POSIX names it so

namespace kernwright {
namespace {

/// The parent's ends of all channels. A forked child closes them: a worker ends when the last
/// holder of the other end is gone.
constexpr std::size_t kMaxChannels = 256;
std::array<std::atomic<int>, kMaxChannels>& open_channels() {
  static std::array<std::atomic<int>, kMaxChannels>& channels = *[] {
    auto* made = new std::array<std::atomic<int>, kMaxChannels>;  // kept on purpose
    for (auto& channel : *made) channel = -1;
    ::pthread_atfork(nullptr, nullptr, [] {
      for (auto& channel : open_channels()) {
        const int file = channel.exchange(-1);
        if (file >= 0) ::close(file);
      }
    });
    return made;
  }();
  return channels;
}

void remember_channel(int file) {
  for (auto& channel : open_channels()) {
    int none = -1;
    if (channel.compare_exchange_strong(none, file)) return;
  }
  throw ProcessNotStarted(format("there are {} workers already", kMaxChannels));
}

void forget_channel(int file) noexcept {
  for (auto& channel : open_channels()) {
    int known = file;
    if (channel.compare_exchange_strong(known, -1)) return;
  }
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> result = changes;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    bool replaced = false;
    for (const std::string& change : changes) replaced |= name_of(change) == name_of(*entry);
    if (!replaced) result.emplace_back(*entry);
  }
  return result;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

class SpawnSettings {
 public:
  explicit SpawnSettings(int channel) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, channel, ChildProcess::kChannel);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none, defaults;
    ::sigemptyset(&none);
    ::sigfillset(&defaults);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::pair<Channel, Channel> make_ends() {
  try {
    return Channel::make_pair();
  } catch (const Error& error) {
    throw ProcessNotStarted(error.what());
  }
}

/// How long the end of a process is waited for that was killed.
constexpr std::chrono::milliseconds kPatience{20};

/// The command as a message shows it.
std::string joined(const std::vector<std::string>& command) {
  std::string result;
  for (const std::string& part : command) (result += result.empty() ? "" : " ") += part;
  return result.substr(0, 300);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::vector<std::string>& environment)
    : channel_(FileHandle()), owner_(::getpid()) {
  if (command.empty() || command[0].empty()) {
    throw InvalidArgument("a worker's command is empty");
  }
  auto [ours, theirs] = make_ends();
  const std::vector<std::string> variables = merged_environment(environment);
  const std::vector<char*> arguments = pointers_to(command);
  const std::vector<char*> entries = pointers_to(variables);
  // Above the descriptors that the child's own take the place of.
  const FileHandle end(FileSystem::real(), ::fcntl(theirs.descriptor(), F_DUPFD_CLOEXEC, 10));
  if (!end) throw ProcessNotStarted(format("a worker's socket: {}", std::strerror(errno)));
  const SpawnSettings settings(end.get());
  remember_channel(ours.descriptor());
  const int error = ::posix_spawnp(&id_, arguments[0], settings.actions(), settings.attributes(),
                                   arguments.data(), entries.data());
  if (error != 0) {
    forget_channel(ours.descriptor());
    const bool is_missing = error == ENOENT && command[0].find('/') == std::string::npos;
    throw ProcessNotStarted(
        format("a worker cannot be started by \"{}\": {}{}", joined(command), std::strerror(error),
               is_missing ? " in the folders of PATH; set_worker_command() names a place" : ""));
  }
  channel_ = std::move(ours);
}

ChildProcess::~ChildProcess() {
  kill();
  if (owner_ == ::getpid()) {
    forget_channel(channel_.descriptor());
  } else {
    channel_.release();  // the fork closed it
  }
}

std::uint64_t ChildProcess::resident_bytes() const {
  std::uint64_t pages[2] = {};  // of its address space, resident
  if (read_numbers(format("/proc/{}/statm", id_), pages) != 2) return 0;
  return pages[1] * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool ChildProcess::reap(int options) noexcept {
  if (has_ended_) return true;
  pid_t ended = -1;
  do ended = ::waitpid(id_, &status_, options);
  while (ended < 0 && errno == EINTR);
  // Another part of the program may have waited for all children.
  has_ended_ = ended != 0;
  return has_ended_;
}

void ChildProcess::kill() noexcept {
  if (owner_ != ::getpid() || id_ < 0) return;
  if (reap(WNOHANG)) return;
  ::kill(id_, SIGKILL);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!reap(WNOHANG)) {
    if (std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    // It may have gigabytes to give back: a thread of its own waits for that.
    has_ended_ = true;
    try {
      std::thread([id = id_] { ::waitpid(id, nullptr, 0); }).detach();
    } catch (const std::exception&) {
      // No thread can be started: what has ended stays in the system's table.
    }
  }
}

std::optional<std::string> ChildProcess::ending() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (!reap(WNOHANG)) {
    if (std::chrono::steady_clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (WIFSIGNALED(status_)) {
    const int signal = WTERMSIG(status_);
    return format("signal {} ({})", signal, ::strsignal(signal));
  }
  return format("exit code {}", exit_code());
}

int ChildProcess::exit_code() const noexcept {
  return has_ended_ && WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

}  // namespace kernwright
