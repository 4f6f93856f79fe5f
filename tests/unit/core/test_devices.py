"""The device of a training job; with several GPUs, one GPU per job. Only the devices that torch reports are faked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from fedrepro.core import devices
from fedrepro.core.devices import claim, pick_device
from fedrepro.errors import UserError

CLAIM = """
import sys
from pathlib import Path
from fedrepro.core.devices import claim
print(claim(int(sys.argv[1]), print, Path(sys.argv[2]), wait=0.05), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def seen(monkeypatch, tmp_path):
    """Sets the devices that torch reports: seen(cuda=2)."""
    monkeypatch.setattr(devices, "_held", [])
    monkeypatch.setattr(devices.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def see(cuda: int = 0, mps: bool = False) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    yield see
    for handle in devices._held:
        os.close(handle)


@pytest.fixture
def jobs(tmp_path):
    """Starts processes that claim one of some GPUs and keep it until they are killed."""
    started = []

    def start(count: int) -> subprocess.Popen:
        command = [sys.executable, "-c", CLAIM, str(count), str(tmp_path / "gpus")]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_auto_takes_cuda_then_mps_then_the_cpu(seen):
    seen(cuda=1, mps=True)
    assert pick_device("auto") == torch.device("cuda")
    seen(mps=True)
    assert pick_device("auto") == torch.device("mps")
    seen()
    assert pick_device("auto") == torch.device("cpu")


def test_the_requested_device_is_taken_or_reported_missing(seen):
    seen(cuda=1, mps=True)
    assert [pick_device(name).type for name in ("cuda", "mps", "cpu")] == ["cuda", "mps", "cpu"]
    seen()
    for name in ("cuda", "mps"):
        with pytest.raises(UserError, match=f"device: '{name}' was asked for, but torch sees none on "):
            pick_device(name)


def test_of_several_gpus_each_job_gets_one(seen):
    seen(cuda=2)
    assert [pick_device("cuda"), pick_device("auto")] == [torch.device("cuda", 0), torch.device("cuda", 1)]


def test_a_single_gpu_is_not_counted_out(seen, tmp_path):
    """A cluster job sees its own GPU only."""
    seen(cuda=1)
    assert pick_device("cuda") == pick_device("cuda") == torch.device("cuda")
    assert list(tmp_path.iterdir()) == []


def test_n_jobs_on_n_gpus_and_the_next_waits_until_one_ends(jobs):
    first, second = jobs(2), jobs(2)
    taken = {first.stdout.readline().strip(): first, second.stdout.readline().strip(): second}
    assert set(taken) == {"0", "1"}
    third = jobs(2)
    assert third.stdout.readline() == "all 2 GPUs are taken by other jobs: waiting\n"
    taken["1"].kill()
    assert third.stdout.readline() == "1\n"


def test_two_sets_of_gpus_are_counted_apart(seen, monkeypatch, tmp_path):
    numbers = []
    for visible in ("0,1", "2,3"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        numbers.append(claim(2, pytest.fail, tmp_path / "gpus"))
    assert numbers == [0, 0]


def test_a_folder_that_somebody_else_laid_out_is_refused(seen, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "gpus").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="not a folder of this user"):
        claim(2, pytest.fail, tmp_path / "gpus")
