"""The build of torch: CPU wheels of an index of its own, checked by hash; the lock as it is where that index fails.

The index and the packages are small wheels in a folder; nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import zipfile
from importlib import metadata, util
from pathlib import Path
from types import ModuleType

import packaging.requirements
import packaging.utils
import pytest

from fedrepro.commands.bill import licence
from fedrepro.evidence import provenance
from fedrepro.files import ROOT

LOCK = ROOT / "envs" / "requirements.lock"
PINS = {"tiny": "1.0", "torch": "2.12.1", "torchvision": "0.27.1", "triton": "3.7.1", "nvidia-cublas": "13.1"}
CPU = {"tiny": "1.0", "torch": "2.12.1+cpu", "torchvision": "0.27.1+cpu"}
FALLBACK = "installing the default build of torch with 4 GB of CUDA libraries; 'make setup TORCH=cpu' tries again"
not_on_macos = pytest.mark.skipif(sys.platform == "darwin", reason="there is one build of torch for macOS")


def wheel(folder: Path, name: str, version: str, content: Path | None = None, tag: str = "py3-none-any") -> Path:
    """A wheel with one empty module, or with the modules of the folder `content`."""
    folder.mkdir(parents=True, exist_ok=True)
    module = name.replace("-", "_")
    path = folder / f"{module}-{version}-{tag}.whl"
    about = f"{module}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        sources = sorted(content.rglob("*.py")) if content else []
        for source in sources:
            file.write(source, Path(module, source.relative_to(content)))
        if not sources:
            file.writestr(f"{module}.py", "")
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nLicense: MIT\n")
        file.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n")
        names = [*(entry.filename for entry in file.infolist()), f"{about}/RECORD"]
        file.writestr(f"{about}/RECORD", "".join(f"{entry},,\n" for entry in names))
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Place:
    """An environment, a lock with its packages, and an index of CPU builds."""

    def __init__(self, folder: Path, environment: Path):
        self.folder, self.lock, self.index = folder, folder / "lock", folder / "index"
        self.environment = shutil.copytree(environment, folder / "env", symlinks=True)
        self.packages = [wheel(folder / "packages", name, version) for name, version in PINS.items()]
        self.packages.append(wheel(folder / "packages", "packaging", "1.0", Path(packaging.__file__).parent))
        pins = [*PINS.items(), ("packaging", "1.0")]
        entries = zip(pins, self.packages, strict=True)
        self.lock.write_text("".join(f"{n}=={v} \\\n    --hash=sha256:{sha256(p)}\n" for (n, v), p in entries))
        for name in ("torch", "torchvision"):
            self.list(wheel(folder / "files", name, CPU[name]))

    def list(self, *files: Path, hashes: bool = True) -> None:
        """Let the index list these files alone, for the package that they have the name of."""
        page = self.index / files[0].name.partition("-")[0] / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        address = "../../files/{}#sha256={}" if hashes else "../../files/{}"
        lines = [address.format(file.name.replace("+", "%2B"), sha256(file)) for file in files]
        page.write_text("".join(f'<a href="{line}">a wheel</a>\n' for line in lines))

    def install(self, build: str, index: str = "") -> subprocess.CompletedProcess[str]:
        own = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.folder / "packages"), "PIP_CONFIG_FILE": os.devnull}
        chosen = {"TORCH": build, "TORCH_INDEX": index or self.index.as_uri()}
        command = ["sh", str(ROOT / "envs" / "install.sh"), str(self.environment / "bin" / "python"), str(self.lock)]
        known = {**os.environ, **own, **chosen}
        return subprocess.run(command, env=known, capture_output=True, text=True, timeout=300)

    @property
    def site(self) -> str:
        return str(next(self.environment.glob("lib/python*/site-packages")))

    def there(self) -> dict[str, str]:
        """The installed packages but pip."""
        found = {package.name: package.version for package in metadata.distributions(path=[self.site])}
        return {name: found[name] for name in (*PINS, "packaging") if name in found}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with the pip of this one: ensurepip would take longer than all tests here."""
    folder = tmp_path_factory.mktemp("venv") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    own = Path(str(metadata.distribution("pip").locate_file("")))
    for part in (own / "pip", *own.glob("pip-*.dist-info")):
        shutil.copytree(part, next(folder.glob("lib/python*/site-packages")) / part.name)
    return folder


@pytest.fixture
def place(tmp_path, environment):
    return Place(tmp_path, environment)


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


@not_on_macos
def test_the_cpu_builds_come_from_the_index_and_the_rest_from_the_lock(place):
    assert told(place.install("cpu")) == (0, "cpu\n", "")
    assert place.there() == {**CPU, "packaging": "1.0"}
    # once installed they need no index
    assert told(place.install("cpu", "file:///nowhere")) == (0, "cpu\n", "")


@not_on_macos
def test_a_change_of_the_build_replaces_it(place):
    everything = {**PINS, "packaging": "1.0"}
    assert told(place.install("cuda")) == (0, "cuda\n", "")
    assert place.there() == everything
    assert told(place.install("cpu")) == (0, "cpu\n", "")
    assert place.there() == {**CPU, "packaging": "1.0"}  # without the CUDA libraries
    assert told(place.install("cuda")) == (0, "cuda\n", "")
    assert place.there() == everything  # though 2.12.1+cpu satisfies ==2.12.1


