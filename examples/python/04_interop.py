"""Arrays of other libraries as arguments; with a GPU and torch, nothing is copied."""

import numpy as np

import kernwright as kw

square = kw.kernel(r"""
__global__ void square(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= x[i];
}""")

expected = np.arange(1000, dtype=np.float32) ** 2
try:
    import torch
except ImportError:
    torch = None

if torch is not None and torch.cuda.is_available() and not kw.current_device().is_simulated:
    tensor = torch.arange(1000, dtype=torch.float32, device="cuda")
    square.forall(1000)(tensor, 1000)  # on torch's own memory
    np.testing.assert_array_equal(tensor.cpu().numpy(), expected)
    view = kw.from_dlpack(tensor)  # the same memory as one of our arrays
    assert view.ptr == tensor.data_ptr()
    back = torch.from_dlpack(view)  # and back
    assert back.data_ptr() == tensor.data_ptr()
    print("torch tensor changed in place, lent both ways without a copy")
else:
    # Without torch on a GPU, host arrays of any library are copied in and out.
    host = np.arange(1000, dtype=np.float32)
    array = kw.asarray(host if torch is None else torch.from_numpy(host))
    square.forall(1000)(array, 1000)
    np.testing.assert_array_equal(array.numpy(), expected)
    borrowed = kw.from_dlpack(array)  # our arrays support DLPack too
    assert borrowed.ptr == array.ptr
    print("host array copied in and out, our array lent through DLPack without a copy")
