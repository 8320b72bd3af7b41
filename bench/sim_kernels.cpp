// Kernels on the simulated device beside a plain C++ loop, for each instruction set, under the race
// and init checks, and with two host threads, alternating in one run: sim_kernels [-o results.json]
// [-k kernel] [-r rounds] [-i instruction set] [-t threads]. Each figure stands beside a check of
// the result.
#include "sim_kernels_subjects.h"
#include "sim_kernels_threads.h"
#include "sim_kernels_timing.h"

#include "base/format.h"
#include "sim/checks.h"
#include "sim/exec/dispatch.h"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kw = kernwright;

namespace {

/// Builds of the op families that this machine runs, the best first; one alone when `only` names
/// it.
std::vector<std::string> instruction_sets(const std::string& only) {
  if (!only.empty()) return {only};
  setenv("KERNWRIGHT_SIM_ISA", "auto", 1);
  std::vector<std::string> all{kw::sim::selected_isa()};
  for (const char* isa : {"avx2", "baseline"}) {
    if (all.front() == "avx512" || (all.front() == "avx2" && all.front() != isa))
      all.push_back(isa);
  }
  return all;
}

/// The same launch with and without the race and init checks in turn. What it costs is the quotient
/// of the shortest times.
nlohmann::json measure_checks(const Bench& bench, const Subject& subject, int rounds) {
  constexpr kw::sim::CheckSet kChecks{.init = true, .race = true};
  std::vector<Cost> plain, checked;
  double difference = 0;
  {
    const kw::sim::CheckScope scope({});
    for (int round = 0; round <= rounds; ++round) {
      kw::sim::set_checks({});
      const Cost without = cost_of([&] { subject.simulated(bench); });
      subject.plain();
      kw::sim::set_checks(kChecks);
      const Cost with = cost_of([&] { subject.simulated(bench); });
      subject.plain();
      if (round == 0) continue;  // warms both up
      plain.push_back(without);
      checked.push_back(with);
    }
    difference = subject.difference(bench);
    kw::sim::set_checks({});
    if (scope.total() != 0) throw std::runtime_error(kw::sim::findings_text(scope.findings()));
  }
  nlohmann::json document = {{"unchecked_ms", summary(plain)},
                             {"checked_ms", summary(checked)},
                             {"largest_difference", difference}};
  const double least = document["unchecked_ms"]["processor_min"];
  const double cost = document["checked_ms"]["processor_min"];
  document["times"] = rounded(cost / least);
  return document;
}

/// All instruction sets and the loop in turn, then a check of what each left behind.
nlohmann::json measure(const Bench& bench, const Subject& subject,
                       const std::vector<std::string>& sets, int rounds) {
  nlohmann::json document;
  std::vector<Cost> loop;
  double difference = 0;
  for (const std::string& isa : sets) {
    setenv("KERNWRIGHT_SIM_ISA", isa.c_str(), 1);  // handlers are chosen when a module is loaded
    bench.load();
    std::vector<Cost> samples;
    for (int round = 0; round <= rounds; ++round) {
      const Cost cost = cost_of([&] { subject.simulated(bench); });
      const Cost plain = cost_of(subject.plain);
      if (round == 0) continue;  // warms both up
      samples.push_back(cost);
      loop.push_back(plain);
    }
    difference = std::max(difference, subject.difference(bench));
    (isa == sets.front() ? document["simulated_ms"] : document["others_ms"][isa]) =
        summary(samples);
  }
  setenv("KERNWRIGHT_SIM_ISA", sets.front().c_str(), 1);
  bench.load();
  document["race_and_init"] = measure_checks(bench, subject, rounds);
  document["plain_loop_ms"] = summary(loop);
  document["largest_difference"] = difference;
  if (subject.flops != 0) {
    const double least = document["simulated_ms"]["min"];
    document["gflops"] = rounded(subject.flops / least * 1e-6);
  }
  return document;
}

/// From text to code that can run, for all kernels above; also scaled to 900 lines.
nlohmann::json module_load(const Bench& bench, int rounds) {
  std::vector<Cost> samples;
  for (int round = 0; round < rounds; ++round) {
    samples.push_back(cost_of([&] { bench.load(); }));
  }
  nlohmann::json document = {{"load_ms", summary(samples)}, {"lines", bench.lines()}};
  const double least = document["load_ms"]["min"];
  document["ms_for_900_lines"] = rounded(least * 900 / static_cast<double>(bench.lines()));
  return document;
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// What 1 GB of device memory costs the host before and after a kernel touched 1 MB of it.
nlohmann::json memory_cost(const Bench& bench) {
  constexpr std::size_t kGigabyte = std::size_t{1} << 30;
  const std::size_t before = resident_bytes();
  kw::CUdeviceptr address = 0;
  check(bench.api.cuMemAlloc(&address, kGigabyte), "cuMemAlloc");
  const std::size_t allocated = resident_bytes();
  constexpr int kTouched = 1 << 18;
  bench.launch("saxpy", shape(kTouched / 256, 1, 256, 1), 1.0f, address, address, int{kTouched});
  const std::size_t touched = resident_bytes();
  check(bench.api.cuMemFree(address), "cuMemFree");
  return {{"allocated", kGigabyte},
          {"resident_after_allocation", allocated - before},
          {"touched", kTouched * sizeof(float)},
          {"resident_after_touch", touched - before}};
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string option(int argc, char** argv, const char* name, const char* fallback) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) == name) return argv[i + 1];
  }
  return fallback;
}

