// Lets a file that was linked against a new glibc run with glibc 2.28, on x86-64.
// Each function here takes the place of a newer version of itself, within the linked file alone.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include <atomic>
#include <cstdint>

// `name` jumps to `old`, a function that glibc has had from the start: same arguments, same result.
// Each lies in a section of its own, so that the linker drops what nobody calls.
// clang-format off
#define FORWARD_TO(name, old, version)                                            \
  asm(".section .text." #name ",\"ax\",@progbits\n"                              \
      ".symver kernwright_old_" #name ", " #old "@" version "\n"                  \
      ".globl " #name "\n.hidden " #name "\n.type " #name ", @function\n"        \
      #name ":\n  endbr64\n  jmp *kernwright_old_" #name "@GOTPCREL(%rip)\n"     \
      ".size " #name ", .-" #name "\n.previous\n")
#define FORWARD(name, version) FORWARD_TO(name, name, version)
// clang-format on

FORWARD(exp, "GLIBC_2.2.5");
FORWARD(exp2, "GLIBC_2.2.5");
FORWARD(log, "GLIBC_2.2.5");
FORWARD(log2, "GLIBC_2.2.5");
FORWARD(pow, "GLIBC_2.2.5");
FORWARD(fmod, "GLIBC_2.2.5");
FORWARD(fmodf, "GLIBC_2.2.5");
FORWARD(hypot, "GLIBC_2.2.5");
FORWARD(hypotf, "GLIBC_2.2.5");
FORWARD(dladdr, "GLIBC_2.2.5");
FORWARD(dlclose, "GLIBC_2.2.5");
FORWARD(dlerror, "GLIBC_2.2.5");
FORWARD(dlinfo, "GLIBC_2.3.3");
FORWARD(dlopen, "GLIBC_2.2.5");
FORWARD(dlsym, "GLIBC_2.2.5");
FORWARD(pthread_attr_getstack, "GLIBC_2.2.5");
FORWARD(pthread_attr_setguardsize, "GLIBC_2.2.5");
FORWARD(pthread_attr_setstacksize, "GLIBC_2.2.5");
FORWARD(pthread_create, "GLIBC_2.2.5");
FORWARD(pthread_detach, "GLIBC_2.2.5");
FORWARD(pthread_getaffinity_np, "GLIBC_2.3.4");
FORWARD(pthread_getattr_np, "GLIBC_2.2.5");
FORWARD(pthread_getspecific, "GLIBC_2.2.5");
FORWARD(pthread_join, "GLIBC_2.2.5");
FORWARD(pthread_key_create, "GLIBC_2.2.5");
FORWARD(pthread_key_delete, "GLIBC_2.2.5");
FORWARD(pthread_mutex_trylock, "GLIBC_2.2.5");
FORWARD(pthread_once, "GLIBC_2.2.5");
FORWARD(pthread_rwlock_rdlock, "GLIBC_2.2.5");
FORWARD(pthread_rwlock_unlock, "GLIBC_2.2.5");
FORWARD(pthread_rwlock_wrlock, "GLIBC_2.2.5");
FORWARD(pthread_setaffinity_np, "GLIBC_2.3.4");
FORWARD(pthread_setspecific, "GLIBC_2.2.5");
FORWARD(pthread_sigmask, "GLIBC_2.2.5");

// What the headers of glibc 2.38 make of strtol and its kin. They read "0b1" as a binary number in
// base 0 and 2; the older ones read a zero and stop. Nothing here reads numbers in these bases.
FORWARD_TO(__isoc23_strtol, strtol, "GLIBC_2.2.5");
FORWARD_TO(__isoc23_strtoll, strtoll, "GLIBC_2.2.5");
FORWARD_TO(__isoc23_strtoul, strtoul, "GLIBC_2.2.5");
FORWARD_TO(__isoc23_strtoull, strtoull, "GLIBC_2.2.5");
FORWARD_TO(__isoc23_strtoimax, strtoimax, "GLIBC_2.2.5");
FORWARD_TO(__isoc23_strtoumax, strtoumax, "GLIBC_2.2.5");
FORWARD_TO(__isoc23_sscanf, __isoc99_sscanf, "GLIBC_2.7");

// Of a program: glibc before 2.34 then calls no constructors of the program itself, so it has none.
FORWARD(__libc_start_main, "GLIBC_2.2.5");

// What glibc 2.28 lacks.
extern "C" {
#define HIDDEN __attribute__((visibility("hidden")))

// The C++ library asks it whether it may count references without atomic instructions. It may not.
HIDDEN char __libc_single_threaded = 0;

asm(".symver __xstat, __xstat@GLIBC_2.2.5");
asm(".symver __lxstat, __lxstat@GLIBC_2.2.5");
asm(".symver __fxstat, __fxstat@GLIBC_2.2.5");
asm(".symver __fxstatat, __fxstatat@GLIBC_2.4");
int __xstat(int version, const char* path, struct stat* result);
int __lxstat(int version, const char* path, struct stat* result);
int __fxstat(int version, int file, struct stat* result);
int __fxstatat(int version, int folder, const char* path, struct stat* result, int flags);

#define KERNEL_LAYOUT 1  // of struct stat on x86-64

HIDDEN int old_stat(const char* path, struct stat* result) asm("stat");
int old_stat(const char* path, struct stat* result) { return __xstat(KERNEL_LAYOUT, path, result); }
HIDDEN int old_stat64(const char* path, struct stat* result) asm("stat64");
int old_stat64(const char* path, struct stat* result) {
  return __xstat(KERNEL_LAYOUT, path, result);
}
HIDDEN int old_lstat(const char* path, struct stat* result) asm("lstat");
int old_lstat(const char* path, struct stat* result) {
  return __lxstat(KERNEL_LAYOUT, path, result);
}
HIDDEN int old_lstat64(const char* path, struct stat* result) asm("lstat64");
int old_lstat64(const char* path, struct stat* result) {
  return __lxstat(KERNEL_LAYOUT, path, result);
}
HIDDEN int old_fstat(int file, struct stat* result) asm("fstat");
int old_fstat(int file, struct stat* result) { return __fxstat(KERNEL_LAYOUT, file, result); }
HIDDEN int old_fstat64(int file, struct stat* result) asm("fstat64");
int old_fstat64(int file, struct stat* result) { return __fxstat(KERNEL_LAYOUT, file, result); }
HIDDEN int old_fstatat(int folder, const char* path, struct stat* result, int flags) asm("fstatat");
int old_fstatat(int folder, const char* path, struct stat* result, int flags) {
  return __fxstatat(KERNEL_LAYOUT, folder, path, result, flags);
}
HIDDEN int old_fstatat64(int folder, const char* path, struct stat* result,
                         int flags) asm("fstatat64");
int old_fstatat64(int folder, const char* path, struct stat* result, int flags) {
  return __fxstatat(KERNEL_LAYOUT, folder, path, result, flags);
}

// For std::random_device, which makes names of files and seeds here, never secrets.
HIDDEN uint32_t old_arc4random() asm("arc4random");
uint32_t old_arc4random() {
  uint32_t value = 0;
  if (getentropy(&value, sizeof value) == 0) return value;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint32_t>(now.tv_nsec ^ reinterpret_cast<uintptr_t>(&now) >> 4);
}

// By glibc's own function, where it has one (2.30). Else it waits by the calendar's clock; in C++
// the caller looks at its own clock afterwards, as libstdc++ does where this function is missing.
HIDDEN int old_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                         const timespec* until) asm("pthread_cond_clockwait");
int old_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                  const timespec* until) {
  using Wait = decltype(&old_clockwait);
  static std::atomic<void*> known{&known};  // itself: not looked for yet
  void* found = known.load(std::memory_order_relaxed);
  if (found == &known) {
    found = dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
    known.store(found, std::memory_order_relaxed);
  }
  if (found != nullptr) return reinterpret_cast<Wait>(found)(condition, mutex, clock, until);

  constexpr int64_t kSecond = 1'000'000'000;
  timespec now{}, date{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &date);
  const int64_t seconds = until->tv_sec - now.tv_sec + date.tv_sec;
  const int64_t rest = until->tv_nsec - now.tv_nsec + date.tv_nsec;
  const int64_t carry = rest < 0 ? -1 : rest / kSecond;
  date = {.tv_sec = seconds + carry, .tv_nsec = rest - carry * kSecond};
  return pthread_cond_timedwait(condition, mutex, &date);
}
}  // extern "C"
