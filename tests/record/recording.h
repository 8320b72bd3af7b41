// What the programs that record a GPU's results share: files, contexts, one launch.
#pragma once

#include "driver/driver_api.h"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

/// Whole files; std::runtime_error names a file that cannot be read or written.
std::string read_whole(const std::filesystem::path& path);
void write_whole(const std::filesystem::path& path, std::string_view text);

/// Throws std::runtime_error of `what` and the driver's text unless the call succeeded.
void require(const DriverApi& api, CUresult result, std::string_view what);

/// The real driver; std::runtime_error says why there is none.
const DriverApi& real_driver();

/// Makes the primary context of device 0 current.
void make_current(const DriverApi& api);

/// "NVIDIA H200": what device 0 calls itself.
std::string device_name(const DriverApi& api);

/// A module and its memory for some launches of kernels (in, out). Everything is freed at the end.
class RecordedModule {
 public:
  /// `image` is PTX (with a zero behind it) or an assembled module.
  RecordedModule(const DriverApi& api, const void* image, std::span<const std::byte> input,
                 std::size_t output_bytes);
  ~RecordedModule();
  RecordedModule(const RecordedModule&) = delete;
  RecordedModule& operator=(const RecordedModule&) = delete;

  /// Clears the output, launches `kernel`, and returns what it wrote.
  std::vector<std::byte> run(const std::string& kernel, unsigned grid, unsigned block);

 private:
  void release() noexcept;

  const DriverApi& api_;
  CUmodule module_ = nullptr;
  CUdeviceptr in_ = 0, out_ = 0;
  std::size_t output_bytes_;
};

}  // namespace kernwright::sim
