#!/usr/bin/env bash
# Checks heald on this machine's GPU, in at most 8 minutes: conformance, networks against the CPU, benchmarks.
#
#     device_gpu/check.sh [PYTHON]
#
# PYTHON has heald's development environment (requirements.txt); the default is .venv/bin/python. No network is needed. The
# table, in Markdown, goes to standard output, and to $OUT/gpu.md where OUT is set; the output of all steps is beside it.
# Networks in $HEALD_EXT_NETWORKS (made by benchmarks/networks.py) are timed, too. A step that takes too long is ended and has
# failed; the next ones run. Status: 0, all is well; 1, a step failed; 2, there is no Python; 3, there is no GPU.
set -uo pipefail
cd "$(dirname "$0")/.."
python="${1:-.venv/bin/python}"
out="${OUT:-$(mktemp -d)}"
mkdir -p "$out" || exit 2
out="$(cd "$out" && pwd)"
[ -x "$(command -v "$python")" ] || { echo "check: there is no $python; make .venv, or name a Python" >&2; exit 2; }
"$python" -c "import pytest, xdist, heald, heald_conformance, heald_cuda" || {
    echo "check: $python lacks the development environment: $python -m pip install -r requirements.txt" >&2; exit 2; }
if "$python" -c "import heald_opencl" 2> /dev/null; then  # a block of a plugin that is absent is a warning
    export HEALD_PLUGINS__BLOCK="${HEALD_PLUGINS__BLOCK:-opencl}"
fi

status=0
results=()
step() {  # name, seconds, command: its output goes to the terminal and to $out/name.txt
    local name="$1" seconds="$2" code
    shift 2
    echo "== $name (limit: $seconds s)"
    # INT first: Python then prints what it has; some calls of a driver that hangs end with KILL only
    timeout -s INT -k 8 "$seconds" "$@" 2>&1 | tee "$out/$name.txt"
    code="${PIPESTATUS[0]}"
    case "$code" in
        0) results+=("$name: ok") ;;
        124 | 137) results+=("$name: NOT FINISHED in $seconds s"); status=1 ;;
        *) results+=("$name: FAILED with status $code"); status=1 ;;
    esac
    return "$code"
}

devices() {
    cat <<'PROGRAM'
import sys
import heald

records = heald.HostContext().records("GPU")
for r in records:
    print(r.name, r.status, r.attributes.get("model", ""), r.attributes.get("driver", ""), r.reason, sep="  ")
if not any(r.device is not None for r in records):
    print(f"check: no GPU, so nothing was checked: {records[0].reason if records else 'no plugin brings GPU'}",
          file=sys.stderr)
    sys.exit(3)
PROGRAM
}

workers="$(nproc 2>/dev/null || echo 4)"
rm -f "$out/gpu.md"
step devices 40 "$python" -c "$(devices)" || { code=$?; echo "check: ${results[*]}" >&2; [ "$code" = 3 ] && exit 3; exit 1; }
step conformance 190 "$python" -m pytest --pyargs heald_conformance --conformance-quick -q --device GPU:0 \
    -p no:cacheprovider -p no:benchmark -n "$((workers < 8 ? workers : 8))"
PYTHONPATH=tests step networks 60 "$python" device_gpu/check_networks.py
step benchmarks 140 "$python" benchmarks/gpu.py --markdown "$out/gpu.md" ${HEALD_EXT_NETWORKS:+--folder "$HEALD_EXT_NETWORKS"}
{
    echo
    printf -- '- %s\n' "${results[@]}"
    echo "- $(tail -n 1 "$out/conformance.txt")"
    grep ' apart, ' "$out/networks.txt" | sed 's/^/- /'
    echo
    cat "$out/devices.txt"
    date -u +%F
} > "$out/results.md"
cat "$out/results.md" >> "$out/gpu.md"
rm "$out/results.md"
echo "== $out/gpu.md"
cat "$out/gpu.md"
exit "$status"
