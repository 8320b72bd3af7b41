// The kind of an image for the driver: cubin or PTX, its architecture and version.
#pragma once

#include <string>
#include <string_view>

namespace kernwright {

enum class ImageKind { unknown, cubin, ptx };

/// Read from the first bytes of an image, for messages. Zero or empty where the image does not
/// tell.
struct ImageInfo {
  ImageKind kind = ImageKind::unknown;
  std::string target;       ///< "sm_90", "sm_90a"; a cubin does not tell its suffix
  std::string ptx_version;  ///< "9.5"; of PTX only

  /// "a cubin for sm_90", "PTX 9.5 for sm_80", "an image that is neither a cubin nor PTX".
  std::string to_string() const;
};

/// Whether it is an ELF file for a GPU.
bool is_cubin(std::string_view image) noexcept;

/// Never fails: what cannot be read is `unknown`.
ImageInfo describe_image(std::string_view image);

/// The newest PTX version understood by a driver of CUDA `driver_version` (13000 = 13.0), as "9.0";
/// empty for versions outside this table.
std::string newest_driver_ptx(int driver_version);

}  // namespace kernwright
