"""The functions of this library for NumPy, by DLPack and ctypes. `python functions.py LIBRARY` checks them."""

import ctypes
import resource
import sys

import numpy as np

NAME, USED = b"dltensor_versioned", b"used_dltensor_versioned"

api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def pointer(array):
    """The structure of an array, which is the caller's from now on."""
    capsule = array.__dlpack__(max_version=(1, 0))
    taken = ctypes.c_void_p(api.PyCapsule_GetPointer(capsule, NAME))
    api.PyCapsule_SetName(capsule, USED)
    return taken


class Owned:
    """A tensor of the library, for `numpy.from_dlpack`."""

    def __init__(self, pointer):
        self.pointer = pointer

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        # NumPy takes the structure at once, and calls its deleter.
        return api.PyCapsule_New(self.pointer, NAME, None)


class Functions:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def call(self, name, *arguments):
        text = ctypes.create_string_buffer(4096)
        if getattr(self.library, name)(*arguments, text, ctypes.c_size_t(len(text))) != 0:
            raise ValueError(text.value.decode())

    def softmax(self, x):
        out = ctypes.c_void_p()
        self.call("titan_softmax", ctypes.byref(pointer(x)), ctypes.byref(out))
        return np.from_dlpack(Owned(out.value))

    def triple(self, x):
        self.call("titan_triple", ctypes.byref(pointer(x)))


def refused(call, says):
    try:
        call()
    except (ValueError, BufferError) as error:
        assert says in str(error), str(error)
    else:
        raise AssertionError(f"not refused: {says}")


def check(functions):
    rng = np.random.default_rng(1)
    for dtype, limit in [(np.float64, 1e-6), (np.float32, 1e-6), (np.float16, 1e-3)]:
        x = rng.standard_normal((7, 300)).astype(dtype)
        # A transposed part, every second column, a repeated row, one row.
        for view in [x, x[:, 3:90].T, x[1:, ::2], np.broadcast_to(x[2], (5, 300)), x[4:5]]:
            e = np.exp(view.astype(np.float64) - view.astype(np.float64).max(1, keepdims=True))
            y = functions.softmax(view)
            assert y.shape == view.shape and y.dtype == view.dtype
            assert np.abs(y - e / e.sum(1, keepdims=True)).max() < limit
    # Where the elements are stored, and nothing between them.
    for dtype in [np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8]:
        x = np.arange(80, dtype=dtype).reshape(8, 10)
        expected = x.copy()
        expected[1:6, ::3] *= 3
        functions.triple(x[1:6, ::3])
        assert (x == expected).all(), x
    # What is taken lives as long as it is used, whoever drops it first.
    y = functions.softmax(np.zeros((2, 4), np.float32))
    part = y[1:]
    del y
    assert (part == 0.25).all()
    assert functions.softmax(np.zeros((0, 4), np.float32)).shape == (0, 4)
    # A new array of 32 MiB each time: the memory of earlier ones is freed.
    for _ in range(60):
        functions.softmax(np.zeros((8192, 1024), np.float32))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20, "KiB"
    fixed = np.ones((2, 2), np.float32)
    fixed.flags.writeable = False
    assert (functions.softmax(fixed) == 0.5).all()
    refused(lambda: functions.triple(fixed), "[T1121] into_tensor: the elements are read-only")
    refused(lambda: functions.softmax(np.ones((2, 2), np.complex64)), "of kind 5 (kDLComplex)")
    refused(lambda: functions.softmax(np.ones((4, 4), np.float32)[::-1]), "[T1121] into_view: axis 0 has the stride -4")
    refused(lambda: functions.softmax(np.ones((2, 2), np.int32)), "[T1101]")
    refused(lambda: functions.softmax(np.ones(4, np.float32)), "rank")
    # An element that is not aligned.
    odd = np.frombuffer(bytes(41), np.uint8)[1:].view(np.float32).reshape(2, 5)
    refused(lambda: functions.softmax(odd), "is not aligned to 4 bytes")
    # The structure is gone after the first call.
    taken, out = pointer(np.ones((2, 2), np.float32)), ctypes.c_void_p()
    functions.call("titan_softmax", ctypes.byref(taken), ctypes.byref(out))
    np.from_dlpack(Owned(out.value))
    refused(
        lambda: functions.call("titan_softmax", ctypes.byref(taken), ctypes.byref(out)),
        "[T1121] take: the tensor was taken before",
    )


if __name__ == "__main__":
    check(Functions(sys.argv[1]))
    print("checked with NumPy", np.__version__)
