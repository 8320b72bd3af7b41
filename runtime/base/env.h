// The table of all environment variables that the library reads, and typed access to them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// One value per row of the table, in its order.
enum class Env : std::uint8_t {
  device,
  log,
  nvrtc,
  checks,
  sim_devices,
  sim_threads,
  sim_budget,
  sim_timeout,
  sim_isa,
  sim_memory,
  sim_seed,
  sim_capability,
  cache,
  cache_dir,
  cache_limit,
  record,
  nvdisasm,
  kernel_choices,
  compile_memory,
};

/// How the text of a variable is read.
enum class EnvKind : std::uint8_t { text, path, choice, list, integer, bytes };

/// A row of the table; enough to document the variable.
struct EnvVariable {
  Env id;
  const char* name;  ///< "KERNWRIGHT_DEVICE"
  EnvKind kind;
  const char* default_value;  ///< used when the variable is unset or empty
  const char* choices;        ///< for choice and list: the words allowed, separated by '|'
  std::uint64_t low, high;    ///< for integer and bytes: the range allowed
  const char* meaning;        ///< one line
};

/// Every variable, in the order of Env.
std::span<const EnvVariable> env_table() noexcept;
const EnvVariable& env_variable(Env id) noexcept;

/// Whether the variable is set and not empty.
bool env_is_set(Env id);

// The getters read the process's environment at each call. A malformed value, or one of another
// kind, throws InvalidArgument with the variable, its value and the allowed ones.

/// The text as it stands, or the default.
std::string env_text(Env id);
/// For EnvKind::choice: one of the words of the table.
std::string env_choice(Env id);
/// For EnvKind::list: words separated by commas or blanks, each one of the table's. "all" stands
/// for every word but itself.
std::vector<std::string> env_list(Env id);
/// For EnvKind::integer and EnvKind::bytes; bytes may end in K, M, G or T (powers of 1024).
std::uint64_t env_number(Env id);

/// Advice on each variable of the environment with a name close to one of the table:
/// "KERNWRIGHT_SIM_THREAD is unknown ...; did you mean KERNWRIGHT_SIM_THREADS?", in order. Names of
/// the project's own builds and tests are left out. Reads the whole environment.
std::vector<std::string> describe_unknown_variables();

/// Logs them as warnings, once per process. Called when the first device is looked for.
void report_unknown_variables();

}  // namespace kernwright
