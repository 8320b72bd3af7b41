// The loop over tasks, and the thread that ends the process with its parent.
#include "worker/serve.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <thread>

#include "base/format.h"
#include "worker/compile_task.h"
#include "worker/reply.h"

namespace kernwright {
namespace {

std::vector<std::byte> ping(ByteReader& request, std::vector<FileHandle>&) {
  const auto bytes = request.bytes(request.remaining());
  return {bytes.begin(), bytes.end()};
}

/// What the parent forgot to close on exec. An old kernel has no such call: then it stays open.
void close_descriptors_above(int last) {
#ifdef SYS_close_range
  ::syscall(SYS_close_range, static_cast<unsigned>(last) + 1, ~0U, 0U);
#else
  static_cast<void>(last);
#endif
}

/// Ends the process once nobody holds the other end of the socket, whatever a task does meanwhile.
void end_with(int channel) {
  pollfd entry{channel, POLLRDHUP, 0};
  while (::poll(&entry, 1, -1) <= 0 || (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) {}
  ::_exit(0);
}

std::vector<std::byte> answer(Message& message, const TaskTable& tasks) {
  try {
    ByteReader in(message.bytes, "a worker's task");
    const std::string name = in.text(256);
    ByteReader request(in.blob(), format("the request of {}", name));
    const auto task = tasks.find(name);
    if (task == tasks.end()) throw InvalidArgument(format("workers know no task {}", name));
    return result_reply(task->second(request, message.files));
  } catch (...) {
    message.files.clear();
    return error_reply(std::current_exception());
  }
}

}  // namespace

const TaskTable& worker_tasks() {
  static const TaskTable& table = *new TaskTable{{"ping", ping}, {"compile", run_compile_task}};
  return table;
}

int serve_worker(int channel, const TaskTable& tasks) {
  close_descriptors_above(channel);
  std::thread(end_with, channel).detach();
  Channel parent(FileHandle(FileSystem::real(), channel));
  try {
    while (true) {
      Message message = parent.receive();
      const std::vector<std::byte> reply = answer(message, tasks);
      std::vector<int> files;
      for (const FileHandle& file : message.files) files.push_back(file.get());
      parent.send(reply, files);
    }
  } catch (const PeerGone&) {
    return 0;
  }
}

}  // namespace kernwright
