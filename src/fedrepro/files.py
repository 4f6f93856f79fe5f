"""Files: written completely or not at all, and identified by their content."""

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from fedrepro.errors import Damaged, UserError

_CARRIED = Path(__file__).resolve().parent / "checkout"
#: whether the package is a wheel, which carries the files of the checkout, and not installed in place
INSTALLED = _CARRIED.is_dir()
#: the checkout, or what a wheel carries of it (config, workflow, …)
ROOT = _CARRIED if INSTALLED else _CARRIED.parents[2]
#: the folder of results/: the checkout, or the working folder
WORK = Path.cwd() if INSTALLED else ROOT
MOST_YAML = 500_000  # bytes of a YAML file, ten times the largest of ours: more would take seconds to read


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to under a temporary name in the same folder, renamed at the end; an error leaves none."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.umask(mask := os.umask(0))  # the umask can be read only by setting it
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Keep the folder's names, too, over a power failure; file systems that cannot sync a folder keep them anyway."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def check_writable(folder: Path) -> None:
    """Create the folder; UserError if it is not writable."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"{folder}: cannot be written to: {error.strerror or error}") from None


def write_atomically(path: Path, content: bytes | str) -> None:
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, value: Any) -> None:
    write_atomically(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def check_own(path: Path, found: str) -> None:
    """Damaged if the checksum of one of the workflow's files is not the `sha256` in its json file."""
    about = Path(path).with_suffix(".json")
    if about.exists() and read_json(about)["sha256"] != found:
        raise Damaged(path)


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(value: Any) -> str:
    """Hash of a JSON-like value, independent of the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


# --- YAML ------------------------------------------------------------------------------------------------------------

#: what reads YAML's characters: in C where PyYAML has it, ten times as fast; composing and constructing stay in Python
if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class _FastReader(Composer, CParser, SafeConstructor, Resolver):
        def __init__(self, stream: str) -> None:
            CParser.__init__(self, stream)
            for part in (Composer, SafeConstructor, Resolver):
                part.__init__(self)


_Reader: Any = _FastReader if yaml.__with_libyaml__ else yaml.SafeLoader


class SafeYaml(_Reader):  # type: ignore[misc]  # the base depends on how PyYAML was built
    """Safe YAML without the two things a config never needs: duplicate keys and aliases (which can explode)."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise UserError(f"line {self.peek_event().start_mark.line + 1}: YAML aliases are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        self.keys_of(node)
        return super().construct_mapping(node, deep)

    def keys_of(self, node: yaml.MappingNode) -> list[str]:
        keys: dict[str, None] = {}
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise UserError(f"line {key_node.start_mark.line + 1}: key {key!r} must be text")
            if key in keys:
                raise UserError(f"line {key_node.start_mark.line + 1}: key '{key}' appears twice")
            keys[key] = None
        return list(keys)


def read_yaml(path: Path) -> Any:
    """The file's content. A syntax error is one line with file and line number."""
    return parse_yaml(path, lambda loader, text: loader.get_single_data())


def is_regular(path: Path) -> bool:
    """Whether there is a file to read; False if there is nothing. UserError for anything else of that name: reading a
    pipe or a device may never end."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:  # a name that is too long, a folder that may not be entered, a zero byte
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not stat.S_ISREG(found.st_mode):
        raise UserError(f"{path}: is a {'folder' if stat.S_ISDIR(found.st_mode) else 'pipe or device'}, not a file")
    return True


def parse_yaml(path: Path, what: Callable[[SafeYaml, str], Any]) -> Any:
    path = Path(path)
    if not is_regular(path):
        raise UserError(f"{path}: no such file")
    if (size := path.stat().st_size) > MOST_YAML:
        raise UserError(f"{path}: {size} bytes, at most {MOST_YAML} are possible")
    try:
        text = path.read_text(encoding="utf-8")
        return what(SafeYaml(text), text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: a date or number that is none
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise UserError(f"{path}: {line}{getattr(error, 'problem', None) or 'not valid YAML'}") from None
