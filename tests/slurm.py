"""Slurm with one node on this machine: munge, slurmctld and slurmd on free ports, with a scheduled gres `gpu`; on
request with accounting, which also needs mariadb and slurmdbd.

`with one_node(folder) as slurm:` starts it, `slurm.within(environment)` points commands to it. All daemons are
stopped at the end.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

COMMANDS = ("sbatch", "srun", "squeue", "scontrol", "scancel", "sinfo", "sacct", "sacctmgr")
NEEDED = ("munged", "slurmctld", "slurmd", *COMMANDS)
NEEDED_FOR_ACCOUNTS = ("mariadbd", "mariadb-install-db", "my_print_defaults", "slurmdbd")
GPUS = 2
CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,sched_min_interval=100000
AccountingStorageType=accounting_storage/{accounts}
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
AccountingStoragePass={folder}/munge.socket
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
MinJobAge=3600
KillWait=5
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
ACCOUNTS_CONFIG = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database_port}
StorageUser=root
StorageLoc=accounts
"""


@dataclass(frozen=True)
class Slurm:
    folder: Path
    daemons: dict[str, subprocess.Popen] = field(default_factory=dict)

    def within(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment with this slurm's commands first in PATH: jobs do not inherit SLURM_CONF."""
        path = f"{self.folder / 'bin'}{os.pathsep}{environment['PATH']}"
        return {**environment, "PATH": path, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def command(self, *arguments: str) -> str:
        done = subprocess.run(arguments, env=self.within(os.environ), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def jobs(self) -> dict[str, dict[str, str]]:
        """Every job known to the controller: id → its fields, named as in `scontrol show job`."""
        shown = self.command("scontrol", "--oneliner", "show", "job").splitlines()
        records = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in shown]
        return {record["JobId"]: record for record in records if "JobId" in record}

    def processes(self, job: str) -> list[str]:
        """The command lines of a job's processes, also of those that slurm no longer knows."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # just ended
                if f"SLURM_JOB_ID={job}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found

    def start(self, name: str, *arguments: str) -> None:
        """Start a daemon, which is stopped at the end."""
        where = {"env": self.within(os.environ), "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.daemons[name] = subprocess.Popen([_which(name), *arguments], **where)

    def crash_controller(self) -> None:
        """Kill slurmctld and start it again; it reads its saved state."""
        self.daemons["slurmctld"].kill()
        self.daemons["slurmctld"].wait()
        self.start("slurmctld", "-D")
        _wait(lambda: self.command("sinfo", "--noheader"), self.folder, "slurmctld")


def missing(accounts: bool = False) -> str:
    """The reason why slurm cannot run here; empty if it can."""
    needed = (*NEEDED, *NEEDED_FOR_ACCOUNTS) if accounts else NEEDED
    absent = [name for name in needed if _which(name) is None]
    if absent:
        return f"slurm is not installed: no {', '.join(absent)}"
    return "slurm's daemons need root" if os.geteuid() else ""


@contextmanager
def one_node(folder: Path, cpus: int = 2, memory: int = 64_000, accounts: bool = False) -> Iterator[Slurm]:
    folder.mkdir(parents=True)
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    ports = dict(zip(("ctld_port", "slurmd_port", "dbd_port", "database_port"), _free_ports(4), strict=True))
    values = {"folder": folder, "host": host, "cpus": cpus, "memory": memory, "gpus": GPUS, **ports}
    (folder / "slurm.conf").write_text(CONFIG.format(accounts="slurmdbd" if accounts else "none", **values))
    dbd = folder / "slurmdbd.conf"
    dbd.touch(0o600)
    dbd.write_text(ACCOUNTS_CONFIG.format(**values))
    for name in COMMANDS:
        wrapper = folder / "bin" / name
        wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={shlex.quote(str(folder))}/slurm.conf exec {_which(name)} "$@"\n')
        wrapper.chmod(0o755)
    (folder / "gres.conf").write_text(_gres(host))
    slurm = Slurm(folder)
    environment = slurm.within(os.environ)
    munge = [f"--{name}={folder}/munge.{name}" for name in ("socket", "pid-file", "seed-file", "log-file")]
    try:
        slurm.start("munged", "--foreground", "--force", f"--key-file={key}", *munge)
        _wait(lambda: (folder / "munge.socket").exists(), folder, "munge")
        if accounts:
            slurm.start("mariadbd", *_database(folder), f"--port={ports['database_port']}")
            _wait(lambda: (folder / "database.socket").exists(), folder, "mariadb")
            slurm.start("slurmdbd", "-D")
            _wait(lambda: slurm.command("sacctmgr", "--immediate", "add", "cluster", "test"), folder, "slurmdbd")
        slurm.start("slurmctld", "-D")
        slurm.start("slurmd", "-D")
        _wait(lambda: "idle" in slurm.command("sinfo", "--noheader", "--format=%T"), folder, "slurm")
        yield slurm
    finally:
        for job in _quietly(slurm):
            subprocess.run(["scancel", "--signal=KILL", job], env=environment, capture_output=True)
        for daemon in reversed(slurm.daemons.values()):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def _database(folder: Path) -> list[str]:
    """Create an empty database in the folder, reachable from this machine only; returns the options that start it."""
    data = ["--no-defaults", f"--datadir={folder}/database", "--user=root"]
    install = [_which("mariadb-install-db"), *data, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(install, check=True, capture_output=True)
    own = {"socket": "database.socket", "pid-file": "database.pid", "log-error": "mariadb.log"}
    files = [f"--{option}={folder}/{name}" for option, name in own.items()]
    return [*data, *files, "--bind-address=127.0.0.1", "--skip-grant-tables"]


def _gres(host: str) -> str:
    """One device per GPU, so that slurm gives each to one job at a time; /dev/null and its like always exist."""
    return "".join(f"NodeName={host} Name=gpu File={device}\n" for device in ("/dev/null", "/dev/zero")[:GPUS])


def _quietly(slurm: Slurm) -> list[str]:
    try:
        return slurm.command("squeue", "--noheader", "--format=%i").split()
    except RuntimeError:
        return []


def _wait(ready, folder: Path, what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if ready():
                return
        except RuntimeError:
            pass  # the controller does not answer yet
        if time.monotonic() > deadline:
            logs = "\n".join(path.read_text()[-2000:] for path in folder.glob("*.log*"))
            raise TimeoutError(f"{what} did not start:\n{logs}")
        time.sleep(0.1)


def _which(name: str) -> str | None:
    """Daemons are often in sbin, which is not in a user's PATH."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
