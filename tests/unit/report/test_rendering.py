"""The files of an artefact and its provenance chain."""

from __future__ import annotations

import sys
import types

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from fedrepro.core import parts
from fedrepro.core.metrics import MetricLog
from fedrepro.data.dataset import Dataset, Split, save
from fedrepro.files import read_json, sha256, write_json
from fedrepro.report import plotting, rendering
from fedrepro.report.rendering import render_artefact

SPEC = {
    "id": "toy/fig1",
    "study": "toy",
    "kind": "figure",
    "source": "Fig. 1",
    "title": "A figure",
    "caption": "What it shows.",
    "experiments": ["line"],
}
MANIFEST = {
    "experiment": "toy/line",
    "algorithm": "fedavg",
    "shard": "0-1",
    "seconds": 1.5,
    "commit": "abc",
    "code_sha256": "c0de",
    "data": {"name": "dfl_line", "kind": "standin", "sha256": "da7a"},
    "federation_sha256": "fed",
    "versions": {},
}


@pytest.fixture
def toy(monkeypatch):
    """A study with a figure and a table; the figure records the tables it gets."""
    module = types.ModuleType("toy_artefacts")

    def fig1(tables):
        module.given = tables
        fig, axes = plotting.figure()
        drawn = tables["line"] if "line" in tables else pd.DataFrame({"x": [1]})
        axes[0, 0].plot(range(len(drawn)))
        return fig, drawn.iloc[:, -3:]

    module.fig1 = fig1
    module.table1 = lambda tables: pd.DataFrame({"method": ["fedavg"], "loss": [0.5]})
    monkeypatch.setitem(sys.modules, "toy_artefacts", module)
    monkeypatch.setattr(parts, "artefact_module", lambda study, name: {"toy": "toy_artefacts"}[study])
    yield module
    plt.close("all")


@pytest.fixture
def results(tmp_path):
    """results/smoke with one experiment: two settings, two seeds, one seed diverged."""
    root = tmp_path / "results" / "smoke"
    log = MetricLog()
    for setting in ("a", "b"):
        for seed in (0, 1):
            log.add((setting, seed), 0, "loss", 1.0)
            log.add((setting, seed), 1, "loss", 2.0)
    frame = log.frame("toy/line", "fedavg")
    for part in ("tables/toy/line.parquet", "runs/toy/line/fedavg/0-1.parquet"):
        path = root / part
        path.parent.mkdir(parents=True)
        frame.assign(data="standin", diverged=frame["seed"] == 1).to_parquet(path)
    write_json(root / "runs/toy/line/fedavg/0-1.json", MANIFEST)
    return root


def render(root, spec=SPEC, samples=(), published=None):
    out = root / "artefacts" / "toy" / f"{spec['id'].split('/')[1]}.csv"
    tables = [root / f"tables/toy/{name}.parquet" for name in spec["experiments"]]
    manifests = [root / f"runs/toy/{name}/fedavg/0-1.json" for name in spec["experiments"]]
    render_artefact(spec, "smoke", tables, manifests, list(samples), published, {"drawing.py": "c0de"}, out)
    return read_json(out.with_suffix(".json"))


def test_picture_numbers_and_chain(toy, results):
    about = render(results)
    base = results / "artefacts" / "toy" / "fig1"
    assert base.with_suffix(".svg").read_bytes().startswith(b"<?xml")
    assert base.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    numbers = pd.read_csv(base.with_suffix(".csv"))
    assert list(numbers.columns) == ["value", "data", "diverged"]
    assert len(numbers) == 8
    assert about == {
        "artefact": "toy/fig1",
        "study": "toy",
        "title": "A figure",
        "alt": "",
        "stamp": "stand-in data",
        "caption": "What it shows.",
        "kind": "figure",
        "source": "Fig. 1",
        "scale": "smoke",
        "data": ["standin"],
        "seeds": 2,
        "diverged": 2,  # seed 1 in both settings
        "code": {"drawing.py": "c0de"},
        "inputs": [{"path": "tables/toy/line.parquet", "sha256": sha256(results / "tables/toy/line.parquet")}],
        "runs": [
            {
                "path": "runs/toy/line/fedavg/0-1.json",
                "experiment": "toy/line",
                "algorithm": "fedavg",
                "shard": "0-1",
                "seconds": 1.5,
                "commit": "abc",
                "code_sha256": "c0de",
                "sha256": sha256(results / "runs/toy/line/fedavg/0-1.parquet"),
                "data": "dfl_line",
                "data_kind": "standin",
                "data_sha256": "da7a",
                "federation_sha256": "fed",
            }
        ],
    }


