// How a source is compiled. Every field has the compiler's default when left alone.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

enum class Tristate { automatic, off, on };

/// Options as fields; free-form ones go into `extra`.
struct ProgramOptions {
  std::string arch;                            ///< "sm_90a", "compute_80"; empty: the device's
  std::string std = "c++17";                   ///< "c++11" ... "c++23", as NVRTC knows
  std::map<std::string, std::string> defines;  ///< name -> value ("" for a bare define)
  /// Include name -> text. These come before files of the same name in any folder.
  std::map<std::string, std::string> headers;
  /// Searched in this order, before CUDA's own. A Program resolves relative ones when it is made.
  std::vector<std::string> include_dirs;
  bool fast_math = false;
  std::optional<int> max_registers;
  bool lineinfo = false;
  bool device_debug = false;
  bool strip_host = false;  ///< leaves out what only the host uses, as without_host_code() says
  Tristate minimal = Tristate::automatic;
  Tristate pch = Tristate::automatic;
  std::optional<int> opt_level;  ///< 0 ... 3 for ptxas
  std::optional<std::chrono::milliseconds> timeout;
  std::vector<std::string> extra;  ///< each starts with '-', no line break
};

/// Throws InvalidArgument for a NUL or line break in any text, an option not starting with '-', an
/// option with its own field, an option that writes files or leaves no code, a header name with
/// ".." or an absolute path, two spellings of one header name, an unknown std, a negative number.
/// Does not access the file system.
void validate(const ProgramOptions& options);

/// The options with each include folder made absolute by the current folder of the process, so a
/// later change of it selects no other headers. Throws InvalidArgument if there is none.
ProgramOptions with_absolute_folders(ProgramOptions options);

/// Throws InvalidArgument for an include folder that does not exist or is not a folder.
void check_include_dirs(const ProgramOptions& options);

/// NVRTC's command line for `arch` ("sm_80"): the same fields always give the same texts in the
/// same order. `header_folders` come behind the user's include folders. A bare define becomes
/// `NAME` (1).
std::vector<std::string> to_nvrtc_options(const ProgramOptions& options, const std::string& arch,
                                          const std::vector<std::string>& header_folders);

}  // namespace kernwright
