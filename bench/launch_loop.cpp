// The driver's launch call in a loop, as a library: a Python process can measure it and its own
// launches in turn, with the same function, stream and context.

extern "C" {

using Launch = int (*)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, void* stream, void** arguments, void** extra);

/// Makes `calls` launches of 4 blocks of 256 threads through `launch`, cuLaunchKernel. Returns the
/// first result other than success, else 0.
__attribute__((visibility("default"))) int launch_loop(Launch launch, void* function, void* stream,
                                                       void** arguments, int calls) {
  for (int i = 0; i < calls; ++i) {
    const int result = launch(function, 4, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr);
    if (result != 0) return result;
  }
  return 0;
}
}
