#!/bin/sh
# Runs the tests here without a GPU: `sh test.sh [ARGUMENTS OF CARGO TEST]`. Exit status 77: they cannot run here, and the last line says why.
#
# candle's feature `cuda` compiles candle's kernels with nvcc and links the libraries of CUDA. What stands in the place of what:
#
#   nvcc, libcudart                  NVIDIA's own: of the toolkit in CUDA_HOME if that is set, else the wheels in requirements.txt, about 100 MB,
#                                    which are brought into target/toolkit
#   libcuda                          the emulated driver of this repository
#   libcublas, libcublasLt,          made here: they make and free handles and take streams and seeds; every other function says its name
#   libcurand, libnvrtc              on stderr, and returns an error
#   what the emulated driver lacks   libcuda_rest, made here: every function says its name on stderr, and returns CUDA_ERROR_NOT_SUPPORTED
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kit="${CARGO_TARGET_DIR:-$here/target}/toolkit"

skip() {
    echo "SKIPPED examples/candle/cuda/test.sh: $1"
    exit 77
}
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || skip "it is for Linux on x86-64"
for tool in cc c++ cargo; do
    command -v "$tool" >/dev/null || skip "there is no $tool"
done

# NVIDIA's compiler.
if [ -z "${CUDA_HOME:-}" ]; then
    command -v python3 >/dev/null || skip "there is no toolkit in CUDA_HOME, and no python3 to install one with"
    if ! cmp -s "$here/requirements.txt" "$kit/python/complete.txt"; then
        python3 -m venv --clear "$kit/python" || skip "python3 has no module venv"
        "$kit/python/bin/python3" -m pip install --quiet --disable-pip-version-check --no-input --no-deps --only-binary :all: --require-hashes \
            -r "$here/requirements.txt" || skip "the wheels of NVIDIA's compiler cannot be installed"
        cp "$here/requirements.txt" "$kit/python/complete.txt"
    fi
    CUDA_HOME=$(echo "$kit"/python/lib/python3*/site-packages/nvidia/cu13)
fi
[ -x "$CUDA_HOME/bin/nvcc" ] || skip "there is no nvcc in $CUDA_HOME/bin"
export PATH="$CUDA_HOME/bin:$PATH" NVCC="$CUDA_HOME/bin/nvcc"

# The libraries.
rm -rf "$kit/lib64"
mkdir -p "$kit/lib64"
for library in "$CUDA_HOME"/lib64/libcudart.so* "$CUDA_HOME"/lib/libcudart.so*; do
    if [ -f "$library" ]; then
        ln -sf "$library" "$kit/lib64/"
        ln -sf "$library" "$kit/lib64/libcudart.so"
    fi
done
cargo fetch --locked --manifest-path "$here/Cargo.toml"
cudarc=$(cargo metadata --locked --format-version 1 --manifest-path "$here/Cargo.toml" |
    grep -o '"manifest_path":"[^"]*/cudarc-[^"]*"' | head -n 1 | cut -d '"' -f 4 | xargs dirname)
# The functions of a library that cudarc declares.
names() { grep -oh "fn $2[A-Za-z0-9_]*" "$cudarc/src/$1/sys/mod.rs" | sed 's/^fn //' | sort -u; }
# A library of functions, whose names are read, that return an error; but for those by which handles are made, freed and told a stream or a seed.
library() {
    {
        printf '#include <stdio.h>\nstatic int handle __attribute__((unused));\n'
        printf 'static int refuse(const char *name) {\n'
        printf '    fprintf(stderr, "%s of the tests: candle called %%s, which is refused\\n", name);\n    return %s;\n}\n' "$1" "$2"
        while read -r name; do
            case "$name" in
            cublasCreate_v2 | cublasLtCreate) echo "int $name(void **made) { *made = &handle; return 0; }" ;;
            curandCreateGenerator) echo "int $name(void **made, int kind) { *made = &handle; return 0; }" ;;
            cublasDestroy_v2 | cublasLtDestroy | cublasSetStream_v2) echo "int $name(void) { return 0; }" ;;
            curandDestroyGenerator | curandSetPseudoRandomGeneratorSeed | curandSetStream) echo "int $name(void) { return 0; }" ;;
            *String | *Name) echo "const char *$name(void) { refuse(\"$name\"); return \"refused\"; }" ;;
            *) echo "int $name(void) { return refuse(\"$name\"); }" ;;
            esac
        done
    } | cc -shared -fPIC -Wall -x c - -o "$kit/lib64/$1.so" "-Wl,-soname,$1.so"
}
# The errors are CUDA_ERROR_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED, CURAND_STATUS_INTERNAL_ERROR and NVRTC_ERROR_INTERNAL_ERROR.
names driver 'cu[A-Z]' | library libcuda_rest 801
names cublas cublas | library libcublas 15
names cublaslt cublasLt | library libcublasLt 15
names curand curand | library libcurand 999
names nvrtc nvrtc | library libnvrtc 11
# Linked as the driver; the tests load the emulated one before it.
ln -sf libcuda_rest.so "$kit/lib64/libcuda.so"

export CUDA_HOME="$kit" CUDA_COMPUTE_CAP=80 LIBRARY_PATH="$kit/lib64"
export LD_LIBRARY_PATH="$kit/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec cargo "${TITAN_CARGO_COMMAND:-test}" --locked --manifest-path "$here/Cargo.toml" "$@"
