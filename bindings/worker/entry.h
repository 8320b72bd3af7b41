// The interface between the program kernwright-worker and the Python extension with all its code.
#pragma once

extern "C" {

/// Serves the parent process until the parent ends. Returns the program's exit code.
[[gnu::visibility("default")]] int kernwright_worker_main(int argc, char** argv);

}  // extern "C"
