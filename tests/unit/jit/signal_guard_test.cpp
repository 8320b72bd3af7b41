// Handlers of a "library" (this executable) are put out, those of the process come back whole.
#include "jit/compile/signal_guard.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <cstdlib>

#include "jit/compile/library_code.h"

using kernwright::CodeRange;
using kernwright::SignalGuard;

namespace {

// SIGHUP: the one of the guarded signals that the test runner leaves alone.
void library_handler(int) {}
const void* const kLibrary = reinterpret_cast<const void*>(&library_handler);

struct sigaction current() {
  struct sigaction action {};
  REQUIRE(::sigaction(SIGHUP, nullptr, &action) == 0);
  return action;
}

/// A handler outside the library, with flags of its own, for the length of a test.
class HandlerOfProcess {
 public:
  HandlerOfProcess() {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    action.sa_flags = SA_ONSTACK;
    REQUIRE(::sigaction(SIGHUP, &action, &before_) == 0);
  }
  ~HandlerOfProcess() { ::sigaction(SIGHUP, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

}  // namespace

TEST_CASE("library code: the segment that holds a function, and nothing else") {
  const CodeRange here = kernwright::code_around(kLibrary);
  CHECK(here.contains(reinterpret_cast<std::uintptr_t>(&library_handler)));
  CHECK(here.contains(reinterpret_cast<std::uintptr_t>(&current)));
  CHECK_FALSE(here.contains(reinterpret_cast<std::uintptr_t>(&::sigaction)));
  int on_stack = 0;
  CHECK(kernwright::code_around(&on_stack).begin == kernwright::code_around(&on_stack).end);
}

TEST_CASE("signal guard: a handler that the library sets is put out") {
  const HandlerOfProcess handler;
  const SignalGuard guard(kLibrary);
  ::signal(SIGHUP, library_handler);
  SignalGuard::keep();
  CHECK((current().sa_handler == SIG_IGN));
  CHECK((current().sa_flags & SA_ONSTACK) != 0);
}

TEST_CASE("signal guard: flags that the library's own restoring lost come back at the end") {
  const HandlerOfProcess handler;
  {
    const SignalGuard outer(kLibrary);
    {
      const SignalGuard inner(kLibrary);
      ::signal(SIGHUP, library_handler);
    }
    CHECK((current().sa_handler == SIG_IGN));
    ::signal(SIGHUP, SIG_IGN);  // as NVRTC restores it
    CHECK((current().sa_flags & SA_ONSTACK) == 0);
  }
  CHECK((current().sa_flags & SA_ONSTACK) != 0);
}

TEST_CASE("signal guard: a handler that the program sets meanwhile stays") {
  const HandlerOfProcess handler;
  {
    const SignalGuard guard(kLibrary);
    ::signal(SIGHUP, SIG_DFL);
    SignalGuard::keep();
    CHECK((current().sa_handler == SIG_DFL));
  }
  CHECK((current().sa_handler == SIG_DFL));
  ::signal(SIGHUP, library_handler);
  SignalGuard::keep();  // with no compile under way
  CHECK((current().sa_handler == library_handler));
}

TEST_CASE("signal guard: handlers of every library that is guarded are put out") {
  const HandlerOfProcess handler;
  const SignalGuard guard(kLibrary);
  // Stands for a handler in another library, the one that holds exit().
  void (*const elsewhere)(int) = &std::exit;
  ::signal(SIGHUP, elsewhere);
  SignalGuard::keep();
  CHECK((current().sa_handler == elsewhere));  // the program's, for all that is known
  ::signal(SIGHUP, SIG_IGN);
  {
    const SignalGuard other(reinterpret_cast<const void*>(&std::exit));
    ::signal(SIGHUP, elsewhere);
  }
  CHECK((current().sa_handler == SIG_IGN));
}

TEST_CASE("signal guard: a handler of the program's between two compiles is the one to keep") {
  const HandlerOfProcess handler;
  const SignalGuard guard(kLibrary);
  ::signal(SIGHUP, SIG_DFL);
  {
    const SignalGuard later(kLibrary);
    ::signal(SIGHUP, library_handler);
  }
  CHECK((current().sa_handler == SIG_DFL));
}