@not_on_macos
def test_without_the_index_the_lock_is_installed_and_one_line_says_so(place):
    code, out, err = told(place.install("cpu", "file:///nowhere"))
    assert (code, out, place.there()) == (0, "cuda\n", {**PINS, "packaging": "1.0"})
    assert err.startswith("set-up: file:///nowhere cannot be reached (")
    assert err.endswith(f"): {FALLBACK}\n")
    assert err.count("\n") == 1


@not_on_macos
def test_a_file_that_differs_from_the_listed_hash_is_an_error(place):
    wheel(place.folder / "files", "torchvision", CPU["torchvision"], Path(packaging.__file__).parent)
    code, out, err = told(place.install("cpu"))
    assert (code != 0, out) == (True, "")
    assert "DO NOT MATCH THE HASHES" in err
    assert {"torch", "torchvision"} & set(place.there()) == set()


@not_on_macos
def test_the_rest_is_checked_by_the_hashes_of_the_lock(place):
    place.lock.write_text(place.lock.read_text().replace(sha256(place.packages[0]), "0" * 64))
    done = place.install("cpu")
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert "tiny" not in place.there()


@not_on_macos
def test_the_build_is_in_the_manifest_and_its_licence_in_the_bill(place, monkeypatch):
    place.install("cpu")
    provenance.versions.cache_clear()
    monkeypatch.syspath_prepend(place.site)
    try:
        assert provenance.about("")["versions"]["torch"] == "2.12.1+cpu"
        assert licence("torch", "2.12.1") == "MIT"
    finally:
        provenance.versions.cache_clear()


@pytest.fixture
def torch_cpu(monkeypatch) -> ModuleType:
    """envs/torch_cpu.py, where none of its builds is installed."""
    spec = util.spec_from_file_location("torch_cpu", ROOT / "envs" / "torch_cpu.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "present", lambda name: "")
    return module


@pytest.mark.parametrize(
    ("index", "why"),
    [
        ("https://nobody:secret@127.0.0.1:1/cpu", r"set-up: https://127\.0\.0\.1:1/cpu cannot be reached \([^\n]+\): "),
        ("my-index", r"set-up: my-index cannot be reached \(not an address of https, http or file\): "),
    ],
)
def test_an_address_that_cannot_be_used_is_one_line_without_its_password(torch_cpu, capsys, index, why):
    assert torch_cpu.main("builds", str(LOCK), index) == 3
    out, err = capsys.readouterr()
    assert (out, re.fullmatch(f"{why}{FALLBACK}\n", err) is not None) == ("", True), err


@pytest.mark.parametrize("lacking", ["hash", "system", "version"])
def test_a_file_without_a_hash_or_for_another_system_or_version_does_not_count(torch_cpu, place, capsys, lacking):
    files, index = place.folder / "files", place.index.as_uri()
    assert torch_cpu.main("builds", str(place.lock), index) == 0
    assert capsys.readouterr().out.count(" --hash=sha256:") == 2
    if lacking == "hash":
        place.list(next(files.glob("torch-*")), hashes=False)
    elif lacking == "system":
        place.list(wheel(files, "torch", CPU["torch"], tag="cp27-cp27m-win32"))
    else:
        place.list(wheel(files, "torch", "2.12.10+cpu"), wheel(files, "torch", "2.12.1+cu130"))
    assert torch_cpu.main("builds", str(place.lock), index) == 3
    why = "lists no torch 2.12.1+cpu with a hash for this Python and system"
    assert capsys.readouterr() == ("", f"set-up: {index} {why}: {FALLBACK}\n")


def test_an_index_that_does_not_answer_is_given_up(torch_cpu, monkeypatch):
    monkeypatch.setattr(torch_cpu, "SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(torch_cpu.Unusable, match=r"cannot be reached \((no answer within 0.3 s|timed out)\)"):
            torch_cpu.links(address, "torch")


def test_the_best_wheel_for_this_python_is_chosen(torch_cpu, place):
    files = place.folder / "files"
    own = f"cp{sys.version_info.major}{sys.version_info.minor}"
    exact = wheel(files, "torch", "3.0+cpu", tag=f"{own}-none-any")
    place.list(wheel(files, "torch", "3.0+cpu"), exact, wheel(files, "torch", "3.0+cpu", tag="cp27-none-any"))
    chosen = torch_cpu.requirement("torch", "3.0+cpu", place.index.as_uri())
    assert chosen.endswith(f"/files/torch-3.0%2Bcpu-{own}-none-any.whl --hash=sha256:{sha256(exact)}")


def test_the_rest_of_our_lock_needs_none_of_the_cuda_libraries(torch_cpu):
    names = {name for name, _, _ in torch_cpu.entries(LOCK)}
    kept = {line.partition("==")[0] for line in torch_cpu.rest(LOCK)}
    cuda = names - kept - {"torch", "torchvision"}
    assert {"triton", "nvidia-cublas", "cuda-toolkit"} <= cuda
    assert torch_cpu.wanted(LOCK) == {"torch": "2.12.1+cpu", "torchvision": "0.27.1+cpu"}
    lines = [line for entry in torch_cpu.rest(LOCK) for line in entry.splitlines()]
    assert set(lines) <= set(LOCK.read_text(encoding="utf-8").splitlines())
    needed = {}
    for package in metadata.distributions():
        for text in package.requires or [] if package.name.lower() in kept else []:
            need = packaging.requirements.Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                needed.setdefault(packaging.utils.canonicalize_name(need.name), package.name)
    assert "torch" in needed
    assert {name: needed[name] for name in cuda & set(needed)} == {}
