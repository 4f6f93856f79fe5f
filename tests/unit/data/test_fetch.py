"""`make data` against a local server with every known fault."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from pathlib import Path

import pytest
import yaml

from fedrepro.core import parts
from fedrepro.data import catalogue, download, preparation
from fedrepro.data.catalogue import Entry
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.fetch import Fetcher, Outcome, fetch_missing, main
from fedrepro.data.preparation import prepare_data
from fedrepro.errors import UserError
from fedrepro.files import ROOT
from tests.server import Server, wait_until

BODY = random.Random(0).randbytes(100_000)
OTHER = random.Random(1).randbytes(100_000)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server():
    with Server().running() as running:
        yield running


def md5(body: bytes) -> str:
    return hashlib.md5(body).hexdigest()


def declared(path: str, body: bytes | None = BODY, **more) -> dict:
    """A file's declaration; without a body, no checksum and no size are known."""
    return {"path": path, **({"bytes": len(body), "md5": md5(body)} if body is not None else {}), **more}


def entries(*files: dict, archives: dict | None = None, **more) -> dict:
    layout = {"files": list(files), **({"archives": archives} if archives else {})}
    facts = {"title": "Thing", "citation": "Me", "licence": "MIT", "size": "1 MB"}
    return {"thing": {**facts, "layouts": {"whole": layout}, **more}}


def fetch(folder: Path, declarations: dict, timeout: float = 20.0) -> tuple[Outcome, list[str]]:
    lines: list[str] = []
    return Fetcher(folder, declarations, timeout, lines.append).fetch("thing"), lines


