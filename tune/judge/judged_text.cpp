// Compiles with a deadline, and reports forbidden parts of a text as diagnostics.
#include "tune/judge/judged_text.h"

#include <string_view>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "jit/program.h"
#include "jit/source/include_closure.h"
#include "tune/judge/elsewhere.h"
#include "tune/judge/packing.h"
#include "tune/judge/ruling.h"
#include "tune/judge/text_rules.h"

namespace kernwright {
namespace {

/// Nothing of a submission but its text: no folder, and the lines of the text itself.
Source bare(const Source& source) {
  return {
      without_line_directives(source.text), source.name.empty() ? "kernel.cu" : source.name, 1, {}};
}

enum class LineNumbers : std::uint8_t { kept, dropped };

ObjectCode compile_for(const Source& source, ProgramOptions options, CodeKind kind,
                       const DeviceFacts& facts, const std::vector<std::string>& names,
                       LineNumbers lines = LineNumbers::kept) {
  const bool is_specific = facts.capability.major >= 9 && asks_for_arch_specific(source.text);
  if (options.arch.empty()) {
    options.arch = format("{}_{}{}", kind == CodeKind::ptx ? "compute" : "sm",
                          facts.capability.number(), is_specific ? "a" : "");
  }
  options.lineinfo = options.lineinfo || kind == CodeKind::ptx;
  if (lines == LineNumbers::dropped) options.lineinfo = options.device_debug = false;
  return Program(source, std::move(options)).compile(kind, names);
}

Diagnostic refusal(const Source& source, std::string message, int line) {
  return {.severity = Severity::error,
          .message = std::move(message),
          .file = source.name,
          .line = line,
          .column = 0,
          .caret = {},
          .hint = {}};
}

void apply(const std::vector<Refusal>& refusals, const Source& source, Verdict& verdict) {
  if (refusals.empty()) return;
  Ruling ruling{VerdictStatus::compile, refusals.front().message};
  for (const Refusal& each : refusals) {
    verdict.diagnostics.push_back(refusal(source, each.message, each.line));
    if (each.is_cheating && ruling.status == VerdictStatus::compile) {
      ruling = {VerdictStatus::cheating, each.message};
    }
  }
  throw Ruling(ruling);
}

std::string first_error(const std::vector<Diagnostic>& diagnostics, const std::string& otherwise) {
  for (const Diagnostic& each : diagnostics) {
    if (each.severity == Severity::error) return each.message;
  }
  return otherwise.substr(0, otherwise.find('\n'));
}

/// A refused include comes with advice about options; a text has none.
std::string without_advice(const std::string& message) {
  constexpr std::string_view kRefused = " is refused: ";
  const std::size_t at = message.find(kRefused);
  if (at == std::string::npos) return message;
  return message.substr(0, at + kRefused.size()) +
         "a judged text includes headers of CUDA and of its task only";
}

/// What PTX alone does not show: whether its line numbers are true, if they count, and whether the
/// text is another program under another file name.
void check_places(const Source& source, const Task& task, const DeviceFacts& facts,
                  bool waits_by_clock, Verdict& verdict) {
  const auto compiled = [&](const Source& text) {
    return compile_for(text, task.options, CodeKind::ptx, facts, {task.entry},
                       LineNumbers::dropped);
  };
  const bool sees_name = may_see_its_name(source, task);
  if (!waits_by_clock && !sees_name) return;
  const ObjectCode plain = compiled(source);
  std::vector<Refusal> found;
  if (waits_by_clock && !has_no_places(plain)) {
    found.push_back({true, "its inline PTX says that other code reads the clock (.loc, .file)", 0});
  }
  for (const Source& other : sees_name ? elsewhere(source) : std::vector<Source>{}) {
    if (is_one_program(source.name, plain.code, other.name, compiled(other).code)) continue;
    found.push_back({true,
                     format("it is another program in a file named {}: what is judged would not be "
                            "what is used",
                            other.name),
                     0});
    break;
  }
  apply(found, source, verdict);
}

JudgedText compile_text(const Source& source, const Task& task, const DeviceFacts& simulated,
                        const DeviceFacts* gpu, Verdict& verdict) {
  const std::vector<std::string> names{task.entry};
  JudgedText text;
  const bool is_other = gpu != nullptr && gpu->capability != simulated.capability;
  try {
    text.ptx = compile_for(source, task.options, CodeKind::ptx, simulated, names);
    verdict.diagnostics = text.ptx->diagnostics;
    bool waits_by_clock = false;
    apply(refused_in_code(*text.ptx, task, waits_by_clock), source, verdict);
    check_places(source, task, simulated, waits_by_clock, verdict);
  } catch (const CompileError&) {
    if (!is_other) throw;
  }
  std::optional<ObjectCode> gpu_code;  // the GPU's PTX
  if (is_other) {
    try {
      gpu_code = compile_for(source, task.options, CodeKind::ptx, *gpu, names);
      bool waits_by_clock = false;
      apply(refused_in_code(*gpu_code, task, waits_by_clock), source, verdict);
      check_places(source, task, *gpu, waits_by_clock, verdict);
    } catch (const InvalidArgument&) {  // NVRTC does not know the GPU yet
      if (!text.ptx) throw;
    }
  }
  text.signature = (text.ptx ? *text.ptx : *gpu_code).kernel(task.entry);
  if (gpu != nullptr) {
    try {
      const CodeKind kind = gpu->is_simulated ? CodeKind::ptx : CodeKind::cubin;
      text.cubin = compile_for(source, task.options, kind, *gpu, names);
    } catch (const InvalidArgument&) {  // its driver knows PTX
      text.cubin = gpu_code ? gpu_code : text.ptx;
    }
  }
  return text;
}

}  // namespace

JudgedText compile_judged(const Source& source, const Task& task, const DeviceFacts& simulated,
                          const DeviceFacts* gpu, Verdict& verdict, const WaitLimits& limits) {
  const Source text = bare(source);
  const WaitScope scope(limits);
  try {
    apply(refused_in_text(text, task), text, verdict);
    return compile_text(text, task, simulated, gpu, verdict);
  } catch (const CompileError& error) {
    verdict.diagnostics = error.diagnostics;
    throw Ruling{VerdictStatus::compile, first_error(error.diagnostics, error.what())};
  } catch (const NameNotFound& error) {
    verdict.diagnostics.push_back(refusal(text, error.what(), 0));
    throw Ruling{VerdictStatus::compile, error.what()};
  } catch (const InvalidArgument& error) {
    const std::string why = without_advice(error.what());
    verdict.diagnostics.push_back(refusal(text, why, 0));
    throw Ruling{VerdictStatus::compile, why};
  } catch (const Timeout& error) {
    throw Ruling{VerdictStatus::timeout, error.what()};
  }
}

KernelSignature declared_signature(const Task& task, const DeviceFacts& simulated) {
  const Source source{signature_source(task), "the task's signature", 1, {}};
  try {
    return compile_for(source, task.options, CodeKind::ptx, simulated, {"declared_by_task"})
        .kernel("declared_by_task");
  } catch (const CompileError& error) {
    const std::string what =
        task.signature.empty()
            ? "an empty kernel does not compile with the task's options"
            : format("the task's signature {:?} does not compile", task.signature);
    throw InvalidArgument(format("{}: {}", what, first_error(error.diagnostics, error.what())));
  }
}

ObjectCode empty_kernel(const DeviceFacts& facts) {
  const Source source{"__global__ void empty() {}", "empty.cu", 1, {}};
  const CodeKind kind = facts.is_simulated ? CodeKind::ptx : CodeKind::cubin;
  return compile_for(source, {}, kind, facts, {"empty"});
}

}  // namespace kernwright
