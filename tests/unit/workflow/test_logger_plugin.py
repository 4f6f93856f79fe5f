"""The progress line that replaces snakemake's output."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

import snakemake_logger_plugin_fedrepro as plugin
from fedrepro.workflow import run_lock as running
from snakemake_logger_plugin_fedrepro import LogHandler
from snakemake_logger_plugin_fedrepro.estimate import PRIOR, Estimate


class Clock:
    """The plugin's clock, set by the test."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(plugin, "time", clock)
    return clock


@pytest.fixture(autouse=True)
def estimate(monkeypatch):
    monkeypatch.setattr(plugin, "estimate", Estimate())


def handler(dryrun=False, terminal=False) -> LogHandler:
    made = LogHandler(SimpleNamespace(dryrun=dryrun), None)
    made.terminal = terminal
    return made


def emit(to: LogHandler, event: LogEvent | None = None, text: str = "", level: int = logging.INFO, **fields) -> None:
    record = logging.LogRecord("snakemake", level, "", 0, text, (), None)
    record.__dict__.update(fields, **({"event": event} if event else {}))
    to.emit(record)


def start(to: LogHandler, job: int, rule: str = "train_algorithm", message: str | None = "train fedavg") -> None:
    emit(to, LogEvent.JOB_INFO, jobid=job, rule_name=rule, rule_msg=message)


def plan(to: LogHandler, **rules: int) -> None:
    emit(to, LogEvent.RUN_INFO, stats={**rules, "total": sum(rules.values())})


def finish(to: LogHandler, clock: Clock, job: int, seconds: float = 0.0) -> None:
    start(to, job)
    clock.now += seconds
    emit(to, LogEvent.JOB_FINISHED, job_id=job)


def test_in_a_file_there_is_a_line_per_five_per_cent_or_half_a_minute(clock, capsys):
    shown = handler()
    plan(shown, build_report=100)
    for job in range(4):
        finish(shown, clock, job, 1)
    assert capsys.readouterr().err == ""
    finish(shown, clock, 4, 1)
    assert capsys.readouterr().err.startswith("5/100 jobs · 5 % · 0:05 gone · about ")
    start(shown, 5)
    clock.now += 29
    shown._line()
    assert capsys.readouterr().err == ""
    clock.now += 1
    shown._line()
    assert capsys.readouterr().err.startswith("5/100 jobs · 5 % · 0:35 gone")


def test_on_a_terminal_the_line_is_rewritten(clock, capsys):
    shown = handler(terminal=True)
    plan(shown, build_report=2)
    start(shown, 1, "build_report")
    start(shown, 2, "build_report", message="build more")
    assert capsys.readouterr().err.endswith("\r\x1b[K0/2 jobs · 0 % · 0:00 gone · about 0:06 left · (+1) build more")
    emit(shown, LogEvent.JOB_FINISHED, job_id=2)
    assert capsys.readouterr().err.endswith(" · train fedavg")
    emit(shown, LogEvent.JOB_FINISHED, job_id=1)
    assert capsys.readouterr().err.endswith("2/2 jobs · 100 % · 0:00 gone · about 0:00 left · train fedavg\n")


def test_a_line_is_never_wider_than_the_terminal(clock, capsys, monkeypatch):
    shown = handler(terminal=True)
    monkeypatch.setattr(plugin, "_columns", lambda: 80)
    plan(shown, build_report=2)
    start(shown, 1, "build_report", message="x" * 200)
    line = capsys.readouterr().err.removeprefix("\r\x1b[K")
    assert len(line) == 79
    assert line.endswith("x…")
    assert "\n" not in line


def test_a_failed_job_is_shown_with_the_end_of_its_log(clock, capsys, tmp_path):
    log = tmp_path / "job.log"
    log.write_text("one\ntwo\nthree\nerror: four\n")
    shown = handler()
    plan(shown, train_algorithm=2)
    start(shown, 1)
    emit(shown, LogEvent.JOB_ERROR, jobid=1, rule_name="train_algorithm", log=[str(log), str(tmp_path / "none.log")])
    told = capsys.readouterr().err
    assert told == f"failed: train fedavg\n  two\n  three\n  error: four\n  log: {log}\n"
    start(shown, 2, message=None)
    emit(shown, LogEvent.JOB_FINISHED, job_id=2)
    assert "1/2 jobs · 50 %" in (told := capsys.readouterr().err)
    assert told.endswith(" · 1 failed · train_algorithm\n")


