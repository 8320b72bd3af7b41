"""Graphs and captures of libcuda.so.1, in the signatures of old and new drivers."""

from libcuda_program import passes

NODES = """
class Node(ctypes.Structure):
    _fields_ = [("f", c_void_p), *((n, c_uint) for n in ("gx", "gy", "gz", "bx", "by", "bz", "s")),
                ("p", c_void_p), ("e", c_void_p)]
class Node2(ctypes.Structure):
    _fields_ = [("node", Node), ("kernel", c_void_p), ("context", c_void_p)]
module, function, library, kernel = c_void_p(), c_void_p(), c_void_p(), c_void_p()
check("cuModuleLoadData", byref(module), PTX)
check("cuModuleGetFunction", byref(function), module, b"triple")
check("cuLibraryLoadData", byref(library), PTX, None, None, 0, None, None, 0)
check("cuLibraryGetKernel", byref(kernel), library, b"triple")
address, pointers, number = upload()
given = ctypes.cast(pointers, c_void_p)
graph, first, second = c_void_p(), c_void_p(), c_void_p()
check("cuGraphCreate", byref(graph), 0)
# Garbage behind the old structure is not looked at.
old = Node2(Node(function, 8, 1, 1, 128, 1, 1, 0, given, None), 0x1234, 0x5678)
check("cuGraphAddKernelNode", byref(first), graph, None, c_size_t(0), byref(old))
new = Node2(Node(None, 8, 1, 1, 128, 1, 1, 0, given, None), kernel, None)
check("cuGraphAddKernelNode_v2", byref(second), graph, byref(first), c_size_t(1), byref(new))
"""


def test_nodes_in_old_and_new_signatures():
    passes(
        NODES
        + """
got = Node2(kernel=7)
check("cuGraphKernelNodeGetParams", first, byref(got))
assert (got.node.f, got.node.gx, got.node.bx, got.kernel) == (function.value, 8, 128, 7)
check("cuGraphKernelNodeSetParams", first, byref(old))
assert code("cuGraphKernelNodeSetParams", first, None) == 1
edges, before, count = (c_uint64 * 4)(*[9] * 4), (c_void_p * 4)(), c_size_t(4)
check("cuGraphNodeGetDependencies_v2", second, before, edges, byref(count))
assert (count.value, before[0], edges[0]) == (1, first.value, 0)
"""
    )


def test_graphs_are_instantiated_in_each_signature():
    passes(
        NODES
        + """
executable, stream = c_void_p(), c_void_p()
check("cuStreamCreate", byref(stream), 1)
factor = 1
for name in ("cuGraphInstantiate", "cuGraphInstantiate_v2"):
    log = ctypes.create_string_buffer(b"full", 16)
    check(name, byref(executable), graph, byref(c_void_p(1)), log, c_size_t(16))
    assert log.value == b""
    check("cuGraphLaunch", executable, stream)
    factor *= 9
class Parameters(ctypes.Structure):
    _fields_ = [("flags", c_uint64), ("stream", c_void_p), ("failed", c_void_p), ("result", c_int)]
parameters = Parameters(2, stream, 5, 5)
check("cuGraphInstantiateWithParams", byref(executable), graph, byref(parameters))
assert (parameters.failed, parameters.result) == (None, 0)
check("cuGraphExecKernelNodeSetParams", executable, first, byref(old))
outcome = c_int(9)
check("cuGraphExecUpdate", executable, graph, byref(c_void_p()), byref(outcome))
assert outcome.value == 0
check("cuGraphLaunch_ptsz", executable, stream)
check("cuStreamSynchronize", stream)
expect(address, factor * 9)
"""
    )


def test_captures_are_told_in_each_signature():
    passes("""
module, function, stream, graph = c_void_p(), c_void_p(), c_void_p(), c_void_p()
check("cuModuleLoadData", byref(module), PTX)
check("cuModuleGetFunction", byref(function), module, b"triple")
address, pointers, number = upload()
check("cuStreamCreate", byref(stream), 1)
status, identity = c_int(9), c_uint64()
check("cuStreamGetCaptureInfo", stream, byref(status), byref(identity))
assert status.value == 0
check("cuStreamBeginCapture_v2", stream, 2)
assert launch(function, pointers, stream=stream) == 0
check("cuStreamGetCaptureInfo", stream, byref(status), byref(identity))
assert status.value == 1 and identity.value
nodes, edges, count, same = c_void_p(), c_void_p(), c_size_t(), c_uint64()
check("cuStreamGetCaptureInfo_v3", stream, byref(status), byref(same), byref(graph), byref(nodes),
      byref(edges), byref(count))
assert (same.value, count.value) == (identity.value, 1) and nodes.value and graph.value
assert ctypes.string_at(edges.value, 8) == bytes(8)
check("cuStreamGetCaptureInfo_v3", stream, byref(status), None, None, None, None, None)
check("cuStreamEndCapture", stream, byref(graph))
check("cuStreamBeginCapture", stream)
check("cuStreamEndCapture", stream, byref(graph))
""")


def test_user_objects_live_as_long_as_the_graphs_that_keep_them():
    passes("""
ended = []
destroy = ctypes.CFUNCTYPE(None, c_void_p)(ended.append)
def made(references):
    handle = c_void_p()
    check("cuUserObjectCreate", byref(handle), c_void_p(len(ended) + 1), destroy, references, 1)
    return handle
one = made(2)
check("cuUserObjectRetain", one, 1)
check("cuUserObjectRelease", one, 2)
assert ended == []
check("cuUserObjectRelease", one, 1)
assert ended == [1]
assert code("cuUserObjectRelease", one, 1) == 1

graph, clone, executable = c_void_p(), c_void_p(), c_void_p()
check("cuGraphCreate", byref(graph), 0)
kept = made(1)
assert code("cuGraphRetainUserObject", None, kept, 1, 1) != 0
check("cuGraphRetainUserObject", graph, kept, 1, 1)  # moved
check("cuGraphClone", byref(clone), graph)
check("cuGraphInstantiateWithFlags", byref(executable), graph, c_uint64(0))
check("cuGraphDestroy", graph)
check("cuGraphDestroy", clone)
assert ended == [1]
check("cuGraphExecDestroy", executable)
assert ended == [1, 2]

check("cuGraphCreate", byref(graph), 0)
kept = made(1)
check("cuGraphRetainUserObject", graph, kept, 2, 0)
check("cuUserObjectRelease", kept, 1)
assert code("cuGraphReleaseUserObject", graph, kept, 3) == 1
check("cuGraphReleaseUserObject", graph, kept, 2)
assert ended == [1, 2, 3]
check("cuGraphDestroy", graph)
""")
