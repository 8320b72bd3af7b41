// The parts that bind one family of the kernel library each. Their functions are private names of
// kernwright._core; the packages array, nn, random ... give them names, defaults and docstrings.
#pragma once

#include <pybind11/pybind11.h>

namespace kernwright::python {

namespace py = pybind11;

void bind_kernels(py::module_& m);  ///< all of those below
void bind_activations(py::module_& m);
void bind_attention(py::module_& m);
void bind_choices(py::module_& m);      ///< launch numbers, compiling without launches
void bind_conv(py::module_& m);         ///< convolutions
void bind_elementwise(py::module_& m);  ///< operations by name, promotion
void bind_embedding(py::module_& m);
void bind_experts(py::module_& m);
void bind_formats(py::module_& m);
void bind_gemm(py::module_& m);
void bind_gemv(py::module_& m);
void bind_index(py::module_& m);
void bind_linalg(py::module_& m);
void bind_loss(py::module_& m);
void bind_matmul(py::module_& m);
void bind_movement(py::module_& m);
void bind_norm(py::module_& m);
void bind_products(py::module_& m);
void bind_operators(py::module_& m);  ///< of Array
void bind_optim(py::module_& m);
void bind_packed(py::module_& m);
void bind_quantize(py::module_& m);
void bind_random(py::module_& m);
void bind_recurrent(py::module_& m);
void bind_reduce(py::module_& m);  ///< reductions, methods of Array too
void bind_rope(py::module_& m);
void bind_sampling(py::module_& m);
void bind_scan(py::module_& m);  ///< scans
void bind_softmax(py::module_& m);
void bind_sort(py::module_& m);
void bind_spatial(py::module_& m);  ///< pooling, interpolation

}  // namespace kernwright::python
