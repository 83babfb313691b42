"""Answers questions about layouts with Triton, without a GPU: one line for each line of the standard input.

    mma WM WN | wgmma N WM WN | operand INDEX WIDTH (mma.. | wgmma..) | blocked V.. / L.. / W.. / ORDER.. | nvmma BYTES BITS TRANSPOSED
        and then `: EXTENTS..`: the bases of the linear layout, one list for each of register, lane and warp, or of offsets
    conflicts BITS V.. / L.. / W.. / ORDER.. with nvmma.. | rows   and then `: EXTENTS..`: one number
"""

import sys

from triton._C.libtriton import gluon_ir, ir

context = ir.context()
ir.load_dialects(context)
builder = gluon_ir.GluonOpBuilder(context)
# Asked for bank conflicts, the library looks at the function that is built, and crashes if there is none.
module = builder.create_module()
function = builder.get_or_insert_function(module, "layouts", builder.get_function_ty([], []), "public", False)
module.push_back(function)
builder.set_insertion_point_to_start(function.add_entry_block())


def numbers(words):
    return [int(word) for word in words]


def blocked(words):
    parts = [numbers(part.split()) for part in " ".join(words).split("/")]
    return builder.get_blocked_layout(*parts, [])


def mma(words):
    if words[0] == "wgmma":
        n, *warps = numbers(words[1:])
        return builder.get_mma_layout([3, 0], warps, [], [16, n, 16])
    return builder.get_mma_layout([2, 0], numbers(words[1:]), [], [16, 8])


def shared(words, rank):
    if words == ["rows"]:
        return builder.get_swizzled_shared_layout(1, 1, 1, list(reversed(range(rank))), [])
    size, bits, transposed = numbers(words[1:])
    return builder.get_nvmma_shared_layout(size, bits, bool(transposed), False, [], rank)


def answer(line):
    words, extents = (part.split() for part in line.split(":"))
    extents = numbers(extents)
    if words[0] == "conflicts":
        at = words.index("with")
        encoding = shared(words[at + 1 :], len(extents))
        return builder.get_shared_bank_conflicts(blocked(words[2:at]), encoding, extents, int(words[1]))
    if words[0] in ("mma", "wgmma"):
        layout = mma(words)
    elif words[0] == "operand":
        layout = builder.get_dot_operand_layout(int(words[1]), mma(words[3:]), int(words[2]))
    elif words[0] == "blocked":
        layout = blocked(words[1:])
    else:
        layout = shared(words, len(extents))
    linear = builder.to_linear_layout(layout, extents)
    kept = [linear.offset_bases] if words[0] == "nvmma" else [linear.reg_bases, linear.lane_bases, linear.warp_bases]
    return " | ".join(" ".join(",".join(map(str, base)) for base in bases) for bases in kept)


for line in sys.stdin:
    print(answer(line), flush=True)
