// Lists the contents of an image.
#include "jit/signature/image_reader.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/errors.h"
#include "base/format.h"
#include "core/image/image_info.h"
#include "jit/signature/cubin_reader.h"
#include "jit/signature/ptx_parameters.h"
#include "jit/signature/signature_builder.h"
#include "jit/signature/variable_names.h"

namespace kernwright {
namespace {

/// Kernels with equal readable names keep their lowered ones.
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

/// File formats by their first bytes, and the remedy.
struct OtherImage {
  std::string_view front;
  std::string_view what;
};

constexpr std::string_view kExtract =
    "take a cubin out of it with cuobjdump -xelf all, or PTX with cuobjdump -xptx all";

constexpr std::array kOtherImages{
    OtherImage{"\x50\xed\x55\xba", "a fat binary"},
    OtherImage{"\xb1\x43\x62\x46", "a fat binary"},
    OtherImage{"\x7f\x45LF", "an ELF file of the host"},
    OtherImage{"!<arch>", "a library of object files"},
    OtherImage{"\xed\x43\x4e\x7f", "LTO-IR"},
    OtherImage{"BC\xc0\xde", "LLVM bitcode"},
    OtherImage{"\x1f\x8b", "a compressed file"},
    OtherImage{"\xff\xfe", "text in UTF-16"},
    OtherImage{"\xfe\xff", "text in UTF-16"},
};

/// The true kind of the bytes, and the remedy; empty if unknown.
std::string other_image(std::string_view image) {
  if (image.empty()) return ": there are none";
  const auto* const found =
      std::find_if(kOtherImages.begin(), kOtherImages.end(),
                   [&](const OtherImage& other) { return image.starts_with(other.front); });
  if (found == kOtherImages.end()) {
    const bool is_text = image.substr(0, 256).find('\0') == std::string_view::npos;
    return is_text ? ": PTX begins with a line such as .version 8.0" : "";
  }
  const auto index = found - kOtherImages.begin();
  std::string_view help = index < 4 ? kExtract : "unpack it";
  if (found->what == "LTO-IR" || found->what == "LLVM bitcode") help = "compile it to a cubin";
  if (found->what == "text in UTF-16") help = "save it as UTF-8";
  return format(": they are {}; {}", found->what, help);
}

}  // namespace

ObjectCode object_code_of_image(std::string_view image) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // of a text in UTF-8
  if (image.starts_with(kMark)) image.remove_prefix(kMark.size());
  const ImageInfo info = describe_image(image);
  if (info.kind == ImageKind::unknown) {
    throw Error(
        format("these bytes are no object code, neither saved by save(), nor a cubin, nor PTX{}",
               other_image(image)));
  }
  ObjectCode code =
      info.kind == ImageKind::ptx ? of_ptx(image, info.target) : of_cubin(image, info.target);
  name_kernels(code);
  return code;
}

}  // namespace kernwright
