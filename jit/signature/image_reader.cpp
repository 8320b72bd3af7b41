// Lists what is in an image.
#include "jit/signature/image_reader.h"

#include <algorithm>
#include <map>

#include "base/errors.h"
#include "base/format.h"
#include "core/image_info.h"
#include "jit/signature/cubin_reader.h"
#include "jit/signature/ptx_parameters.h"
#include "jit/signature/signature_builder.h"
#include "jit/signature/variable_names.h"

namespace kernwright {
namespace {

/// Kernels whose readable names are the same keep their lowered ones.
void name_kernels(ObjectCode& code) {
  std::map<std::string, int> count;
  for (const KernelSignature& kernel : code.kernels) ++count[readable_kernel(kernel.lowered)];
  for (KernelSignature& kernel : code.kernels) {
    const std::string readable = readable_kernel(kernel.lowered);
    kernel.name = count[readable] == 1 ? readable : kernel.lowered;
  }
}

void add_variable(ObjectCode& code, const std::string& lowered) {
  const std::string readable = readable_variable(lowered);
  if (!readable.empty()) code.symbols.emplace(readable, lowered);
}

ObjectCode of_ptx(std::string_view image, const std::string& target) {
  ObjectCode code;
  code.kind = CodeKind::ptx;
  code.arch = target.starts_with("sm_") ? "compute_" + target.substr(3) : target;
  code.code = std::string(image.substr(0, image.find('\0')));
  const std::string text = without_ptx_comments(code.code);
  for (const std::string& lowered : ptx_entries(text)) {
    const auto parameters = ptx_parameters(text, lowered);
    if (!parameters) continue;  // no definition: the loader will say what it is
    code.kernels.push_back(signature_from_parameters(lowered, lowered, *parameters, nullptr));
  }
  for (const std::string& lowered : ptx_variables(text)) add_variable(code, lowered);
  return code;
}

ObjectCode of_cubin(std::string_view image, const std::string& target) {
  ObjectCode code;
  code.kind = CodeKind::cubin;
  code.arch = target;
  code.code = std::string(image);
  const CubinContents contents = read_cubin(image);
  for (const CubinKernel& kernel : contents.kernels) {
    if (kernel.parameters) {
      code.kernels.push_back(
          signature_from_parameters(kernel.lowered, kernel.lowered, *kernel.parameters, nullptr));
    } else {
      code.kernels.push_back({kernel.lowered, kernel.lowered, {}, false});
    }
  }
  for (const std::string& lowered : contents.variables) add_variable(code, lowered);
  return code;
}

}  // namespace

ObjectCode object_code_of_image(std::string_view image) {
  const ImageInfo info = describe_image(image);
  if (info.kind == ImageKind::unknown) {
    throw Error("these bytes are no object code: neither saved by save(), nor a cubin, nor PTX");
  }
  ObjectCode code =
      info.kind == ImageKind::ptx ? of_ptx(image, info.target) : of_cubin(image, info.target);
  name_kernels(code);
  return code;
}

}  // namespace kernwright
