#!/bin/sh
# Looks up the packages of envs/requirements.lock in a database of known vulnerabilities (pypi or osv)
# and prints what is known. Usage: envs/audit.sh SERVICE
# pip-audit itself is installed for this only, into a folder that is removed at the end.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
.venv/bin/python -m venv "$folder/audit"
"$folder/audit/bin/python" -m pip install --quiet --disable-pip-version-check pip-audit
"$folder/audit/bin/pip-audit" --progress-spinner off --format json --disable-pip --no-deps \
    --vulnerability-service "$1" -r envs/requirements.lock >"$folder/found.json" 2>"$folder/log" || true
[ -s "$folder/found.json" ] || { tail -n 1 "$folder/log" >&2; exit 1; }
.venv/bin/fedrepro audit "$folder/found.json"
