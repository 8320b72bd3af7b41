// How a finding of the simulated device is written for a person.
#include "base/fault_report.h"

#include "base/format.h"

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
    case FaultKind::unsupported:
      return "unsupported";
    case FaultKind::invalid_ptx:
      return "invalid-ptx";
  }
  return "unknown";
}

namespace {

bool at_load(FaultKind kind) {
  return kind == FaultKind::unsupported || kind == FaultKind::invalid_ptx;
}

/// "  at saxpy.cu:7 (PTX line 41: st.global.f32)", with only the parts that are known.
std::string where(const FaultReport& report) {
  std::string source;
  if (report.line > 0) {
    source = format("{}:{}", report.file.empty() ? "line" : report.file, report.line);
  } else {
    source = report.file;
  }
  std::string ptx;
  if (report.ptx_line > 0) ptx = format("PTX line {}", report.ptx_line);
  if (!report.opcode.empty()) ptx += (ptx.empty() ? "" : ": ") + report.opcode;
  if (source.empty() && ptx.empty()) return {};
  if (source.empty()) return "\n  at " + ptx;
  return "\n  at " + source + (ptx.empty() ? "" : " (" + ptx + ")");
}

}  // namespace

std::string FaultReport::to_string() const {
  std::string text = format("{}: {}", fault_kind_name(kind), message);
  text += where(*this);
  if (!kernel.empty() && at_load(kind)) {
    text += format("\n  in {}", kernel);
  } else if (!kernel.empty()) {
    text += format("\n  in {}, block ({}, {}, {}), thread ({}, {}, {})", kernel, block[0], block[1],
                   block[2], thread[0], thread[1], thread[2]);
  }
  if (access_size > 0) text += format("\n  access of {} bytes at {:#x}", access_size, address);
  if (!allocation.empty()) text += "\n  " + allocation;
  if (!details.empty()) text += "\n" + details;
  return text;
}

}  // namespace kernwright
