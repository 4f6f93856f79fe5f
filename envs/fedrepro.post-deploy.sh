#!/usr/bin/env bash
# Installs the exact versions of the lock, and the package in editable mode, into the active environment.
set -euo pipefail
python -m pip install --quiet --no-deps -r envs/requirements.lock
python -m pip install --quiet --no-deps --no-build-isolation --editable .
