// Compiles with NVRTC's own timing and reads its file.
#include "jit/compile/compile_profile.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string_view>

#include "base/errors.h"
#include "core/device.h"
#include "jit/compile/compile_service.h"
#include "jit/compile/target.h"
#include "jit/source/include_closure.h"
#include "jit/source/kernel_scanner.h"
#include "jit/source/source_lexer.h"

namespace kernwright {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// The number in front of `words`, 0 where they are not there.
std::uint64_t number_before(const std::string& line, const std::string& words) {
  const auto at = line.find(words);
  if (at == std::string::npos || at == 0) return 0;
  auto begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  return std::strtoull(line.substr(begin, at - begin).c_str(), nullptr, 10);
}

Target target_on(Device& device, const ProgramOptions& options, const IncludeClosure& included,
                 const NvrtcFacts& nvrtc) {
  DeviceTarget wanted;
  wanted.is_simulated = device.is_simulated();
  wanted.arch = options.arch;
  wanted.wants_arch_specific = included.asks_for_arch_specific;
  wanted.compute_capability = device.compute_capability().number();
  return target_for_device(wanted, nvrtc.archs, nvrtc.version());
}

std::vector<std::string> header_names(const CompileRequest& request,
                                      const IncludeClosure& included) {
  std::set<std::string> names;
  for (const IncludedFile& file : included.files) names.insert(file.path);
  const auto& in_memory = request.options.headers;
  std::vector<std::string_view> pending{request.source.text};
  while (!pending.empty()) {
    const TokenizedSource source = tokenize(pending.back());
    pending.pop_back();
    for (const IncludeDirective& include : source.includes) {
      const auto is_known = [&](const std::string& name) { return name.ends_with(include.name); };
      if (std::any_of(names.begin(), names.end(), is_known)) continue;
      names.emplace(include.name);
      const auto found = in_memory.find(std::string(include.name));
      if (found != in_memory.end()) pending.push_back(found->second);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace

KernelSpills read_spills(const std::string& log, const std::string& lowered) {
  const auto at = log.find("Function properties for " + lowered + "\n");
  if (at == std::string::npos) return {};
  const auto begin = log.find('\n', at) + 1;
  const std::string line = log.substr(begin, log.find('\n', begin) - begin);
  return {number_before(line, " bytes stack frame"), number_before(line, " bytes spill stores"),
          number_before(line, " bytes spill loads")};
}

std::vector<PhaseTime> read_phase_times(const std::string& text) {
  std::vector<PhaseTime> phases;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    // file, phase, number, unit: counted from the back, since a file's name may have commas.
    std::array<std::string, 3> fields;
    std::string rest = line;
    for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
      const auto comma = rest.rfind(',');
      if (comma == std::string::npos) break;
      *field = trimmed(rest.substr(comma + 1));
      rest.resize(comma);
    }
    const auto& [name, number, unit] = fields;
    if (unit != "ms" || name.empty()) continue;
    const double ms = std::strtod(number.c_str(), nullptr);
    const auto known = std::find_if(phases.begin(), phases.end(),
                                    [&name = name](const PhaseTime& p) { return p.name == name; });
    if (known == phases.end()) {
      phases.push_back({name, ms});
    } else {
      known->ms += ms;
    }
  }
  return phases;
}

CompileProfile profile_compile(const Source& source, const ProgramOptions& options, Device& device,
                               const std::string& name) {
  CompileService& service = compile_service();
  const CompileService::Facts nvrtc = service.nvrtc();
  CompileProfile profile;
  auto begin = Clock::now();
  CompileJob job;
  job.is_measured = true;
  CompileRequest& request = job.request;
  request.source = source;
  request.options = options;
  request.options.pch = Tristate::off;
  request.options.lineinfo |= device.is_simulated();
  request.declared = scan_source(request.source.text);
  request.names = {name};
  request.with_declared = false;
  profile.phases.push_back({"scan", ms_since(begin)});
  begin = Clock::now();
  const IncludeClosure included = include_closure(request.source, request.options);
  request.target = target_on(device, options, included, *nvrtc);
  job.with_cuda_headers = included.needs_cuda_headers;
  profile.phases.push_back({"headers", ms_since(begin)});
  profile.headers = header_names(request, included);

  begin = Clock::now();
  const CompileResult result = service.compile(job, *nvrtc);
  profile.total_ms = ms_since(begin);
  for (PhaseTime& phase : read_phase_times(result.phase_times)) {
    profile.phases.push_back(std::move(phase));
  }
  profile.spills = read_spills(result.code.log, result.code.kernel(name).lowered);
  return profile;
}

}  // namespace kernwright
