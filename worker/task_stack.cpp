// A thread with a large stack, and a handler of faults on a small one of its own.
#include "worker/task_stack.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "base/errors.h"
#include "base/format.h"

namespace kernwright {
namespace {

/// Behind the stack, for frames larger than a page.
constexpr std::size_t kGuard = std::size_t{64} << 10;
/// A fault this near to the stack's end, on either side of it, is an overflow.
constexpr std::uintptr_t kNear = std::uintptr_t{256} << 10;

std::uintptr_t stack_end = 0;  ///< its lowest address
int overflow_exit_code = 0;

void on_fault(int number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (address + kNear >= stack_end && address < stack_end + kNear) ::_exit(overflow_exit_code);
  ::signal(number, SIG_DFL);  // an instruction is done again, and faults again
  if (info->si_code <= 0) ::raise(number);
}

std::uintptr_t lowest_stack_address() {
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return 0;
  void* begin = nullptr;
  std::size_t bytes = 0;
  ::pthread_attr_getstack(&attributes, &begin, &bytes);
  ::pthread_attr_destroy(&attributes);
  return reinterpret_cast<std::uintptr_t>(begin);
}

}  // namespace

void start_thread_with_stack(std::size_t bytes, void* (*function)(void*), void* argument) {
  int error = 0;
  for (const bool is_large : {true, false}) {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    ::pthread_attr_setguardsize(&attributes, kGuard);
    if (is_large) ::pthread_attr_setstacksize(&attributes, bytes);
    pthread_t thread{};
    error = ::pthread_create(&thread, &attributes, function, argument);
    ::pthread_attr_destroy(&attributes);
    if (error == 0) return;
  }
  throw Error(format("no thread can be started: {}", std::strerror(error)));
}

void end_process_on_overflow(int exit_code) {
  stack_end = lowest_stack_address();
  overflow_exit_code = exit_code;
  alignas(16) static char room[64 << 10];
  stack_t stack{};
  stack.ss_sp = room;
  stack.ss_size = sizeof room;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  if (stack_end == 0 || ::sigaltstack(&stack, nullptr) != 0) return;
  for (const int number : {SIGSEGV, SIGBUS}) ::sigaction(number, &action, nullptr);
}

}  // namespace kernwright
