// Device printf and assert.
#include "sim/exec/builtins_print.h"

#include "base/format.h"
#include "sim/exec/printf_format.h"
#include "sim/exec/warp/lane_memory.h"
#include "sim/exec/watcher.h"

#include <algorithm>
#include <bit>

namespace kernwright::sim {
namespace {

/// The zero-terminated text at `address`, at most `limit` characters. Nothing after a fault.
std::optional<std::string> read_text(const Op* op, Warp& warp, int lane, std::uint64_t address,
                                     std::size_t limit) {
  std::string text;
  while (text.size() < limit) {
    const std::uint64_t at = seen_from_block(warp, ptx::Space::generic, address + text.size());
    const std::uint64_t chunk =
        accessible_bytes(warp, lane, at, std::min<std::uint64_t>(limit - text.size(), 4096));
    const LaneAccess access{.address = at, .size = std::max<std::uint64_t>(chunk, 1)};
    const std::byte* host = locate(op, warp, lane, access);
    if (host == nullptr) return std::nullopt;
    const auto* chars = reinterpret_cast<const char*>(host);
    const auto* end = static_cast<const char*>(std::memchr(chars, 0, chunk));
    text.append(chars, end != nullptr ? static_cast<std::size_t>(end - chars) : chunk);
    if (end != nullptr) break;
  }
  return text;
}

struct Printer {
  const Op* op;
  Warp& warp;
  std::uint64_t format_address = 0;
  std::string format;

  /// Most lanes share one format text.
  bool fetch_format(int lane, std::uint64_t address) {
    if (address == format_address) return true;
    auto text = read_text(op, warp, lane, address, std::size_t{1} << 20);
    if (!text) return false;
    format = std::move(*text);
    format_address = address;
    return true;
  }

  std::optional<PrintfResult> render(int lane, std::uint64_t arguments) const {
    const auto argument = [&](std::uint64_t offset,
                              std::uint32_t bytes) -> std::optional<std::uint64_t> {
      const LaneAccess access{.address = arguments + offset, .size = bytes};
      const std::byte* host = locate(op, warp, lane, access);
      if (host == nullptr) return std::nullopt;
      if (Watcher* const check = warp.worker->check; check != nullptr)
        check->used(op, warp, lane, access.address, bytes);
      std::uint64_t value = 0;
      std::memcpy(&value, host, bytes);
      return value;
    };
    const auto string = [&](std::uint64_t address, std::size_t limit) {
      return read_text(op, warp, lane, address, limit);
    };
    return format_printf(format, argument, string);
  }
};

}  // namespace

const Op* call_vprintf(const Op* op, Warp& warp, const BuiltinCall& call) {
  Printer printer{op, warp, 0, {}};
  std::string text;
  for (std::uint32_t m = call.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const auto format = read_argument<std::uint64_t>(call, lane, 0);
    if (format == 0) {
      write_result<std::int32_t>(call, lane, -1);
      continue;
    }
    if (!printer.fetch_format(lane, format)) return nullptr;
    const auto result = printer.render(lane, read_argument<std::uint64_t>(call, lane, 8));
    if (!result) return nullptr;
    text += result->text;
    if (warp.worker->observer != nullptr) warp.worker->observer->printed(warp, lane, result->text);
    write_result<std::int32_t>(call, lane, result->arguments);
  }
  const LaunchContext& launch = *warp.worker->launch;
  if (launch.print != nullptr && !text.empty()) launch.print(launch.print_sink, text);
  return op;
}

const Op* call_assertfail(const Op* op, Warp& warp, const BuiltinCall& call) {
  constexpr std::size_t kLimit = 4096;
  const int lane = std::countr_zero(call.mask);
  const auto message =
      read_text(op, warp, lane, read_argument<std::uint64_t>(call, lane, 0), kLimit);
  if (!message) return nullptr;
  auto file = read_text(op, warp, lane, read_argument<std::uint64_t>(call, lane, 8), kLimit);
  if (!file) return nullptr;
  std::replace(file->begin(), file->end(), '\x01', '"');  // as the jit gives it to the compiler
  const auto line = read_argument<std::uint32_t>(call, lane, 16);
  const auto name = read_text(op, warp, lane, read_argument<std::uint64_t>(call, lane, 24), kLimit);
  if (!name) return nullptr;
  const auto& block = warp.block->ctaid;
  const auto i = static_cast<unsigned>(lane);
  warp.fault(op, FaultKind::assertion, lane, 0, 0,
             format("{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.",
                    *file, line, *name, block[0], block[1], block[2], warp.tid[0][i],
                    warp.tid[1][i], warp.tid[2][i], *message));
  Fault& fault = warp.block->fault;
  fault.file = *file;
  fault.line = static_cast<int>(line);
  if (const int others = std::popcount(call.mask) - 1; others > 0)
    fault.details += format("{} more thread{} of this warp failed the same assertion", others,
                            others == 1 ? "" : "s");
  return nullptr;
}

}  // namespace kernwright::sim
