// Possible places of NVRTC libraries, found by names alone: nothing is opened.
#pragma once

#include <string>
#include <vector>

namespace kernwright {

/// Paths of the NVRTC libraries in a folder, the newest name first: "libnvrtc.so.13.10" before
/// "libnvrtc.so.13.5" before "libnvrtc.so.13" before "libnvrtc.so". Empty when it cannot be read.
std::vector<std::string> nvrtc_libraries_in(const std::string& folder);

/// Folders of the library in packages below a folder of Python packages: `nvidia/cu13/lib` and
/// similar ones (newest first), then cuda12_package_folder(). Empty without `nvidia`.
std::vector<std::string> nvrtc_package_folders(const std::string& site_packages);

/// `nvidia/cuda_nvrtc/lib`, where the packages of CUDA 12 keep it.
std::string cuda12_package_folder(const std::string& site_packages);

/// Whether the path, or a link's target, is a regular file; false for unreadable ones.
bool is_regular_file(const std::string& path);
bool is_folder(const std::string& path);

}  // namespace kernwright
