# Third-party libraries: the system's packages first, a pinned source archive where one is missing.
include(FetchContent)
find_package(Threads REQUIRED)

# Only fmt's headers are used: runtime/base/format.cpp compiles the rest, so that neither the Python
# package nor an installed library needs a libfmt.
add_library(kernwright_fmt INTERFACE)
find_package(fmt 9 QUIET)
if(NOT fmt_FOUND)
  # NOTE: there are no CMake files in that folder, so the archive is only unpacked.
  FetchContent_Declare(fmt URL https://github.com/fmtlib/fmt/archive/refs/tags/9.1.0.tar.gz
    URL_HASH SHA256=5dea48d1fcddc3ec571ce2058e13910a0d4a6bab4cc09a809d8b1dd1c88ae6f2
    SOURCE_SUBDIR include)
  FetchContent_MakeAvailable(fmt)
  target_include_directories(kernwright_fmt SYSTEM INTERFACE "${fmt_SOURCE_DIR}/include")
elseif(fmt_VERSION VERSION_LESS 10)
  get_target_property(folders fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  get_target_property(definitions fmt::fmt INTERFACE_COMPILE_DEFINITIONS)
  target_include_directories(kernwright_fmt SYSTEM INTERFACE ${folders})
  if(definitions)
    target_compile_definitions(kernwright_fmt INTERFACE ${definitions})
  endif()
else()
  target_link_libraries(kernwright_fmt INTERFACE fmt::fmt-header-only)
endif()

find_package(nlohmann_json 3.11 QUIET)
if(NOT nlohmann_json_FOUND)
  FetchContent_Declare(nlohmann_json
    URL https://github.com/nlohmann/json/archive/refs/tags/v3.11.2.tar.gz
    URL_HASH SHA256=d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273)
  FetchContent_MakeAvailable(nlohmann_json)
endif()

# xxHash is used from its header alone, so nothing of it is linked.
find_path(XXHASH_INCLUDE_DIR xxhash.h)
mark_as_advanced(XXHASH_INCLUDE_DIR)
set(kernwright_xxhash_include "${XXHASH_INCLUDE_DIR}")
if(NOT XXHASH_INCLUDE_DIR)
  # NOTE: the archive's CMake files lie in a sub-folder, so it is only unpacked here.
  FetchContent_Declare(xxhash URL https://github.com/Cyan4973/xxHash/archive/refs/tags/v0.8.2.tar.gz
    URL_HASH SHA256=baee0c6afd4f03165de7a4e67988d16f0f2b257b51d0e3cb91909302a26a79c4)
  FetchContent_MakeAvailable(xxhash)
  set(kernwright_xxhash_include "${xxhash_SOURCE_DIR}")
endif()
add_library(xxHash::xxhash INTERFACE IMPORTED GLOBAL)
target_include_directories(xxHash::xxhash INTERFACE "${kernwright_xxhash_include}")
