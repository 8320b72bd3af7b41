// PTX in a file.
#include "libcuda/image_file.h"

#include "base/whole_file.h"

#include <unistd.h>

namespace kernwright::libcuda {

CUresult read_image(const char* path, std::string& image) {
  std::optional<std::string> bytes = read_whole_file(path);
  if (!bytes) return access(path, F_OK) == 0 ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_FILE_NOT_FOUND;
  image = std::move(*bytes);
  return image.empty() ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

}  // namespace kernwright::libcuda
