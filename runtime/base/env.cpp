// The rows of the environment table and the readers of their values.
#include "base/env.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "base/nearest_name.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <mutex>

namespace kernwright {

namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kTebibyte = std::uint64_t{1} << 40;

// In the order of Env.
constexpr std::array<EnvVariable, 19> kTable = {{
    {Env::device, "KERNWRIGHT_DEVICE", EnvKind::text, "auto", "", 0, 0,
     "device of a program that names none: auto, cuda, cuda:N, sim or sim:N"},
    {Env::log, "KERNWRIGHT_LOG", EnvKind::choice, "warning", "off|error|warning|info|debug", 0, 0,
     "level up to which messages are written to stderr. Unset, Python's logger \"kernwright\" has "
     "the level and the messages"},
    {Env::nvrtc, "KERNWRIGHT_NVRTC", EnvKind::path, "", "", 0, 0,
     "NVRTC library, or the folder that holds it, to use instead of searching for one"},
    {Env::checks, "KERNWRIGHT_CHECKS", EnvKind::list, "", "memory|init|race|sync|streams|all", 0, 0,
     "checks of the simulated device beyond bounds, which are always on"},
    {Env::sim_devices, "KERNWRIGHT_SIM_DEVICES", EnvKind::integer, "1", "", 1, 64,
     "number of simulated devices"},
    {Env::sim_threads, "KERNWRIGHT_SIM_THREADS", EnvKind::integer, "0", "", 0, 4096,
     "host threads that run a simulated launch; 0 means one per core"},
    {Env::sim_budget, "KERNWRIGHT_SIM_BUDGET", EnvKind::integer, "2000000000", "", 0, kMax,
     "instructions that one warp may execute on a simulated device, the warps of a block twice as "
     "many; 0 means no limit"},
    {Env::sim_timeout, "KERNWRIGHT_SIM_TIMEOUT", EnvKind::integer, "0", "", 0, 1'000'000'000,
     "seconds that one launch may take on a simulated device; 0 means no limit"},
    {Env::sim_isa, "KERNWRIGHT_SIM_ISA", EnvKind::choice, "auto", "auto|baseline|avx2|avx512", 0, 0,
     "instruction set that the simulated device uses; auto takes the best of this CPU"},
    {Env::sim_memory, "KERNWRIGHT_SIM_MEMORY", EnvKind::bytes, "4G", "", kMebibyte, kTebibyte,
     "memory of each simulated device in bytes; K, M, G and T may follow the number. Unset means "
     "4G, or less in a process with little address space"},
    {Env::sim_seed, "KERNWRIGHT_SIM_SEED", EnvKind::integer, "0", "", 0, kMax,
     "lets work wait in its stream and chooses among all legal orders; unset means order of issue"},
    {Env::sim_capability, "KERNWRIGHT_SIM_CAPABILITY", EnvKind::choice, "8.0", "8.0|9.0", 0, 0,
     "compute capability of simulated devices; 9.0 has clusters, tensor maps and wgmma"},
    {Env::cache, "KERNWRIGHT_CACHE", EnvKind::choice, "disk", "off|memory|disk", 0, 0,
     "where compiled kernels are kept: disk (and memory), memory of the process only, or nowhere"},
    {Env::cache_dir, "KERNWRIGHT_CACHE_DIR", EnvKind::path, "", "", 0, 0,
     "folder of the cache instead of $XDG_CACHE_HOME/kernwright or ~/.cache/kernwright"},
    {Env::cache_limit, "KERNWRIGHT_CACHE_LIMIT", EnvKind::bytes, "1G", "", kMebibyte, kTebibyte,
     "size in bytes above which the disk cache drops what was not used for longest"},
    {Env::record, "KERNWRIGHT_RECORD", EnvKind::path, "", "", 0, 0,
     "file to which each compile request is appended as a line of JSON, for `kernwright pack`"},
    {Env::nvdisasm, "KERNWRIGHT_NVDISASM", EnvKind::path, "", "", 0, 0,
     "nvdisasm or cuobjdump to use for `kernel.sass` instead of searching for one"},
    {Env::kernel_choices, "KERNWRIGHT_KERNEL_CHOICES", EnvKind::path, "", "", 0, 0,
     "table of launch numbers that `kernwright tune-kernels` wrote, instead of kernel_choices.json "
     "in the folder of the cache; off leaves them to the library's rules"},
    {Env::compile_memory, "KERNWRIGHT_COMPILE_MEMORY", EnvKind::bytes, "1536M", "", 64 * kMebibyte,
     kTebibyte,
     "memory in bytes that one compile may take; at most half of the machine's is used. A larger "
     "compile ends with an error"},
}};

constexpr bool rows_in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].id) != i) return false;
  }
  return kTable.size() == static_cast<std::size_t>(Env::compile_memory) + 1;
}
static_assert(rows_in_order());

[[noreturn]] void malformed(const EnvVariable& row, std::string_view value,
                            std::string_view allowed) {
  throw InvalidArgument(
      format("{}={} is not understood; allowed is {} ({})", row.name, value, allowed, row.meaning));
}

void require_kind(const EnvVariable& row, bool matches) {
  if (!matches) {
    throw InvalidArgument(format("{} is read as a kind of value that it does not hold", row.name));
  }
}

