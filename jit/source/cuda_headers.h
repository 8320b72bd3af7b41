// The sources of CUDA's headers and of its C++ library for includes.
#pragma once

#include "base/secure_directory.h"
#include "driver/nvrtc_loader.h"

#include <memory>
#include <string>
#include <vector>

namespace kernwright {

struct CudaHeaders {
  /// Include folders, in order; empty when none were found. Valid as long as `held` lives.
  std::vector<std::string> folders;
  std::shared_ptr<const SecureDirectory> held;  ///< the folder of the bundle
  std::string origin;      ///< "NVRTC's bundle", "beside NVRTC", "toolkit", "none" ...
  bool is_bundle = false;  ///< of NVRTC itself; its version tells their contents
  std::string note;        ///< why the bundle could not be used; empty when nothing failed
};

/// The places to search for CUDA's headers. A value.
struct HeaderPlaces {
  std::string cache_folder = {};                ///< for those that NVRTC unpacks; empty: nowhere
  std::vector<std::string> toolkits = {};       ///< roots
  std::vector<std::string> site_packages = {};  ///< folders that hold `nvidia/<package>`

  /// The cache's folder and the folders of NvrtcSearch::from_environment().
  static HeaderPlaces of_process();
};

/// The folders for `nvrtc`, looked up once per library and process; the next call repeats a failed
/// search. Each call checks that all files of the bundle exist. In this order: the headers bundled
/// with NVRTC 13.3 and newer, unpacked once into `headers-<version>` of the cache folder (many
/// processes may do so at once); include folders beside the library; pip packages of its CUDA
/// release; a CUDA toolkit. Thread-safe, never throws for a missing folder.
CudaHeaders cuda_headers(const LoadedNvrtc& nvrtc,
                         const HeaderPlaces& places = HeaderPlaces::of_process());

/// The same without the memory of earlier calls.
CudaHeaders find_cuda_headers(const LoadedNvrtc& nvrtc, const HeaderPlaces& places);

/// Whether a file, by its canonical path, lies in a folder where such headers are looked for.
bool is_cuda_header(const std::string& path,
                    const HeaderPlaces& places = HeaderPlaces::of_process());

}  // namespace kernwright
