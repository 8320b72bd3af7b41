// A task's way to the worker and back.
#include "worker/worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <mutex>
#include <utility>

#include "base/byte_reader.h"
#include "base/format.h"
#include "worker/reply.h"

namespace kernwright {
namespace {

struct Command {
  std::mutex mutex;
  std::vector<std::string> parts{"kernwright-worker"};
};

Command& command() {
  static Command& instance = *new Command;  // kept to the end of the process on purpose
  return instance;
}

}  // namespace

std::vector<std::string> worker_command() {
  const std::lock_guard lock(command().mutex);
  return command().parts;
}

void set_worker_command(std::vector<std::string> parts) {
  const std::lock_guard lock(command().mutex);
  command().parts = std::move(parts);
}

Worker::Worker(WorkerOptions options) : options_(std::move(options)) {}

pid_t Worker::process_id() const noexcept {
  if (options_.in_process != nullptr) return ::getpid();
  return process_ ? process_->id() : -1;
}

void Worker::start() {
  if (process_ != nullptr || options_.in_process != nullptr) return;
  const auto parts = options_.command.empty() ? worker_command() : options_.command;
  process_ = std::make_unique<ChildProcess>(parts, options_.environment);
  ++starts_;
}

void Worker::watch(const WorkerTask& task, const WaitLimits& limits) const {
  check_wait(limits, task.subject);
  if (options_.memory_limit == 0) return;
  const std::uint64_t bytes = process_->resident_bytes();
  if (bytes <= options_.memory_limit) return;
  throw WorkerLost(format("{} used {} bytes of memory in a worker, above its limit of {}",
                          task.subject, bytes, options_.memory_limit));
}

void Worker::lose(const WorkerTask& task) {
  const auto ending = process_->ending();
  kill();
  throw WorkerLost(format("the worker ended during {}: {}", task.subject,
                          ending.value_or("it closed its channel")));
}

Message Worker::run_here(const WorkerTask& task) const {
  const auto found = options_.in_process->find(task.name);
  if (found == options_.in_process->end())
    throw InvalidArgument(format("this process has no task \"{}\"", task.name));
  Message reply;
  for (const int file : task.files)
    reply.files.emplace_back(FileSystem::real(), ::fcntl(file, F_DUPFD_CLOEXEC, 0));
  ByteReader request(task.request, "a request");
  reply.bytes = found->second(request, reply.files);
  return reply;
}

Message Worker::run(const WorkerTask& task, const WaitLimits& limits) {
  if (options_.in_process != nullptr) return run_here(task);
  start();
  Message reply;
  const auto waiting = [&] { watch(task, limits); };
  try {
    ByteWriter message;
    message.text(task.name);
    message.blob(task.request);
    process_->channel().send(message.data(), task.files, waiting);
    reply = process_->channel().receive(waiting);
  } catch (const PeerGone&) {
    lose(task);
  } catch (...) {
    kill();
    throw;
  }
  return read_reply(std::move(reply));
}

}  // namespace kernwright
