"""The `fedrepro` command: find the commands by their files, parse, print. Wrong input is one line."""

import argparse
import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from fedrepro import __version__
from fedrepro.commands.command import Command, example_names, terminal_width
from fedrepro.core import parts
from fedrepro.errors import UserError, nearest
from fedrepro.files import ROOT, WORK, read_yaml

HERE = Path(__file__).parent
DECLARED = re.compile(r"^COMMAND = Command\(", re.MULTILINE)


def names() -> dict[str, str]:
    """Name of every command → its module. Sources are only read: importing all of them is slow."""
    files = (path for path in sorted(HERE.glob("*.py")) if DECLARED.search(path.read_text(encoding="utf-8")))
    return {path.stem.replace("_", "-"): f"fedrepro.commands.{path.stem}" for path in files}


def load(module: str) -> Command:
    command: Command = import_module(module).COMMAND
    return command


def parser_of(known: Mapping[str, str]) -> argparse.ArgumentParser:
    """The parser of the known commands."""
    parser = argparse.ArgumentParser(prog="fedrepro", description="Look at studies, results and evidence; plan runs.")
    parser.add_argument("--version", action="version", version=f"fedrepro {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in known.items():
        command = load(module)
        own = commands.add_parser(name, help=command.help, formatter_class=argparse.RawDescriptionHelpFormatter)
        own.description = f"{command.help[0].upper()}{command.help[1:]}."
        if command.examples and {"-h", "--help"} & set(sys.argv):
            own.epilog = "\n".join(["examples:", *(f"  {example}" for example in examples(name, command))])
        command.arguments(own)
        own.set_defaults(run=command.run)
        if command.rows:
            own.add_argument("--json", dest="run", action="store_const", const=as_json(command), help="rows as JSON")
    return parser


def examples(name: str, command: Command) -> list[str]:
    """Calls of the command that work here."""
    real = example_names() if "{" in "".join(command.examples) else {}
    return [f"fedrepro {name} {example.format(**real)}".rstrip() for example in command.examples]


def as_json(command: Command) -> Callable[[argparse.Namespace], Iterator[str]]:
    """The command's rows as one JSON list."""

    def run(given: argparse.Namespace) -> Iterator[str]:
        assert command.rows
        yield json.dumps(list(command.rows(given)), indent=1, ensure_ascii=False)

    return run


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without UTF-8 shows ? for § and γ
    known = names()
    try:
        if arguments and not arguments[0].startswith("-"):  # the others need not be imported
            if arguments[0] not in known:
                raise UserError(f"there is no command '{arguments[0]}'{nearest(arguments[0], known)}")
            known = {arguments[0]: known[arguments[0]]}
        given = parser_of(known).parse_args(arguments)
        add_configured_studies()
        sys.stdout.writelines(f"{line}\n" for line in fitted(given.run(given)))
    except UserError as error:
        sys.stdout.flush()
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("stopped by SIGINT\n")
        return 128 + signal.SIGINT
    except BrokenPipeError:  # `fedrepro list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def add_configured_studies() -> None:
    """Make the studies that config.yaml lists under `studies` known, beside those of FEDREPRO_STUDIES."""
    parts.add_studies(WORK / folder for folder in read_yaml(ROOT / "config" / "config.yaml")["studies"])


def fitted(lines: Iterator[str]) -> Iterator[str]:
    """The lines, cut at the terminal's width; whole in a pipe."""
    width = terminal_width()
    for line in (line for text in lines for line in text.split("\n")):
        yield line if width is None or len(line) <= width else f"{line[: width - 1]}…"


if __name__ == "__main__":
    sys.exit(main())
