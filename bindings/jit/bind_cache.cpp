// Caches, packs and the syntax-only pass for Python.
#include "bindings/jit/program_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/gil.h"
#include "jit/cache/code_cache.h"
#include "jit/cache/pack.h"
#include "jit/compile/compile_service.h"

#include <pybind11/stl.h>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

const char* mode_name(CacheMode mode) {
  switch (mode) {
    case CacheMode::off:
      return "off";
    case CacheMode::memory:
      return "memory";
    default:
      return "disk";
  }
}

DiskCache& disk() { return CodeCache::process().disk(); }

py::dict cache_statistics(const CodeCacheStats& stats) {
  py::dict result;
  result["memory_hits"] = stats.memory_hits;
  result["disk_hits"] = stats.disk_hits;
  result["pack_hits"] = stats.pack_hits;
  result["misses"] = stats.misses;
  result["compiles"] = stats.compiles;
  result["stored"] = stats.stored;
  result["rejected"] = stats.rejected;
  result["evictions"] = stats.evictions;
  result["memory_entries"] = stats.memory_entries;
  result["memory_bytes"] = stats.memory_bytes;
  return result;
}

py::dict cache_info() {
  CodeCache& cache = CodeCache::process();
  DiskCacheInfo info;
  CodeCacheStats stats;
  {
    const GilRelease unlocked;
    info = cache.disk().info();
    stats = cache.stats();
  }
  py::dict result;
  result["mode"] = mode_name(cache.mode());
  result["path"] = text_object(info.path);
  result["state"] = info.state;
  result["reason"] = text_object(info.reason);
  result["entries"] = info.entries;
  result["bytes"] = info.bytes;
  result["header_bytes"] = info.header_bytes;
  result["limit"] = info.limit;
  result["process"] = cache_statistics(stats);
  return result;
}

py::list cache_list() {
  std::vector<DiskCacheEntry> entries;
  {
    const GilRelease unlocked;
    entries = disk().list();
  }
  py::list result;
  for (const DiskCacheEntry& entry : entries) {
    py::dict row;
    row["key"] = entry.key;
    row["source"] = text_object(entry.source);
    row["kernels"] = entry.kernels;
    row["arch"] = entry.arch;
    row["nvrtc_version"] = entry.nvrtc_version;
    row["headers"] = entry.headers;
    row["bytes"] = entry.bytes;
    row["last_used"] = entry.last_used;
    result.append(row);
  }
  return result;
}

py::dict cache_verify(bool repair) {
  VerifyReport report;
  {
    const GilRelease unlocked;
    report = disk().verify(repair);
  }
  py::list damaged;
  for (const DamagedEntry& entry : report.damaged) {
    py::dict row;
    row["file"] = text_object(entry.file);
    row["reason"] = text_object(entry.reason);
    damaged.append(row);
  }
  py::dict result;
  result["checked"] = report.checked;
  result["bytes"] = report.bytes;
  result["damaged"] = damaged;
  return result;
}

py::dict removal(const RemovalReport& report) {
  py::dict result;
  result["entries"] = report.entries;
  result["bytes"] = report.bytes;
  return result;
}

py::dict cache_clear() {
  RemovalReport report;
  {
    const GilRelease unlocked;
    CodeCache::process().clear_memory();
    report = disk().clear();
  }
  return removal(report);
}

py::dict cache_trim(std::uint64_t limit) {
  RemovalReport report;
  {
    const GilRelease unlocked;
    report = disk().trim(limit);
  }
  return removal(report);
}

py::list pack_entries(const std::vector<PackEntry>& entries) {
  py::list result;
  for (const PackEntry& entry : entries) {
    py::dict row;
    row["key"] = entry.key.to_hex();
    row["source"] = text_object(entry.source);
    row["arch"] = entry.arch;
    row["kernels"] = entry.kernels;
    row["nvrtc_version"] = entry.nvrtc_version;
    row["bytes"] = entry.bytes;
    result.append(row);
  }
  return result;
}

using PackArgument = std::pair<const ProgramObject*, std::vector<std::string>>;

py::list pack_write(const std::string& path, const std::vector<PackArgument>& programs,
                    const std::vector<std::string>& records, const std::vector<std::string>& archs,
                    const py::function& compiled, const py::bytes& rows) {
  std::vector<PackItem> items;
  for (const auto& [program, names] : programs) {
    items.push_back({program->program.source(), program->program.options(), names});
  }
  const std::string_view row_text = rows;  // `rows` outlives the call, also without the GIL
  std::vector<PackEntry> written;
  const auto progress = [&](std::size_t total) {
    const GilAcquire locked;
    if (locked) compiled(total);
  };
  {
    const GilRelease unlocked;
    for (const std::string& record : records) {
      for (PackItem& item : read_record(record)) items.push_back(std::move(item));
    }
    written = write_pack(path, items, archs, progress, row_text);
  }
  return pack_entries(written);
}

py::list pack_read(const std::string& path) {
  std::shared_ptr<const Pack> pack;
  {
    const GilRelease unlocked;
    pack = Pack::load(path);
  }
  return pack_entries(pack->entries());
}

py::list packs_used() {
  py::list paths;
  for (const auto& pack : packs_in_use()) paths.append(text_object(pack->path()));
  return paths;
}

/// Path and rows of each pack in use that has rows.
py::list pack_rows() {
  py::list found;
  for (const auto& pack : packs_in_use()) {
    if (!pack->rows().empty())
      found.append(py::make_tuple(text_object(pack->path()), py::bytes(pack->rows())));
  }
  return found;
}

py::list lint_program(const ProgramObject& program) {
  std::vector<Diagnostic> found;
  {
    const GilRelease unlocked;
    found = compile_service().lint(program.program.source(), program.program.options());
  }
  return diagnostic_list(found);
}

}  // namespace

void bind_cache(py::module_& m) {
  using Unlocked = py::call_guard<GilRelease>;
  m.def("_cache_info", &cache_info);
  m.def("_cache_list", &cache_list);
  m.def("_cache_verify", &cache_verify, py::arg("repair"));
  m.def("_cache_clear", &cache_clear);
  m.def("_cache_trim", &cache_trim, py::arg("limit"));
  m.def("_pack_write", &pack_write, py::arg("path"), py::arg("programs"), py::arg("records"),
        py::arg("archs"), py::arg("compiled"), py::arg("rows"));
  m.def("_pack_read", &pack_read, py::arg("path"));
  m.def(
      "_pack_use", [](const std::string& path) { use_pack(path); }, py::arg("path"), Unlocked());
  m.def(
      "_pack_drop", [](const std::string& path) { drop_pack(path); }, py::arg("path"), Unlocked());
  m.def("_packs_used", &packs_used);
  m.def("_pack_rows", &pack_rows);
  m.def("_lint", &lint_program, py::arg("program"));
}

}  // namespace kernwright::python
