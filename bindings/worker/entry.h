// What the program kernwright-worker asks the Python extension for, which has all of its code.
#pragma once

extern "C" {

/// Serves the process that started this one, until that ends. The program's exit code.
[[gnu::visibility("default")]] int kernwright_worker_main(int argc, char** argv);

}  // extern "C"
