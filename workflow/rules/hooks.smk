"""Needs LAYOUT. Makes failures.json and, for a run with failed jobs, the report of the finished results."""

import snakemake_logger_plugin_fedrepro
from snakemake.logging import logger

from fedrepro.files import check_writable
from fedrepro.workflow import damage, failures, pending, ready, run_lock, spare_data, warm
from fedrepro.workflow.jobs import lift_rate_limit

if workflow.is_main_process:
    try:
        ready.check_targets(sys.argv, LAYOUT.targets(), LAYOUT.results)
        for folder in (".snakemake", ".snakemake/log"):
            check_writable(Path.cwd() / folder)
    except UserError as error:
        sys.exit(f"error: {error}")
    run_lock.clear_left_overs(LAYOUT.results, lambda text: print(text, file=sys.stderr))
    damage.make_again(LAYOUT.results, lambda text: print(text, file=sys.stderr))
    if warm.wanted_early():
        warm.start()
else:
    interrupts.end_with_parent(workflow)
    if warm.several_asked_for(sys.argv):
        warm.start()  # a cluster job with a group of our jobs, which use it


onstart:
    lift_rate_limit(workflow)
    try:
        interrupts.end_with_one_line(workflow)
        ready.check_device(LAYOUT, workflow.local_exec)
        run_lock.hold(LAYOUT.results, lambda told: interrupts.stop(workflow, told))
        check_writable(Path(LAYOUT.results))
        waiting = list(workflow.dag.needrun_jobs())
        preparing = [job for job in waiting if job.rule.name == "prepare_data"]
        ready.fetch_real(LAYOUT, {LAYOUT.datasets[job.wildcards.dataset]["name"] for job in preparing})
        made = {path for job in preparing for path in job.output}
        spare_data.fill(LAYOUT, {path for job in waiting for path in job.input} - made)
        failures.forget(Path(LAYOUT.results))
        training = [job.wildcards for job in waiting if job.rule.name == "train_algorithm"]
        snakemake_logger_plugin_fedrepro.estimate.rough = ready.rough_costs(LAYOUT.scale, training)
        snakemake_logger_plugin_fedrepro.estimate.plan = ready.start_plan(LAYOUT)
        if workflow.local_exec:
            warm.start()
        else:
            pending.watch(workflow, logger.warning)
    except UserError as error:
        sys.exit(f"error: {error}")


onsuccess:
    if not any(word.endswith(".npz") for word in sys.argv):  # then a data file itself was asked for
        spare_data.empty(Path(LAYOUT.results))


onerror:
    if told := run_lock.deleted(LAYOUT.results):
        interrupts.stop(workflow, told)
    failed = failures.describe(workflow.scheduler.failed, workflow.scheduler.remaining_jobs, workflow.dag)
    if failed:
        try:
            told = f"report of the finished results: {failures.report(LAYOUT, failed)}"
        except OSError as error:
            told = f"no report could be written: {error}"
        print(f"{len(failed)} failed; {told}", file=sys.stderr)
