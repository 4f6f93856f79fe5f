"""`fedrepro completion`: the lines that a shell needs to complete commands, options and names."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from fedrepro.commands.command import Command

SCRIPTS = {
    "bash": """_fedrepro() {
  mapfile -t COMPREPLY < <(compgen -W "$(fedrepro completion words -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)" \\
    -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _fedrepro fedrepro""",
    "zsh": """#compdef fedrepro
_fedrepro() { compadd -- ${(f)"$(fedrepro completion words -- ${words[2,CURRENT-1]} 2>/dev/null)"} || _files }
compdef _fedrepro fedrepro""",
    "fish": """complete -c fedrepro -a '(fedrepro completion words -- (commandline -opc)[2..] 2>/dev/null)'""",
}


def completion(given: Namespace) -> Iterator[str]:
    if given.shell != "words":
        yield SCRIPTS[given.shell]
    else:
        yield from words(given.word)


def words(before: list[str]) -> list[str]:
    """What may follow the words: the commands; then a command's options and names."""
    from fedrepro.commands import cli  # here: it finds this module

    known = cli.names()
    if not before:
        return [*known, "--help", "--version"]
    if before[0] not in known:
        return []
    command = cli.load(known[before[0]])
    parser = ArgumentParser()
    command.arguments(parser)
    options = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
    return [*options, *(["--json"] if command.rows else []), *(command.words() if command.words else [])]


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=[*SCRIPTS, "words"], help="words: what may follow the words given")
    parser.add_argument("word", nargs="*")


COMMAND = Command(
    help="completion for bash, zsh or fish: `source <(fedrepro completion bash)`",
    arguments=arguments,
    run=completion,
    words=lambda: SCRIPTS,
    examples=("bash", "zsh", "fish"),
)