def test_a_failure_of_an_unknown_job_is_shown_by_its_rule(clock, capsys):
    emit(handler(), LogEvent.JOB_ERROR, rule_name="train_algorithm")
    assert capsys.readouterr().err == "failed: train_algorithm\n"


def test_what_the_cluster_says_is_shown(clock, capsys, tmp_path):
    log = tmp_path / "slurm.log"
    log.write_text("slurmstepd: error: *** JOB 7 ON node1 CANCELLED ***\n")
    shown = handler()
    start(shown, 1)
    emit(shown, LogEvent.GROUP_ERROR, groupid="data", aux_logs=[str(log)])
    said = f"  slurmstepd: error: *** JOB 7 ON node1 CANCELLED ***\n  log: {log}\n"
    assert capsys.readouterr().err == "failed, in one job of the cluster:\n" + said
    emit(shown, LogEvent.JOB_ERROR, jobid=1, rule_name="train_algorithm", rule_msg="SLURM-job '7' failed", log=[log])
    assert capsys.readouterr().err == "failed: train fedavg\n  SLURM-job '7' failed\n" + said


def test_snakemakes_page_about_locks_is_one_line(clock, capsys, monkeypatch):
    monkeypatch.setattr(running, "busy", lambda: "another run is at work")
    emit(handler(), LogEvent.ERROR, "LockException:\nError: …\n…", exception="LockException")
    assert capsys.readouterr().err == "error: another run is at work\n"
    monkeypatch.setattr(running, "busy", lambda: None)  # left over from another machine: snakemake's own message helps
    emit(handler(), LogEvent.ERROR, "LockException: --unlock", exception="LockException")
    assert capsys.readouterr().err == "LockException: --unlock\n"


def test_errors_and_warnings_are_shown_and_chatter_is_not(clock, capsys):
    shown = handler()
    emit(shown, LogEvent.ERROR, "MissingRuleException:\nNo rule to produce dlf", exception="MissingRuleException")
    emit(
        shown, LogEvent.ERROR, "RuleException:\nCalledProcessError in file train.smk: status 1"
    )  # the job's error contains it
    emit(shown, None, "careful", level=logging.WARNING)
    emit(shown, None, "Failed to setup log file: …", level=logging.ERROR)  # the workflow's own error follows
    emit(shown, None, "Building DAG of jobs...")
    emit(shown, LogEvent.WORKFLOW_STARTED, "hello")
    assert capsys.readouterr().err == "MissingRuleException:\nNo rule to produce dlf\ncareful\n"


def test_a_dry_run_lists_its_jobs(clock, capsys):
    shown = handler(dryrun=True)
    plan(shown, train_algorithm=2)
    start(shown, 1)
    start(shown, 2, message=None)
    emit(shown, None, "This was a dry-run.")
    emit(shown, None, "None")
    assert capsys.readouterr().err == "train fedavg\ntrain_algorithm\nThis was a dry-run.\n"


def test_snakemake_is_told_that_the_plugin_writes_to_the_terminal():
    shown = handler()
    assert shown.writes_to_stream
    assert not shown.writes_to_file


def write_costs(folder, **seconds: float):
    file = folder / "plan.json"
    file.write_text(json.dumps({f"toy/line/{name}/0-1": cost for name, cost in seconds.items()}))
    return file


def test_the_time_left_is_that_of_the_plan_from_the_first_job_on(tmp_path):
    file = tmp_path / "plan.json"
    left = Estimate({"train_algorithm": 2, "execute_notebook": 1, "all": 1}, lanes=2, plan=file)
    left.begin(1, "train_algorithm", "toy/line/fedavg/0-1", 0.0)
    assert left.left(1.0) is None  # the plan is not made yet
    write_costs(tmp_path, fedavg=30.0, local=70.0)
    # 29 s of the running job, 70 of the other one and 6 of the notebook, on two lanes
    assert left.left(1.0) == pytest.approx((29 + 70 + 6) / 2)
    left.begin(2, "train_algorithm", "toy/line/local/0-1", 1.0)
    assert left.left(1.0) == pytest.approx(70)  # no shorter than the longest job


def test_slower_jobs_than_planned_lengthen_what_is_left(tmp_path):
    left = Estimate({"train_algorithm": 2}, plan=write_costs(tmp_path, fedavg=20.0, local=20.0))
    left.begin(1, "train_algorithm", "toy/line/fedavg/0-1", 0.0)
    left.finish(1, 60.0)
    assert left.left(60.0) == pytest.approx(20 * (60 + PRIOR) / (20 + PRIOR))


