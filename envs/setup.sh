#!/bin/sh
# Creates .venv with the exact versions of envs/requirements.lock and the package itself, in editable mode.
# Usage: [TORCH=…] [TORCH_INDEX=…] envs/setup.sh STAMP
# STAMP-cpu or STAMP-cuda, by the build of torch (envs/install.sh), marks a finished set-up; STAMP contains the hash of the lock.
# .venv/.torch holds the build, so that later commands keep it.
set -eu
stamp=$1
sh envs/torch.sh "${TORCH:-auto}" >/dev/null # a wrong value ends here
export PIP_DISABLE_PIP_VERSION_CHECK=1

fits() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

choose() {
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
        if fits "$candidate"; then echo "$candidate"; return; fi
    done
}

if [ -x .venv/bin/python ] && fits .venv/bin/python; then
    echo "set-up: updating .venv to envs/requirements.lock" >&2
else
    python=$(choose)
    rm -rf .venv
    if [ -n "$python" ]; then
        echo "set-up: creating .venv with $("$python" --version) (a few minutes, once)" >&2
        "$python" -m venv .venv
    elif python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        # snakemake 9 needs Python 3.11: with 3.10, uv fetches a newer one for this folder only.
        echo "set-up: $(python3 --version) is too old for snakemake 9: fetching Python 3.12 with uv" >&2
        bootstrap=$(mktemp -d)
        trap 'rm -rf "$bootstrap"' EXIT
        python3 -m venv "$bootstrap"
        "$bootstrap/bin/python" -m pip install --quiet uv
        "$bootstrap/bin/uv" venv --quiet --seed --python 3.12 --python-preference only-managed .venv || {
            echo "error: found no Python 3.11 or later, and uv could not fetch one; install one, then 'make reproduce PYTHON=/path/to/python3.12'" >&2
            exit 1
        }
    else
        echo "error: fedrepro needs Python 3.10 or later (3.11 for snakemake 9); set it with 'PYTHON=/path/to/python3 make …'" >&2
        exit 1
    fi
fi
rm -f .venv/.ready-*
sh envs/torch.sh "${TORCH:-auto}" >.venv/.torch # kept if the installation is interrupted
build=$(sh envs/install.sh .venv/bin/python)
echo "$build" >.venv/.torch
.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
touch "$stamp-$build"
