# The library is opened as a program opens the driver's, not linked.
add_dependencies(test_libcuda kernwright_libcuda)
target_compile_definitions(test_libcuda PRIVATE "LIBCUDA=\"$<TARGET_FILE:kernwright_libcuda>\"")
