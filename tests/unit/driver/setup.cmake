# What the driver module's tests need beside their sources: fake libraries, and NVIDIA's own headers
# and NVRTC libraries where this machine has them.

kernwright_tests_alone(driver abi recording_driver)  # abi includes NVIDIA's headers beside ours

foreach(fake IN ITEMS fake_cuda fake_cuda_exports fake_nvrtc fake_nvrtc_partial fake_slow)
  string(REGEX REPLACE "_(exports|partial)$" "" source "${fake}")
  add_library(${fake} MODULE "${PROJECT_SOURCE_DIR}/tests/fakes/${source}.cpp")
  target_include_directories(${fake} PRIVATE "${PROJECT_SOURCE_DIR}/runtime")
  add_dependencies(test_driver ${fake})
  string(TOUPPER "${fake}" define)
  target_compile_definitions(test_driver PRIVATE "${define}=\"$<TARGET_FILE:${fake}>\"")
endforeach()
# Found by its name, as the real one is.
add_library(fake_nvtx MODULE "${PROJECT_SOURCE_DIR}/tests/fakes/fake_nvtx.cpp")
set_target_properties(fake_nvtx PROPERTIES PREFIX "" OUTPUT_NAME libnvtx3interop SUFFIX .so.1
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/nvtx")
add_dependencies(test_driver fake_nvtx)
target_compile_definitions(test_driver PRIVATE
  "FAKE_NVTX_FOLDER=\"$<TARGET_FILE_DIR:fake_nvtx>\"")
target_compile_definitions(fake_cuda_exports PRIVATE FAKE_WITHOUT_PROC_ADDRESS)
target_compile_definitions(fake_nvrtc_partial PRIVATE FAKE_PARTIAL)

set(toolkit "")
foreach(root IN ITEMS "$ENV{CUDA_PATH}" "$ENV{CUDA_HOME}" "/usr/local/cuda")
  if(NOT toolkit AND root AND EXISTS "${root}/include/cuda.h")
    set(toolkit "${root}")
  endif()
endforeach()

# The wheels' headers come first: they are the newest.
file(GLOB header_folders "${site_packages}/nvidia/*/include")
if(toolkit)
  list(APPEND header_folders "${toolkit}/include")
endif()
foreach(header IN ITEMS cuda cudaTypedefs nvrtc)
  set(${header}_path "")
  foreach(folder IN LISTS header_folders)
    if(NOT ${header}_path AND EXISTS "${folder}/${header}.h")
      set(${header}_path "${folder}/${header}.h")
    endif()
  endforeach()
endforeach()
if(cuda_path AND cudaTypedefs_path)
  get_filename_component(folder "${cudaTypedefs_path}" DIRECTORY)
  target_compile_definitions(test_driver PRIVATE "NVIDIA_CUDA_H=<cuda.h>"
    "NVIDIA_TYPEDEFS_H=<cudaTypedefs.h>")
  target_include_directories(test_driver SYSTEM PRIVATE "${folder}")
endif()
if(nvrtc_path)
  target_compile_definitions(test_driver PRIVATE "NVIDIA_NVRTC_H=\"${nvrtc_path}\"")
  # An older nvrtc.h lacks the newest functions: say for each row whether it can be compared.
  file(READ "${nvrtc_path}" nvrtc_text)
  file(STRINGS "${PROJECT_SOURCE_DIR}/runtime/driver/nvrtc_api.def" rows REGEX "^KW_NVRTC\\(")
  set(present "// Whether nvrtc.h declares the function of each row of nvrtc_api.def.\n")
  foreach(row IN LISTS rows)
    string(REGEX REPLACE "^[^,]*, ([A-Za-z]+),.*" "\\1" name "${row}")
    if("${nvrtc_text}" MATCHES "[ *]${name}\\(")
      string(APPEND present "#define NVIDIA_HAS_${name} PRESENT\n")
    else()
      string(APPEND present "#define NVIDIA_HAS_${name} ABSENT\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/driver_test/nvrtc_present.h"
    CONTENT "${present}" @ONLY)
  target_include_directories(test_driver PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/driver_test")
endif()