def files_in(folder: Path) -> set[str]:
    """All files below a folder except the lock."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.name != ".lock"}


# --- one file ---------------------------------------------------------------------------------------------------------


def test_a_file_is_fetched_once_and_then_there(tmp_path, server):
    thing = entries(declared("a/b.bin", url=server.serve("b", BODY)))
    outcome, lines = fetch(tmp_path, thing)
    assert outcome == Outcome("thing", "fetched", "0.1 MB", size=len(BODY))
    assert lines == [f"  {server.url('b')} (0.1 MB)"]
    assert (tmp_path / "a/b.bin").read_bytes() == BODY
    assert files_in(tmp_path) == {"a/b.bin"}
    assert fetch(tmp_path, thing) == (Outcome("thing", "there"), [])
    assert server.asked == [("/b", None)]


def test_redirects_are_followed(tmp_path, server):
    server.serve("b", BODY)
    first = server.serve("a", location="/b")
    assert fetch(tmp_path, entries(declared("b", url=first)))[0].state == "fetched"
    assert [path for path, _ in server.asked] == ["/a", "/b"]


def test_the_second_mirror_serves_where_the_first_does_not(tmp_path, server):
    mirrors = [server.url("nowhere"), server.serve("b", BODY)]
    outcome, lines = fetch(tmp_path, entries(declared("b", url=mirrors)))
    assert outcome.state == "fetched"
    assert lines[0] == f"  {mirrors[0]}: 404 Not Found"


@pytest.mark.parametrize("status", [404, 403, 500])
def test_what_is_not_served_is_one_line_and_one_request(tmp_path, server, status):
    url = server.serve("b", BODY, status=status)
    outcome, lines = fetch(tmp_path, entries(declared("b", url=url), manual="Ask the library."))
    assert (outcome.state, outcome.how) == ("missing", "Ask the library.")
    assert outcome.note.startswith(f"{url}: {status} ")
    assert lines == [f"  {outcome.note}"]
    assert len(server.asked) == 1
    assert files_in(tmp_path) == set()


def test_an_address_where_nobody_listens(tmp_path, server):
    url = server.url("b")
    server._http.shutdown()
    server._http.server_close()
    outcome, lines = fetch(tmp_path, entries(declared("b", url=url)))
    assert outcome.state == "missing"
    assert f"{url}: cannot be reached: " in outcome.note
    assert len(lines) == 1
    assert "make data ONLY=thing" in outcome.how


@pytest.mark.parametrize("length", [True, False])
def test_a_cut_answer_is_taken_up_where_it_ended(tmp_path, server, length):
    url = server.serve("b", BODY, cut=[40_000], length=length)
    outcome, lines = fetch(tmp_path, entries(declared("b", url=url)))
    assert outcome.state == "fetched"
    assert (tmp_path / "b").read_bytes() == BODY
    assert server.asked == [("/b", None), ("/b", "bytes=40000-")]
    assert lines[1] == f"  {url}: broke off after 40000 of 100000 bytes"


def test_what_breaks_off_twice_is_kept_for_the_next_run(tmp_path, server):
    url = server.serve("b", BODY, cut=[40_000, 10_000])
    thing = entries(declared("b", url=url))
    outcome, _ = fetch(tmp_path, thing)
    assert outcome.state == "missing"
    assert files_in(tmp_path) == {"b.part"}
    assert (tmp_path / "b.part").read_bytes() == BODY[:50_000]
    assert fetch(tmp_path, thing)[0].state == "fetched"
    assert server.asked[-1] == ("/b", "bytes=50000-")
    assert files_in(tmp_path) == {"b"}


def test_without_a_checksum_nothing_is_pieced_together(tmp_path, server):
    url = server.serve("b", BODY, OTHER, cut=[40_000])
    outcome, _ = fetch(tmp_path, entries(declared("b", None, url=url)))
    assert outcome.state == "fetched"
    assert (tmp_path / "b").read_bytes() == OTHER
    assert server.asked == [("/b", None), ("/b", None)]


def test_without_size_and_length_the_end_is_where_the_server_ends(tmp_path, server):
    url = server.serve("b", BODY, length=False)
    assert fetch(tmp_path, entries({"path": "b", "md5": md5(BODY), "url": url}))[0].state == "fetched"


def test_a_stalling_server_is_left(tmp_path, server):
    url = server.serve("b", BODY, stall=30_000)
    outcome, lines = fetch(tmp_path, entries(declared("b", url=url)), timeout=0.3)
    assert outcome.state == "missing"
    assert lines.count(f"  {url}: broke off: timed out") == 2
    assert files_in(tmp_path) == {"b.part"}
    assert server.asked == [("/b", None), ("/b", "bytes=30000-")]


def test_a_server_that_never_answers_is_left(tmp_path, server):
    url = server.serve("b", BODY)
    server.answer = lambda request: server.released.wait(60)
    outcome, _ = fetch(tmp_path, entries(declared("b", url=url)), timeout=0.3)
    assert outcome.note == f"{url}: cannot be reached: timed out"


def test_a_server_without_ranges_starts_over(tmp_path, server):
    url = server.serve("b", BODY, ranges=False)
    (tmp_path / "b.part").write_bytes(OTHER[:40_000])
    assert fetch(tmp_path, entries(declared("b", url=url)))[0].state == "fetched"
    assert server.asked == [("/b", "bytes=40000-")]
    assert (tmp_path / "b").read_bytes() == BODY


def test_another_part_than_was_asked_for_is_not_taken(tmp_path, server):
    url = server.serve("b", BODY, shift=-100)
    (tmp_path / "b.part").write_bytes(BODY[:40_000])
    outcome, lines = fetch(tmp_path, entries(declared("b", url=url)))
    assert outcome.state == "fetched"
    assert "answers with another part of the file than requested" in lines[0]
    assert server.asked == [("/b", "bytes=40000-"), ("/b", None)]


def test_a_part_that_is_longer_than_the_file_is_dropped(tmp_path, server):
    url = server.serve("b", BODY)
    (tmp_path / "b.part").write_bytes(BODY + b"more")
    assert fetch(tmp_path, entries(declared("b", url=url)))[0].state == "fetched"
    assert server.asked == [("/b", "bytes=100004-"), ("/b", None)]  # 416, then from zero
    assert (tmp_path / "b").read_bytes() == BODY


def test_a_part_that_is_whole_needs_no_server(tmp_path, server):
    (tmp_path / "b.part").write_bytes(BODY)
    assert fetch(tmp_path, entries(declared("b", url=server.url("b"))))[0].state == "fetched"
    assert server.asked == []


def test_wrong_bytes_are_tried_once_more_from_zero(tmp_path, server):
    url = server.serve("b", OTHER, BODY)
    outcome, lines = fetch(tmp_path, entries(declared("b", url=url)))
    assert outcome.state == "fetched"
    assert lines[1] == f"  {url}: md5 is {md5(OTHER)}, not {md5(BODY)}"
    assert server.asked == [("/b", None), ("/b", None)]


def test_a_stale_part_is_found_out_by_its_checksum(tmp_path, server):
    url = server.serve("b", BODY)
    (tmp_path / "b.part").write_bytes(OTHER[:40_000])
    assert fetch(tmp_path, entries(declared("b", url=url)))[0].state == "fetched"
    assert server.asked == [("/b", "bytes=40000-"), ("/b", None)]
    assert (tmp_path / "b").read_bytes() == BODY


def test_bytes_that_stay_wrong_are_given_up_and_removed(tmp_path, server):
    url = server.serve("b", OTHER)
    outcome, _ = fetch(tmp_path, entries(declared("b", url=url)))
    assert outcome.state == "missing"
    assert f"md5 is {md5(OTHER)}, not {md5(BODY)}" in outcome.note
    assert len(server.asked) == 2
    assert files_in(tmp_path) == set()


def test_another_size_is_not_even_fetched(tmp_path, server):
    url = server.serve("b", BODY + b"more")
    outcome, _ = fetch(tmp_path, entries(declared("b", url=url)))
    assert outcome.note == f"{url}: has 100004 bytes, not 100000"
    assert files_in(tmp_path) == set()


def test_a_server_that_sends_on_and_on_is_cut(tmp_path, server):
    url = server.serve("b", BODY * 20, length=False)
    outcome, _ = fetch(tmp_path, entries(declared("b", url=url)))
    assert outcome.note == f"{url}: sends more than 100000 bytes"
    assert files_in(tmp_path) == set()


def test_a_web_page_is_not_taken_for_a_file_of_unknown_checksum(tmp_path, server):
    url = server.serve("b", b"<html>log in", content_type="text/html")
    outcome, _ = fetch(tmp_path, entries(declared("b", None, url=url)))
    assert outcome.note == f"{url}: answers with a web page, not with the file"
    assert files_in(tmp_path) == set()


# --- the disk, and other processes ------------------------------------------------------------------------------------


def test_a_full_disk_is_one_line_and_leaves_no_part(tmp_path, server):
    thing = entries(declared("b", url=server.serve("b", BODY)))
    (tmp_path / "b.part").symlink_to("/dev/full")  # every write to it fails as on a full disk
    outcome, _ = fetch(tmp_path, thing)
    assert (outcome.state, outcome.note) == ("missing", f"{tmp_path / 'b'}: {os.strerror(errno.ENOSPC)}")
    assert not os.path.lexists(tmp_path / "b.part")
    assert files_in(tmp_path) == set()


@pytest.mark.parametrize("folder", ["file/below", "file"])
def test_a_folder_that_cannot_be_one_is_named(tmp_path, server, folder):
    (tmp_path / "file").touch()
    outcome, _ = fetch(tmp_path / folder, entries(declared("b", url=server.serve("b", BODY))))
    assert outcome.state == "missing"
    assert str(tmp_path / "file") in outcome.note
    assert server.asked == []


def test_a_read_only_folder_is_named_and_untouched(tmp_path, server):
    thing = entries(declared("b", url=server.serve("b", BODY)))
    tmp_path.chmod(0o555)
    try:
        outcome, _ = fetch(tmp_path, thing)
        assert list(tmp_path.iterdir()) == []
    finally:
        tmp_path.chmod(0o755)
    assert (outcome.state, outcome.note) == ("missing", f"{tmp_path}: the folder is read-only")
    assert server.asked == []


def test_what_is_in_a_read_only_folder_is_there(tmp_path):
    (tmp_path / "b").write_bytes(BODY)
    tmp_path.chmod(0o555)
    try:
        outcome, _ = fetch(tmp_path, entries(declared("b", url="http://127.0.0.1:9/b")))
        assert outcome == Outcome("thing", "there")
    finally:
        tmp_path.chmod(0o755)


def test_a_folder_of_somebody_else_is_named(server):
    thing = entries(declared("b", url=server.serve("b", BODY)))
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        root = os.geteuid() == 0
        if not root:
            folder = "/"
        try:
            if root:
                os.seteuid(65534)  # another user, not root
            outcome, _ = fetch(Path(folder), thing)
        finally:
            if root:
                os.seteuid(0)
        assert outcome.state == "missing"
        assert outcome.note == f"{Path(folder) / '.lock'}: {os.strerror(errno.EACCES)}"


def command(folder: Path, declarations: dict, *more: str) -> subprocess.Popen:
    path = folder / "datasets.yaml"
    path.write_text(yaml.safe_dump(declarations, sort_keys=False))
    line = [sys.executable, "-m", "fedrepro.data.fetch", "--catalogue", str(path), "--to", str(folder / "data"), *more]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_killed_download_is_taken_up_by_the_next_run(tmp_path, server):
    thing = entries(declared("b", url=server.serve("b", BODY, stall=30_000)))
    part, final = tmp_path / "data/b.part", tmp_path / "data/b"
    process = command(tmp_path, thing)
    wait_until(lambda: part.is_file() and part.stat().st_size > 20_000)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not final.exists()
    had = part.stat().st_size
    assert 20_000 < had <= 30_000
    assert part.read_bytes() == BODY[:had]
    server.serve("b", BODY)
    said, errors = command(tmp_path, thing).communicate()
    assert f"from byte {had} on" in said
    assert errors == ""
    assert server.asked == [("/b", None), ("/b", f"bytes={had}-")]
    assert final.read_bytes() == BODY
    assert not part.exists()


def test_two_processes_take_turns(tmp_path, server):
    gate = threading.Event()
    thing = entries(declared("b", url=server.serve("b", BODY, gate=gate)))
    first = command(tmp_path, thing, "thing")
    wait_until(lambda: (tmp_path / "data/b.part").is_file())
    second = command(tmp_path, thing, "thing")
    assert second.stdout.readline() == "thing: Thing\n"
    assert second.stdout.readline() == f"  another process fetches into {tmp_path / 'data'}: waiting for it\n"
    gate.set()
    assert "1 fetched" in first.communicate()[0]
    assert "1 there" in second.communicate()[0]
    assert (first.returncode, second.returncode) == (0, 0)
    assert server.asked == [("/b", None)]
    assert (tmp_path / "data/b").read_bytes() == BODY


# --- archives ---------------------------------------------------------------------------------------------------------


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, body in members.items():
            file.writestr(name, body)
    return buffer.getvalue()


def tarred(members: dict[str, bytes], *special: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        for name, body in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            file.addfile(info, io.BytesIO(body))
        for info in special:
            file.addfile(info)
    return buffer.getvalue()


def packed(server: Server, body: bytes, *files: dict, known: bool = True) -> dict:
    facts = {"md5": md5(body), "bytes": len(body)} if known else {}
    return entries(*files, archives={"all.bin": {"url": server.serve("all", body), **facts}})


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_members_come_out_by_name_and_the_archive_goes(tmp_path, server, pack):
    body = pack({"in/a": BODY, "in/b": OTHER, "in/c": b"not asked for"})
    files = [declared(name, b, archive="all.bin", member=f"in/{name}") for name, b in (("b", OTHER), ("a", BODY))]
    outcome, _ = fetch(tmp_path, packed(server, body, *files))
    assert outcome == Outcome("thing", "fetched", "0.2 MB", size=200_000)
    assert files_in(tmp_path) == {"a", "b"}
    assert (tmp_path / "a").read_bytes() == BODY
    assert (tmp_path / "b").read_bytes() == OTHER
    assert not (tmp_path / ".archives").exists()
    assert len(server.asked) == 1


@pytest.mark.parametrize(("outer", "inner"), [(zipped, zipped), (zipped, tarred), (tarred, zipped)])
def test_an_archive_inside_an_archive(tmp_path, server, outer, inner):
    body = outer({"x/inner": inner({"a": BODY, "b": OTHER}), "c": b"beside it"})
    files = [
        declared("a", archive="all.bin", member="x/inner//a"),
        declared("b", OTHER, archive="all.bin", member="x/inner//b"),
        declared("c", b"beside it", archive="all.bin", member="c"),
    ]
    assert fetch(tmp_path, packed(server, body, *files))[0].state == "fetched"
    assert files_in(tmp_path) == {"a", "b", "c"}
    assert (tmp_path / "a").read_bytes() == BODY


def test_a_file_that_is_there_is_not_unpacked_again(tmp_path, server):
    files = [declared(n, b, archive="all.bin", member=n) for n, b in (("a", BODY), ("b", OTHER))]
    (tmp_path / "a").write_bytes(BODY)
    before = (tmp_path / "a").stat()
    outcome, _ = fetch(tmp_path, packed(server, zipped({"a": BODY, "b": OTHER}), *files))
    assert outcome.size == len(OTHER)
    after = (tmp_path / "a").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def link(name: str, kind: bytes = tarfile.SYMTYPE, to: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info


def zipped_link() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        info = zipfile.ZipInfo("a")
        info.external_attr = 0o120777 << 16
        file.writestr(info, "/etc/passwd")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("body", "member", "said"),
    [
        (tarred({}, link("a")), "a", "all.bin: member 'a' is a link, a device or a folder, not a file: refused"),
        (tarred({}, link("a", tarfile.LNKTYPE)), "a", "member 'a' is a link"),
        (tarred({}, link("a", tarfile.CHRTYPE)), "a", "member 'a' is a link, a device"),
        (tarred({}, link("a", tarfile.DIRTYPE)), "a", "member 'a' is a link, a device or a folder"),
        (zipped_link(), "a", "all.bin: member 'a' is a link"),
        (tarred({"../../a": BODY}), "../../a", "all.bin: member '../../a' points outside its folder: refused"),
        (zipped({"../a": BODY}), "../a", "all.bin: member '../a' points outside its folder: refused"),
        (zipped({"/tmp/a": BODY}), "/tmp/a", "all.bin: member '/tmp/a' points outside its folder: refused"),
        (zipped({"i": zipped({"../a": BODY})}), "i//../a", "i: member '../a' points outside its folder: refused"),
        (zipped({"b": BODY}), "a", "all.bin: has no member 'a'"),
        (tarred({"b": BODY}), "a", "all.bin: has no member 'a'"),
        (zipped({"a": BODY + b"x"}), "a", "all.bin: member 'a' unpacks to more than 100000 bytes: refused"),
        (tarred({"a": bytes(10**7)}), "a", "all.bin: member 'a' unpacks to more than 100000 bytes: refused"),
        (zipped({"a": OTHER}), "a", f"all.bin: member 'a': md5 is {md5(OTHER)}, not {md5(BODY)}"),
        (tarred({"a": BODY})[:50_000], "a", "all.bin: not an archive that can be read, or cut off"),
        (zipped({"a": BODY})[:50_000], "a", "all.bin: not an archive that can be read, or cut off"),
        (b"neither zip nor tar", "a", "all.bin: not an archive that can be read, or cut off"),
    ],
    ids=[
        "symbolic link",
        "hard link",
        "device",
        "folder",
        "link in a zip",
        "tar outside",
        "zip outside",
        "zip absolute",
        "inner outside",
        "not in the zip",
        "not in the tar",
        "zip too large",
        "tar too large",
        "wrong bytes",
        "cut tar",
        "cut zip",
        "no archive",
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_bad_archive_is_refused_by_name_and_leaves_nothing(tmp_path, server, body, member, said, known):
    folder = tmp_path / "deep/down"
    outcome, lines = fetch(folder, packed(server, body, declared("a", archive="all.bin", member=member), known=known))
    assert outcome.state == "missing"
    assert said in outcome.note
    assert "\n" not in outcome.note
    assert lines[-1] == f"  {outcome.note}"
    assert files_in(tmp_path) == set()


def test_a_bad_member_leaves_no_part_of_the_good_ones(tmp_path, server):
    files = [declared("a", archive="all.bin", member="a"), declared("z", archive="all.bin", member="z")]
    outcome, _ = fetch(tmp_path, packed(server, zipped({"a": BODY, "z": OTHER + b"x"}), *files))
    assert "member 'z' unpacks to more than" in outcome.note
    assert files_in(tmp_path) == set()


def test_a_member_of_unknown_size_has_a_limit_too(tmp_path, server, monkeypatch):
    monkeypatch.setattr(download, "LIMIT", 50_000)
    thing = packed(server, zipped({"a": bytes(100_000)}), declared("a", None, archive="all.bin", member="a"))
    assert "unpacks to more than 50000 bytes" in fetch(tmp_path, thing)[0].note
    assert files_in(tmp_path) == set()


def test_a_full_disk_while_unpacking_keeps_the_archive_for_the_next_run(tmp_path, server):
    thing = packed(server, zipped({"a": BODY}), declared("a", archive="all.bin", member="a"))
    (tmp_path / "a.part").symlink_to("/dev/full")
    outcome, _ = fetch(tmp_path, thing)
    assert outcome.note == f"{tmp_path}: {os.strerror(errno.ENOSPC)}"
    assert files_in(tmp_path) == {".archives/thing-all.bin/all.bin"}
    assert not os.path.lexists(tmp_path / "a.part")
    assert fetch(tmp_path, thing)[0].state == "fetched"
    assert len(server.asked) == 1
    assert files_in(tmp_path) == {"a"}


# --- choice of the layout, present files ------------------------------------------------------------------------------


def layouts(**specs: list[dict]) -> dict:
    thing = entries(declared("x"))
    thing["thing"]["layouts"] = {name: {"files": files} for name, files in specs.items()}
    return thing


def test_the_first_layout_with_addresses_is_fetched(tmp_path, server):
    url = server.serve("b", BODY)
    thing = layouts(
        first=[declared("1", url=url), declared("no address")],
        second=[declared("2", url=url)],
        third=[declared("3", url=url)],
    )
    assert fetch(tmp_path, thing)[0].state == "fetched"
    assert files_in(tmp_path) == {"2"}
    (tmp_path / "2").unlink()
    for name in ("1", "no address"):
        (tmp_path / name).write_bytes(BODY)
    assert fetch(tmp_path, thing)[0].state == "there"


def test_a_sample_does_not_keep_the_whole_away(tmp_path, server):
    thing = layouts(whole=[declared("whole", url=server.url("b"))], sample=[declared("sample", OTHER)])
    thing["thing"]["layouts"]["sample"]["complete"] = False
    (tmp_path / "sample").write_bytes(OTHER)
    outcome, _ = fetch(tmp_path, thing)
    assert outcome.state == "missing"
    assert outcome.note.endswith("until then its layout 'sample' is here")
    server.serve("b", BODY)
    assert fetch(tmp_path, thing)[0].state == "fetched"


def test_another_format_of_the_whole_is_good_enough(tmp_path, server):
    thing = layouts(text=[declared("text", url=server.url("b"))], binary=[declared("binary", OTHER)])
    (tmp_path / "binary").write_bytes(OTHER)
    assert fetch(tmp_path, thing)[0].state == "there"
    assert server.asked == []


def test_without_any_address_it_is_there_or_by_hand(tmp_path):
    thing = entries(declared("b"), manual="Ask the library.")
    assert fetch(tmp_path, thing)[0] == Outcome("thing", "missing", "no address serves it", "Ask the library.")
    (tmp_path / "b").write_bytes(BODY)
    assert fetch(tmp_path, thing)[0].state == "there"


@pytest.mark.parametrize("alone", [True, False])
def test_a_wrong_file_that_is_there_is_reported_and_never_overwritten(tmp_path, server, alone):
    files = [declared("a", url=server.serve("a", BODY)), declared("b", url=server.serve("b", BODY))]
    (tmp_path / "a").write_bytes(OTHER)
    outcome, _ = fetch(tmp_path, entries(*files[: 1 if alone else 2]))
    assert outcome.state == "wrong"
    assert outcome.note.startswith(f"{tmp_path / 'a'}: md5 is {md5(OTHER)}, not {md5(BODY)}. Remove it and run")
    assert (tmp_path / "a").read_bytes() == OTHER
    assert server.asked == []


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the command on some declarations; its exit code, output and errors."""

    def call(declarations: dict, *names: str) -> tuple[int, str, str]:
        path = tmp_path / f"{len(list(tmp_path.glob('*.yaml')))}.yaml"  # the catalogue is cached
        path.write_text(yaml.safe_dump(declarations, sort_keys=False))
        code = main(["--catalogue", str(path), "--to", str(tmp_path / "data"), *names])
        return code, *capsys.readouterr()

    return call


