#!/bin/sh
# Makes .venv-bench for `make bench`: the environment of the studies, seen through a path file, with pfl and Flower
# above it. Usage: envs/bench.sh STAMP. Where they cannot be installed, the bench measures without them.
set -eu
stamp=$1
export PIP_DISABLE_PIP_VERSION_CHECK=1

packages_of() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }

echo "bench: .venv-bench, with pfl and Flower (some minutes, once)" >&2
rm -rf .venv-bench
.venv/bin/python -m venv .venv-bench
packages_of "$PWD/.venv" > "$(packages_of .venv-bench)/fedrepro-base.pth"
echo "$PWD/src" >> "$(packages_of .venv-bench)/fedrepro-base.pth"
if .venv-bench/bin/python -m pip install --quiet --progress-bar off -r envs/bench.txt; then
    touch "$stamp" # without it the next bench tries again
else
    echo "bench: pfl and Flower could not be installed: measured without them" >&2
fi
