// Is no CUDA C++.
// expect: compile
I am sorry, I cannot write this kernel.
