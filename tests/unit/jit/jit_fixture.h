// Helpers of the jit module's tests: the installed NVRTC libraries, short compiles, a temporary
// folder.
#pragma once

#include "driver/nvrtc_loader.h"
#include "jit/compile/compiler.h"
#include "jit/compile/nvrtc_unit.h"
#include "unit/core/error_text.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::testing {

/// Every NVRTC found: KERNWRIGHT_NVRTC, the wheel beside Python, a toolkit, the system's. Throws
/// when there is none: the tests of this module need one.
const std::vector<LoadedNvrtc>& real_nvrtcs();
/// Those of this release and newer ones: for features missing in older ones.
std::vector<LoadedNvrtc> nvrtcs_from(int major, int minor);
/// The newest of them.
const LoadedNvrtc& newest_nvrtc();

/// Never up.
inline const CompileDeadline kNever;

/// Makes nvrtc() find the same libraries. Before its first call.
void use_test_nvrtc();

/// A request for the default options of `text`; edit it before compiling.
CompileRequest request_for(const std::string& text, std::vector<std::string> names = {},
                           CodeKind kind = CodeKind::ptx);

/// The Exception thrown by `call`; a test failure without one.
template <typename Exception, typename Call>
Exception thrown_by(Call&& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error;
  }
  throw std::logic_error("nothing was thrown");
}

/// A new folder, removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  /// Writes a file below the folder, making folders as needed; its path.
  std::filesystem::path write(const std::string& name, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace kernwright::testing