def two(server: Server, **faults) -> dict:
    """`thing` is served, `lost` is not."""
    server.serve("b", BODY, **faults)
    both = entries(declared("b", url=server.url("b")))
    both["lost"] = entries(declared("c", url=server.url("c")), manual="Ask the library.")["thing"]
    return both


def test_the_summary_says_what_is_there_and_how_to_get_the_rest(run, server, tmp_path):
    code, said, errors = run(two(server))
    assert (code, errors) == (0, "")  # a data set that was not named may be missing
    assert said.splitlines() == [
        "thing: Thing",
        f"  {server.url('b')} (0.1 MB)",
        "lost: Thing",
        f"  {server.url('c')}: 404 Not Found",
        "",
        "data set  state",
        "thing     fetched  0.1 MB",
        f"lost      missing  {server.url('c')}: 404 Not Found; Ask the library.",
        f"total: 1 fetched, 1 missing; 0.1 MB fetched into {tmp_path / 'data'}",
    ]
    code, said, _ = run(two(server), "thing")
    assert code == 0
    assert "lost" not in said
    assert said.splitlines()[-2:] == ["thing     there", f"total: 1 there; 0.0 MB fetched into {tmp_path / 'data'}"]


@pytest.mark.parametrize("names", [["lost"], ["thing lost"], ["lost,thing"], ["thing", "lost"]])
def test_what_was_named_and_cannot_be_had_is_a_failure_but_stops_nothing(run, server, tmp_path, names):
    code, said, _ = run(two(server), *names)
    assert code == 1
    assert "lost" in said
    assert (tmp_path / "data/b").exists() == ("thing" in names[0])


