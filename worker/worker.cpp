// A task's way to the worker and back.
#include "worker/worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <string_view>
#include <utility>

#include "base/byte_reader.h"
#include "base/format.h"
#include "base/log.h"
#include "worker/reply.h"
#include "worker/serve.h"

namespace kernwright {
namespace {

/// A worker launches on one stream at a time. On an H200 its context opens in 0.06 s then, in 0.26
/// s with the 16 connections of other processes (driver_loader.cpp), and more than 64 fit on the
/// GPU in place of 27.
constexpr std::string_view kConnections = "CUDA_DEVICE_MAX_CONNECTIONS=";

struct Command {
  std::vector<std::string> parts;
  const Command* before;  ///< stays in memory, as another thread may be reading it
};

/// Without a lock, which a forked child could inherit locked.
std::atomic<const Command*>& command() {
  static std::atomic<const Command*> latest = new Command{{"kernwright-worker"}, nullptr};
  return latest;
}

}  // namespace

std::vector<std::string> worker_command() { return command().load()->parts; }

void set_worker_command(std::vector<std::string> parts) {
  auto* const set = new Command{std::move(parts), command().load()};
  while (!command().compare_exchange_weak(set->before, set)) {}
}

Worker::Worker(WorkerOptions options) : options_(std::move(options)) {}

pid_t Worker::process_id() const noexcept {
  if (options_.in_process != nullptr) return ::getpid();
  return process_ ? process_->id() : -1;
}

void Worker::start() {
  if (process_ != nullptr || options_.in_process != nullptr) return;
  const auto parts = options_.command.empty() ? worker_command() : options_.command;
  std::vector<std::string> environment = options_.environment;
  folder_ = std::make_unique<ProcessFolder>("worker");
  // A path by a handle of ours is no path there.
  if (folder_->path().starts_with("/") && !folder_->path().starts_with("/proc/")) {
    environment.push_back("TMPDIR=" + folder_->path());
  }
  if (std::ranges::none_of(environment, [](const std::string& variable) {
        return variable.starts_with(kConnections);
      })) {
    environment.push_back(format("{}2", kConnections));
  }
  process_ = std::make_unique<ChildProcess>(parts, environment);
  ++starts_;
}

void Worker::kill() noexcept {
  process_.reset();
  folder_.reset();
  unread_ = 0;
  has_answered_ = false;
}

void Worker::watch(const WorkerTask& task, const WaitLimits& limits) const {
  check_wait(limits, task.subject);
  if (options_.memory_limit == 0) return;
  const std::uint64_t bytes = process_->resident_bytes();
  if (bytes <= options_.memory_limit) return;
  throw WorkerOutgrown(format("{} used {} bytes of memory in a worker, above its limit of {}",
                              task.subject, bytes, options_.memory_limit));
}

void Worker::lose(const WorkerTask& task) {
  const std::string ending = process_->ending().value_or("it closed its channel");
  const bool has_overflown = process_->exit_code() == kOverflowExitCode;
  kill();
  if (has_overflown) throw WorkerOverflow(format("{} ran out of stack in a worker", task.subject));
  throw WorkerLost(format("the worker ended during {}: {}", task.subject, ending));
}

void Worker::send(const WorkerTask& task, const Channel::WhileWaiting& waiting) {
  ByteWriter message;
  message.text(task.name);
  message.u8(static_cast<std::uint8_t>(log_level()));
  message.blob(task.request);
  process_->channel().send(message.data(), task.files, waiting);
}

Message Worker::receive(const Channel::WhileWaiting& waiting) {
  for (; unread_ > 0; --unread_) {
    Message dropped = process_->channel().receive(waiting);
    try {
      read_reply(std::move(dropped));  // with the child's log lines
    } catch (const std::exception&) {
      // Nobody waits for it.
    }
  }
  Message reply = process_->channel().receive(waiting);
  has_answered_ = true;
  return reply;
}

void Worker::post(const WorkerTask& task) {
  if (options_.in_process != nullptr) return;
  start();
  try {
    send(task, {});
    ++unread_;
  } catch (const PeerGone&) {
    kill();
  } catch (...) {
    kill();  // a part of the message may have been sent
    throw;
  }
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
    send(task, waiting);
    reply = receive(waiting);
  } catch (const PeerGone&) {
    lose(task);
  } catch (...) {
    kill();
    throw;
  }
  return read_reply(std::move(reply));
}

}  // namespace kernwright
