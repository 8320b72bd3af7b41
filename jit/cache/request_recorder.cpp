// Writes requests with one append each, and reads them back as items of a pack.
#include "jit/cache/request_recorder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "base/env.h"
#include "base/errors.h"
#include "base/file_system.h"
#include "base/format.h"
#include "base/log.h"
#include "base/regular_file.h"

namespace kernwright {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxRecordBytes = std::uint64_t{256} << 20;

Json json_of(const ProgramOptions& options) {
  Json json = {{"std", options.std},
               {"defines", options.defines},
               {"headers", options.headers},
               {"include_dirs", options.include_dirs},
               {"fast_math", options.fast_math},
               {"lineinfo", options.lineinfo},
               {"device_debug", options.device_debug},
               {"strip_host", options.strip_host},
               {"minimal", static_cast<int>(options.minimal)},
               {"pch", static_cast<int>(options.pch)},
               {"extra", options.extra}};
  if (options.max_registers) json["max_registers"] = *options.max_registers;
  if (options.opt_level) json["opt_level"] = *options.opt_level;
  if (!options.arch.empty()) json["arch"] = options.arch;
  return json;
}

Tristate tristate(const Json& json, const char* name) {
  const int value = json.value(name, 0);
  if (value < 0 || value > 2) throw Error(format("{} is {}", name, value));
  return static_cast<Tristate>(value);
}

ProgramOptions options_of(const Json& json) {
  ProgramOptions options;
  options.std = json.value("std", options.std);
  options.defines = json.value("defines", options.defines);
  options.headers = json.value("headers", options.headers);
  options.include_dirs = json.value("include_dirs", options.include_dirs);
  options.fast_math = json.value("fast_math", false);
  options.lineinfo = json.value("lineinfo", false);
  options.device_debug = json.value("device_debug", false);
  options.strip_host = json.value("strip_host", false);
  options.minimal = tristate(json, "minimal");
  options.pch = tristate(json, "pch");
  options.extra = json.value("extra", options.extra);
  if (json.contains("max_registers")) options.max_registers = json["max_registers"].get<int>();
  if (json.contains("opt_level")) options.opt_level = json["opt_level"].get<int>();
  return options;
}

PackItem item_of(const Json& json) {
  PackItem item;
  item.source.text = json.at("source").get<std::string>();
  item.source.name = json.value("name", item.source.name);
  item.source.directory = json.value("directory", std::string());
  item.source.first_line = json.value("first_line", 1);
  item.options = options_of(json.value("options", Json::object()));
  item.names = json.value("names", item.names);
  item.only_names = !item.names.empty() && !json.value("declared", true);
  item.with_members = json.value("members", true);
  validate(item.source);
  validate(item.options);
  return item;
}

std::string target_name(const TargetRequest& wanted) {
  if (!wanted.device) return wanted.arch;
  if (wanted.device->is_simulated) return "sim";
  return wanted.device->arch.empty() ? format("sm_{}", wanted.device->compute_capability)
                                     : wanted.device->arch;
}

void append_line(const std::string& path, std::string line) {
  line += '\n';
  FileSystem& system = FileSystem::real();
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;
  const FileHandle file(system, system.open(AT_FDCWD, path.c_str(), kFlags, 0600));
  // One write: lines of several processes do not mix.
  const ssize_t result =
      file ? system.write(file.get(), line.data(), line.size()) : ssize_t{file.get()};
  if (result == static_cast<ssize_t>(line.size())) return;
  log(LogLevel::warning, "a compile request could not be recorded in {}: {}", path,
      result < 0 ? describe_failure(result) : std::string("the line was cut short"));
}

}  // namespace

std::string record_line(const CodeRequest& request) {
  Json json = {{"source", request.source.text},         {"name", request.source.name},
               {"directory", request.source.directory}, {"first_line", request.source.first_line},
               {"options", json_of(request.options)},   {"names", request.names},
               {"declared", request.with_declared},     {"target", target_name(request.target)}};
  if (!request.with_members) json["members"] = false;
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

void record_request(const CodeRequest& request) {
  if (!env_is_set(Env::record)) return;
  struct Recorded {
    std::mutex mutex;
    std::set<std::pair<std::string, Sha256Digest>> lines;  ///< by path
  };
  static auto& recorded = *new Recorded;  // kept to the end of the process on purpose
  const std::string path = env_text(Env::record);
  std::string line = record_line(request);
  {
    const std::lock_guard lock(recorded.mutex);
    if (!recorded.lines.emplace(path, sha256(line)).second) return;
  }
  append_line(path, std::move(line));
}

std::vector<PackItem> read_record(const std::filesystem::path& path) {
  const RegularFile file = read_regular_file(path.string(), kMaxRecordBytes);
  if (!file.reason.empty()) {
    throw Error(format("the record {} cannot be used: {}", path.string(), file.reason));
  }
  const std::string* const text = &file.bytes;
  std::vector<PackItem> items;
  std::set<std::string> known;
  std::size_t begin = 0;
  for (int number = 1; begin < text->size(); ++number) {
    const auto end = std::min(text->find('\n', begin), text->size());
    const std::string line = text->substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      Json json = Json::parse(line);
      PackItem item = item_of(json);
      // Lines with another target, or another line of the text, want the same item.
      for (const char* name : {"target", "first_line"}) json.erase(name);
      if (known.insert(json.dump(-1, ' ', true)).second) items.push_back(std::move(item));
    } catch (const std::exception& error) {
      throw Error(format("{}:{} is no compile request: {}", path.string(), number, error.what()));
    }
  }
  return items;
}

}  // namespace kernwright
