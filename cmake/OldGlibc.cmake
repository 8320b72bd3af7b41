# What a wheel ships runs with glibc 2.28 and newer, where it was built with glibc 2.34 to 2.39 on
# x86-64. The linked files keep to old versions of glibc's functions (old_glibc.cpp). Other systems
# may need newer ones: scripts/check_wheel.py refuses a wheel whose name promises too much.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("
#include <features.h>
#if !defined(__x86_64__) || !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 34)
#error functions of threads lie in a library of their own, or versions have other numbers
#endif
int main() {}" KERNWRIGHT_NEW_GLIBC)

if(KERNWRIGHT_NEW_GLIBC AND NOT KERNWRIGHT_SANITIZE)
  add_library(kernwright_old_glibc OBJECT "${CMAKE_CURRENT_LIST_DIR}/old_glibc.cpp")
  target_link_libraries(kernwright_old_glibc PRIVATE kernwright_flags)
endif()

# Links a target that the wheel ships for old systems, where that is known.
function(kernwright_for_old_glibc target)
  if(TARGET kernwright_old_glibc)
    target_link_libraries(${target} PRIVATE kernwright_old_glibc)
    # Where threads and dlopen are before glibc 2.34; later these libraries are there, and empty.
    target_link_options(${target} PRIVATE "LINKER:--push-state,--no-as-needed"
      -l:libpthread.so.0 -l:libdl.so.2 "LINKER:--pop-state")
  endif()
endfunction()
