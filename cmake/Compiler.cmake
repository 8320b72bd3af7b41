# Compiler settings shared by every module.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# What is hot asks for more (runtime/sim), the rest of the modules for less (kernwright_module).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# Sources in batches share what they include: the whole builds in half the time, a small change in
# more. Builds for debugging and for sanitizers take each source alone.
option(KERNWRIGHT_UNITY "Compile the sources of a target in batches" ON)
set(CMAKE_UNITY_BUILD ${KERNWRIGHT_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
# Of sources compiled for size. They share more than hot ones, which the optimiser sees as before.
set(kernwright_large_batch 16)

# For code that is not hot: the wheel has a limit (scripts/check_wheel.py). NOTE: without the macro,
# the C library's headers are the same for such sources as for the others.
# Instructions in the order of the source are more alike: the extension compresses 3 % better (to
# 3.72 from 3.83 MB).
set(small_flags -Oz -U__OPTIMIZE_SIZE__ -fno-schedule-insns2 -fno-gcse -fno-ipa-ra -fno-caller-saves
  -fno-shrink-wrap -fno-tree-tail-merge)
set(kernwright_small_flags
  "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:${small_flags}>")
# Of what the linker gets it drops the functions that nothing uses (bindings/CMakeLists.txt).
set(kernwright_section_flags -ffunction-sections -fdata-sections)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what lets ccache work beside precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    "${CCACHE_PROGRAM}")
endif()

add_library(kernwright_flags INTERFACE)
target_compile_options(kernwright_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
# Warnings are errors where the tests are built: a user's compiler may have warnings that none of
# ours has. What gcc says of a sanitizer's own checks is no error.
if(KERNWRIGHT_BUILD_TESTS AND NOT KERNWRIGHT_SANITIZE)
  target_compile_options(kernwright_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Loops over lanes join conditions without branches, and ask to be vectorised where it may fail.
  target_compile_options(kernwright_flags INTERFACE -Wno-bitwise-instead-of-logical
    -Wno-pass-failed)
endif()
# NOTE: gcc 12 reports overlaps inside std::string that cannot happen (gcc bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(kernwright_flags INTERFACE -Wno-restrict -fpch-preprocess)
  if(KERNWRIGHT_UNITY)  # a source within a batch is not what gcc calls the main file
    target_compile_options(kernwright_flags INTERFACE -Wno-subobject-linkage)
  endif()
endif()
if(KERNWRIGHT_SANITIZE STREQUAL "address")
  target_compile_options(kernwright_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(kernwright_flags INTERFACE -fsanitize=address,undefined)
elseif(KERNWRIGHT_SANITIZE STREQUAL "thread")
  target_compile_options(kernwright_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(kernwright_flags INTERFACE -fsanitize=thread)
elseif(KERNWRIGHT_SANITIZE STREQUAL "fuzzer")  # clang alone has it; see tests/fuzz
  target_compile_options(kernwright_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(kernwright_flags INTERFACE -fsanitize=address,undefined)
elseif(KERNWRIGHT_SANITIZE)
  message(FATAL_ERROR "KERNWRIGHT_SANITIZE must be empty, 'address', 'thread' or 'fuzzer'")
endif()

# Headers that nearly every source includes, parsed once and shared by all targets of equal flags.
set(kernwright_precompiled
  <algorithm> <array> <atomic> <cstdint> <cstring> <functional> <map> <memory> <mutex> <optional>
  <span> <string> <string_view> <unordered_map> <utility> <vector> <fmt/format.h>)
