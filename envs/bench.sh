#!/bin/sh
# Creates .venv-bench for `make bench`: the packages of .venv, through a path file, plus pfl and Flower.
# Usage: envs/bench.sh STAMP. If these cannot be installed, the bench runs without them.
set -eu
stamp=$1
export PIP_DISABLE_PIP_VERSION_CHECK=1

packages_of() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }

echo "bench: creating .venv-bench with pfl and Flower (a few minutes, once)" >&2
rm -rf .venv-bench
.venv/bin/python -m venv .venv-bench
packages_of "$PWD/.venv" > "$(packages_of .venv-bench)/fedrepro-base.pth"
echo "$PWD/src" >> "$(packages_of .venv-bench)/fedrepro-base.pth"
if .venv-bench/bin/python -m pip install --quiet --progress-bar off -r envs/bench.txt; then
    touch "$stamp" # without the stamp the next bench tries again
else
    echo "bench: pfl and Flower could not be installed; running without them" >&2
fi
