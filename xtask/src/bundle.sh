#!/bin/sh
# Runs what lies beside it on the GPU of this machine: `sh run.sh` everything, `sh run.sh tests`, `sh run.sh bench`.
# The device is `cuda:0` unless TITAN_DEVICE names another one. What each program says is in logs/.
cd "$(dirname "$0")" || exit 2
: "${TITAN_DEVICE:=cuda:0}"
export TITAN_DEVICE
what=${1:-all}
failed=0
mkdir -p logs

tests() {
    printf '%-18s %8s %8s %9s  %s\n' program passed failed seconds log
    for name in language lang_semantics pipelines examples runtime_launch runtime_order runtime_await runtime_lifetimes cuda_runtime cuda_interop cuda_faults tensor_launches tensor_cases tensor_parts differential; do
        begin=$(date +%s)
        ./"$name" >"logs/$name" 2>&1
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
    ./gpu 2>&1 | tee logs/gpu || failed=1
}

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
