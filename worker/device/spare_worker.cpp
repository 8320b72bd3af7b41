// Opening a device, at once or ahead of its need.
#include "worker/device/spare_worker.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "base/byte_reader.h"

namespace kernwright {

DeviceFacts open_device(Worker& worker, int shared, const WaitLimits& limits) {
  const std::array<int, 1> files{shared};
  const Message reply = worker.run({"device.open", "opening a worker's device", {}, files}, limits);
  ByteReader in(reply.bytes, "the facts of a worker's device");
  return read_device_facts(in);
}

SpareWorker::SpareWorker(WorkerOptions options, int shared) : owner_(::getpid()) {
  const auto open = [options = std::move(options), shared, stop = stop_] {
    WaitLimits limits;
    limits.stop = stop;
    OpenWorker result{Worker(options), {}};
    result.facts = open_device(result.worker, shared, limits);
    return result;
  };
  ready_ = std::make_unique<std::future<OpenWorker>>(std::async(std::launch::async, open));
}

SpareWorker::~SpareWorker() {
  stop_->store(true);
  if (owner_ != ::getpid()) ready_.release();  // not every libc ends such a join
}

std::optional<OpenWorker> SpareWorker::take(const WaitLimits& limits) {
  if (!ready_->valid()) return std::nullopt;
  while (ready_->wait_for(kWaitSlice) != std::future_status::ready) {
    check_wait(limits, "opening a worker's device");
  }
  try {
    return ready_->get();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace kernwright
