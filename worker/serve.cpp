// The thread for tasks, and the one that ends the process with its parent.
#include "worker/serve.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "worker/compile_task.h"
#include "worker/reply.h"
#include "worker/task_stack.h"

namespace kernwright {
namespace {

std::vector<std::byte> ping(ByteReader& request, std::vector<FileHandle>&) {
  const auto bytes = request.bytes(request.remaining());
  return {bytes.begin(), bytes.end()};
}

/// Closes descriptors left open by the parent. Without the call in an old kernel they stay open.
void close_descriptors_above(int last) {
#ifdef SYS_close_range
  ::syscall(SYS_close_range, static_cast<unsigned>(last) + 1, ~0U, 0U);
#else
  static_cast<void>(last);
#endif
}

/// Returns once the other end of the socket is closed, whatever a task does meanwhile.
void wait_for_end(int channel) {
  pollfd entry{channel, POLLRDHUP, 0};
  constexpr short kEnds = POLLRDHUP | POLLHUP | POLLERR;
  while (::poll(&entry, 1, -1) <= 0 || (entry.revents & kEnds) == 0) {}
}

/// Removes the folder for temporary files that the parent made for this process, once nobody else
/// will: see Worker.
void remove_temporary_folder(pid_t parent) {
  const char* const folder = std::getenv("TMPDIR");
  if (folder == nullptr) return;
  const std::filesystem::path path(folder);
  std::error_code error;
  if (path.filename().string().starts_with(format("kernwright-{}-worker-", parent))) {
    std::filesystem::remove_all(path, error);
  }
}

/// Has glibc keep freed memory for the next task: else each compile has the same memory mapped page
/// by page again, a sixth of its time. Settings of the user in the environment stay.
void keep_freed_memory() noexcept {
#if defined(__GLIBC__)
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") != nullptr) return;
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

/// With little memory left, the worker should be killed, not the process that started it.
void offer_to_oom_killer() noexcept {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  static_cast<void>(::write(file, "500", 3) == 3);
  ::close(file);
}

/// While a task runs, what is logged goes into its reply.
class LogCollector {
 public:
  explicit LogCollector(LogLevel level) {
    set_log_level(level);
    set_log_sink([this](LogLevel line_level, std::string_view text) {
      const std::lock_guard lock(mutex_);
      if (lines_.size() < kMaxLines) lines_.push_back({line_level, std::string(text)});
    });
  }
  ~LogCollector() { set_log_sink({}); }
  LogCollector(const LogCollector&) = delete;
  LogCollector& operator=(const LogCollector&) = delete;

  std::vector<LogLine> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  static constexpr std::size_t kMaxLines = 1000;
  mutable std::mutex mutex_;
  std::vector<LogLine> lines_;
};

std::vector<std::byte> answer(Message& message, const TaskTable& tasks) {
  ByteReader in(message.bytes, "a worker's task");
  const std::string name = in.text(256);
  const LogCollector log(static_cast<LogLevel>(in.u8()));
  try {
    ByteReader request(in.blob(), format("the request of {}", name));
    const auto task = tasks.find(name);
    if (task == tasks.end()) throw InvalidArgument(format("workers know no task {}", name));
    const std::vector<std::byte> result = task->second(request, message.files);
    return result_reply(log.lines(), result);
  } catch (...) {
    message.files.clear();
    return error_reply(log.lines(), std::current_exception());
  }
}

struct Work {
  int channel;
  const TaskTable* tasks;
};

/// The loop over tasks; ends the process.
void* do_tasks(void* given) {
  const auto* const work = static_cast<const Work*>(given);
  end_process_on_overflow(kOverflowExitCode);
  Channel parent(FileHandle(FileSystem::real(), work->channel));
  try {
    while (true) {
      Message message = parent.receive();
      const std::vector<std::byte> reply = answer(message, *work->tasks);
      std::vector<int> files;
      for (const FileHandle& file : message.files) files.push_back(file.get());
      parent.send(reply, files);
    }
  } catch (const PeerGone&) {
    while (true) ::pause();  // the other thread ends the process
  } catch (const std::exception& error) {
    log(LogLevel::error, "kernwright-worker, which kernwright starts by itself, ends: {}",
        error.what());
    ::_exit(1);
  }
}

}  // namespace

const TaskTable& worker_tasks() {
  static const TaskTable& table = *new TaskTable{{"ping", ping},
                                                 {"nvrtc", run_nvrtc_task},
                                                 {"compile", run_compile_task},
                                                 {"lint", run_lint_task}};
  return table;
}

void serve_worker(int channel, const TaskTable& tasks) {
  if (::fcntl(channel, F_GETFD) < 0) throw Error("no process asks for its work");
  const pid_t parent = ::getppid();
  close_descriptors_above(channel);
  keep_freed_memory();
  offer_to_oom_killer();
  ::signal(SIGTTOU, SIG_IGN);  // or a word on a terminal could stop it for good
  static Work work{channel, &tasks};
  start_thread_with_stack(kTaskStack, do_tasks, &work);
  wait_for_end(channel);
  remove_temporary_folder(parent);
  ::_exit(0);
}

}  // namespace kernwright
