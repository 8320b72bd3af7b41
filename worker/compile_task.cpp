// Both sides of the tasks that compile.
#include "worker/compile_task.h"

#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/format.h"
#include "base/secure_directory.h"
#include "jit/compile/lint.h"
#include "worker/compile_messages.h"
#include "worker/message_fields.h"

namespace kernwright {
namespace {

/// The compilers that this worker was asked for so far, by their searches. Tasks come one after the
/// other.
const LoadedNvrtc& opened(const NvrtcSearch& search) {
  static auto& known = *new std::map<std::vector<std::byte>, LoadedNvrtc>;  // kept on purpose
  ByteWriter key;
  write(key, search);
  std::vector<std::byte> bytes = key.take();
  const auto found = known.find(bytes);
  if (found != known.end()) return found->second;
  return known.emplace(std::move(bytes), open_nvrtc(search)).first->second;
}

/// The begin of each of these tasks. Relative paths, and the names in line tables, count from the
/// caller's folder.
void write_places(ByteWriter& out, const CompilerPlaces& places) {
  std::error_code error;
  out.text(std::filesystem::current_path(error).string());
  write(out, places.search);
  out.text(places.cache_folder);
}

CompilerPlaces read_places_and_go(ByteReader& in) {
  const std::string folder = read_text(in);
  // The caller cannot reach it either where this fails.
  static_cast<void>(!folder.empty() && ::chdir(folder.c_str()) == 0);
  CompilerPlaces places;
  places.search = read_search(in);
  places.cache_folder = read_text(in);
  return places;
}

std::vector<std::byte> search_request(const NvrtcSearch& search) {
  ByteWriter out;
  write(out, search);
  return out.take();
}

}  // namespace

CompilerPlaces CompilerPlaces::of_process() {
  return {NvrtcSearch::from_environment(), default_cache_directory()};
}

HeaderPlaces CompilerPlaces::headers() const {
  return {cache_folder, search.toolkits, search.site_packages};
}

NvrtcFacts nvrtc_of(Worker& worker, const NvrtcSearch& search, const WaitLimits& limits) {
  const std::vector<std::byte> request = search_request(search);
  const Message reply = worker.run({"nvrtc", "opening NVRTC", request}, limits);
  ByteReader in(reply.bytes, "what a worker knows of NVRTC");
  return read_facts(in);
}

void prepare_nvrtc(Worker& worker, const NvrtcSearch& search) {
  const std::vector<std::byte> request = search_request(search);
  worker.post({"nvrtc", "opening NVRTC", request});
}

CompileResult compile_in(Worker& worker, const CompilerPlaces& places, const std::string& stamp,
                         const CompileJob& job, const WaitLimits& limits) {
  ByteWriter out;
  write_places(out, places);
  out.text(stamp);
  write(out, job);
  const WorkerTask task{"compile", format("compiling {}", job.request.source.name), out.data()};
  const Message reply = worker.run(task, limits.within(job.request.options.timeout));
  ByteReader in(reply.bytes, "the result of a compile");
  return read_result(in);
}

std::vector<Diagnostic> lint_in(Worker& worker, const CompilerPlaces& places, const Source& source,
                                const ProgramOptions& options, const WaitLimits& limits) {
  ByteWriter out;
  write_places(out, places);
  write(out, source);
  write(out, options);
  const WorkerTask task{"lint", format("compiling {}", source.name), out.data()};
  const Message reply = worker.run(task, limits.within(options.timeout));
  ByteReader in(reply.bytes, "the result of a lint");
  std::vector<Diagnostic> found;
  for (std::uint32_t n = in.u32(); n > 0; --n) found.push_back(read_diagnostic(in));
  return found;
}

std::vector<std::byte> run_nvrtc_task(ByteReader& request, std::vector<FileHandle>&) {
  ByteWriter out;
  write(out, opened(read_search(request)));
  return out.take();
}

std::vector<std::byte> run_compile_task(ByteReader& request, std::vector<FileHandle>&) {
  const CompilerPlaces places = read_places_and_go(request);
  const std::string stamp = read_text(request);
  const CompileJob job = read_job(request);
  request.expect_end();
  const LoadedNvrtc& nvrtc = opened(places.search);
  if (!stamp.empty() && stamp != nvrtc.stamp) {
    throw NvrtcChanged(format("a worker has another NVRTC open than {} now", nvrtc.path));
  }
  ByteWriter out;
  write(out, run_compile(nvrtc, job, places.headers()));
  return out.take();
}

std::vector<std::byte> run_lint_task(ByteReader& request, std::vector<FileHandle>&) {
  const CompilerPlaces places = read_places_and_go(request);
  const Source source = read_source(request);
  const ProgramOptions options = read_options(request);
  request.expect_end();
  ByteWriter out;
  const auto found = lint(opened(places.search), source, options, places.headers());
  out.u32(static_cast<std::uint32_t>(found.size()));
  for (const Diagnostic& diagnostic : found) write(out, diagnostic);
  return out.take();
}

}  // namespace kernwright
