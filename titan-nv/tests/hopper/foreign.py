"""Compiles a product of matrices with Triton, without a GPU, to PTX for `foreign.rs`: one warp copies boxes of A and B, two warpgroups multiply.

usage: foreign.py FOLDER

Writes product.ptx, and product.txt with the bytes of shared memory and the number of warps.
"""

import os
import pathlib
import sys

# Lines of this file, and of Triton's, are not wanted in the text.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.experimental import gluon  # noqa: E402
from triton.experimental.gluon import language as gl  # noqa: E402
from triton.experimental.gluon._runtime import GluonASTSource  # noqa: E402
from triton.experimental.gluon.language.nvidia import hopper  # noqa: E402
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma  # noqa: E402


@gluon.jit
def produce(a, b, at, bt, full, free, m, n, steps, SLOTS: gl.constexpr):
    slot = 0
    # The slots are free at first: the phase before the first one is complete.
    phase = 1
    for k in range(steps):
        mbarrier.wait(free.index(slot), phase)
        mbarrier.expect(full.index(slot), a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [m, k * at.shape[2]], full.index(slot), at.index(slot))
        tma.async_load(b, [n, k * at.shape[2]], full.index(slot), bt.index(slot))
        slot += 1
        if slot == SLOTS:
            slot = 0
            phase ^= 1


@gluon.jit
def consume(c, at, bt, out, full, free, m, n, steps, SUMS: gl.constexpr, SLOTS: gl.constexpr):
    acc = hopper.warpgroup_mma_init(gl.zeros(out.shape, gl.float32, SUMS))
    mbarrier.wait(full.index(0), 0)
    acc = hopper.warpgroup_mma(at.index(0), bt.index(0).permute((1, 0)), acc, is_async=True)
    last = 0
    slot = 1
    phase = 0
    for _ in range(1, steps):
        mbarrier.wait(full.index(slot), phase)
        acc = hopper.warpgroup_mma(at.index(slot), bt.index(slot).permute((1, 0)), acc, is_async=True)
        # The MMAs of the step before have read their slot; those of this one stay in flight.
        acc = hopper.warpgroup_mma_init(hopper.warpgroup_mma_wait(1, deps=(acc,)))
        mbarrier.arrive(free.index(last))
        last = slot
        slot += 1
        if slot == SLOTS:
            slot = 0
            phase ^= 1
    out.store(hopper.warpgroup_mma_wait(0, deps=(acc,)).to(c.dtype))
    hopper.fence_async_shared()
    tma.async_store(c, [m, n], out)
    tma.store_wait(0)


@gluon.jit
def product(a, b, c, K, SLOTS: gl.constexpr):
    at = gl.allocate_shared_memory(a.dtype, [SLOTS] + a.block_shape, a.layout)
    bt = gl.allocate_shared_memory(b.dtype, [SLOTS] + b.block_shape, b.layout)
    out = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(SLOTS):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(free.index(i), count=1)
    hopper.fence_async_shared()
    m, n = gl.program_id(0) * at.shape[1], gl.program_id(1) * bt.shape[1]
    steps = gl.cdiv(K, at.shape[2])
    sums: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, bt.shape[1], 16])
    gl.warp_specialize([
        (consume, (c, at, bt, out, full, free, m, n, steps, sums, SLOTS)),
        (produce, (a, b, at, bt, full, free, m, n, steps, SLOTS)),
    ], [1], [40])


def main():
    folder = pathlib.Path(sys.argv[1])
    boxes = {"a": (128, 64), "b": (256, 64), "c": (128, 256)}
    layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    types = {name: f"tensordesc<bf16[{rows},{cols}],{layout!r}>" for name, (rows, cols) in boxes.items()}
    source = GluonASTSource(product, {**types, "K": "i32", "SLOTS": "constexpr"}, constexprs={"SLOTS": 3})
    # PTX that the assembler of CUDA 12.9 reads.
    kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8, "ptx_version": 88})
    (folder / "product.ptx").write_text(kernel.asm["ptx"])
    (folder / "product.txt").write_text(f"{kernel.metadata.shared} {kernel.metadata.num_warps}\n")


main()