def test_a_wrong_file_is_a_failure_even_where_nothing_was_named(run, server, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/b").write_bytes(OTHER)
    code, said, _ = run(two(server))
    assert code == 1
    assert "total: 1 missing, 1 wrong" in said


def test_an_unknown_name_is_an_error_before_anything_is_fetched(run, server):
    code, _, errors = run(two(server), "thing", "thin")
    assert (code, errors) == (1, "error: data set 'thin' is not in datasets.yaml; did you mean 'thing'?\n")
    assert server.asked == []


def test_an_interrupted_command_says_so(run, server):
    def interrupted(request):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        server.released.wait(60)

    server.answer = interrupted
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore SIGINT
    try:
        code, _, errors = run(two(server))
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, errors) == (130, "\nstopped; the same command goes on from here\n")


def test_the_folder_is_the_cache_unless_said_otherwise(tmp_path, server, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "datasets.yaml").write_text(yaml.safe_dump(two(server)))
    assert main(["--catalogue", str(tmp_path / "datasets.yaml"), ""]) == 0  # make without ONLY
    assert (tmp_path / "fedrepro/data/b").read_bytes() == BODY
    capsys.readouterr()


def test_make_hands_over_names_and_folder_as_text():
    line = ["make", "-n", "--no-print-directory", "STAMP=Makefile", "data", "ONLY=mnist 'x; y'", "DATA_DIR=/my data"]
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    words = subprocess.run(["sh", "-c", f'printf "%s\\n" {done.stdout}'], capture_output=True, text=True).stdout
    assert words.splitlines() == [
        *(".venv/bin/python", "-m", "fedrepro.data.fetch", "--to", "/my data", "--", "mnist 'x; y'"),
    ]


