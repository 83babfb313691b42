"""Compiles kernels with Triton, without a GPU, to code objects of gfx942 for `tests/triton/main.rs`.

usage: kernels.py FOLDER

Writes NAME.hsaco and NAME.txt (the kernel's name, bytes of the local data share, waves) for each kernel. Sizes, types and
the order of arguments are those that the Rust test launches with. Objects have no line numbers, which would contain the path of
this file.
"""

import os
import pathlib
import sys

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vector_add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def layer_norm(x, w, b, out, n, eps, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    inside = i < n
    v = tl.load(x + row * n + i, mask=inside, other=0.0).to(tl.float32)
    d = tl.where(inside, v - tl.sum(v, axis=0) / n, 0.0)
    y = d / tl.sqrt(tl.sum(d * d, axis=0) / n + eps)
    y = y * tl.load(w + i, mask=inside).to(tl.float32) + tl.load(b + i, mask=inside).to(tl.float32)
    tl.store(out + row * n + i, y, mask=inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, K, BK):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc, out_dtype=ACC)
        pa += BK
        pb += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(c.dtype.element_ty))


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
    y = tl.sin(v) + tl.cos(v) + tl.log(a + 1.0) + tl.exp(v) + tl.sqrt(a) + tl.rsqrt(a + 1.0) + tl.floor(v)
    tl.store(out + i, y, mask=i < n)


@triton.jit
def transpose(x, out, M, N, B: tl.constexpr):
    rm = tl.program_id(0) * B + tl.arange(0, B)
    rn = tl.program_id(1) * B + tl.arange(0, B)
    inside = (rm[:, None] < M) & (rn[None, :] < N)
    t = tl.trans(tl.load(x + rm[:, None] * N + rn[None, :], mask=inside))
    tl.store(out + rn[:, None] * M + rm[None, :], t, mask=(rn[:, None] < N) & (rm[None, :] < M))


@triton.jit
def argmax(x, out, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    tl.store(out + row, tl.argmax(tl.load(x + row * n + i, mask=i < n, other=-float("inf")), axis=0))


@triton.jit
def split_k(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.program_id(2) * BK + tl.arange(0, BK)
    at = tl.load(a + rm[:, None] * K + rk[None, :], mask=rk[None, :] < K, other=0.0)
    bt = tl.load(b + rk[:, None] * N + rn[None, :], mask=rk[:, None] < K, other=0.0)
    tl.atomic_add(c + rm[:, None] * N + rn[None, :], tl.dot(at, bt))


@triton.jit
def gather(x, index, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.load(index + i, mask=i < n, other=-1)
    tl.store(out + i, tl.load(x + j, mask=j >= 0, other=-5.0), mask=i < n)


@triton.jit
def dropout(x, out, n, p, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    kept = tl.rand(seed, i) > p
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, tl.where(kept, v / (1 - p), 0.0), mask=i < n)


@triton.jit
def lock(state, x, out, B: tl.constexpr):
    # Programs add to one row, one after the other.
    i = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * B + i)
    while tl.atomic_cas(state, 0, 1) == 1:
        pass
    tl.store(out + i, tl.load(out + i) + v)
    tl.debug_barrier()
    tl.atomic_xchg(state, 0)


C = "constexpr"


def compile_to(folder, name, fn, types, consts, unaligned=(), **options):
    types = {**types, **{c: C for c in consts}}
    aligned = [i for i, t in enumerate(types.values()) if t not in (C, "fp32") and i not in unaligned]
    source = ASTSource(fn, types, constexprs=consts, attrs={(i,): [["tt.divisibility", 16]] for i in aligned})
    kernel = triton.compile(source, target=GPUTarget("hip", "gfx942", 64), options=options)
    (folder / f"{name}.hsaco").write_bytes(kernel.asm["hsaco"])
    meta = kernel.metadata
    (folder / f"{name}.txt").write_text(f"{meta.name} {meta.shared} {meta.num_warps}\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    f, i, half, brain = "*fp32", "i32", "*fp16", "*bf16"
    compile_to(folder, "vector_add", vector_add, {"x": f, "y": f, "out": f, "n": i}, {"B": 1024}, unaligned=(3,))
    compile_to(folder, "softmax", softmax, {"x": f, "out": f, "n": i}, {"B": 1024}, unaligned=(2,))
    types = {"x": half, "w": half, "b": half, "out": half, "n": i, "eps": "fp32"}
    compile_to(folder, "layer_norm", layer_norm, types, {"B": 1024}, unaligned=(4,))

    def product(name, ab, c, acc=tl.float32, tile=64, bk=64, **options):
        types = {"a": ab, "b": ab, "c": c, "M": i, "N": i, "K": i}
        compile_to(folder, name, matmul, types, {"BM": tile, "BN": tile, "BK": bk, "ACC": acc}, **options)

    product("matmul_f16", half, f)
    product("matmul_bf16", brain, brain)
    product("matmul_bf16_16", brain, f, bk=32, num_stages=2, matrix_instr_nonkdim=16)
    product("matmul_bf16_wide", brain, f, tile=128, num_warps=8, num_stages=2)
    product("matmul_f32", f, f, bk=32)
    product("matmul_f64", "*fp64", "*fp64", tl.float64, tile=32, bk=16)
    product("matmul_i8", "*i8", "*i32", tl.int32)
    product("matmul_e4m3", "*fp8e4b8", f)
    product("matmul_e5m2", "*fp8e5b16", f)
    types = {"q": half, "k": half, "v": half, "out": half, "n": i, "scale": "fp32"}
    compile_to(folder, "attention", attention, types, {"D": 64, "BM": 64, "BN": 32}, num_stages=2)
    types = {**types, "q": brain, "k": brain, "v": brain, "out": brain}
    compile_to(folder, "attention_bf16", attention, types, {"D": 128, "BM": 64, "BN": 64}, num_stages=2)
    compile_to(folder, "histogram", histogram, {"x": "*i32", "out": "*i32", "n": i}, {"B": 1024}, unaligned=(2,))
    compile_to(folder, "sort", sort, {"x": "*i32", "out": "*i32"}, {"B": 256})
    compile_to(folder, "scan", scan, {"x": f, "out": f}, {"B": 512})
    compile_to(folder, "functions", functions, {"x": f, "out": f, "n": i}, {"B": 256}, unaligned=(2,))
    types = {"x": half, "out": half, "M": i, "N": i}
    compile_to(folder, "transpose", transpose, types, {"B": 64}, unaligned=(2, 3))
    compile_to(folder, "argmax", argmax, {"x": f, "out": "*i32", "n": i}, {"B": 1024}, unaligned=(2,))
    types = {"a": half, "b": half, "c": f, "M": i, "N": i, "K": i}
    compile_to(folder, "split_k", split_k, types, {"BM": 32, "BN": 64, "BK": 64}, unaligned=(5,))
    compile_to(folder, "gather", gather, {"x": f, "index": "*i32", "out": f, "n": i}, {"B": 512}, unaligned=(3,))
    types = {"x": f, "out": f, "n": i, "p": "fp32", "seed": i}
    compile_to(folder, "dropout", dropout, types, {"B": 512}, unaligned=(2, 4))
    compile_to(folder, "lock", lock, {"state": "*i32", "x": f, "out": f}, {"B": 128}, num_warps=1)


main()
