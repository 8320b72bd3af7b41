// PTX in a file.
#pragma once

#include "driver/driver_types.h"

#include <string>

namespace kernwright::libcuda {

/// Reads a file whole. FILE_NOT_FOUND; INVALID_IMAGE for an empty file, a folder, an error.
CUresult read_image(const char* path, std::string& image);

}  // namespace kernwright::libcuda
