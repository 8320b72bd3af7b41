# What the kernel library's tests need beside their sources: the folder where NVRTC's wheel may be.
find_package(Python3 QUIET COMPONENTS Interpreter)
set(kernels_site_packages "")
if(Python3_Interpreter_FOUND)
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c
            "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    OUTPUT_VARIABLE kernels_site_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
target_compile_definitions(test_kernels PRIVATE "TEST_SITE_PACKAGES=\"${kernels_site_packages}\"")