bool is_choice(const EnvVariable& row, std::string_view word) {
  std::string_view rest = row.choices;
  while (!rest.empty()) {
    const std::size_t bar = std::min(rest.find('|'), rest.size());
    if (rest.substr(0, bar) == word) return true;
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return false;
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while ((start = text.find_first_not_of(separators, start)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(separators, start), text.size());
    words.emplace_back(text.substr(start, end - start));
    start = end;
  }
  return words;
}

/// The shift of a suffix K, M, G, T (upper or lower case); 0 for none; -1 for anything else.
int suffix_shift(std::string_view suffix) {
  if (suffix.empty()) return 0;
  if (suffix.size() != 1) return -1;
  switch (suffix.front()) {
    case 'K':
    case 'k':
      return 10;
    case 'M':
    case 'm':
      return 20;
    case 'G':
    case 'g':
      return 30;
    case 'T':
    case 't':
      return 40;
    default:
      return -1;
  }
}

constexpr std::string_view kVariablePrefix = "KERNWRIGHT_";

/// Variables of builds, tests and benchmarks, unread by the library; "_" at the end stands for all
/// with this begin.
constexpr std::array<std::string_view, 13> kProjectVariables{
    "TEST_",        "BUILD_", "BENCH_",     "SANITIZE",       "SANITIZER",
    "UNITY",        "SOAK",   "FAULT_KILL", "TOOLKIT_HIDDEN", "WRITE_GOLDEN",
    "FUZZ_SECONDS", "SEED",   "PROBE_NVRTC"};

bool is_project_variable(std::string_view name) {
  name.remove_prefix(kVariablePrefix.size());
  return std::any_of(kProjectVariables.begin(), kProjectVariables.end(),
                     [&](std::string_view known) {
                       return known.ends_with('_') ? name.starts_with(known) : name == known;
                     });
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return result;
}

/// The error in the name; empty if there is none, or if the name is not one of ours.
std::string describe_unknown(std::string_view name, std::span<const std::string> known) {
  const std::string upper = upper_case(name);
  if (!upper.starts_with("KERNW")) return {};
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  const bool has_prefix = upper.starts_with(kVariablePrefix);
  if (has_prefix && is_project_variable(upper)) return {};
  const bool is_case = std::find(known.begin(), known.end(), upper) != known.end();
  const std::string nearest = is_case ? upper : nearest_name(upper, known);
  if (!has_prefix && nearest.empty()) return {};  // of another program
  std::string list;
  for (const std::string& each : known) (list += list.empty() ? "" : ", ") += each;
  return format("the environment variable {} is unknown and has no effect; {}", name,
                nearest.empty() ? "there is: " + list : format("did you mean {}?", nearest));
}

}  // namespace

std::span<const EnvVariable> env_table() noexcept { return kTable; }

const EnvVariable& env_variable(Env id) noexcept { return kTable[static_cast<std::size_t>(id)]; }

bool env_is_set(Env id) {
  const char* value = std::getenv(env_variable(id).name);
  return value != nullptr && *value != '\0';
}

std::string env_text(Env id) {
  const EnvVariable& row = env_variable(id);
  return env_is_set(id) ? std::getenv(row.name) : row.default_value;
}

std::string env_choice(Env id) {
  const EnvVariable& row = env_variable(id);
  require_kind(row, row.kind == EnvKind::choice);
  std::string value = env_text(id);
  if (!is_choice(row, value)) malformed(row, value, row.choices);
  return value;
}

std::vector<std::string> env_list(Env id) {
  const EnvVariable& row = env_variable(id);
  require_kind(row, row.kind == EnvKind::list);
  const std::string value = env_text(id);
  std::vector<std::string> words = split(value, ", \t");
  for (const std::string& word : words) {
    if (!is_choice(row, word)) {
      malformed(row, value, format("a list of {}, separated by commas", row.choices));
    }
  }
  if (std::find(words.begin(), words.end(), "all") != words.end()) {
    words = split(row.choices, "|");
    std::erase(words, "all");
  }
  return words;
}

std::uint64_t env_number(Env id) {
  const EnvVariable& row = env_variable(id);
  require_kind(row, row.kind == EnvKind::integer || row.kind == EnvKind::bytes);
  const std::string value = env_text(id);
  const auto refuse = [&] {
    malformed(row, value, format("a whole number from {} to {}", row.low, row.high));
  };
  std::uint64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, status] = std::from_chars(value.data(), end, number);
  if (status != std::errc()) refuse();
  const std::string_view suffix(stop, static_cast<std::size_t>(end - stop));
  const int shift = row.kind == EnvKind::bytes || suffix.empty() ? suffix_shift(suffix) : -1;
  if (shift < 0 || number > (kMax >> shift)) refuse();
  number <<= shift;
  if (number < row.low || number > row.high) refuse();
  return number;
}

std::vector<std::string> describe_unknown_variables() {
  std::vector<std::string> known;
  for (const EnvVariable& row : kTable) known.emplace_back(row.name);
  std::vector<std::string> result;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    std::string found = describe_unknown(text.substr(0, text.find('=')), known);
    if (!found.empty()) result.push_back(std::move(found));
  }
  std::sort(result.begin(), result.end());
  return result;
}

void report_unknown_variables() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const std::string& text : describe_unknown_variables())
      log_message(LogLevel::warning, text);
  });
}

}  // namespace kernwright
