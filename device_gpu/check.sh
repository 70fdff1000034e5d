#!/usr/bin/env bash
# Checks weft on this machine's GPU, in at most 8 minutes: conformance, networks against the CPU, benchmarks.
#
#     device_gpu/check.sh [PYTHON]
#
# PYTHON has weft's development environment (requirements.txt); the default is .venv/bin/python. No network is needed. The
# table, in Markdown, goes to standard output, and to $OUT/gpu.md where OUT is set. Networks in $WEFT_NETWORKS (made by
# benchmarks/networks.py) are checked, too. Status 3: there is no GPU.
set -uo pipefail
cd "$(dirname "$0")/.."
python="${1:-.venv/bin/python}"
out="${OUT:-$(mktemp -d)}"
export WEFT_PLUGINS__BLOCK="${WEFT_PLUGINS__BLOCK:-opencl}"
[ -x "$(command -v "$python")" ] || { echo "check: there is no $python; make .venv, or name a Python" >&2; exit 2; }

echo "== devices"
"$python" - <<'PROGRAM' || exit $?
import sys
import weft

records = weft.HostContext().records("GPU")
for r in records:
    print(r.name, r.status, r.attributes.get("model", ""), r.attributes.get("driver", ""), r.reason, sep="  ")
if not any(r.device is not None for r in records):
    print(f"check: no GPU, so nothing was checked: {records[0].reason if records else 'no plugin brings GPU'}",
          file=sys.stderr)
    sys.exit(3)
PROGRAM

status=0
echo "== conformance (limit: 240 s)"
timeout 240 "$python" -m pytest --pyargs weft_conformance --conformance-quick -q --device GPU:0 -p no:cacheprovider \
    -n 8 2>&1 | tee "$out/conformance.txt" | tail -n 40 || status=1
echo "== MobileNetV2 and digits against the CPU"
PYTHONPATH=tests timeout 60 "$python" device_gpu/check_networks.py || status=1
echo "== benchmarks (limit: 150 s)"
timeout 150 "$python" benchmarks/gpu.py --markdown "$out/gpu.md" ${WEFT_NETWORKS:+--folder "$WEFT_NETWORKS"} || status=1
{ echo; echo "conformance: $(tail -n 1 "$out/conformance.txt")"; date -u +%F; } | tee -a "$out/gpu.md"
exit $status
