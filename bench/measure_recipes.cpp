// Our cold time of ten kernels, and by nvbench's method (rebuilt here) and a naive loop; also used
// workers and fresh ones. measure.py adds Triton's do_bench.
//
//     measure_recipes [-o result.json] [--program kernwright-worker] [--site-packages folder]
//
// nvbench's order (measure_cold): memset of L2 -> synchronize -> block the stream -> timestamp ->
// event -> launch -> event -> timestamp -> unblock -> synchronize; the first run is not counted.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/event.h"
#include "core/runtime.h"
#include "driver/nvrtc_loader.h"
#include "jit/program.h"
#include "memory/buffer.h"
#include "memory/pinned_buffer.h"
#include "memory/transfer.h"
#include "sim/device.h"
#include "tune/measure/measure_task.h"
#include "tune/measure/timer.h"
#include "worker/worker.h"

namespace kw = kernwright;

namespace {

constexpr int kRounds = 3;
constexpr int kSamples = 40;

/// Multiplies x[i] `work` times, then adds its neighbour's value.
constexpr const char* kKernel = R"(
extern "C" __global__ void subject(float* x, unsigned n, unsigned work, unsigned stride) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = x[(unsigned)((unsigned long long)i * stride % n)];
    for (unsigned k = 0; k < work; ++k) v = v * 0.999f + 0.001f;
    x[i] = v;
  }
})";

struct Subject {
  const char* name;
  unsigned n, work, stride, grid;
};

// From 2 us to 10 ms; their limits are launches, memory, arithmetic, and scattered reads.
constexpr Subject kSubjects[] = {
    {"tiny", 1 << 10, 1, 1, 4},
    {"1 MiB", 1 << 18, 1, 1, 1024},
    {"16 MiB", 1 << 22, 1, 1, 4096},
    {"64 MiB", 1 << 24, 1, 1, 16384},
    {"1 GiB", 1 << 28, 1, 1, 16384},
    {"scattered 32 MiB", 1 << 23, 1, 104729, 8192},
    {"arithmetic, small", 1 << 18, 2000, 1, 1024},
    {"arithmetic, middle", 1 << 20, 8000, 1, 4096},
    {"arithmetic, large", 1 << 22, 16000, 1, 16384},
    {"arithmetic, 10 ms", 1 << 23, 40000, 1, 32768},
};

constexpr const char* kRecipe = R"(
extern "C" __global__ void block(const volatile int* flag) { while (*flag == 0) {} }
extern "C" __global__ void timestamp(unsigned long long* to) {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  to[0] = now;
  to[1] = clock64();
})";

enum class Blocking { kernel, wait_value, none };

/// nvbench's cold measurement, with the given kind of blocking.
class Recipe {
 public:
  explicit Recipe(kw::Device& device)
      : device_(device),
        stream_(kw::Stream::create(device)),
        begin_(device),
        end_(device),
        block_(kw::kernel(kRecipe, "block")),
        timestamp_(kw::kernel(kRecipe, "timestamp")),
        flush_(kw::default_resource(device),
               static_cast<std::size_t>(device.attribute(kw::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)),
               stream_),
        host_(device, 256),
        stamps_(kw::default_resource(device), 64, stream_) {
    if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
      wait_value_ = reinterpret_cast<WaitValue>(dlsym(driver, "cuStreamWaitValue32_v2"));
    }
  }

  bool has_wait_value() const { return wait_value_ != nullptr; }
  const kw::Stream& stream() const { return stream_; }

  double sample(const kw::TimedWork& work, Blocking blocking, bool flushes) {
    if (flushes) kw::fill(device_, flush_.address(), 0, 1, flush_.bytes(), stream_);
    stream_.synchronize();
    std::atomic_ref<int> flag(*static_cast<int*>(host_.data()));
    flag.store(0);
    block(blocking);
    timestamp(0);
    begin_.record(stream_);
    work.queue(stream_, 0);
    end_.record(stream_);
    timestamp(16);
    flag.store(1);
    stream_.synchronize();
    return end_.elapsed_ms(begin_);
  }

  std::vector<double> samples(const kw::TimedWork& work, Blocking blocking, bool flushes) {
    sample(work, Blocking::none, flushes);  // loads all that the first run needs
    if (blocking == Blocking::kernel) sample(work, blocking, flushes);
    std::vector<double> times;
    for (int i = 0; i < kSamples; ++i) times.push_back(sample(work, blocking, flushes));
    return times;
  }

 private:
  using WaitValue = kw::CUresult (*)(kw::CUstream, kw::CUdeviceptr, unsigned, unsigned);

  void block(Blocking blocking) {
    void* flag = host_.data();
    if (blocking == Blocking::kernel) {
      void* arguments[] = {&flag};
      block_.on(device_).launch({.stream = stream_}, arguments);
    } else if (blocking == Blocking::wait_value) {
      const kw::ContextGuard guard(device_);
      constexpr unsigned kWaitEqual = 1;
      device_.check(
          wait_value_(stream_.handle(), reinterpret_cast<kw::CUdeviceptr>(flag), 1, kWaitEqual),
          "cuStreamWaitValue32");
    }
  }

  void timestamp(std::size_t offset) {
    kw::CUdeviceptr to = stamps_.address() + offset;
    void* arguments[] = {&to};
    timestamp_.on(device_).launch({.stream = stream_}, arguments);
  }

  kw::Device& device_;
  kw::Stream stream_;
  kw::Event begin_, end_;
  kw::LazyKernel block_, timestamp_;
  kw::Buffer flush_;
  kw::PinnedBuffer host_;
  kw::Buffer stamps_;
  WaitValue wait_value_ = nullptr;
};

