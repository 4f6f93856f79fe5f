"""`fedrepro reference`: keep runs as the committed reference, build its joint files, compare a fresh run with it."""

import shutil
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from fedrepro.commands.command import Command
from fedrepro.errors import UserError
from fedrepro.files import ROOT, read_yaml, write_atomically

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SCREEN = "1280,900"
ASSUMED_RATE = 50.0  # GFLOP/s of a core: about that of a desktop of 2020


def run(given: Namespace) -> Iterator[str]:
    lines: Iterator[str] = given.does(given)
    return lines


def keep(given: Namespace) -> Iterator[str]:
    from fedrepro.report import reference

    reference.keep(given.results, given.study, cost=cost_of)
    yield from _write_readme()


def build(given: Namespace) -> Iterator[str]:
    from fedrepro.report import reference

    reference.build(cost=cost_of)
    yield from _write_readme()


def keep_bench(given: Namespace) -> Iterator[str]:
    from fedrepro.report import reference

    reference.keep_bench(given.bench, cost=cost_of)
    yield f"{given.bench}: kept"


def check(given: Namespace) -> Iterator[str]:
    from fedrepro.report import reference

    told, found = reference.check(given.results)
    yield from [*found, told]
    if found:
        raise UserError(f"{len(found)} differences from results/reference")
    yield "no difference"


def picture(given: Namespace) -> Iterator[str]:
    """The first screen of the reference's report, for the README."""
    import subprocess

    from fedrepro.report import reference

    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise UserError(f"no browser was found: {' or '.join(BROWSERS)} is needed")
    page, target = reference.REFERENCE / "report" / "index.html", ROOT / "docs" / "report.png"
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={SCREEN}"]
        subprocess.run([browser, *options, f"--screenshot={shot}", page.as_uri()], capture_output=True, check=True)
        write_atomically(target, reference.with_fewer_colours(shot.read_bytes()))
    yield f"docs/report.png: {target.stat().st_size / 1e3:.0f} kB"


def cost_of(study: str) -> str:
    """The time of a study's training at its published settings: a guess from counted operations, the same wherever the
    page is built."""
    from fedrepro.evidence.power import told
    from fedrepro.workflow import costs
    from fedrepro.workflow.layout import Layout

    layout = Layout({**read_yaml(ROOT / "config" / "config.yaml"), "scale": "paper", "only": study})
    with tempfile.TemporaryDirectory() as nothing_measured:
        jobs = list(costs.training_jobs(Path(nothing_measured), costs.needed_experiments(layout), ASSUMED_RATE))
    hours = float(f"{sum(job.seconds for job in jobs) / 3600:.1g}")
    return f"{told(3600 * hours)} on one core of {ASSUMED_RATE:g} GFLOP/s, guessed from counted operations"


def _write_readme() -> Iterator[str]:
    """Write the tables of the README and of docs/findings, and say how large the reference is."""
    from fedrepro.report import reference
    from fedrepro.report.summary import write_tables

    ledger, headlines = (reference.read_texts(reference.REFERENCE / f"{name}.csv") for name in ("ledger", "headlines"))
    write_tables(ledger, headlines)
    yield f"results/reference: {reference.size() / 1e6:.1f} MB"


def arguments(parser: ArgumentParser) -> None:
    ways = parser.add_subparsers(dest="way", required=True, metavar="WAY")
    way = ways.add_parser("keep", help="replace studies by those of a run, build the page and the README's table")
    way.add_argument("results", type=Path, help="a results folder, such as results/paper")
    way.add_argument("study", nargs="+")
    way.set_defaults(does=keep)
    ways.add_parser("build", help="joint files, page and the README's table again").set_defaults(does=build)
    ways.add_parser("picture", help="the first screen of its report as docs/report.png").set_defaults(does=picture)
    way = ways.add_parser("keep-bench", help="replace the benchmarks by those of `make bench`")
    way.add_argument("bench", type=Path, help="results/bench")
    way.set_defaults(does=keep_bench)
    way = ways.add_parser("check", help="compare a fresh run with the reference (make check-reference)")
    way.add_argument("results", type=Path, help="a results folder, such as results/demo")
    way.set_defaults(does=check)


COMMAND = Command(help="the committed reference: keep, build, picture, check", arguments=arguments, run=run)
