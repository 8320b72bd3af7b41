#!/usr/bin/env bash
# Runs examples/python/23_ray_serve.py on a Ray of this machine, whose two replicas have simulated
# devices: scripts/ray_serve.sh PYTHON FOLDER. PYTHON has the package; FOLDER gets an environment
# with ray[serve] beside it, which takes about 110 MB.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:?"usage: scripts/ray_serve.sh PYTHON FOLDER"}
folder=${2:?"usage: scripts/ray_serve.sh PYTHON FOLDER"}
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
paths='import sysconfig; print(sysconfig.get_path("purelib"))'
"$python" -c "$paths" >"$("$folder/bin/python" -c "$paths")/beside.pth"
"$folder/bin/python" -m pip install -q --disable-pip-version-check 'ray[serve]>=2.9'
shown=$(KERNWRIGHT_DEVICE=sim timeout 600 "$folder/bin/python" examples/python/23_ray_serve.py)
echo "$shown"
# A package that is missing ends the example with code 0 and another line.
grep -qx 'replicas: 2' <<<"$shown" || { echo "both replicas should have answered" >&2; exit 1; }
