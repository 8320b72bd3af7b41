# The failing file system of the base module's tests.
target_sources(test_tune PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit/base/fault_fs.cpp")

# Workers of these tests: the program of all modules' tasks.
add_dependencies(test_tune kernwright_worker_program)
target_compile_definitions(test_tune PRIVATE
  "TEST_TUNE_WORKER=\"$<TARGET_FILE:kernwright_worker_program>\"")
