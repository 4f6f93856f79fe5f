#!/usr/bin/env bash
# Installs the exact versions of the lock, and the package in editable mode, into the active environment.
set -euo pipefail
sh envs/install.sh python
python -m pip install --quiet --no-deps --no-build-isolation --editable .
