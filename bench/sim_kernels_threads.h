// The gain of a second host thread, and of a second process on the same machine. A process reads
// its number of host threads only once, so partner processes of this program have other numbers.
#pragma once

#include "sim_kernels_subjects.h"
#include "sim_kernels_timing.h"

#include <nlohmann/json.hpp>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// Launches one after the other, so that the common start matters little.
double batch_milliseconds(const Bench& bench, const Subject& subject, int launches) {
  return cost_of([&] {
           for (int i = 0; i < launches; ++i) subject.simulated(bench);
         }).wall /
         launches;
}

/// The loop of a partner process: for each input line "kernel launches" it prints the milliseconds
/// of one launch and the difference from the plain loop's result.
void serve(const Bench& bench, const std::vector<Subject>& subjects) {
  std::string name;
  for (int launches = 0; std::cin >> name >> launches;) {
    const auto subject = std::find_if(subjects.begin(), subjects.end(),
                                      [&](const Subject& one) { return one.name == name; });
    if (subject == subjects.end()) throw std::runtime_error("no kernel is called " + name);
    const double elapsed = batch_milliseconds(bench, *subject, launches);
    std::cout << elapsed << std::endl;
    std::cout << subject->compare(bench) << std::endl;
  }
}

/// A second process of this program, with its own number of host threads.
class Partner {
 public:
  Partner(const char* program, const std::string& isa, const char* threads) {
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) throw std::runtime_error("no pipe can be opened");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    for (const int end : {to[0], to[1], from[0], from[1]}) {
      posix_spawn_file_actions_addclose(&actions, end);
    }
    const std::string words[] = {program, "-serve", "1", "-i", isa, "-t", threads};
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const int failed =
        posix_spawnp(&process_, program, &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    to_ = fdopen(to[1], "w");
    from_ = fdopen(from[0], "r");
    if (failed != 0) throw std::runtime_error(std::string("cannot start ") + program);
  }
  Partner(const Partner&) = delete;
  ~Partner() {
    std::fclose(to_);
    std::fclose(from_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }

  void ask(const std::string& kernel, int launches) {
    std::fprintf(to_, "%s %d\n", kernel.c_str(), launches);
    std::fflush(to_);
  }
  double number() {
    double value = 0;
    if (std::fscanf(from_, "%lf", &value) != 1) throw std::runtime_error("a partner has ended");
    return value;
  }

 private:
  pid_t process_ = 0;
  FILE *to_ = nullptr, *from_ = nullptr;
};

/// Times of one kernel, round by round.
struct Beside {
  std::vector<Cost> elapsed;
  std::vector<double> times, machine;
  double difference = 0;
};

void measure_round(const Bench& bench, const Subject& subject, Partner& two, Partner& other,
                   Beside& samples) {
  const double first = batch_milliseconds(bench, subject, 1);
  // Several launches: the system may run a woken thread on the waker's processor for a while.
  const int launches = std::clamp(static_cast<int>(8 / first), 4, 8);
  const double one = batch_milliseconds(bench, subject, launches);
  two.ask(subject.name, launches);
  const double threads = two.number();
  samples.difference = std::max(samples.difference, two.number());
  double beside = 0;
  const Cost both = cost_of([&] {
    other.ask(subject.name, launches);
    batch_milliseconds(bench, subject, launches);
    beside = other.number();
  });
  samples.difference = std::max(samples.difference, other.number());
  samples.elapsed.push_back({threads, threads});
  samples.times.push_back(one / threads);
  samples.machine.push_back(2 * one / std::max(both.wall / launches, beside));
}

/// Measures one thread here, two threads in a partner, and this process at the same time as
/// another, in turn. `times` is the speedup by two threads, `machine_times` that by two
/// processes: a second thread cannot gain more than a second process. Both are
/// medians of the rounds' quotients.
nlohmann::json measure_threads(const Bench& bench, const std::vector<Subject>& subjects,
                               Partner& two, Partner& other, int rounds) {
  std::map<std::string, Beside> all;
  for (int round = 0; round <= rounds; ++round) {
    if (round == 1) all.clear();  // the first round warms up
    for (const Subject& subject : subjects)
      measure_round(bench, subject, two, other, all[subject.name]);
  }
  nlohmann::json document;
  for (const auto& [name, samples] : all) {
    const nlohmann::json milliseconds = summary(samples.elapsed);
    document[name] = {{"min", milliseconds["min"]},
                      {"median", milliseconds["median"]},
                      {"times", median(samples.times)},
                      {"machine_times", median(samples.machine)},
                      {"largest_difference", samples.difference}};
  }
  return document;
}

}  // namespace
