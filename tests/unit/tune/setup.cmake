# The failing file system of the base room's tests.
target_sources(test_tune PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit/base/fault_fs.cpp")
# The referee's workers are the program that users have.
target_compile_definitions(test_tune PRIVATE
  "TEST_WORKER_PROGRAM=\"$<TARGET_FILE:kernwright_worker_program>\"")
add_dependencies(test_tune kernwright_worker_program)
