// Kernels on the simulated device and a plain C++ loop, alternating in one run: for each
// instruction set, under the race and init checks, and with two host threads. Every result is
// checked as well.
// sim_kernels [-o results.json] [-k kernel] [-r rounds] [-i instruction set] [-t threads]
#include "sim_kernels_subjects.h"
#include "sim_kernels_threads.h"
#include "sim_kernels_timing.h"

#include "base/format.h"
#include "sim/checks.h"
#include "sim/code/dispatch.h"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kw = kernwright;

namespace {

/// Builds of the op families for this machine, the best first; only the named one when `only` is
/// given.
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

/// Cost of one kernel under checks, round by round.
struct Checked {
  std::vector<Cost> cost;
  std::vector<double> times;  ///< the same round without checks
};

/// Cost of one kernel, round by round.
struct Samples {
  std::map<std::string, std::vector<Cost>> simulated;  ///< by instruction set
  std::vector<Cost> loop, unchecked;
  Checked race_and_init, all_checks;
  double difference = 0;

  void look(const Subject& subject, const Bench& bench) {
    difference = std::max(difference, subject.compare(bench));
  }
};

/// A launch right after another one.
Cost cost_of_launch(const Bench& bench, const Subject& subject) {
  subject.simulated(bench);
  return cost_of([&] { subject.simulated(bench); });
}

/// Runs every kernel on each instruction set, and its loop.
void measure_sets(const Bench& bench, const std::vector<Subject>& subjects,
                  const std::vector<std::string>& sets, std::map<std::string, Samples>& all) {
  for (const std::string& isa : sets) {
    setenv("KERNWRIGHT_SIM_ISA", isa.c_str(), 1);  // handlers are chosen when a module is loaded
    bench.load();
    for (const Subject& subject : subjects) {
      Samples& samples = all[subject.name];
      samples.simulated[isa].push_back(cost_of_launch(bench, subject));
      samples.loop.push_back(cost_of(subject.plain));
      samples.look(subject, bench);
    }
  }
  setenv("KERNWRIGHT_SIM_ISA", sets.front().c_str(), 1);
  bench.load();
}

/// Runs every kernel without checks, with race and init, and with all, one right after the other.
void measure_checks(const Bench& bench, const std::vector<Subject>& subjects,
                    std::map<std::string, Samples>& all) {
  const kw::sim::CheckScope scope({});
  for (const Subject& subject : subjects) {
    Samples& samples = all[subject.name];
    const Cost unchecked = cost_of_launch(bench, subject);
    samples.unchecked.push_back(unchecked);
    const auto look = [&](kw::sim::CheckSet checks, Checked& checked) {
      kw::sim::set_checks(checks);
      checked.cost.push_back(cost_of_launch(bench, subject));
      checked.times.push_back(checked.cost.back().processor / unchecked.processor);
      samples.look(subject, bench);
      kw::sim::set_checks({});
    };
    look({.init = true, .race = true}, samples.race_and_init);
    look({.init = true, .race = true, .sync = true}, samples.all_checks);
  }
  if (scope.total() != 0) throw std::runtime_error(kw::sim::findings_text(scope.findings()));
}

nlohmann::json sum_up(const Checked& checked, const std::vector<Cost>& unchecked) {
  return {{"unchecked_ms", summary(unchecked)},
          {"checked_ms", summary(checked.cost)},
          {"times", median(checked.times)}};
}

nlohmann::json sum_up(const Subject& subject, const Samples& samples,
                      const std::vector<std::string>& sets) {
  nlohmann::json document = {{"plain_loop_ms", summary(samples.loop)},
                             {"largest_difference", samples.difference},
                             {"race_and_init", sum_up(samples.race_and_init, samples.unchecked)},
                             {"all_checks", sum_up(samples.all_checks, samples.unchecked)}};
  for (const std::string& isa : sets) {
    const nlohmann::json figures = summary(samples.simulated.at(isa));
    (isa == sets.front() ? document["simulated_ms"] : document["others_ms"][isa]) = figures;
  }
  if (subject.flops != 0) {
    const double least = document["simulated_ms"]["min"];
    document["gflops"] = rounded(subject.flops / least * 1e-6);
  }
  return document;
}

/// Load times from text to executable code, for all kernels above; also scaled to 900 lines.
nlohmann::json load_figures(const Bench& bench, const std::vector<Cost>& loads) {
  nlohmann::json document = {{"load_ms", summary(loads)}, {"lines", bench.lines()}};
  const double least = document["load_ms"]["min"];
  document["ms_for_900_lines"] = rounded(least * 900 / static_cast<double>(bench.lines()));
  return document;
}

/// Runs all kernels in every round, so that each is measured over the whole run: a processor's
/// speed may change within seconds. The first round warms up.
nlohmann::json measure(const Bench& bench, const std::vector<Subject>& subjects,
                       const std::vector<std::string>& sets, int rounds) {
  std::map<std::string, Samples> all;
  std::vector<Cost> loads;
  for (int round = 0; round <= rounds; ++round) {
    if (round == 1) all.clear();
    measure_sets(bench, subjects, sets, all);
    measure_checks(bench, subjects, all);
    for (int i = 0; i < 4; ++i) loads.push_back(cost_of([&] { bench.load(); }));
  }
  nlohmann::json document = {{"module_load", load_figures(bench, loads)}};
  for (const Subject& subject : subjects)
    document[subject.name] = sum_up(subject, all[subject.name], sets);
  return document;
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// The host's memory for 1 GB of device memory, before and after a kernel touched 1 MB of it.
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
  std::vector<Subject> subjects = all_subjects(bench);
  if (!option(argc, argv, "-serve", "").empty()) {
    serve(bench, subjects);
    return nullptr;
  }
  if (!only.empty()) std::erase_if(subjects, [&](const Subject& one) { return one.name != only; });
  nlohmann::json document = measure(bench, subjects, sets, rounds);
  document.update({{"subject", "sim_kernels"},
                   {"processor", processor()},
                   {"processors", std::thread::hardware_concurrency()},
                   {"instruction_set", sets.front()},
                   {"host_threads", std::stoi(threads)},
                   {"nvrtc", bench.nvrtc},
                   {"rounds", rounds}});
  if (threads == "1") {
    Partner two(argv[0], sets.front(), "2"), other(argv[0], sets.front(), "1");
    const nlohmann::json beside = measure_threads(bench, subjects, two, other, rounds);
    for (const Subject& subject : subjects)
      document[subject.name]["two_threads_ms"] = beside[subject.name];
  }
  if (only.empty()) document["memory"] = memory_cost(bench);
  return document;
}

}  // namespace

int main(int argc, char** argv) try {
  const nlohmann::json document = run(argc, argv);
  if (document.is_null()) return 0;  // a partner has already printed its answers
  const std::string text = document.dump(1);
  std::printf("%s\n", text.c_str());
  const std::string path = option(argc, argv, "-o", "");
  if (!path.empty()) std::ofstream(path) << text << '\n';
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "sim_kernels: %s\n", error.what());
  return 1;
}
