"""Answers questions about layouts with Triton's library, without a GPU: one line for each line of the standard input.

usage: layouts.py FOLDER, in which `libtriton.so` lies

    mma WM WN | wgmma N WM WN | operand INDEX WIDTH (mma.. | wgmma..) | blocked V.. / L.. / W.. / ORDER.. | nvmma BYTES BITS TRANSPOSED
        and then `: EXTENTS..`: the bases of the linear layout, one list for each of register, lane and warp, or of offsets
    conflicts BITS V.. / L.. / W.. / ORDER.. with nvmma.. | rows   and then `: EXTENTS..`: one number
"""

import importlib.machinery
import sys
import types


class Recorded:
    """Stands for the classes that the library makes its answers of: keeps what they are made of."""

    def __init__(self, *args, **named):
        self.lists = [*args, *named.values()]


class Package(types.ModuleType):
    """Stands for the modules in which the library looks for those classes: the rest of Triton is not here."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (Recorded,), {})
        setattr(self, name, made)
        return made


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, Finder, is_package=True) if name.split(".")[0] == "triton" else None

    @staticmethod
    def create_module(spec):
        return Package(spec.name)

    @staticmethod
    def exec_module(module):
        pass


sys.meta_path.insert(0, Finder)
sys.path.insert(0, sys.argv[1])
import libtriton  # noqa: E402

context = libtriton.ir.context()
libtriton.ir.load_dialects(context)
builder = libtriton.gluon_ir.GluonOpBuilder(context)


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
    lists = [part for part in builder.to_linear_layout(layout, extents).lists if isinstance(part, list)]
    kept = lists[:1] if words[0] == "nvmma" else lists[:3]
    return " | ".join(" ".join(",".join(map(str, base)) for base in bases) for bases in kept)


for line in sys.stdin:
    print(answer(line), flush=True)
