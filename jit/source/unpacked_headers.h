// Folders of compiler headers in the cache, each with a list of its files for checks.
#pragma once

#include "base/secure_directory.h"
#include "driver/nvrtc_loader.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// The beginning of such folders' names.
inline constexpr std::string_view kUnpackedStem = "headers-";

/// The folder `headers-<version>` of NVRTC's own headers below `root`: found whole, or unpacked (at
/// first use, and where files are missing or have changed). Closed with the reason if this fails.
/// Several processes may do so at once: no file is taken away while another process reads the
/// folder. A whole folder costs one look at each file, some milliseconds.
SecureDirectory unpack_headers(const LoadedNvrtc& nvrtc, const SecureDirectory& root);

/// Whether the folder of unpack_headers() still has its name, and no file was added or removed.
/// Less certain than unpack_headers(), but a tenth of its time: for each compile.
bool are_in_place(const SecureDirectory& headers);

/// A folder of unpacked headers.
struct UnpackedHeaders {
  std::string name;  ///< "headers-13.5"
  std::uint64_t bytes = 0;
  std::int64_t last_used = 0;  ///< seconds since 1970; exact to an hour
};

/// All of them in the cache's folder, those without a list too.
std::vector<UnpackedHeaders> unpacked_headers(const SecureDirectory& root);

struct DamagedHeader {
  std::string file;  ///< "headers-13.5/cuda_fp16.h"
  std::string reason;
};

/// Reads all files of the folder and compares them with its list.
std::vector<DamagedHeader> damaged_headers(const SecureDirectory& root, const std::string& name);

/// False if it could not be removed wholly. The next compile with a use for it unpacks it anew.
bool remove_headers(const SecureDirectory& root, const std::string& name);

}  // namespace kernwright
