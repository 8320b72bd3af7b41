# The workers of these tests are a program of their own.
add_executable(worker_program "${PROJECT_SOURCE_DIR}/tests/worker/program.cpp")
target_link_libraries(worker_program PRIVATE kernwright_flags kernwright::worker_device)
target_compile_definitions(test_worker PRIVATE
  "TEST_WORKER_PROGRAM=\"$<TARGET_FILE:worker_program>\"")
target_include_directories(test_worker PRIVATE "${PROJECT_SOURCE_DIR}")
add_dependencies(test_worker worker_program)
