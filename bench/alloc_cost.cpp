// Cost of an allocation and its free in C++: our pool and the driver's own calls, in one run.
#include "bench/rounded.h"
#include "core/device.h"
#include "core/runtime.h"
#include "memory/buffer.h"
#include "memory/pool/pool_resource.h"
#include "sim/device.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kw = kernwright;

namespace {

constexpr int kRounds = 15;
constexpr std::size_t kBytes = std::size_t{4} << 20;

using Clock = std::chrono::steady_clock;

struct Subject {
  std::string name;
  int calls;
  std::function<void(int)> loop;  ///< makes this number of allocations and frees
  std::vector<double> samples;    ///< microseconds for one allocation and its free
};

nlohmann::ordered_json summary(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {{"min", rounded(samples.front())}, {"median", rounded(samples[samples.size() / 2])}};
}

std::vector<Subject> subjects(kw::Device& device, const kw::Stream& stream) {
  const auto pool =
      std::make_shared<kw::PoolResource>(std::make_shared<kw::DeviceResource>(device));
  const kw::DriverApi& driver = device.driver();
  return {
      {"kernwright PoolResource",
       20000,
       [=](int calls) {
         for (int i = 0; i < calls; ++i) {
           pool->deallocate(pool->allocate(kBytes, stream), kBytes, stream);
         }
       },
       {}},
      {"kernwright Buffer",
       20000,
       [=](int calls) {
         for (int i = 0; i < calls; ++i) const kw::Buffer buffer(pool, kBytes, stream);
       },
       {}},
      {"cuMemAllocAsync",
       2000,
       [=, &driver](int calls) {
         for (int i = 0; i < calls; ++i) {
           kw::CUdeviceptr address = 0;
           driver.cuMemAllocAsync(&address, kBytes, stream.handle());
           driver.cuMemFreeAsync(address, stream.handle());
         }
       },
       {}},
      {"cuMemAlloc",
       50,
       [=, &driver](int calls) {
         for (int i = 0; i < calls; ++i) {
           kw::CUdeviceptr address = 0;
           driver.cuMemAlloc(&address, kBytes);
           driver.cuMemFree(address);
         }
       },
       {}},
  };
}

}  // namespace

int main() {
  kw::Runtime::register_sim(&kw::sim::driver_api);
  kw::Device& device = kw::Runtime::get().current_device();
  const kw::ContextGuard guard(device);
  const kw::Stream stream = kw::Stream::create(device);
  // Keeps freed memory, as our pool does; the driver's default is to return it.
  const kw::AsyncResource threshold(device);
  auto all = subjects(device, stream);
  for (int round = 0; round < kRounds; ++round) {
    for (Subject& subject : all) {
      const auto start = Clock::now();
      subject.loop(subject.calls);
      const std::chrono::duration<double, std::micro> spent = Clock::now() - start;
      subject.samples.push_back(spent.count() / subject.calls);
      stream.synchronize();
    }
  }
  nlohmann::ordered_json result;
  for (const Subject& subject : all) result[subject.name] = summary(subject.samples);
  std::puts(result.dump().c_str());
  return 0;
}
