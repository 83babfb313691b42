"""Attention by PyTorch, launched on request.

Arguments: the extents of the tensors `[batches, heads, rows, size]`, and whether the attention is causal (1) or full (0). It prints the
backends that run this, on one line. For each line of input, a backend and a number, it launches so many times, waits for the end, and
prints a line.
"""
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

shape, causal = [int(n) for n in sys.argv[1:5]], sys.argv[5] == "1"
q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))


def run(backend, times):
    with sdpa_kernel(getattr(SDPBackend, backend)):
        for _ in range(times):
            scaled_dot_product_attention(q, k, v, is_causal=causal)
    torch.cuda.synchronize()


found = []
for backend in ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION"):
    try:
        run(backend, 1)
        found.append(backend)
    except (AttributeError, RuntimeError):
        # This build of PyTorch has no such backend, or not for these tensors.
        pass
print(" ".join(found), flush=True)
for line in sys.stdin:
    backend, times = line.split()
    run(backend, int(times))
    print("done", flush=True)
