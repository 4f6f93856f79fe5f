"""`make data`: fetch and verify the real data sets of config/datasets.yaml, and report the missing ones.

Present files are never overwritten. One process at a time fetches into a folder. Exit code 1: a data set named on the
command line is missing, or a present file is wrong. Without names, unreachable data sets are no failure.
"""

import argparse
import errno
import fcntl
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fedrepro.core.schemas import validate
from fedrepro.data.catalogue import CATALOGUE, Entries, cache_folder, entry, how_to_get, missing, present, verify
from fedrepro.data.download import TIMEOUT, Trouble, extract, get, part, settle
from fedrepro.errors import UserError, nearest
from fedrepro.files import read_yaml

_say = partial(print, flush=True)


@dataclass(frozen=True)
class Outcome:
    """The result for one data set."""

    name: str
    state: str  # there, fetched, missing or wrong
    note: str = ""  # why
    how: str = ""  # advice to the user
    size: int = 0


@dataclass(frozen=True)
class Fetcher:
    """Fetches into one folder."""

    folder: Path
    entries: Entries | None = None  # declarations to use instead of config/datasets.yaml
    timeout: float = TIMEOUT
    say: Callable[[str], None] = _say

    def fetch(self, name: str) -> Outcome:
        """Fetch the first layout with addresses for all files, unless it, a preferred or a complete one is present."""
        spec = entry(name, self.entries)
        how, layouts = how_to_get(name, spec), list(spec["layouts"].values())
        addressed = [all("url" in file or "archive" in file for file in layout["files"]) for layout in layouts]
        wanted = [*addressed, True].index(True)
        good_enough = [layout for i, layout in enumerate(layouts) if i <= wanted or layout.get("complete", True)]
        try:
            if self._there(good_enough):
                return Outcome(name, "there")
            if not any(addressed):
                return Outcome(name, "missing", "no address serves it", how)
            with self._alone():
                if self._there(good_enough):  # another process fetched it while this one waited
                    return Outcome(name, "there")
                size = self._fetch_layout(name, layouts[wanted])
        except UserError as error:
            return Outcome(name, "wrong", str(error))
        except Trouble as trouble:
            part_of_it = present(name, [self.folder], self.entries)
            note = f"{trouble}; until then its layout '{part_of_it[0]}' is here" if part_of_it else str(trouble)
            return Outcome(name, "missing", note, how)
        except OSError as error:
            return Outcome(name, "missing", f"{error.filename or self.folder}: {error.strerror or error}", how)
        return Outcome(name, "fetched", f"{size / 1e6:,.1f} MB", size=size)

    def _there(self, layouts: Sequence[Mapping[str, Any]]) -> bool:
        """Whether all files of one of the layouts are in the folder; UserError where one of them is wrong."""
        for layout in layouts:
            declared = {self.folder / file["path"]: file for file in layout["files"]}
            if all(path.is_file() for path in declared):
                return all(verify(path, file) for path, file in declared.items())
        return False

    def _fetch_layout(self, name: str, layout: Mapping[str, Any]) -> int:
        """Fetch the missing files of a layout, verify the others; returns the number of bytes fetched."""
        lacking = [file for file in layout["files"] if not (self.folder / file["path"]).is_file()]
        for file in layout["files"]:
            if file not in lacking:
                verify(self.folder / file["path"], file)
        get_it = partial(get, timeout=self.timeout, say=lambda line: self.say(f"  {line}"))
        for file in lacking:
            if "url" in file:
                get_it(file, self.folder / file["path"])
        for key in dict.fromkeys(file["archive"] for file in lacking if "archive" in file):
            archive = self.folder / ".archives" / f"{name}-{key}" / key
            if not archive.is_file():  # present where an earlier run was stopped while unpacking
                get_it(layout["archives"][key], archive)
            self._unpack(archive, [file for file in lacking if file.get("archive") == key])
        return sum((self.folder / file["path"]).stat().st_size for file in lacking)

    def _unpack(self, archive: Path, files: Sequence[Mapping[str, Any]]) -> None:
        """Unpack files and remove the archive; after a full disk it stays for the next run."""
        paths = [self.folder / file["path"] for file in files]
        try:
            members = {file["member"]: (part(path), file.get("bytes")) for path, file in zip(paths, files, strict=True)}
            extract(archive, members)
            for path, file in zip(paths, files, strict=True):
                settle(part(path), path, file, f"{archive.name}: member '{file['member']}'")
        except (UserError, Trouble) as error:
            archive.unlink()  # the next run fetches it anew
            self.say(f"  {error}")
            raise Trouble(str(error)) from None
        finally:
            for path in paths:
                part(path).unlink(missing_ok=True)
        shutil.rmtree(archive.parent)
        with suppress(OSError):  # not empty: another data set's archive
            archive.parent.parent.rmdir()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other process fetches into the folder. The lock ends with the process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.folder.stat().st_mode & 0o222:  # root, as in most containers, could still write
            raise PermissionError(errno.EACCES, "the folder is read-only", str(self.folder))
        with open(self.folder / ".lock", "ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.say(f"  another process fetches into {self.folder}: waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def check_catalogue(path: Path = CATALOGUE) -> Entries:
    """The declarations of all data sets; UserError where one is not valid."""
    entries: Entries = read_yaml(path)
    validate(entries, "datasets", path)
    layouts = [
        (f"{name}.layouts.{key}", made) for name, spec in entries.items() for key, made in spec["layouts"].items()
    ]
    for where, layout in layouts:
        archives = layout.get("archives", {})
        for file in layout["files"]:
            if "archive" in file and file["archive"] not in archives:
                known = f"is not under archives{nearest(file['archive'], archives)}"
                raise UserError(f"{path}: {where}: {file['path']}: archive '{file['archive']}' {known}")
    return entries


def fetch_missing(name: str, folders: Sequence[Path]) -> None:
    """For `data: real`: fetch the data set into the last folder; UserError with the addresses tried if this fails."""
    outcome = Fetcher(folders[-1]).fetch(name)
    if outcome.state == "wrong":
        raise UserError(outcome.note)
    if outcome.state == "missing":
        raise UserError(missing(name, folders, tried=outcome.note))


def summary(outcomes: Sequence[Outcome], folder: Path) -> str:
    width = max(len("data set"), *(len(o.name) for o in outcomes)) + 2
    rows = [f"{o.name:<{width}}{o.state:<9}{'; '.join(filter(None, (o.note, o.how)))}".rstrip() for o in outcomes]
    states = ("there", "fetched", "missing", "wrong")
    counts = [f"{n} {state}" for state in states if (n := sum(o.state == state for o in outcomes))]
    total = f"total: {', '.join(counts)}; {sum(o.size for o in outcomes) / 1e6:,.1f} MB fetched into {folder}"
    return "\n".join([f"{'data set':<{width}}state", *rows, total])


def main(arguments: Sequence[str] | None = None) -> int:
    description = "Fetch and verify the real data sets of config/datasets.yaml, and report the missing ones."
    parser = argparse.ArgumentParser(prog="python -m fedrepro.data.fetch", description=description)
    parser.add_argument("names", nargs="*", help="data sets of config/datasets.yaml (default: all)")
    parser.add_argument("--to", type=Path, default=cache_folder() / "data", help="folder (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds without a byte (default: %(default)s)")
    parser.add_argument("--catalogue", type=Path, default=CATALOGUE, help="a file like config/datasets.yaml")
    options = parser.parse_args(arguments)
    asked = re.findall(r"[^\s,]+", " ".join(options.names))
    outcomes = []
    try:
        entries = check_catalogue(options.catalogue)
        fetcher = Fetcher(options.to, entries, options.timeout)
        titles = {name: entry(name, entries)["title"] for name in asked or entries}
        for name, title in titles.items():
            fetcher.say(f"{name}: {title}")
            outcomes.append(fetcher.fetch(name))
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped; the same command goes on from here\n")
        return 130
    fetcher.say("\n" + summary(outcomes, options.to))
    failures = ("wrong", "missing") if asked else ("wrong",)
    return int(any(outcome.state in failures for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
