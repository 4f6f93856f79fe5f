#!/bin/sh
# Prints the build of torch that TORCH stands for: cpu or cuda. Usage: envs/torch.sh auto|cpu|cuda
# auto is cuda where an NVIDIA driver is found. For macOS there is only one build, without CUDA.
set -eu
case "$1" in
cpu) echo cpu ;;
cuda)
    [ "$(uname -s)" != Darwin ] || { echo "error: TORCH=cuda: torch has no CUDA build for macOS" >&2; exit 1; }
    echo cuda
    ;;
auto)
    if [ "$(uname -s)" != Darwin ] && { [ -d /proc/driver/nvidia ] || nvidia-smi -L >/dev/null 2>&1; }; then
        echo cuda
    else
        echo cpu
    fi
    ;;
*)
    echo "error: TORCH='$1': must be auto, cpu or cuda" >&2
    exit 1
    ;;
esac
