// Calls NVRTC and gives its results types.
#include "jit/compile/nvrtc_unit.h"

#include <cstdlib>

#include "base/errors.h"
#include "base/format.h"
#include "driver/nvtx.h"
#include "jit/compile/library_thread.h"
#include "jit/compile/signal_guard.h"

namespace kernwright {
namespace {

/// A log is cut here; behind it compilers only repeat themselves.
constexpr std::size_t kMaxLogBytes = std::size_t{1} << 20;

/// NVRTC calls this from its own threads. NOTE: it must go on answering 1 after the first 1.
int stop_when_expired(void* payload, void*) {
  SignalGuard::keep();
  const auto& deadline = *static_cast<const CompileDeadline*>(payload);
  deadline.note_sign_of_life();
  return deadline.expired() ? 1 : 0;
}

/// Has glibc keep for the next compile what one frees: else each has the same memory mapped page by
/// page again, 7 MiB for a small kernel, which is a sixth of its time. glibc keeps more by itself
/// once a block is freed that it had mapped, the more the larger that block was, and 32 MiB is the
/// largest that it learns from (mallopt(3), M_MMAP_THRESHOLD): up to 64 MiB stay at the end of each
/// heap then. What the program chose itself, by mallopt() or MALLOC_TRIM_THRESHOLD_, stays.
void keep_freed_memory() noexcept {
#if defined(__GLIBC__)
  static const bool done = [] {
    constexpr std::size_t kLargest = (std::size_t{32} << 20) - 8192;
    void* volatile block = std::malloc(kLargest);  // volatile: or both calls are left out
    std::free(block);
    return true;
  }();
  static_cast<void>(done);
#endif
}

}  // namespace

CompileDeadline::CompileDeadline(std::optional<std::chrono::milliseconds> limit)
    : limit_(limit),
      end_(std::chrono::steady_clock::now() + limit.value_or(std::chrono::milliseconds::zero())),
      heard_(std::chrono::steady_clock::now().time_since_epoch().count()) {}

bool CompileDeadline::expired() const noexcept {
  if (expired_.load(std::memory_order_relaxed)) return true;
  if (!limit_) return false;
  if (std::chrono::steady_clock::now() < end_) return false;
  expired_.store(true, std::memory_order_relaxed);
  return true;
}

void CompileDeadline::note_sign_of_life() const noexcept {
  heard_.store(std::chrono::steady_clock::now().time_since_epoch().count(),
               std::memory_order_relaxed);
}

std::chrono::nanoseconds CompileDeadline::silence() const noexcept {
  const std::chrono::steady_clock::duration heard(heard_.load(std::memory_order_relaxed));
  return std::chrono::steady_clock::now().time_since_epoch() - heard;
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

/// The option that the log names without its value: "invalid value for --std(-std)".
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
  const auto out_of_time = [&] {
    return Timeout(
        deadline.limit().count() == 0
            ? "the compile was stopped"
            : format("compiling took longer than the timeout of {} ms", deadline.limit().count()));
  };
  if (deadline.expired()) throw out_of_time();
  // An NVRTC that cannot be stopped answers kNvrtcNotSupported and runs to its end.
  void* payload = const_cast<CompileDeadline*>(&deadline);
  const auto set = nvrtc_.api.nvrtcSetFlowCallback(program_, stop_when_expired, payload);
  if (set != kNvrtcNotSupported) check(set, "nvrtcSetFlowCallback");
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  deadline.note_sign_of_life();
  const nvrtcResult result = run_compiler(texts, &deadline);
  switch (result) {
    case NVRTC_SUCCESS:
      return true;
    case NVRTC_ERROR_COMPILATION:
      return false;
    case NVRTC_ERROR_CANCELLED:
      throw out_of_time();
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

nvrtcResult NvrtcUnit::run_compiler(const std::vector<const char*>& options, const void* task) {
  const auto compile = nvrtc_.api.nvrtcCompileProgram;
  keep_freed_memory();
  const NvtxRange range("compile");
  const LibraryThread thread(reinterpret_cast<const void*>(compile), task);
  const SignalGuard signal_guard(reinterpret_cast<const void*>(compile));
  return compile(program_, static_cast<int>(options.size()), options.data());
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