/// As in a simple script: launches in a loop between two readings of the host's clock.
double naive_loop(const kw::TimedWork& work, const kw::Stream& stream, double about_ms) {
  const int runs = std::clamp(static_cast<int>(50 / about_ms), 3, 1000);
  work.queue(stream, 0);
  stream.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < runs; ++i) work.queue(stream, 0);
  stream.synchronize();
  const std::chrono::duration<double, std::milli> all = std::chrono::steady_clock::now() - begin;
  return all.count() / runs;
}

kw::MeasurePlan plan_of(kw::CachePolicy policy) {
  kw::MeasurePlan plan;
  plan.policy = policy;
  plan.min_samples = plan.max_samples = kSamples;
  plan.max_time = kw::Seconds(2);
  return plan;
}

double mean(const std::vector<double>& times) {
  double sum = 0;
  for (const double time : times) sum += time;
  return sum / static_cast<double>(times.size());
}

nlohmann::json interval_of(const std::vector<double>& times) {
  const kw::Interval interval = kw::median_interval(times);
  return {interval.low, interval.high};
}

/// A kernel and its memory in this process.
struct Here {
  Here(kw::Device& device, const Subject& subject)
      : memory(kw::default_resource(device), std::size_t{4} * subject.n,
               kw::Stream::create(device)) {
    kw::fill(device, memory.address(), 0, 4, subject.n);
    kw::CUdeviceptr address = memory.address();
    unsigned n = subject.n, repeats = subject.work, stride = subject.stride;
    void* arguments[] = {&address, &n, &repeats, &stride};
    work = kw::launch_work(kw::kernel(kKernel, "subject").on(device),
                           {.grid = {subject.grid}, .block = {256}}, arguments);
  }
  kw::Buffer memory;
  kw::TimedWork work;
};

struct Samples {
  std::vector<double> ours, again, recipe, wait_value, unblocked;
};

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

nlohmann::json measure_here(const Subject& subject, kw::Timer& timer, Recipe& recipe) {
  Here here(timer.device(), subject);
  Samples all;
  double clock = 0;
  bool throttled = false;
  for (int round = 0; round < kRounds; ++round) {
    const kw::Measurement ours = timer.measure(here.work, plan_of(kw::CachePolicy::cold));
    append(all.ours, ours.times_ms);
    clock = ours.sm_clock_mhz;
    throttled = throttled || ours.is_throttled;
    append(all.recipe, recipe.samples(here.work, Blocking::kernel, true));
    if (recipe.has_wait_value()) {
      append(all.wait_value, recipe.samples(here.work, Blocking::wait_value, true));
    }
    append(all.unblocked, recipe.samples(here.work, Blocking::none, true));
    append(all.again, timer.measure(here.work, plan_of(kw::CachePolicy::cold)).times_ms);
  }
  const double ours = kw::median(all.ours), recipe_ms = kw::median(all.recipe);
  const kw::Measurement graph = timer.measure(here.work, plan_of(kw::CachePolicy::graph));
  return {{"subject", subject.name},
          {"ours_ms", ours},
          {"ours_interval_ms", interval_of(all.ours)},
          {"ours_again_ms", kw::median(all.again)},
          {"nvbench_ms", recipe_ms},
          {"nvbench_interval_ms", interval_of(all.recipe)},
          {"nvbench_mean_ms", mean(all.recipe)},
          {"ratio", ours / recipe_ms},
          {"wait_value_ms", kw::median(all.wait_value)},
          {"unblocked_ms", kw::median(all.unblocked)},
          {"warm_ms", timer.measure(here.work, plan_of(kw::CachePolicy::warm)).median_ms},
          {"graph_ms", graph.median_ms},
          {"graph_batch", graph.batch},
          {"naive_loop_ms", naive_loop(here.work, timer.stream(), ours)},
          {"sm_clock_mhz", clock},
          {"throttled", throttled},
          {"n", subject.n},
          {"work", subject.work},
          {"stride", subject.stride},
          {"grid", subject.grid}};
}