def test_before_the_plan_is_made_the_number_of_jobs_gives_a_rough_time(tmp_path, clock, capsys):
    rough = {"toy/line/fedavg/0-1": 30.0, "toy/line/local/0-1": 50.0}
    plugin.estimate.plan, plugin.estimate.rough = tmp_path / "plan.json", rough
    shown = handler()
    plan(shown, train_algorithm=2, prepare_data=1)
    start(shown, 1, "prepare_data")
    clock.now += 31.0
    start(shown, 2, "prepare_data")
    assert "very roughly 1:21 left" in capsys.readouterr().err
    write_costs(tmp_path, fedavg=100.0, local=120.0)
    clock.now += 31.0
    start(shown, 3, "prepare_data")
    assert "about 3:41 left" in capsys.readouterr().err


def test_without_training_nothing_waits_for_the_plan(tmp_path):
    left = Estimate({"build_report": 1}, plan=tmp_path / "plan.json", rough={})
    assert left.left(0.0) == pytest.approx(3)
    assert not left.is_rough


#: made-up planned and measured seconds of the first jobs of a run; one experiment was guessed 40 times too low
TIMES = {
    "arm/torques/gp/0-1": (12.0, 500.0),
    "arm/torques/separate/0-1": (10.0, 430.0),
    "arm/engines/gp/0-2": (8.0, 9.0),
    "sums/line/mean/0-2": (3.0, 3.5),
    "sums/laws/mean/0-2": (20.0, 24.0),
    "loss/low/fed_sgld/0-4": (30.0, 28.0),
}


def after_times(tmp_path, waiting: dict[str, float]) -> Estimate:
    """After the jobs of TIMES, one after the other."""
    costs = {**{name: planned for name, (planned, _) in TIMES.items()}, **waiting}
    (tmp_path / "plan.json").write_text(json.dumps(costs))
    left, now = Estimate({"train_algorithm": len(costs)}, plan=tmp_path / "plan.json"), 0.0
    for job, (name, (_, measured)) in enumerate(TIMES.items()):
        left.begin(job, "train_algorithm", name, now)
        now += measured
        left.finish(job, now)
    return left


def test_jobs_of_one_experiment_that_were_guessed_wrong_do_not_stretch_the_others(tmp_path):
    others = {f"loss/high/fed_sgld/{n}-{n}": 30.0 for n in range(20)}
    assert after_times(tmp_path, others).left(0.0) == pytest.approx(20 * 30, rel=0.2)
    strangers = {f"fair/images/rank/{n}-{n}": 30.0 for n in range(20)}
    assert after_times(tmp_path, strangers).left(0.0) == pytest.approx(20 * 30, rel=0.5)


def test_jobs_of_the_experiment_itself_are_corrected_in_full(tmp_path):
    left = after_times(tmp_path, {"arm/torques/network/0-1": 10.0})
    assert left.left(0.0) == pytest.approx(10 * (930 + PRIOR) / (22 + PRIOR))


def test_a_machine_that_is_slower_throughout_lengthens_every_job(tmp_path):
    names = [f"study{n}/line/mean/0-2" for n in range(5)]
    (tmp_path / "plan.json").write_text(json.dumps({**dict.fromkeys(names, 100.0), "new/line/mean/0-2": 100.0}))
    left = Estimate({"train_algorithm": 6}, plan=tmp_path / "plan.json")
    for job, name in enumerate(names):
        left.begin(job, "train_algorithm", name, 0.0)
        left.finish(job, 400.0)
    assert left.left(0.0) == pytest.approx(100 * (400 + PRIOR) / (100 + PRIOR))


def test_finished_training_does_not_count(tmp_path):
    run = tmp_path / "runs" / "toy" / "line" / "fedavg" / "0-1.json"
    run.parent.mkdir(parents=True)
    run.touch()
    left = Estimate({"train_algorithm": 1}, plan=write_costs(tmp_path, fedavg=500.0, local=20.0))
    assert left.left(0.0) == pytest.approx(20)


def test_a_failed_job_is_not_waited_for(tmp_path):
    left = Estimate({"build_report": 1})
    left.begin(1, "build_report", "", 0.0)
    left.drop(1)
    assert left.left(0.0) == 0.0
