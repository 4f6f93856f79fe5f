#!/bin/sh
# Installs the exact files of envs/requirements.lock: one whose hash is not in the lock is refused. With TORCH=cpu, torch and
# torchvision are the CPU builds of PyTorch's index instead, without the CUDA libraries of the lock (envs/torch_cpu.py); if the
# index has none for this system or cannot be reached, the lock is installed as it is. Prints the installed build: cpu or cuda.
# Usage: [TORCH=auto|cpu|cuda] [TORCH_INDEX=URL] envs/install.sh PYTHON [LOCK]
set -eu
python=$1
lock=${2:-envs/requirements.lock}
index=${TORCH_INDEX:-https://download.pytorch.org/whl/cpu}
here=$(dirname "$0")
build=$(sh "$here/torch.sh" "${TORCH:-auto}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# --no-deps: the lock is complete, and deliberately omits one optional package (envs/overrides.txt)
install() {
    "$python" -m pip install --quiet --progress-bar off --disable-pip-version-check --no-deps --require-hashes "$@"
}
torch_cpu() { "$python" "$here/torch_cpu.py" "$@"; }
uninstall() {
    [ ! -s "$1" ] || "$python" -m pip uninstall --quiet --disable-pip-version-check --yes -r "$1"
}

if [ "$(uname -s)" = Darwin ]; then
    install -r "$lock"
    echo cpu
    exit
fi
if [ "$build" = cpu ]; then
    torch_cpu rest "$lock" >"$folder/rest"
    install -r "$folder/rest"
    code=0
    torch_cpu builds "$lock" "$index" >"$folder/builds" || code=$?
    if [ "$code" = 0 ]; then
        [ ! -s "$folder/builds" ] || install -r "$folder/builds" # empty: installed already
        torch_cpu unneeded "$lock" >"$folder/unneeded"
        uninstall "$folder/unneeded"
        echo cpu
        exit
    fi
    [ "$code" = 3 ] || exit "$code"
fi
# pip takes an installed 2.0+cpu for the 2.0 of the lock
torch_cpu installed "$lock" >"$folder/installed"
uninstall "$folder/installed"
install -r "$lock"
echo cuda