# --- data: real -------------------------------------------------------------------------------------------------------


@pytest.fixture
def thing(monkeypatch):
    """Makes `thing` a data set with real files, given its declaration."""

    def load(source) -> Dataset:
        found = source.find("thing")
        x = source.rng.random((4, 1))
        return Dataset("real" if found else "standin", Split(x, x[:, 0]), found=found)

    def declare(declarations: dict) -> None:
        monkeypatch.setattr(catalogue, "catalogue", lambda: declarations)
        monkeypatch.setattr(parts, "dataset", {"thing": Entry(load, False, lambda: (1, 4), "thing")}.__getitem__)

    return declare


def prepare(folders: list[Path], out: Path, mode: str) -> str:
    prepare_data("thing-1", {"name": "thing"}, [-1], mode, folders, out, fetch_missing)
    return str(preparation.data_files.load(out)[-1].kind)


def test_real_fetches_what_is_missing_into_the_last_folder(tmp_path, server, thing):
    thing(entries(declared("b", url=server.serve("b", BODY))))
    (tmp_path / "mine").mkdir()
    folders = [tmp_path / "mine", tmp_path / "cache"]
    assert prepare(folders, tmp_path / "1.npz", "real") == "real"
    assert files_in(tmp_path / "mine") == set()
    assert (tmp_path / "cache/b").read_bytes() == BODY
    assert prepare(folders, tmp_path / "2.npz", "real") == "real"
    assert server.asked == [("/b", None)]


