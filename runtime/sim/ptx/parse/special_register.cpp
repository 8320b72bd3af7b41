// Spelling and width of the special registers.
#include "sim/ptx/type_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace kernwright::sim::ptx {
namespace {

// Indexed by SpecialRegister.
constexpr std::array<std::string_view, 55> kNames{{
    "",
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%total_smem_size",
    "%dynamic_smem_size",
    "%aggr_smem_size",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0",
    "%reserved_smem_offset_1",
    "%is_explicit_cluster",
    "%clusterid.x",
    "%clusterid.y",
    "%clusterid.z",
    "%nclusterid.x",
    "%nclusterid.y",
    "%nclusterid.z",
    "%cluster_ctaid.x",
    "%cluster_ctaid.y",
    "%cluster_ctaid.z",
    "%cluster_nctaid.x",
    "%cluster_nctaid.y",
    "%cluster_nctaid.z",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%envreg1",
    "%envreg2",
}};
static_assert(kNames.size() == static_cast<std::size_t>(SpecialRegister::current_graph_exec));

/// Reads `prefix`, a number up to `last`, `suffix`.
bool is_numbered(std::string_view text, std::string_view prefix, int last,
                 std::string_view suffix) {
  if (!text.starts_with(prefix) || !text.ends_with(suffix)) return false;
  text.remove_prefix(prefix.size());
  if (text.size() <= suffix.size()) return false;
  text.remove_suffix(suffix.size());
  int number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && number >= 0 &&
         number <= last && std::to_string(number) == text;
}

/// Registers that always read as zero here: performance counters, what only the driver sets, and
/// the fourth components.
SpecialRegister zero_register(std::string_view text) {
  if (is_numbered(text, "%pm", 7, "_64")) return SpecialRegister::zero64;
  bool zero = is_numbered(text, "%pm", 7, "") || is_numbered(text, "%envreg", 31, "");
  if (text.ends_with(".w")) {
    const std::string first = std::string(text.substr(0, text.size() - 1)) + "x";
    zero = std::find(kNames.begin(), kNames.end(), first) != kNames.end();
  }
  return zero ? SpecialRegister::zero : SpecialRegister::none;
}

}  // namespace

SpecialRegister special_from_name(std::string_view text) noexcept {
  if (text == "%current_graph_exec") return SpecialRegister::current_graph_exec;
  for (std::size_t i = 1; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<SpecialRegister>(i);
  }
  return zero_register(text);
}

int special_bits(SpecialRegister special) noexcept {
  switch (special) {
    case SpecialRegister::gridid:
    case SpecialRegister::clock64:
    case SpecialRegister::globaltimer:
    case SpecialRegister::current_graph_exec:
    case SpecialRegister::zero64: return 64;
    case SpecialRegister::is_explicit_cluster: return 1;
    default: return 32;
  }
}

}  // namespace kernwright::sim::ptx
