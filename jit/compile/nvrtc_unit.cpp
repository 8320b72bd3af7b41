// Calls NVRTC and gives its results types.
#include "jit/compile/nvrtc_unit.h"

#include <utility>

#include "base/errors.h"
#include "base/format.h"

namespace kernwright {
namespace {

/// A log is cut here; behind it compilers only repeat themselves.
constexpr std::size_t kMaxLogBytes = std::size_t{1} << 20;

/// NVRTC calls this from its own threads. NOTE: it must go on answering 1 after the first 1.
int stop_when_expired(void* payload, void*) {
  return static_cast<const CompileDeadline*>(payload)->expired() ? 1 : 0;
}

}  // namespace

CompileDeadline::CompileDeadline(WaitLimits limits, std::string what)
    : limits_(std::move(limits)), what_(std::move(what)) {}

bool CompileDeadline::expired() const noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (reason_) return true;
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  auto next = next_look_.load();
  if (now.count() < next) return false;
  const std::chrono::steady_clock::duration slice = kWaitSlice;
  if (!next_look_.compare_exchange_strong(next, (now + slice).count())) return false;
  try {
    check_wait(limits_, what_);
    return false;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!reason_) reason_ = std::current_exception();
    return true;
  }
}

void CompileDeadline::rethrow() const {
  const std::lock_guard lock(mutex_);
  if (reason_) std::rethrow_exception(reason_);
  throw Cancelled("the compile was stopped");
}

NvrtcUnit::NvrtcUnit(const LoadedNvrtc& nvrtc, const std::string& text, const std::string& name,
                     const std::map<std::string, std::string>& headers)
    : nvrtc_(nvrtc) {
  std::vector<const char*> texts;
  std::vector<const char*> names;
  for (const auto& [header_name, header_text] : headers) {
    names.push_back(header_name.c_str());
    texts.push_back(header_text.c_str());
  }
  check(nvrtc_.api.nvrtcCreateProgram(&program_, text.c_str(), name.c_str(),
                                      static_cast<int>(texts.size()), texts.data(), names.data()),
        "nvrtcCreateProgram");
}

namespace {

/// The full option for a log with only its name: "invalid value for --std(-std)".
std::string given_option(const std::vector<std::string>& options, const std::string& log) {
  for (const std::string& option : options) {
    const auto equals = option.find('=');
    if (equals == std::string::npos) continue;
    if (log.find(" " + option.substr(0, equals) + "(") != std::string::npos ||
        log.find(" " + option.substr(0, equals) + " (") != std::string::npos)
      return format(" ({}; another release of NVRTC may know it)", option);
  }
  return {};
}

}  // namespace

NvrtcUnit::~NvrtcUnit() {
  if (program_ != nullptr) nvrtc_.api.nvrtcDestroyProgram(&program_);
}

void NvrtcUnit::add_name(const std::string& expression) {
  check(nvrtc_.api.nvrtcAddNameExpression(program_, expression.c_str()), "nvrtcAddNameExpression");
}

bool NvrtcUnit::compile(const std::vector<std::string>& options, const CompileDeadline& deadline) {
  if (deadline.expired()) deadline.rethrow();
  // An NVRTC without stop support answers kNvrtcNotSupported and runs to its end.
  void* payload = const_cast<CompileDeadline*>(&deadline);
  const auto set = nvrtc_.api.nvrtcSetFlowCallback(program_, stop_when_expired, payload);
  if (set != kNvrtcNotSupported) check(set, "nvrtcSetFlowCallback");
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  const nvrtcResult result =
      nvrtc_.api.nvrtcCompileProgram(program_, static_cast<int>(texts.size()), texts.data());
  switch (result) {
    case NVRTC_SUCCESS:
      return true;
    case NVRTC_ERROR_COMPILATION:
      return false;
    case NVRTC_ERROR_CANCELLED:
      deadline.rethrow();
    case NVRTC_ERROR_INVALID_OPTION:
      throw InvalidArgument(format("NVRTC {} refuses an option{}: {}", nvrtc_.version(),
                                   given_option(options, log()), log()));
    case NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
      throw NvrtcNotFound(
          format("NVRTC {} could not use its builtins library (libnvrtc-builtins.so.{} beside {}): "
                 "reinstall nvidia-cuda-nvrtc. {}",
                 nvrtc_.version(), nvrtc_.version(), nvrtc_.path, log()));
    default:
      check(result, "nvrtcCompileProgram");
      return false;
  }
}

std::string NvrtcUnit::log() const {
  std::string text =
      read(nvrtc_.api.nvrtcGetProgramLogSize, nvrtc_.api.nvrtcGetProgramLog, "nvrtcGetProgramLog");
  text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
  if (text.size() > kMaxLogBytes) {
    const auto size = text.size();
    text.resize(kMaxLogBytes);
    text += format("\n(cut here: the log has {} bytes)\n", size);
  }
  return text;
}

nvrtcResult NvrtcUnit::pch_create_status() const {
  return nvrtc_.api.nvrtcGetPCHCreateStatus(program_);
}

std::string NvrtcUnit::lowered_name(const std::string& expression) const {
  const char* lowered = nullptr;
  check(nvrtc_.api.nvrtcGetLoweredName(program_, expression.c_str(), &lowered),
        "nvrtcGetLoweredName");
  return lowered == nullptr ? std::string() : lowered;
}

std::string NvrtcUnit::ptx() const {
  std::string text = read(nvrtc_.api.nvrtcGetPTXSize, nvrtc_.api.nvrtcGetPTX, "nvrtcGetPTX");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::string NvrtcUnit::cubin() const {
  return read(nvrtc_.api.nvrtcGetCUBINSize, nvrtc_.api.nvrtcGetCUBIN, "nvrtcGetCUBIN");
}

std::string NvrtcUnit::read(SizeFunction size_of, ReadFunction read_into, const char* call) const {
  std::size_t size = 0;
  check(size_of(program_, &size), call);
  std::string bytes(size, '\0');
  if (size > 0) check(read_into(program_, bytes.data()), call);
  return bytes;
}

void NvrtcUnit::check(nvrtcResult result, const char* call) const {
  if (result == NVRTC_SUCCESS) return;
  throw Error(format("{} of NVRTC {} ({}) failed with {}: {}", call, nvrtc_.version(), nvrtc_.path,
                     static_cast<int>(result), nvrtc_.api.nvrtcGetErrorString(result)));
}

}  // namespace kernwright
