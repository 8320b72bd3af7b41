// How a finding of the simulated device is written for a person.
#include "base/fault.h"

#include "base/format.h"
#include "base/readable_name.h"

namespace kernwright {

const char* fault_kind_name(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::none:
      return "none";
    case FaultKind::bounds:
      return "bounds";
    case FaultKind::alignment:
      return "alignment";
    case FaultKind::use_after_free:
      return "use-after-free";
    case FaultKind::init:
      return "init";
    case FaultKind::race:
      return "race";
    case FaultKind::sync:
      return "sync";
    case FaultKind::trap:
      return "trap";
    case FaultKind::assertion:
      return "assert";
    case FaultKind::timeout:
      return "timeout";
    case FaultKind::interrupted:
      return "interrupted";
    case FaultKind::unsupported:
      return "unsupported";
    case FaultKind::invalid_ptx:
      return "invalid-ptx";
  }
  return "unknown";
}

std::string source_place(const std::string& file, int line, int first_line) {
  if (line <= 0) return file;
  if (file.empty()) return format("line {}", line);
  std::string place = format("{}:{}", file, line + first_line - 1);
  if (first_line > 1) place += format(" (line {} of the kernel's text)", line);
  return place;
}

namespace {

bool at_load(FaultKind kind) {
  return kind == FaultKind::unsupported || kind == FaultKind::invalid_ptx;
}

/// "saxpy.cu:7 (PTX line 41: st.global.f32)", with only the parts that are known. Of a report or
/// one of its places.
template <typename Place>
std::string where(const Place& place) {
  const std::string source = source_place(place.file, place.line, place.first_line);
  std::string ptx;
  if (place.ptx_line > 0) ptx = format("PTX line {}", place.ptx_line);
  if (!place.opcode.empty()) ptx += (ptx.empty() ? "" : ": ") + place.opcode;
  if (source.empty() || ptx.empty()) return source + ptx;
  return source + " (" + ptx + ")";
}

}  // namespace

std::string FaultPlace::to_string() const {
  const std::string place = where(*this);
  return place.empty() ? what : what + " at " + place;
}

void Fault::renumber_assertion() {
  const std::string place = format("{}:{}:", file, line);
  if (kind != FaultKind::assertion || first_line <= 1 || !message.starts_with(place)) return;
  message = format("{}:{}:{}", file, line + first_line - 1, message.substr(place.size()));
}

std::string Fault::further_lines() const {
  std::string text;
  for (const FaultPlace& place : places) text += (text.empty() ? "" : "\n") + place.to_string();
  if (!text.empty() && !details.empty()) text += '\n';
  return text + details;
}

std::string Fault::to_string() const {
  std::string text = std::string(fault_kind_name(kind)) + ": ";
  if (at_load(kind) && line > 0) text += source_place(file, line, first_line) + ": ";
  if (at_load(kind) && line <= 0 && ptx_line > 0) text += format("PTX line {}: ", ptx_line);
  text += message;
  if (const std::string place = where(*this); !place.empty()) text += "\n  at " + place;
  if (!kernel.empty() && at_load(kind)) {
    text += format("\n  in {}", readable_name(kernel));
  } else if (!kernel.empty()) {
    text += format("\n  in {}, block ({}, {}, {}), thread ({}, {}, {})", readable_name(kernel),
                   block[0], block[1], block[2], thread[0], thread[1], thread[2]);
  }
  if (access_size > 0) text += format("\n  access of {} bytes at {:#x}", access_size, address);
  if (!allocation.empty()) text += "\n  " + allocation;
  if (const std::string lines = further_lines(); !lines.empty()) text += "\n" + lines;
  return text;
}

}  // namespace kernwright
