#!/bin/sh
# Installs the exact files of envs/requirements.lock: one whose hash is not in the lock is refused.
# Usage: envs/install.sh PYTHON [LOCK]
set -eu
# --no-deps: the lock is complete, and deliberately omits one optional package (envs/overrides.txt)
exec "$1" -m pip install --quiet --progress-bar off --disable-pip-version-check --no-deps --require-hashes \
    -r "${2:-envs/requirements.lock}"