def test_a_table_is_kept_as_numbers_and_as_a_picture(toy, results):
    about = render(results, {**SPEC, "id": "toy/table1", "kind": "table"})
    base = results / "artefacts" / "toy" / "table1"
    assert pd.read_csv(base.with_suffix(".csv")).to_dict("list") == {"method": ["fedavg"], "loss": [0.5]}
    assert base.with_suffix(".svg").exists()
    assert about["kind"] == "table"


def test_samples_are_those_of_the_first_seed(toy, results):
    path = results / "data" / "line.npz"
    data = {
        seed: Dataset("real", Split(np.full((2, 1, 2), seed), np.array([5, 6]), client=np.array([0, 1])))
        for seed in (4, 3)
    }
    save(path, data)
    about = render(results, {**SPEC, "data": ["line"]}, samples=[path])
    expected = {"x0": [3, 3], "x1": [3, 3], "y": [5, 6], "client": [0, 1], "seed": [3, 3]}
    assert toy.given["line.data"].to_dict("list") == expected
    assert about["inputs"][1] == {"path": "data/line.npz", "sha256": sha256(path)}


def stamped(monkeypatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(plotting, "stamp", lambda fig, text: found.append(text))
    return found


def test_a_picture_from_a_stand_in_is_stamped(toy, results, monkeypatch):
    texts = stamped(monkeypatch)
    render(results)
    render(results, {**SPEC, "id": "toy/table1", "kind": "table"})
    assert texts == ["stand-in data", "stand-in data"]


@pytest.mark.parametrize(("kind", "said"), [("real", ["stand-in data: line"]), ("standin", ["stand-in data"])])
def test_the_stamp_names_what_is_made_up_where_not_everything_is(kind, said, toy, results, monkeypatch):
    texts = stamped(monkeypatch)
    path = results / "data" / "line.npz"
    save(path, {0: Dataset(kind, Split(np.zeros((2, 1)), np.array([5, 6])))})
    render(results, {**SPEC, "data": ["line"]}, samples=[path])
    assert texts == said


def test_real_data_is_not_stamped(toy, results, monkeypatch):
    texts = stamped(monkeypatch)
    table = results / "tables/toy/line.parquet"
    pd.read_parquet(table).assign(data="real").to_parquet(table)
    render(results)
    assert texts == []


def test_a_figure_is_described_by_its_panels_axes_and_legends():
    fig, axes = plotting.figure(1, 2)
    for ax, title in zip(axes[0], ("MNIST", "$F$-MNIST"), strict=True):
        ax.plot([1, 2], label="FedAvg")
        ax.set(title=title, xlabel="round", ylabel="loss")
    axes[0, 0].legend()
    told = plotting.describe(fig)
    assert told == "2 panels: MNIST; F-MNIST. Across: round. Up: loss. Drawn: FedAvg."


def test_samples_of_a_stand_in_count_as_its_data(toy, results, monkeypatch):
    frame = pd.DataFrame({"x0": [1.0]})
    frame.attrs["data"] = "standin"
    monkeypatch.setattr(rendering, "_samples", lambda path: frame)
    about = render(
        results, {**SPEC, "experiments": [], "data": ["line"]}, samples=[results / "tables/toy/line.parquet"]
    )
    assert (about["data"], about["stamp"]) == (["standin"], "stand-in data")


def test_the_stamp_is_in_the_picture():
    plain, marked = (plotting.figure()[0] for _ in range(2))
    plotting.stamp(marked, "stand-in data")
    assert plotting.save(plain, "png") != plotting.save(marked, "png")
    table = plotting.table_figure(pd.DataFrame({"a": [1]}), "title")
    before = len(table.texts)
    plotting.stamp(table, "stand-in data")
    assert [text.get_text() for text in table.texts[before:]] == ["stand-in data"]


def test_the_printed_numbers_are_given_by_id(toy, results, tmp_path):
    render(results)
    assert toy.given.printed == {}
    (tmp_path / "published.csv").write_text("id,value,spread\ntable1/loss,0.5,0.1\n")
    render(results, published=tmp_path / "published.csv")
    assert toy.given.printed == {"table1/loss": (0.5, 0.1)}


def test_an_artefact_without_data_is_a_schematic(toy, results):
    about = render(results, {**SPEC, "experiments": []})
    assert about["data"] == ["schematic"]
    assert (about["seeds"], about["diverged"], about["runs"], about["inputs"]) == (0, 0, [], [])


def test_the_same_results_give_the_same_files(toy, results):
    def files():
        return {p.name: p.read_bytes() for p in (results / "artefacts" / "toy").iterdir()}

    render(results)
    first = files()
    render(results)
    assert files() == first
