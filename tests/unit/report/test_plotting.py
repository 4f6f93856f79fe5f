"""Figures: identical bytes when drawn again, and their content."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from fedrepro.report import plotting


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def sketch(values=(1, 2, 3)):
    fig, axes = plotting.figure()
    axes[0, 0].plot(values, label="γ")
    axes[0, 0].legend()
    return fig


@pytest.mark.parametrize(("kind", "starts"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_the_same_figure_gives_the_same_bytes(kind, starts):
    first = plotting.save(sketch(), kind)
    assert first.startswith(starts)
    assert plotting.save(sketch(), kind) == first
    assert plotting.save(sketch((3, 2, 1)), kind) != first
    assert not any(mark in first for mark in (b"<dc:date>", b"Matplotlib v", b"matplotlib.org/"))


def test_axes_come_as_rows_and_columns():
    fig, axes = plotting.figure(2, 3, width=6.0, height=2.0)
    assert axes.shape == (2, 3)
    assert tuple(fig.get_size_inches()) == (6.0, 4.0)
    assert plotting.figure()[1].shape == (1, 1)


def test_a_band_is_median_and_range_over_seeds():
    table = pd.DataFrame({"round": [0, 0, 0, 5, 5], "value": [1.0, 9.0, 2.0, 4.0, 6.0]})
    _, axes = plotting.figure()
    drawn = plotting.band(axes[0, 0], table, "round", "a", "#112233")
    assert drawn.to_dict("list") == {"round": [0, 5], "median": [2.0, 5.0], "low": [1.0, 4.0], "high": [9.0, 6.0]}
    (line,) = axes[0, 0].lines
    assert line.get_ydata().tolist() == [2.0, 5.0]
    assert line.get_label() == "a"
    assert line.get_color() == "#112233"


def test_a_table_as_a_picture_shows_every_cell():
    drawn = plotting.table_figure(pd.DataFrame({"method": ["fedavg"], "loss": [0.123456]}), "Table 1")
    assert [text.get_text() for text in drawn.texts] == ["Table 1", "method", "loss", "fedavg", "0.1235"]


def heights(fig) -> list[float]:
    return [bar.get_height() for bar in fig.axes[0].patches]


def legend(part) -> list[str]:
    return [text.get_text() for text in part.texts]


def test_a_federation_is_drawn_by_class_where_there_are_classes():
    held = [np.array([0, 1, 2]), np.array([3])]
    fig = plotting.federation_figure(held, np.array([0, 1, 1, 0]), [])
    assert heights(fig) == [1, 1, 2, 0]  # class 0 of both clients, then class 1
    assert [bar.get_y() for bar in fig.axes[0].patches] == [0, 0, 1, 1]
    assert legend(fig.axes[0].get_legend()) == ["1", "0"]  # as in the stack
    assert fig.legends == []


def test_a_federation_is_drawn_by_group_where_targets_are_numbers():
    held = [np.array([0, 1]), np.array([2]), np.array([3])]
    for targets in (np.array([0.5, 1.5, 2.5, 3.5]), np.zeros((4, 2), dtype=int)):
        fig = plotting.federation_figure(held, targets, ["b", "a", "b"])
        colours = [bar.get_facecolor() for bar in fig.axes[0].patches]
        assert heights(fig) == [2, 1, 1]
        assert colours[0] == colours[2] != colours[1]
        assert legend(fig.legends[0]) == ["b", "a"]
    assert heights(plotting.federation_figure(held, None, [])) == [2, 1, 1]


def test_the_groups_of_stacked_clients_are_marked_under_the_bars():
    held = [np.array([0, 1]), np.array([2]), np.array([3])]
    fig = plotting.federation_figure(held, np.array([0, 1, 1, 0]), ["b", "a", "b"])
    marks = fig.axes[0].collections[0]
    assert marks.get_offsets()[:, 0].tolist() == [0, 1, 2]
    first, second, third = marks.get_facecolors().tolist()
    assert first == third != second
    assert [p.get_facecolor() for p in fig.legends[0].get_patches()] == [tuple(first), tuple(second)]


@pytest.mark.parametrize(("clients", "classes"), [(3, 13), (41, 3), (500, 100)])
def test_many_clients_or_classes_are_a_map_below_the_sizes(clients, classes):
    labels = np.random.default_rng(0).integers(0, classes, 4000)
    labels[0] = classes - 1
    held = np.array_split(np.arange(3000), clients)
    groups = ["even" if k % 2 == 0 else "odd" for k in range(clients)]
    fig = plotting.federation_figure(held, labels, groups)
    drawn = fig.axes[1].images[0].get_array().filled(0)
    assert drawn.tolist() == [[np.sum(labels[mine] == c) for mine in held] for c in range(classes)]
    sizes = fig.axes[0].patches
    if clients <= 40:
        assert heights(fig) == list(map(len, held))
    else:  # an outline for each group
        assert (sizes[0].get_data().values + sizes[1].get_data().values).tolist() == list(map(len, held))
        assert not sizes[1].get_data().values[::2].any()
    assert legend(fig.legends[0]) == ["even", "odd"]


def test_a_federations_picture_is_the_same_bytes_again():
    labels = np.arange(900) % 30
    held = np.array_split(np.arange(900), 50)
    first, again = (plotting.save(plotting.federation_figure(held, labels, []), "svg") for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    ("limits", "scale", "labels"),
    [
        ((1e-2, 1e1), "log", ["10⁻²", "10⁻¹", "10⁰", "10¹"]),
        ((0.3, 4), "log", ["3×10⁻¹", "4×10⁻¹", "6×10⁻¹", "10⁰", "2×10⁰", "3×10⁰", "4×10⁰"]),
        ((-10, 10), "symlog", ["−10¹", "−10⁰", "$\\mathdefault{0}$", "10⁰", "10¹"]),
    ],
)
def test_powers_of_ten_are_plain_text(limits, scale, labels):
    fig, axes = plotting.figure()
    axes[0, 0].set(yscale=scale, ylim=limits)
    plotting.save(fig, "svg")
    low, high = limits
    ticks = [*axes[0, 0].yaxis.get_major_ticks(), *axes[0, 0].yaxis.get_minor_ticks()]
    shown = {t.get_loc(): t.label1.get_text() for t in ticks if low - 1e-9 <= t.get_loc() <= high + 1e-9}
    assert [shown[place] for place in sorted(shown) if shown[place]] == labels


def test_a_figure_is_laid_out_once_for_its_two_kinds(monkeypatch):
    fig, axes = plotting.figure()
    axes[0, 0].plot([1, 2])
    engine, runs = fig.get_layout_engine(), []
    monkeypatch.setattr(engine, "execute", lambda fig, plain=engine.execute: runs.append(plain(fig)))
    drawn = []
    monkeypatch.setattr(axes[0, 0], "draw", lambda renderer, plain=axes[0, 0].draw: drawn.append(plain(renderer)))
    for kind in ("svg", "png"):
        plotting.save(fig, kind)
    assert (len(runs), len(drawn)) == (1, 2)


def test_a_panel_says_its_seeds_and_later_the_scale():
    fig, axes = plotting.figure(1, 2)
    runs = pd.DataFrame({"round": [0, 1] * 3, "seed": [0, 0, 1, 1, 2, 2], "value": 1.0})
    plotting.band(axes[0, 0], runs, "round")
    plotting.band(axes[0, 0], runs[runs["seed"] < 2], "round")
    plotting.say_seeds(axes[0, 1], runs[runs["seed"] == 0])
    plotting.say_scale(fig, "demo")
    assert [[text.get_text() for text in ax.texts] for ax in axes[0]] == [["demo, 2–3 seeds"], ["demo, 1 seed"]]


def test_a_panel_without_seeds_says_nothing():
    fig, axes = plotting.figure()
    plotting.say_seeds(axes[0, 0], pd.DataFrame({"value": [1.0]}))
    plotting.say_scale(fig, "demo")
    assert not axes[0, 0].texts


def test_an_empty_panel_has_its_reason_only():
    _, axes = plotting.figure()
    plotting.leave_empty(axes[0, 0], "too few rounds")
    assert [text.get_text() for text in axes[0, 0].texts] == ["too few rounds"]
    assert not axes[0, 0].has_data()
