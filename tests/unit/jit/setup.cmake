# What the jit room's tests need beside their sources: the folders where NVRTC may be, and the fake
# driver of the core room's tests.

find_package(Python3 QUIET COMPONENTS Interpreter)
set(jit_site_packages "")
if(Python3_Interpreter_FOUND)
  execute_process(
    COMMAND "${Python3_EXECUTABLE}" -c
            "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    OUTPUT_VARIABLE jit_site_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
target_compile_definitions(test_jit PRIVATE "TEST_SITE_PACKAGES=\"${jit_site_packages}\"")
target_sources(test_jit PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit/core/fake_driver.cpp")
