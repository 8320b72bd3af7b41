// The options of cuModuleLoadDataEx.
#include "sim/device/module/jit_options.h"

#include "sim/device/sim_driver.h"

#include <algorithm>
#include <cstring>

namespace kernwright::sim {

JitOptions::JitOptions(unsigned int count, CUjit_option* options, void** values)
    : count_(count), options_(options), values_(values) {
  require(count == 0 || (options != nullptr && values != nullptr));
  for (unsigned int i = 0; i < count; ++i) {
    require(options[i] >= CU_JIT_MAX_REGISTERS && options[i] <= CU_JIT_SPLIT_COMPILE);
  }
}

void** JitOptions::find_value(CUjit_option option) const {
  const CUjit_option* const end = options_ + count_;
  const CUjit_option* const found = std::find<const CUjit_option*>(options_, end, option);
  return count_ == 0 || found == end ? nullptr : values_ + (found - options_);
}

void JitOptions::write_log(CUjit_option buffer, CUjit_option size, std::string_view text) const {
  void** const to = find_value(buffer);
  void** const room_value = find_value(size);
  if (to == nullptr || *to == nullptr || room_value == nullptr) return;
  const auto room = static_cast<std::size_t>(
      static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(*room_value)));
  if (room == 0) return;
  const std::size_t count = std::min(text.size(), room - 1);
  std::memcpy(*to, text.data(), count);
  static_cast<char*>(*to)[count] = '\0';
  *room_value = reinterpret_cast<void*>(std::uintptr_t{count + 1});
}

void JitOptions::write_error_log(std::string_view text) const {
  write_log(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, text);
}

void JitOptions::write_info_log(std::string_view text) const {
  write_log(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, text);
}

void JitOptions::write_wall_time(float milliseconds) const {
  if (void** const value = find_value(CU_JIT_WALL_TIME); value != nullptr) {
    std::memcpy(value, &milliseconds, sizeof milliseconds);
  }
}

}  // namespace kernwright::sim
