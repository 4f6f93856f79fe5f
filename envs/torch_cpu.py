"""The CPU builds of torch and torchvision, in the versions of the lock, for envs/install.sh.

    python envs/torch_cpu.py rest LOCK           the lock without torch, torchvision and the CUDA libraries
    python envs/torch_cpu.py builds LOCK INDEX   requirements of the CPU builds, with the hashes that INDEX lists
    python envs/torch_cpu.py installed LOCK      names of the installed CPU builds
    python envs/torch_cpu.py unneeded LOCK       names of the installed CUDA libraries

There is no second lock: what is not torch is the same in both, and would have to be kept so. `builds` prints nothing if
the builds are installed. If the index cannot be used, it says so in one line and ends with code 3. It runs after `rest`
is installed, since it needs `packaging`; the other commands need Python alone.
"""

import os
import re
import ssl
import sys
import threading
import urllib.request
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

BUILDS = ("torch", "torchvision")
CUDA = re.compile(r"triton|(nvidia|cuda)-.+")  # what torch needs of the lock for CUDA alone
SECONDS = 5.0  # that the index has for an answer
UNUSABLE = 3


class Unusable(Exception):
    """The index cannot be used, for the reason given."""


def entries(lock: Path) -> Iterator[tuple[str, str, str]]:
    """(name, version, text) of every package of the lock; the text has its hashes, over several lines."""
    for text in re.findall(r"(?m)^[A-Za-z0-9].*(?:\n[ \t]+.*)*\n?", lock.read_text(encoding="utf-8")):
        pin = re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", text)
        if pin is None:
            raise SystemExit(f"error: {lock}: '{text.splitlines()[0]}' is no pinned version")
        yield pin[1], pin[2], text


def rest(lock: Path) -> Iterator[str]:
    return (text.rstrip("\n") for name, _, text in entries(lock) if name not in BUILDS and not CUDA.fullmatch(name))


def wanted(lock: Path) -> dict[str, str]:
    """Name → version of the CPU builds."""
    return {name: f"{version}+cpu" for name, version, _ in entries(lock) if name in BUILDS}


def present(name: str) -> str:
    """The installed version of a package, or nothing."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def installed(lock: Path) -> Iterator[str]:
    return (name for name in wanted(lock) if present(name).endswith("+cpu"))


def unneeded(lock: Path) -> Iterator[str]:
    return (name for name, _, _ in entries(lock) if CUDA.fullmatch(name) and present(name))


def builds(lock: Path, index: str) -> list[str]:
    """One requirement per build that is not installed: the file that fits this Python and system best, and its hash."""
    missing = {name: version for name, version in wanted(lock).items() if present(name) != version}
    return [f"{name} @ {requirement(name, version, index)}" for name, version in missing.items()]


def requirement(name: str, version: str, index: str) -> str:
    """Address and hash of the wheel. A file that the index lists without a SHA-256 does not count."""
    from packaging.tags import sys_tags
    from packaging.utils import parse_wheel_filename

    rank = {tag: place for place, tag in enumerate(sys_tags())}
    found: dict[str, int] = {}
    for link in links(index, name):
        address, fragment = urldefrag(link)
        file = unquote(urlsplit(address).path.rpartition("/")[2])
        if file.startswith(f"{name}-{version}-") and file.endswith(".whl") and sha256(fragment):
            fitting = [rank[tag] for tag in parse_wheel_filename(file)[3] if tag in rank]
            found |= {link: min(fitting)} if fitting else {}
    if not found:
        raise Unusable(f"lists no {name} {version} with a hash for this Python and system")
    address, fragment = urldefrag(min(found, key=found.__getitem__))
    return f"{address} --hash=sha256:{sha256(fragment)}"


def sha256(fragment: str) -> str:
    match = re.fullmatch(r"sha256=([0-9a-f]{64})", fragment)
    return match[1] if match else ""


def links(index: str, name: str) -> list[str]:
    """The addresses on the index's page of a package."""
    address, text = in_time(f"{index.rstrip('/')}/{name}/")
    found: list[str] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(urljoin(address, value) for key, value in attrs if (tag, key) == ("a", "href") and value)

    Links().feed(text)
    return found


def in_time(address: str) -> tuple[str, str]:
    """Address and text of a page. In a thread of its own, since looking up a host's name has no time limit."""
    result: list[tuple[str, str] | Exception] = []

    def fetch() -> None:
        try:
            result.append(page(address))
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if not result or isinstance(result[0], Exception):
        why = getattr(result[0], "reason", None) or result[0] if result else f"no answer within {SECONDS:g} s"
        raise Unusable(f"cannot be reached ({' '.join(str(why).split())})")
    return result[0]


def page(address: str) -> tuple[str, str]:
    if address.startswith("file:"):
        address += "index.html"  # as pip does
    elif not address.startswith(("https:", "http:")):
        raise ValueError("not an address of https, http or file")
    context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT") or None)
    with urllib.request.urlopen(address, timeout=SECONDS, context=context) as answer:
        return answer.url, answer.read().decode("utf-8")


def main(command: str, lock: str, index: str = "") -> int:
    try:
        lines = {
            "rest": lambda: rest(Path(lock)),
            "builds": lambda: builds(Path(lock), index),
            "installed": lambda: installed(Path(lock)),
            "unneeded": lambda: unneeded(Path(lock)),
        }[command]()
        sys.stdout.writelines(f"{line}\n" for line in lines)
    except Unusable as error:
        shown = re.sub(r"//[^/@]*@", "//", index)  # without a password
        sys.stderr.write(
            f"set-up: {shown} {error}: installing the default build of torch with 4 GB of CUDA libraries; "
            "'make setup TORCH=cpu' tries again\n"
        )
        return UNUSABLE
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
