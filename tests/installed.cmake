# Installs Kernwright into an empty folder, then configures, builds and runs examples/installed
# against it, through CMake and through pkg-config, with no CUDA toolkit in reach. Compiles the C++
# of README.md and docs/ with it.
#   cmake -DBUILD= -DSOURCE= -DFOLDER= -DSITE_PACKAGES= -DCOMPILER= -DPYTHON= -P installed.cmake
file(REMOVE_RECURSE "${FOLDER}")
foreach(variable CUDA_PATH CUDA_HOME CPATH CPLUS_INCLUDE_PATH LIBRARY_PATH)
  unset(ENV{${variable}})
endforeach()
set(ENV{KERNWRIGHT_DEVICE} sim)
file(GLOB nvrtc "${SITE_PACKAGES}/nvidia/*/lib/libnvrtc.so.*")
if(nvrtc AND NOT DEFINED ENV{KERNWRIGHT_NVRTC})
  list(GET nvrtc 0 nvrtc)
  get_filename_component(nvrtc "${nvrtc}" DIRECTORY)
  set(ENV{KERNWRIGHT_NVRTC} "${nvrtc}")
endif()
set(ENV{KERNWRIGHT_CACHE_DIR} "${FOLDER}/cache")

function(run title)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${title} failed (${code}):\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

run("install" "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${FOLDER}/prefix" --component cpp)
run("configure" "${CMAKE_COMMAND}" -S "${SOURCE}/examples/installed" -B "${FOLDER}/build"
  "-DCMAKE_PREFIX_PATH=${FOLDER}/prefix" "-DCMAKE_CXX_COMPILER=${COMPILER}"
  "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror -Wno-missing-field-initializers")
run("build" "${CMAKE_COMMAND}" --build "${FOLDER}/build")
run("run" "${FOLDER}/build/blur")
if(NOT output MATCHES "blur\\(const float\\* in, float\\* out, int n\\) on .*: right")
  message(FATAL_ERROR "the program said: ${output}")
endif()

find_program(PKG_CONFIG NAMES pkg-config pkgconf)
if(PKG_CONFIG)
  file(GLOB found "${FOLDER}/prefix/lib*/pkgconfig" "${FOLDER}/prefix/lib/*/pkgconfig")
  set(ENV{PKG_CONFIG_PATH} "${found}")
  run("pkg-config" "${PKG_CONFIG}" "--define-variable=prefix=${FOLDER}/prefix" --cflags --libs
    kernwright)
  separate_arguments(flags UNIX_COMMAND "${output}")
  file(WRITE "${FOLDER}/plain.cpp" "#include <kernwright.h>
int main() {
  auto& device = kernwright::initialise();
  const auto kernel = kernwright::kernel(\"__global__ void k(int* x) { *x = 5; }\");
  if (kernel.on(device).signature().parameters.size() != 1) return 1;
  kernwright::RemoteDevice remote;  // its program is found through PATH
  return remote.allocate(5).bytes == 5 ? 0 : 2;
}
")
  run("compile through pkg-config" "${COMPILER}" "${FOLDER}/plain.cpp" -o "${FOLDER}/plain"
    ${flags})
  set(ENV{PATH} "${FOLDER}/prefix/bin:$ENV{PATH}")
  run("run of the program of pkg-config" "${FOLDER}/plain")
endif()
if(PYTHON)
  run("the C++ of the pages" "${PYTHON}" "${SOURCE}/tests/compile_pages.py" "${COMPILER}"
    "${FOLDER}/prefix" "${SOURCE}")
endif()
file(REMOVE_RECURSE "${FOLDER}")
message(STATUS "installed, built against and run")
