"""Attention and products of 8-bit floats by PyTorch, launched on request.

Arguments: `causal` or `full` and the extents of the tensors of attention, `[batches, heads, rows, size]`; or `product` and the extent of square
matrices. It prints the backends that run this, on one line. For each line of input, a backend and a number, it launches so many times,
waits for the end, and prints a line.
"""
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

kind, shape = sys.argv[1], [int(n) for n in sys.argv[2:]]
if kind == "product":
    backends = ["SCALED_MM"]
    a, b = (torch.randn(shape * 2, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device="cuda")
else:
    backends = ["FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION"]
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))


def run(backend, times):
    if kind == "product":
        # Sums stay in the tensor cores, as in the plain kernel.
        for _ in range(times):
            torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
    else:
        with sdpa_kernel(getattr(SDPBackend, backend)):
            for _ in range(times):
                scaled_dot_product_attention(q, k, v, is_causal=kind == "causal")
    torch.cuda.synchronize()


found = []
for backend in backends:
    try:
        run(backend, 1)
        found.append(backend)
    except (AttributeError, RuntimeError):
        # This build of PyTorch has no such backend, or not for these tensors or this device.
        pass
print(" ".join(found), flush=True)
for line in sys.stdin:
    backend, times = line.split()
    run(backend, int(times))
    print("done", flush=True)
