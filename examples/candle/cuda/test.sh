#!/bin/sh
# Runs the tests here, `sh test.sh [ARGUMENTS OF CARGO TEST]`, without a CUDA toolkit.
#
# candle's feature `cuda` compiles kernels with nvcc and links libraries of CUDA. In their place this script makes, in target/toolkit, an `nvcc` that
# writes empty kernels, and libraries in which every function that candle could call fails, except for those that make handles. So candle's
# tensors on CUDA devices, its copies and its stream are its own and run on the emulated driver; what needs its own kernels does not run.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kit="$here/target/toolkit"
mkdir -p "$kit/bin" "$kit/lib64" "$kit/include"

cat > "$kit/bin/nvcc" <<'NVCC'
#!/bin/sh
set -eu
kind=object out= dir=. source=
while [ $# -gt 0 ]; do
    case "$1" in
    --version) printf 'nvcc\n-\n-\nCuda compilation tools, release 12.8, V12.8.0\n'; exit ;;
    --list-gpu-arch) echo compute_80; exit ;;
    --ptx) kind=ptx ;;
    --lib) kind=library ;;
    -o) out=$2; shift ;;
    --output-directory) dir=$2; shift ;;
    *.cu) source=$1 ;;
    esac
    shift
done
case $kind in
ptx) printf '.version 7.0\n.target sm_80\n.address_size 64\n' > "$dir/$(basename "$source" .cu).ptx" ;;
library) rm -f "$out"; ar rcs "$out" ;;
object) echo | cc -x c -c - -o "$out" ;;
esac
NVCC
chmod +x "$kit/bin/nvcc"

cargo fetch --locked --manifest-path "$here/Cargo.toml"
# The sources of a package in cargo's registry, in the version of the lock file.
sources() {
    version=$(grep -A 1 "^name = \"$1\"" "$here/Cargo.lock" | sed -n 's/^version = "\(.*\)"/\1/p')
    echo "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1-$version"
}
names() { grep -oh "fn $1[A-Za-z0-9_]*" $2 | sed 's/^fn //' | sort -u; }
# A library in which functions return an error, or nothing but success where a handle is made or freed.
library() {
    while read -r name; do
        case "$name" in
        cublasCreate_v2 | cublasDestroy_v2 | cublasSetStream_v2) code=0 ;;
        curandCreateGenerator | curandDestroyGenerator | curandSetPseudoRandomGeneratorSeed | curandSetStream) code=0 ;;
        # CUDA_ERROR_NOT_SUPPORTED.
        *) code=801 ;;
        esac
        echo "int $name(void) { return $code; }"
    done | cc -shared -fPIC -w -x c - -o "$kit/lib64/$1" "-Wl,-soname,${2:-$1}"
}
cudarc=$(sources cudarc)
names cu "$cudarc/src/driver/sys/mod.rs" | grep '^cu[A-Z]' | library libcuda.so libcuda.so.1
ln -sf libcuda.so "$kit/lib64/libcuda.so.1"
names cublas "$cudarc/src/cublas/sys/mod.rs" | library libcublas.so
names cublasLt "$cudarc/src/cublaslt/sys/mod.rs" | library libcublasLt.so
names curand "$cudarc/src/curand/sys/mod.rs" | library libcurand.so
names nvrtc "$cudarc/src/nvrtc/sys/mod.rs" | library libnvrtc.so
# What candle's kernels are called by from Rust, and the functions of a driver that the emulated one lacks, which is loaded before.
{
    names '' "$(sources candle-kernels)/src/ffi.rs"
    names cu "$cudarc/src/driver/sys/mod.rs" | grep '^cu[A-Z]'
} | sort -u | library libcudart.so

export PATH="$kit/bin:$PATH" CUDA_HOME="$kit" CUDA_COMPUTE_CAP=80 LIBRARY_PATH="$kit/lib64"
export LD_LIBRARY_PATH="$kit/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec cargo "${TITAN_CARGO_COMMAND:-test}" --locked --manifest-path "$here/Cargo.toml" "$@"
