// The interface between libcuda.so.1 and the Python extension, which has the simulated device's
// code.
#pragma once

#define KW_ENTRY [[gnu::visibility("default")]]

extern "C" {

/// The function behind an exported name of the driver, or null. From the first call on, what is
/// found wrong is written to the log too.
KW_ENTRY void* kw_libcuda_find(const char* symbol);

/// Logs the absence of the function; returns CUDA_ERROR_NOT_SUPPORTED.
KW_ENTRY int kw_libcuda_refuse(const char* symbol);

}  // extern "C"