@pytest.mark.parametrize("mode", ["auto", "standin"])
def test_no_other_mode_downloads(tmp_path, server, thing, mode):
    thing(entries(declared("b", url=server.serve("b", BODY))))
    assert prepare([tmp_path / "cache"], tmp_path / "1.npz", mode) == "standin"
    assert server.asked == []
    assert not (tmp_path / "cache").exists()


def test_real_uses_what_is_there_without_a_request(tmp_path, server, thing):
    thing(entries(declared("b", url=server.serve("b", BODY))))
    (tmp_path / "b").write_bytes(BODY)
    assert prepare([tmp_path, tmp_path / "cache"], tmp_path / "1.npz", "real") == "real"
    assert server.asked == []


def test_real_without_the_data_says_what_is_missing_what_was_tried_and_what_to_do(tmp_path, server, thing):
    thing(entries(declared("b", url=server.url("b")), manual="Ask the library."))
    with pytest.raises(UserError) as error:
        prepare([tmp_path / "mine", tmp_path / "cache"], tmp_path / "1.npz", "real")
    assert str(error.value) == (
        f"data: real, but Thing is not here: b not in {tmp_path / 'mine'} or {tmp_path / 'cache'}. "
        f"Tried: {server.url('b')}: 404 Not Found. Ask the library."
    )
    assert not (tmp_path / "1.npz").exists()


def test_real_with_a_wrong_file_in_the_cache_is_that_error(tmp_path, server, thing):
    thing(entries(declared("a", url=server.serve("b", BODY)), declared("b", url=server.url("b"))))
    (tmp_path / "a").write_bytes(OTHER)
    with pytest.raises(UserError, match=rf"a: md5 is {md5(OTHER)}, not {md5(BODY)}"):
        prepare([tmp_path], tmp_path / "1.npz", "real")
    assert server.asked == []
