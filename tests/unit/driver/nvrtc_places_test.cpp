// The libraries and package folders found, and their order.
#include "driver/nvrtc_places.h"

#include "unit/base/temporary_directory.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

using namespace kernwright;
using test::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

using Texts = std::vector<std::string>;

/// The paths without the folder in front.
Texts below(const TemporaryDirectory& folder, Texts paths) {
  const std::string root = folder / "";
  for (std::string& path : paths) {
    REQUIRE(path.starts_with(root));
    path.erase(0, root.size());
  }
  return paths;
}

}  // namespace

TEST_CASE("nvrtc places: libraries are ordered by version, number by number") {
  const TemporaryDirectory folder;
  for (const char* name :
       {"libnvrtc.so", "libnvrtc.so.9", "libnvrtc.so.12", "libnvrtc.so.13.5", "libnvrtc.so.13.10",
        "libnvrtc.so.13", "libnvrtc.so.12.4.127", "libnvrtc-builtins.so.13.5", "libnvrtc.so.alt",
        "libnvrtc.so.-1", "libnvrtc.so13", "libnvrtc.so.", "libnvrtc_static.a",
        "libnvrtc.so.99999999999"}) {
    test::write_text(folder / name, "x");
  }
  const Texts expected = {"libnvrtc.so.13.10",    "libnvrtc.so.13.5", "libnvrtc.so.13",
                          "libnvrtc.so.12.4.127", "libnvrtc.so.12",   "libnvrtc.so.9",
                          "libnvrtc.so"};
  CHECK(below(folder, nvrtc_libraries_in(folder.path().string())) == expected);
  CHECK(nvrtc_libraries_in(folder / "missing").empty());
  CHECK(nvrtc_libraries_in(folder / "libnvrtc.so").empty());
}

TEST_CASE("nvrtc places: newer bundles of packages come first, that of CUDA 12 last") {
  const TemporaryDirectory folder;
  CHECK(nvrtc_package_folders(folder / "site").empty());
  for (const char* name : {"cu9", "cu13", "cu100", "cublas", "cu", "cu13x", "cu-1", "cuda_nvrtc"}) {
    fs::create_directories(folder / ("site/nvidia/" + std::string(name)));
  }
  const Texts expected = {"nvidia/cu100/lib", "nvidia/cu13/lib", "nvidia/cu9/lib",
                          "nvidia/cuda_nvrtc/lib"};
  Texts found = nvrtc_package_folders(folder / "site");
  for (std::string& path : found) path = fs::path(path).lexically_relative(folder / "site");
  CHECK(found == expected);
  CHECK(cuda12_package_folder("") == "nvidia/cuda_nvrtc/lib");
  CHECK(cuda12_package_folder("/site") == "/site/nvidia/cuda_nvrtc/lib");
}

TEST_CASE("nvrtc places: files and folders are told apart, behind links too") {
  const TemporaryDirectory folder;
  test::write_text(folder / "file", "x");
  fs::create_symlink(folder / "file", folder / "link");
  fs::create_directory_symlink(folder / "", folder / "loop");
  CHECK(is_regular_file(folder / "file"));
  CHECK(is_regular_file(folder / "link"));
  CHECK_FALSE(is_regular_file(folder / "missing"));
  CHECK_FALSE(is_regular_file(folder / "loop"));
  CHECK(is_folder(folder / "loop"));
  CHECK_FALSE(is_folder(folder / "file"));
  CHECK_FALSE(is_folder(folder / "missing"));
}
