// Kernels over one array of 8-byte words, one per thread: what the control tests share.
#pragma once

#include "unit/sim/exec/exec_support.h"

#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::sim::testing {

/// A kernel with one pointer parameter; `body` finds the thread's number in %t, its 8-byte word's
/// address in %out and may use registers %r0..%r9, %d0..%d9, %p0..%p9.
inline std::string kernel(const std::string& body, const std::string& before = "") {
  return kHeader + before +
         ".visible .entry k(.param .u64 out) {\n.reg .b32 %t, %r<10>; .reg .b64 %out, %d<10>;\n"
         ".reg .pred %p<10>;\nmov.u32 %t, %ctaid.x;\nmov.u32 %r0, %ntid.x;\nmov.u32 %r1, %tid.x;\n"
         "mad.lo.u32 %t, %t, %r0, %r1;\nld.param.u64 %out, [out];\nmul.wide.u32 %d0, %t, 8;\n"
         "add.u64 %out, %out, %d0;\n" +
         body + "\n}\n";
}

struct Outcome {
  std::vector<std::uint64_t> words;
  std::optional<Fault> fault;
};

inline Outcome run(const std::string& text, Machine::Shape shape) {
  Machine machine;
  const auto program = compile(text);
  const std::size_t threads = std::size_t{shape.grid} * shape.block;
  const std::uint64_t out = machine.upload(std::vector<std::uint64_t>(threads, 0));
  Outcome outcome;
  outcome.fault = machine.run(*program, {out}, shape);
  outcome.words = machine.download<std::uint64_t>(out, threads);
  return outcome;
}

inline void check_words(const std::string& text, Machine::Shape shape,
                        const std::function<std::uint64_t(std::uint64_t)>& expect) {
  const Outcome outcome = run(text, shape);
  if (outcome.fault) FAIL(outcome.fault->to_string());
  for (std::size_t i = 0; i < outcome.words.size(); ++i) {
    INFO("thread " << i);
    REQUIRE(outcome.words[i] == expect(i));
  }
}

}  // namespace kernwright::sim::testing
