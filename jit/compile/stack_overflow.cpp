// A handler of SIGSEGV in front of the one that was there, and a stack for it in each thread.
#include "jit/compile/stack_overflow.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include "base/per_process.h"
#include "jit/compile/library_code.h"

namespace kernwright {
namespace {

constexpr std::size_t kHandlerStack = std::size_t{64} << 10;
/// A frame that did not fit may begin so far below the stack's end.
constexpr std::uintptr_t kBelow = std::uintptr_t{1} << 20;
constexpr std::uintptr_t kAbove = 4096;

std::atomic<OnOverflow> handler_of_overflow = nullptr;
struct sigaction before {};  // written before our handler is installed

/// The end of the thread's stack, and where its signals are handled.
class WatchedStack {
 public:
  WatchedStack() {
    pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return;
    void* low = nullptr;
    std::size_t bytes = 0;
    if (::pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
      end_ = reinterpret_cast<std::uintptr_t>(low);
    }
    ::pthread_attr_destroy(&attributes);
    stack_t present{};
    if (::sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
    memory_ = std::make_unique<std::byte[]>(kHandlerStack);
    stack_t own{};
    own.ss_sp = memory_.get();
    own.ss_size = kHandlerStack;
    ::sigaltstack(&own, nullptr);
  }
  ~WatchedStack() {
    if (!memory_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  WatchedStack(const WatchedStack&) = delete;
  WatchedStack& operator=(const WatchedStack&) = delete;

  bool ends_at(std::uintptr_t address) const {
    return end_ != 0 && address < end_ + kAbove && address + kBelow >= end_;
  }

 private:
  std::uintptr_t end_ = 0;
  std::unique_ptr<std::byte[]> memory_;
};

// Threads that never came here handle faults too, perhaps of malloc(): no memory may be needed.
#define KERNWRIGHT_FIXED_TLS [[gnu::tls_model("initial-exec")]] thread_local
KERNWRIGHT_FIXED_TLS const WatchedStack* watched = nullptr;
KERNWRIGHT_FIXED_TLS bool is_passing_on = false;

void handle(int signal, siginfo_t* info, void* context) {
  const WatchedStack* const stack = watched;
  if (stack != nullptr && stack->ends_at(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
    handler_of_overflow.load()(interrupted_at(context));
  }
  // The other handler may have found ours before it, and send the signal back.
  const bool is_circle = is_passing_on;
  is_passing_on = true;
  if (!is_circle && (before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (!is_circle && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    ::sigaction(SIGSEGV, &none, nullptr);  // the instruction runs once more, nobody in the way
  }
  is_passing_on = is_circle;
}

/// Puts our handler in front of the one that is there.
void install() {
  const std::lock_guard lock(per_process<std::mutex>());
  struct sigaction now {};
  if (::sigaction(SIGSEGV, nullptr, &now) != 0 || now.sa_sigaction == handle) return;
  before = now;
  struct sigaction action {};
  action.sa_sigaction = handle;
  // NODEFER: a handler that was there may raise the signal once more, as Python's faulthandler
  // does.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

void watch_stack(OnOverflow on_overflow) {
  handler_of_overflow.store(on_overflow);
  install();
  if (watched != nullptr) return;
  static thread_local const WatchedStack stack;
  watched = &stack;
}

}  // namespace kernwright
