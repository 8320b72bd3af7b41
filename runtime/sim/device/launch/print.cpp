// The output of printf() in device code.
#include "sim/device/launch/print.h"

#include "base/format.h"

#include <algorithm>
#include <cstdio>

namespace kernwright::sim {
namespace {

// A kernel with endless output must not use up the machine's memory.
constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;

std::mutex g_sink_mutex;
PrintSink& sink() {
  static PrintSink* const instance = new PrintSink;
  return *instance;
}

}  // namespace

void PrintBuffer::append(void* buffer, std::string_view text) {
  auto& self = *static_cast<PrintBuffer*>(buffer);
  if (self.pieces_.empty() || self.pieces_.back().block != self.block_) {
    self.pieces_.push_back({self.block_, {}});
  }
  std::string& piece = self.pieces_.back().text;
  if (self.bytes_ + text.size() > kMostBytes) {
    if (self.dropped_ == 0) {
      piece += format("\n[device printf: more than {} bytes in one launch, the rest is dropped]\n",
                      kMostBytes);
    }
    self.dropped_ += text.size();
    return;
  }
  self.bytes_ += text.size();
  piece += text;
}

std::string join(std::vector<PrintBuffer>& buffers) {
  std::vector<PrintBuffer::Piece> pieces;
  for (PrintBuffer& buffer : buffers) {
    std::vector<PrintBuffer::Piece> taken = buffer.take();
    std::move(taken.begin(), taken.end(), std::back_inserter(pieces));
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.block < b.block; });
  std::string text;
  for (const PrintBuffer::Piece& piece : pieces) text += piece.text;
  return text;
}

void set_print_sink(PrintSink replacement) {
  const std::lock_guard lock(g_sink_mutex);
  sink() = std::move(replacement);
}

void deliver_print(std::string_view text) {
  if (text.empty()) return;
  PrintSink target;
  {
    const std::lock_guard lock(g_sink_mutex);
    target = sink();
  }
  if (target) {
    target(text);
    return;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace kernwright::sim