nlohmann::json run(int argc, char** argv) {
  const std::string only = option(argc, argv, "-k", ""), threads = option(argc, argv, "-t", "1");
  const int rounds = std::stoi(option(argc, argv, "-r", "25"));
  const std::vector<std::string> sets = instruction_sets(option(argc, argv, "-i", ""));
  setenv("KERNWRIGHT_SIM_THREADS", threads.c_str(), 1);
  setenv("KERNWRIGHT_SIM_ISA", sets.front().c_str(), 1);
  const Bench bench;
  const std::vector<Subject> subjects = all_subjects(bench);
  nlohmann::json document = {{"subject", "sim_kernels"},
                             {"processor", processor()},
                             {"processors", std::thread::hardware_concurrency()},
                             {"instruction_set", sets.front()},
                             {"host_threads", std::stoi(threads)},
                             {"nvrtc", bench.nvrtc},
                             {"rounds", rounds}};
  if (!option(argc, argv, "-serve", "").empty()) {
    serve(bench, subjects);
    return nullptr;
  }
  for (const Subject& subject : subjects) {
    if (only.empty() || subject.name == only) {
      document[subject.name] = measure(bench, subject, sets, rounds);
    }
  }
  setenv("KERNWRIGHT_SIM_ISA", sets.front().c_str(), 1);
  if (threads == "1") {
    Partner two(argv[0], sets.front(), "2"), other(argv[0], sets.front(), "1");
    for (const Subject& subject : subjects) {
      if (!document.contains(subject.name)) continue;
      document[subject.name]["two_threads_ms"] =
          measure_threads(bench, subject, two, other, rounds);
    }
  }
  if (!only.empty()) return document;
  document["module_load"] = module_load(bench, rounds);
  document["memory"] = memory_cost(bench);
  return document;
}

}  // namespace

int main(int argc, char** argv) try {
  const nlohmann::json document = run(argc, argv);
  if (document.is_null()) return 0;  // a partner: its answers were its output
  const std::string text = document.dump(1);
  std::printf("%s\n", text.c_str());
  const std::string path = option(argc, argv, "-o", "");
  if (!path.empty()) std::ofstream(path) << text << '\n';
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "sim_kernels: %s\n", error.what());
  return 1;
}