std::vector<double> measure_there(kw::RemoteDevice& device, const kw::ObjectCode& code,
                                  const Subject& subject) {
  const kw::RemoteBuffer memory = device.allocate(std::uint64_t{4} * subject.n);
  device.fill(memory, std::byte{0});
  kw::RemoteLaunch launch;
  launch.kernel = device.load(code, "subject");
  launch.grid = {subject.grid};
  launch.block = {256};
  launch.arguments = {kw::RemoteArgument::at(memory), kw::RemoteArgument::of(subject.n),
                      kw::RemoteArgument::of(subject.work), kw::RemoteArgument::of(subject.stride)};
  std::vector<double> times;
  for (int round = 0; round < 2; ++round) {
    append(times, measure(device, launch, plan_of(kw::CachePolicy::cold)).times_ms);
  }
  device.unload(launch.kernel);
  device.release(memory);
  return times;
}

nlohmann::json compare_workers(const std::string& program, kw::Device& device) {
  const auto code = kw::kernel(kKernel, "subject").object_code(device);
  const kw::RemoteDeviceOptions options{.worker = {.command = {program}}};
  kw::RemoteDevice used(options);
  measure_there(used, *code, kSubjects[0]);
  nlohmann::json rows = nlohmann::json::array();
  for (const Subject& subject : kSubjects) {
    const std::vector<double> persistent = measure_there(used, *code, subject);
    kw::RemoteDevice fresh(options);
    const std::vector<double> anew = measure_there(fresh, *code, subject);
    rows.push_back({{"subject", subject.name},
                    {"persistent_ms", kw::median(persistent)},
                    {"persistent_interval_ms", interval_of(persistent)},
                    {"fresh_ms", kw::median(anew)},
                    {"fresh_interval_ms", interval_of(anew)},
                    {"ratio", kw::median(persistent) / kw::median(anew)}});
  }
  return rows;
}

}  // namespace

int main(int count, char** values) {
  std::string output, program;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = values[i];
    if (name == "-o") output = values[i + 1];
    if (name == "--program") program = values[i + 1];
    if (name == "--site-packages") kw::set_site_packages({values[i + 1]});
  }
  kw::Runtime::register_sim(&kw::sim::driver_api);
  kw::Device& device = kw::Runtime::get().current_device();
  if (device.is_simulated()) {
    std::fprintf(stderr, "measure_recipes needs a GPU\n");
    return 1;
  }
  nlohmann::json result{{"device", device.name()},
                        {"driver", device.driver_version()},
                        {"kernel", kKernel},
                        {"samples", kSamples * kRounds},
                        {"subjects", nlohmann::json::array()}};
  {
    kw::Timer timer(device);
    Recipe recipe(device);
    for (const Subject& subject : kSubjects) {
      result["subjects"].push_back(measure_here(subject, timer, recipe));
      const nlohmann::json& row = result["subjects"].back();
      std::fprintf(stderr, "%-20s ours %.6f ms, nvbench %.6f, ratio %.4f\n", subject.name,
                   row["ours_ms"].get<double>(), row["nvbench_ms"].get<double>(),
                   row["ratio"].get<double>());
    }
  }
  if (!program.empty()) result["workers"] = compare_workers(program, device);
  const std::string text = result.dump(1);
  std::printf("%s\n", text.c_str());
  if (!output.empty()) std::ofstream(output) << text << '\n';
  return 0;
}
