"""Needs LAYOUT. Makes failures.json and, of a run in which jobs failed, the report of what is there."""

from fedrepro.workflow import failures, run_lock as running, warm
from fedrepro.files import check_writable

if workflow.is_main_process:
    running.clear_left_overs(LAYOUT.results, lambda text: print(text, file=sys.stderr))
    if warm.wanted_early():
        warm.start()
elif warm.several_asked_for(sys.argv):
    warm.start()  # a cluster's job in which several of ours share a place; those inside find it


onstart:
    # After every look at the queue snakemake's rate limiter asks for another a second later, and every finished job
    # begins one more such chain: with 200 jobs, minutes of work for nothing.
    workflow.scheduler.job_rate_limiter = None
    try:
        running.hold(LAYOUT.results)
        check_writable(Path(LAYOUT.results))
        failures.forget(Path(LAYOUT.results))
        if workflow.local_exec:
            warm.start()
    except UserError as error:
        sys.exit(f"error: {error}")


onerror:
    failed = failures.describe(workflow.scheduler.failed, workflow.scheduler.remaining_jobs, workflow.dag)
    if failed:
        try:
            told = f"the report of what is there: {failures.report(LAYOUT, failed)}"
        except OSError as error:
            told = f"no report could be written: {error}"
        print(f"{len(failed)} failed; {told}", file=sys.stderr)
