// Compiles in worker processes and in this process: one at a time, and 200 at once.
//
//     worker_cost [-o result.json] [--program kernwright-worker] [--site-packages folder]
//
// Every source is new, and NVRTC's own cache is off. Results of both sides are compared.
#include "base/format.h"
#include "driver/nvrtc_loader.h"
#include "jit/compile/compiler.h"
#include "worker/compile_task.h"
#include "worker/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kw = kernwright;

namespace {

using Clock = std::chrono::steady_clock;
using Compile = std::function<kw::ObjectCode(const kw::CompileRequest&)>;

constexpr int kRounds = 40;
constexpr int kVariants = 200;

kw::CompileRequest request_for(int number, int unroll) {
  kw::CompileRequest request;
  request.source.text = kw::format(
      "__global__ void stencil(const float* x, float* y, int n) {{\n"
      "  int i = blockIdx.x * {} + threadIdx.x;\n  float sum = {}.5f;\n"
      "  #pragma unroll\n  for (int k = 0; k < {}; ++k) if (i + k < n) sum += x[i + k] * k;\n"
      "  if (i < n) y[i] = sum;\n}}",
      128 + number % 7, number, unroll);
  request.options.extra = {"--no-cache"};
  request.target = {kw::CodeKind::cubin, "sm_90", "sm_90"};
  request.declared = kw::scan_source(request.source.text);
  return request;
}

double ms_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

nlohmann::json summary(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {{"min", samples.front()}, {"median", samples[samples.size() / 2]}};
}

/// Compiles all on the given number of threads; returns milliseconds.
double all_at_once(const std::vector<kw::CompileRequest>& requests, unsigned threads,
                   const Compile& compile) {
  return ms_of([&] {
    std::atomic<std::size_t> next = 0;
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads; ++t) {
      workers.emplace_back([&] {
        for (std::size_t i = next++; i < requests.size(); i = next++) compile(requests[i]);
      });
    }
    for (std::thread& worker : workers) worker.join();
  });
}

struct Arguments {
  std::string output, program = "kernwright-worker";
};

Arguments parse(int count, char** values) {
  Arguments result;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = values[i];
    if (name == "-o") result.output = values[i + 1];
    if (name == "--program") result.program = values[i + 1];
    if (name == "--site-packages") kw::set_site_packages({values[i + 1]});
  }
  return result;
}

nlohmann::json one_at_a_time(const Compile& inside, const Compile& in_worker) {
  std::vector<double> here, there;
  for (int round = 0; round < kRounds; ++round) {
    const kw::CompileRequest first = request_for(2 * round, 4),
                             second = request_for(2 * round + 1, 4);
    kw::ObjectCode a, b;
    here.push_back(ms_of([&] { a = inside(first); }));
    there.push_back(ms_of([&] { b = in_worker(second); }));
    if (round == 0 && in_worker(first).code != a.code) throw std::runtime_error("other code");
  }
  return {{"in_process_ms", summary(here)}, {"worker_ms", summary(there)}};
}

}  // namespace

int main(int count, char** values) {
  const Arguments arguments = parse(count, values);
  const kw::LoadedNvrtc& nvrtc = kw::nvrtc();
  const unsigned threads = std::thread::hardware_concurrency();
  kw::WorkerPool pool(threads, {.command = {arguments.program}});
  const Compile inside = [&](const auto& request) { return kw::Compiler(nvrtc).compile(request); };
  const Compile in_worker = [&](const auto& request) {
    const auto worker = pool.lease();
    return kw::compile_in(*worker, nvrtc.path, request);
  };
  nlohmann::json result{{"nvrtc", nvrtc.version()}, {"threads", threads}};
  result["first_in_worker_ms"] = ms_of([&] { in_worker(request_for(-1, 4)); });
  result["first_in_process_ms"] = ms_of([&] { inside(request_for(-2, 4)); });
  result["one"] = one_at_a_time(inside, in_worker);
  std::vector<double> here, there;
  for (int round = 0; round < 3; ++round) {
    std::vector<kw::CompileRequest> first, second;
    for (int i = 0; i < kVariants; ++i) {
      first.push_back(request_for(1000 * (2 * round + 1) + i, 8));
      second.push_back(request_for(1000 * (2 * round + 2) + i, 8));
    }
    here.push_back(all_at_once(first, threads, inside));
    there.push_back(all_at_once(second, threads, in_worker));
  }
  result["variants_200"] = {{"in_process_ms", here}, {"workers_ms", there}};
  const std::string text = result.dump(2);
  std::printf("%s\n", text.c_str());
  if (!arguments.output.empty()) std::ofstream(arguments.output) << text << '\n';
  return 0;
}
