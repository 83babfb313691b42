"""Compiles kernels with Triton, without a GPU, to PTX for `tests/triton.rs`.

usage: kernels.py FOLDER

Writes NAME.ptx and NAME.txt (the kernel's name, bytes of shared memory, warps, bytes of global memory for each program) for each kernel. Sizes, types and the
order of parameters are those that the Rust test launches with.
"""

import pathlib
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, warpgroup_mma
from triton.tools.ragged_tma import load_ragged, store_ragged


@triton.jit
def vector_add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * stride + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def layer_norm(x, w, b, out, stride, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    inside = i < n
    v = tl.load(x + row * stride + i, mask=inside, other=0.0).to(tl.float32)
    d = tl.where(inside, v - tl.sum(v, axis=0) / n, 0.0)
    y = d / tl.sqrt(tl.sum(d * d, axis=0) / n + eps)
    y = y * tl.load(w + i, mask=inside).to(tl.float32) + tl.load(b + i, mask=inside).to(tl.float32)
    tl.store(out + row * stride + i, y, mask=inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr, T: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + (rk[:, None] + rn[None, :] * K if T else rk[:, None] * N + rn[None, :])
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, tl.cdiv(K, BK)):
        at = tl.load(pa, mask=rk[None, :] < K - k * BK, other=0.0)
        bt = tl.load(pb, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(at, bt, acc, out_dtype=ACC)
        pa += BK
        pb += BK if T else BK * N
    out = c + rm[:, None] * N + rn[None, :]
    tl.store(out, acc.to(c.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def attention(q, k, v, out, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    base = tl.program_id(1) * n * D
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    rn = tl.arange(0, BN)
    qt = tl.load(q + base + rm[:, None] * D + rd[None, :])
    top = tl.zeros((BM,), dtype=tl.float32) - float("inf")
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for j in range(0, (tl.program_id(0) + 1) * BM, BN):
        kt = tl.load(k + base + (j + rn)[None, :] * D + rd[:, None])
        s = tl.dot(qt, kt) * scale
        s = tl.where(rm[:, None] >= (j + rn)[None, :], s, -float("inf"))
        higher = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - higher[:, None])
        fade = tl.exp2(top - higher)
        total = total * fade + tl.sum(p, 1)
        vt = tl.load(v + base + (j + rn)[:, None] * D + rd[None, :])
        acc = tl.dot(p.to(vt.dtype), vt, acc * fade[:, None])
        top = higher
    tl.store(out + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(out.dtype.element_ty))


@triton.jit
def histogram(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@triton.jit
def sort(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@triton.jit
def scan(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.cumsum(tl.load(x + i), axis=0))


@triton.jit
def functions(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=1.0)
    a = tl.abs(v)
    y = tl.sin(v) + tl.cos(v) + tl.log(a + 1.0) + tl.exp(v) + tl.sqrt(a) + tl.rsqrt(a + 1.0) + tl.erf(v) + tl.floor(v)
    tl.store(out + i, y, mask=i < n)


@triton.jit
def transpose(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    t = tl.load(x + rm[:, None] * N + rn[None, :])
    tl.store(out + rn[:, None] * M + rm[None, :], tl.trans(t))


@triton.jit
def matmul_boxes(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(a.load([m, k * BK]), b.load([n, k * BK]).T, acc)
    c.store([m, n], acc.to(tl.float16))


@triton.jit
def device_copy(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    b = tl.make_tensor_descriptor(out, [M, N], [N, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    b.store([m, n], a.load([m, n]))


@triton.jit
def device_grouped(x, w, out, starts, groups, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, P: tl.constexpr):
    b = tl.make_tensor_descriptor(w, [groups * N, K], [K, 1], [BN, BK])
    tiles_n = tl.cdiv(N, BN)
    last = 0
    t = tl.program_id(0)
    for g in range(groups):
        first = tl.load(starts + g)
        rows = tl.load(starts + g + 1) - first
        n_tiles = tl.cdiv(rows, BM) * tiles_n
        if t >= last and t < last + n_tiles:
            # The maps of this group's rows: its last tile does not reach into the next group.
            a = tl.make_tensor_descriptor(x + first.to(tl.int64) * K, [rows, K], [K, 1], [BM, BK])
            c = tl.make_tensor_descriptor(out + first.to(tl.int64) * N, [rows, N], [N, 1], [BM, BN])
            while t >= last and t < last + n_tiles:
                m, n = (t - last) // tiles_n * BM, (t - last) % tiles_n * BN
                acc = tl.zeros((BM, BN), dtype=tl.float32)
                for k in range(0, tl.cdiv(K, BK)):
                    acc = tl.dot(a.load([m, k * BK]), b.load([g * N + n, k * BK]).T, acc)
                c.store([m, n], acc.to(tl.float16))
                t += P
        last += n_tiles


@triton.jit
def ragged_grouped(x, w, out, starts, groups, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, P: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    last = 0
    t = tl.program_id(0)
    for g in range(groups):
        first = tl.load(starts + g)
        rows = tl.load(starts + g + 1) - first
        n_tiles = tl.cdiv(rows, BM) * tiles_n
        while t >= last and t < last + n_tiles:
            m, n = (t - last) // tiles_n * BM, (t - last) % tiles_n * BN
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for k in range(0, tl.cdiv(K, BK)):
                acc = tl.dot(load_ragged(x, first, rows, [m, k * BK]), w.load([g * N + n, k * BK]).T, acc)
            store_ragged(out, first, rows, [m, n], acc.to(tl.float16))
            t += P
        last += n_tiles


C = "constexpr"


# B has rows along N, in panels of 8 columns without a swizzle: its descriptor is Triton's own.
@gluon.jit
def core_matrices(a, b, c, N: gl.constexpr, K: gl.constexpr, PANELS: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [16, 2], [4, 1], [1, 0])
    sums: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    m, k = gl.arange(0, 64, gl.SliceLayout(1, rows)), gl.arange(0, K, gl.SliceLayout(0, rows))
    at = gl.load(a + m[:, None] * K + k[None, :])
    at = gl.allocate_shared_memory(gl.float16, [64, K], gl.NVMMASharedLayout(32, 16, 2), at)
    k, n = gl.arange(0, K, gl.SliceLayout(1, rows)), gl.arange(0, N, gl.SliceLayout(0, rows))
    bt = gl.load(b + k[:, None] * N + n[None, :])
    bt = gl.allocate_shared_memory(gl.float16, [K, N], gl.SharedLinearLayout(PANELS, alignment=1024), bt)
    fence_async_shared()
    out = warpgroup_mma(at, bt, gl.zeros([64, N], gl.float32, sums))
    m, n = gl.arange(0, 64, gl.SliceLayout(1, sums)), gl.arange(0, N, gl.SliceLayout(0, sums))
    gl.store(c + m[:, None] * N + n[None, :], out)


def compile_to(folder, name, fn, types, consts, arch=80, unaligned=(), **options):
    types = {**types, **{c: C for c in consts}}
    attrs = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(types.values()) if t != C and t != "fp32" and i not in unaligned}
    make = GluonASTSource if fn is core_matrices else ASTSource
    source = make(fn, types, constexprs=consts, attrs=attrs)
    kernel = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    (folder / f"{name}.ptx").write_text(kernel.asm["ptx"])
    meta = kernel.metadata
    (folder / f"{name}.txt").write_text(f"{meta.name} {meta.shared} {meta.num_warps} {meta.global_scratch_size}\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    f, i = "*fp32", "i32"
    compile_to(folder, "vector_add", vector_add, {"x": f, "y": f, "out": f, "n": i}, {"B": 1024}, unaligned=(3,))
    compile_to(folder, "softmax", softmax, {"x": f, "out": f, "stride": i, "n": i}, {"B": 1024}, unaligned=(2, 3))
    half = "*fp16"
    types = {"x": half, "w": half, "b": half, "out": half, "stride": i, "n": i, "eps": "fp32"}
    compile_to(folder, "layer_norm", layer_norm, types, {"B": 1024}, unaligned=(4, 5))

    def product(name, ab, c, acc, transposed, arch, bk=32, **options):
        types = {"a": ab, "b": ab, "c": c, "M": i, "N": i, "K": i}
        consts = {"BM": 64, "BN": 64, "BK": bk, "ACC": acc, "T": transposed}
        compile_to(folder, name, matmul, types, consts, arch, num_stages=3, **options)

    product("matmul_f16", half, half, tl.float32, False, 80)
    product("matmul_f16_8warps", half, half, tl.float32, False, 80, num_warps=8)
    product("matmul_f16_f16", half, half, tl.float16, True, 80)
    product("matmul_bf16", "*bf16", "*bf16", tl.float32, False, 80)
    product("matmul_tf32", f, f, tl.float32, False, 80)
    product("matmul_i8", "*i8", "*i32", tl.int32, True, 80, 64)
    product("matmul_e4m3", "*fp8e4nv", half, tl.float32, True, 89, 64)
    product("matmul_e5m2", "*fp8e5", half, tl.float32, True, 89, 64)
    product("matmul_e5m2_on_80", "*fp8e5", half, tl.float32, True, 80, 64)
    product("matmul_f64", "*fp64", "*fp64", tl.float64, False, 80, 16)
    # Products of warpgroups, with operands in shared memory by `cp.async` and by tensor maps.
    product("wgmma_f16", half, half, tl.float32, False, 90)
    product("wgmma_f16_t", half, half, tl.float32, True, 90, 64)
    product("wgmma_bf16_8warps", "*bf16", "*bf16", tl.float32, False, 90, 64, num_warps=8)
    product("wgmma_tf32", f, f, tl.float32, True, 90)
    product("wgmma_i8", "*i8", "*i32", tl.int32, True, 90, 64)
    product("wgmma_e4m3", "*fp8e4nv", half, tl.float32, True, 90, 64)
    for n in (8, 16, 32):
        # What each bit of an element's offset adds: the columns of a panel, the rows, the panels.
        panels = [[0, 1 << i] for i in range(3)] + [[1 << i, 0] for i in range(4)] + [[0, i] for i in (8, 16) if i < n]
        types = {"a": half, "b": half, "c": f}
        compile_to(folder, f"wgmma_panels_{n}", core_matrices, types, {"N": n, "K": 16, "PANELS": panels}, 90)
    boxes = {"a": "tensordesc<fp16[128,64]>", "b": "tensordesc<fp16[128,64]>", "c": "tensordesc<fp16[128,128]>", "K": i}
    consts = {"BM": 128, "BN": 128, "BK": 64}
    compile_to(folder, "boxes_f16", matmul_boxes, boxes, consts, 90, num_stages=3, num_warps=8)
    # Tensor maps that the kernel makes.
    for name, el in (("f16", half), ("bf16", "*bf16"), ("f32", f), ("i32", "*i32"), ("i8", "*i8")):
        types = {"x": el, "out": el, "M": i, "N": i}
        compile_to(folder, f"device_copy_{name}", device_copy, types, {"BM": 64, "BN": 64}, 90, unaligned=(2,))
    types = {"x": half, "w": half, "out": half, "starts": "*i32", "groups": i, "N": i, "K": i}
    consts = {"BM": 64, "BN": 64, "BK": 64, "P": 3}
    compile_to(folder, "device_grouped", device_grouped, types, consts, 90, unaligned=(4,), num_stages=3)
    # The same by maps of the host, of which the launch makes one for all groups.
    types |= {"x": "tensordesc<fp16[1,1,64,64]>", "w": "tensordesc<fp16[64,64]>", "out": "tensordesc<fp16[1,1,64,64]>"}
    compile_to(folder, "ragged_grouped", ragged_grouped, types, consts, 90, unaligned=(4,), num_stages=3)
    types = {"q": half, "k": half, "v": half, "out": half, "n": i, "scale": "fp32"}
    compile_to(folder, "wgmma_attention", attention, types, {"D": 64, "BM": 64, "BN": 64}, 90, num_stages=2)
    compile_to(folder, "attention", attention, types, {"D": 64, "BM": 64, "BN": 32}, num_stages=2)
    types = {**types, "q": "*bf16", "k": "*bf16", "v": "*bf16", "out": "*bf16"}
    compile_to(folder, "attention_bf16", attention, types, {"D": 128, "BM": 64, "BN": 64}, num_stages=3)
    compile_to(folder, "histogram", histogram, {"x": "*i32", "out": "*i32", "n": i}, {"B": 1024}, unaligned=(2,))
    compile_to(folder, "sort", sort, {"x": "*i32", "out": "*i32"}, {"B": 256})
    compile_to(folder, "scan", scan, {"x": f, "out": f}, {"B": 512})
    compile_to(folder, "functions", functions, {"x": f, "out": f, "n": i}, {"B": 256}, unaligned=(2,))
    compile_to(folder, "transpose", transpose, {"x": half, "out": half, "M": i, "N": i}, {"BM": 64, "BN": 64})


main()
