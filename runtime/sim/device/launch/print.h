// The output of printf() in device code.
#pragma once

#include "sim/device.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

/// Text printed by one worker's blocks, kept apart by block: the whole comes out in block order at
/// any timing. Not thread-safe: each worker has its own.
class PrintBuffer {
 public:
  /// LaunchContext::print with a PrintBuffer as its sink.
  static void append(void* buffer, std::string_view text);

  void begin_block(std::uint64_t linear_index) noexcept { block_ = linear_index; }

  struct Piece {
    std::uint64_t block = 0;
    std::string text;
  };
  std::vector<Piece> take() noexcept { return std::move(pieces_); }

 private:
  std::uint64_t block_ = 0;
  std::uint64_t bytes_ = 0, dropped_ = 0;
  std::vector<Piece> pieces_;
};

/// Joins the workers' output in block order.
std::string join(std::vector<PrintBuffer>& buffers);

/// Hands text to the sink of set_print_sink(). Call with no lock held.
void deliver_print(std::string_view text);

}  // namespace kernwright::sim
