// How findings of the simulated device are written.
#include "base/fault.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <set>

using namespace kernwright;

TEST_CASE("fault: everything that is known is told") {
  Fault report;
  report.kind = FaultKind::bounds;
  report.message = "write of 4 bytes past the end";
  report.kernel = "saxpy";
  report.file = "saxpy.cu";
  report.line = 4;
  report.ptx_line = 51;
  report.opcode = "st.global.f32";
  report.block = {1, 2, 3};
  report.thread = {31, 0, 0};
  report.address = 0x1000;
  report.access_size = 4;
  report.allocation = "4 bytes after the end of an allocation of 4096 bytes";
  report.details = "one more thread";
  CHECK(report.to_string() ==
        "bounds: write of 4 bytes past the end\n"
        "  at saxpy.cu:4 (PTX line 51: st.global.f32)\n"
        "  in saxpy, block (1, 2, 3), thread (31, 0, 0)\n"
        "  access of 4 bytes at 0x1000\n"
        "  4 bytes after the end of an allocation of 4096 bytes\n"
        "one more thread");
}

TEST_CASE("fault: a text inside a file is told by the file's line and by its own") {
  Fault report;
  report.kind = FaultKind::trap;
  report.message = "trap";
  report.file = "app.py";
  report.line = 4;
  report.first_line = 41;
  CHECK(report.to_string() == "trap: trap\n  at app.py:44 (line 4 of the kernel's text)");
  report.file.clear();
  CHECK(report.to_string() == "trap: trap\n  at line 4");
}

TEST_CASE("fault: who waits where is told in the same way") {
  Fault report;
  report.kind = FaultKind::sync;
  report.message = "threads wait";
  report.file = "app.py";
  report.line = 4;
  report.places.push_back({"warp 0 waits", "app.py", 5, 1, 60, "bar.sync"});
  report.places.push_back({"warp 1 waits", "sync.h", 7, 1, 0, ""});
  report.places.push_back({"warp 2 waits", "", 0, 1, 61, "bar.sync"});
  report.places.push_back({"warp 3 waits", "", 0, 1, 0, ""});
  report.details = "launched somewhere";
  report.place_texts([](const std::string& file) { return file == "app.py" ? 41 : 1; });
  CHECK(report.to_string() ==
        "sync: threads wait\n"
        "  at app.py:44 (line 4 of the kernel's text)\n"
        "warp 0 waits at app.py:45 (line 5 of the kernel's text) (PTX line 60: bar.sync)\n"
        "warp 1 waits at sync.h:7\n"
        "warp 2 waits at PTX line 61: bar.sync\n"
        "warp 3 waits\n"
        "launched somewhere");
  report.details.clear();
  report.places.resize(2);
  CHECK(report.further_lines() ==
        "warp 0 waits at app.py:45 (line 5 of the kernel's text) (PTX line 60: bar.sync)\n"
        "warp 1 waits at sync.h:7");
}

TEST_CASE("fault: unknown parts leave no trace") {
  Fault report;
  report.kind = FaultKind::unsupported;
  report.message = "unknown instruction";
  CHECK(report.to_string() == "unsupported: unknown instruction");
  report.opcode = "foo.bar";
  report.ptx_line = 9;
  report.kernel = "k";
  CHECK(report.to_string() ==
        "unsupported: PTX line 9: unknown instruction\n  at PTX line 9: foo.bar\n  in k");
}

TEST_CASE("fault: every kind has a spelling of its own") {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(FaultKind::invalid_ptx); ++i) {
    CHECK(names.insert(fault_kind_name(static_cast<FaultKind>(i))).second);
  }
  CHECK(names.count("unknown") == 0);
  CHECK(std::string(fault_kind_name(static_cast<FaultKind>(250))) == "unknown");
}

TEST_CASE("errors: DeviceFault carries the report and its text") {
  Fault report;
  report.kind = FaultKind::race;
  report.message = "two writes";
  const DeviceFault fault(report);
  CHECK(std::string(fault.what()) == "race: two writes");
  CHECK(fault.report.kind == FaultKind::race);
  CHECK_THROWS_AS(throw DeviceLost("gone", 700, "CUDA_ERROR_ILLEGAL_ADDRESS"), DriverError);
  const OutOfMemory oom("no", 1, 2, 3, 4);
  CHECK(oom.requested == 1);
  CHECK(oom.free == 4);
}
