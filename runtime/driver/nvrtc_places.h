// Where NVRTC libraries may lie, told from names alone: nothing is opened.
#pragma once

#include <string>
#include <vector>

namespace kernwright {

/// Paths of the NVRTC libraries in a folder, the newest name first: "libnvrtc.so.13.10" before
/// "libnvrtc.so.13.5" before "libnvrtc.so.13" before "libnvrtc.so". Empty when it cannot be read.
std::vector<std::string> nvrtc_libraries_in(const std::string& folder);

/// Where packages keep the library below a folder of Python packages: `nvidia/cu13/lib` and its kin
/// (newest first), then cuda12_package_folder(). Empty where there is no `nvidia`.
std::vector<std::string> nvrtc_package_folders(const std::string& site_packages);

/// `nvidia/cuda_nvrtc/lib`, where the packages of CUDA 12 keep it.
std::string cuda12_package_folder(const std::string& site_packages);

/// Of the path or of a link's target there; false for unreadable ones.
bool is_regular_file(const std::string& path);
bool is_folder(const std::string& path);

}  // namespace kernwright
