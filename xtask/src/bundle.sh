#!/bin/sh
# Runs what lies beside it on the GPU of this machine: `sh run.sh` everything, `sh run.sh tests`, `sh run.sh bench`.
# The device is `hip:0` on a machine with AMD's driver and without NVIDIA's, and else `cuda:0`, unless TITAN_DEVICE names another one. What each
# program says is in logs/.
cd "$(dirname "$0")" || exit 2
if [ -z "$TITAN_DEVICE" ]; then
    TITAN_DEVICE=cuda:0
    if [ -e /dev/kfd ] && [ ! -e /proc/driver/nvidia/version ]; then TITAN_DEVICE=hip:0; fi
fi
export TITAN_DEVICE
what=${1:-all}
failed=0
mkdir -p logs

# What runs on the device. Kernels with roles have no code for AMD's GPUs, and the tests of CUDA's driver and the benchmark are NVIDIA's.
programs="language lang_semantics pipelines examples runtime_launch runtime_order runtime_await runtime_lifetimes cuda_runtime cuda_interop cuda_faults tensor_launches tensor_cases tensor_parts differential"
without=""
case $TITAN_DEVICE in
hip*)
    programs="language lang_semantics examples runtime_launch runtime_order runtime_await runtime_lifetimes"
    without="--skip gemm_ws --skip macros::roles"
    ;;
esac

tests() {
    printf '%-18s %8s %8s %9s  %s\n' program passed failed seconds log
    for name in $programs; do
        begin=$(date +%s)
        # shellcheck disable=SC2086
        ./"$name" $without >"logs/$name" 2>&1
        status=$?
        seconds=$(($(date +%s) - begin))
        # `test result: ok. 34 passed; 0 failed; ...`
        counts=$(sed -n 's/^test result: [^ ]* \([0-9]*\) passed; \([0-9]*\) failed.*/\1 \2/p' "logs/$name" | tail -n 1)
        passed=${counts% *}
        wrong=${counts#* }
        printf '%-18s %8s %8s %9s  %s\n' "$name" "${passed:--}" "${wrong:--}" "$seconds" "logs/$name"
        if [ "$status" -ne 0 ]; then
            failed=1
            grep -E '^test .* FAILED|panicked at|^error' "logs/$name" | head -n 20
        fi
    done
}

bench() {
    case $TITAN_DEVICE in hip*) echo "the benchmark is for NVIDIA's GPUs" && return ;; esac
    ./gpu 2>&1 | tee logs/gpu || failed=1
}

command -v rocminfo >/dev/null && rocminfo | grep -E 'Marketing Name|^  Name: *gfx|Compute Unit:' | sort -u
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,memory.total --format=csv,noheader
case $what in
all)
    tests
    bench
    ;;
tests) tests ;;
bench) bench ;;
*)
    echo "run.sh takes nothing, tests or bench" >&2
    exit 2
    ;;
esac
exit $failed
