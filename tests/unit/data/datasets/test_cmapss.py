"""C-MAPSS: columns by hand, broken files, and the stand-in's engines."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from fedrepro.data.catalogue import Source
from fedrepro.data.datasets.cmapss import COLUMNS, LAWS, SENSORS, cmapss, cmapss_size, degradation, read
from fedrepro.errors import UserError
from tests.unit.data.real_files import unverified

MODULE = importlib.import_module("fedrepro.data.datasets.cmapss")  # the package has the function under this name


def standin(seed: int = 0, **parameters):
    return cmapss(Source(np.random.default_rng(seed), "standin"), **parameters)


def numbered(lives: list[int]) -> np.ndarray:
    """Engines with these lifetimes; sensor s of row i (from 0) reads 1000 s + i."""
    engine = np.repeat(np.arange(1, len(lives) + 1), lives)
    cycle = np.concatenate([np.arange(1, life + 1) for life in lives])
    sensors = 1000 * np.arange(1, 22) + np.arange(len(engine))[:, None]
    return np.column_stack([engine, cycle, np.zeros((len(engine), 3)), sensors])


def text(table) -> str:
    return "".join(" ".join(f"{cell:g}" if isinstance(cell, float) else cell for cell in row) + "  \n" for row in table)


@pytest.fixture
def source(tmp_path, monkeypatch):
    """source(text, rows): uses the text as the real file, with this expected number of rows."""

    def make(content: str, rows: int) -> Source:
        monkeypatch.setattr(MODULE, "ROWS", rows)
        (tmp_path / "cmapss").mkdir()
        (tmp_path / "cmapss" / "train_FD001.txt").write_text(content)
        return unverified(monkeypatch, "cmapss", tmp_path)

    return make


# --- the file ---------------------------------------------------------------------------------------------------------


def test_sensor_s_is_column_s_plus_5(source):
    data = cmapss(source(text(numbered([3, 2])), 5))
    assert data.kind == "real"
    assert data.outputs == 21
    assert data.train.x.tolist() == [[1], [2], [3], [1], [2]]
    assert data.train.client.tolist() == [0, 0, 0, 1, 1]
    assert np.array_equal(data.train.y, 1000 * np.arange(1, 22) + np.arange(5)[:, None])
    assert data.facts["sensors"].tolist() == list(range(1, 22))
    assert data.facts["sensor_names"].tolist() == list(SENSORS)
    assert data.test is None


def test_chosen_sensors(source):
    where = source(text(numbered([3, 2])), 5)
    two = cmapss(where, sensors=[7, 2])
    assert two.train.y.tolist() == [[7000 + i, 2000 + i] for i in range(5)]
    assert (two.outputs, two.facts["sensor_names"].tolist()) == (2, ["P30", "T24"])
    for asked in (2, [2]):
        one = cmapss(where, sensors=asked)
        assert one.train.y.tolist() == [2000 + i for i in range(5)]
        assert one.outputs == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([0], "from 1 to 21"),
        ([2, 22], "from 1 to 21"),
        ([], "from 1 to 21"),
        ([1.5], "from 1 to 21"),
        (["T24"], "from 1 to 21"),
        ([[2, 7]], "from 1 to 21"),
        ([True], "from 1 to 21"),
        ([2, 2], "named twice"),
    ],
)
def test_a_wrong_sensor_is_named(wrong, said):
    with pytest.raises(UserError, match=rf"cmapss: sensors = .*{said}"):
        standin(sensors=wrong)


def cells(lives=(3, 2)) -> list[list]:
    return numbered(list(lives)).tolist()


def change(row: int, column: int, cell) -> list[list]:
    table = cells()
    table[row][column] = cell
    return table


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([row[:-1] for row in cells()], "line 1 has 25 cells, not 26"),
        ([*cells()[:-1], cells()[-1][:11]], "line 5 has 11 cells, not 26"),
        ([*cells()[:2], [], *cells()[2:]], "line 3 has 0 cells, not 26"),
        (change(2, 6, "nan"), "line 3, column sensor 2: 'nan' is not a finite number"),
        (change(2, 6, "inf"), "line 3, column sensor 2: 'inf' is not a finite number"),
        (change(0, 25, "12,5"), "line 1, column sensor 21: '12,5' is not a finite number"),
        (change(1, 1, 7.0), r"line 2: engine 1, cycle 7 after 1 and 1: .* without a gap"),
        (cells()[:1] + cells()[2:], "line 2: engine 1, cycle 3 after 1 and 1"),
        (cells()[:3] + cells()[4:], "line 4: engine 2, cycle 2 after 1 and 3"),
        (cells()[1:], "line 1: engine 1, cycle 2 at the start"),
        (cells()[3:], "line 1: engine 2, cycle 1 at the start"),
        (cells((1, 1, 1))[:1] + cells((1, 1, 1))[2:], "line 2: engine 3, cycle 1 after 1 and 1"),
        ([*cells(), cells()[0]], "line 6: engine 1, cycle 1 after 2 and 2"),
        (cells()[:-1], r"4 rows, not 5 \(cut off\?\)"),
        (cells((3, 3)), "6 rows, not 5$"),
        ([], r"0 rows, not 5 \(cut off\?\)"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(source, table, said):
    with pytest.raises(UserError, match=rf"train_FD001\.txt: .*{said}") as error:
        cmapss(source(text(table), 5))
    assert "\n" not in str(error.value)


# --- the stand-in -----------------------------------------------------------------------------------------------------


def test_the_standin_has_the_shapes_and_the_order_of_the_file(tmp_path, monkeypatch):
    table = degradation(np.random.default_rng(0), 100)
    monkeypatch.setattr(MODULE, "ROWS", len(table))
    np.savetxt(tmp_path / "as_file.txt", table, fmt="%.4f")
    np.testing.assert_allclose(read(tmp_path / "as_file.txt"), table, atol=1e-9)
    assert table.shape[1] == len(COLUMNS) == 26


@pytest.mark.parametrize("seed", range(3))
def test_the_standins_engines_live_as_long(seed):
    data = standin(seed)
    assert data.kind == "standin"
    lives = np.bincount(data.train.client)
    clients, rows = cmapss_size(sensors=[2])
    assert len(lives) == clients == 100
    assert lives.min() >= 128
    assert lives.max() <= 362
    assert len(data.train) == pytest.approx(rows, rel=0.1)


def test_the_standins_sensors_drift_as_they_should():
    """Constant sensors are constant; the others end about `change` away from the level of a new engine, plus noise."""
    table = degradation(np.random.default_rng(0), 400)
    last = np.append(np.diff(table[:, 0]) != 0, True)
    first = np.append(True, last[:-1])
    for s, (level, change, spread, noise, decimals) in enumerate(LAWS.values(), start=1):
        y = table[:, s + 4]
        assert np.array_equal(y, np.round(y, decimals))
        if s in (1, 5, 10, 16, 18, 19):
            assert np.ptp(y) == 0
            continue
        sure = 5 * np.hypot(np.hypot(noise, spread), 10.0**-decimals) / np.sqrt(400)
        assert y[last].mean() - level == pytest.approx(change, abs=sure)
        # wear at the start: a fifth on average, never all of it
        assert (y[first].mean() - level) == pytest.approx(0.2 * change, abs=sure + 0.05 * abs(change))
        steps = np.diff(y[table[:, 1] <= 60])[np.diff(table[table[:, 1] <= 60, 0]) == 0]
        if s not in (6, 17):  # the rounding hides their noise
            assert steps.std() / np.sqrt(2) == pytest.approx(noise, rel=0.05)


def test_the_standins_engines_differ_in_rate():
    """At half its life an engine has done between 1/21 (r = 6) and 1/5.5 (r = 3) of its drift; both ends are seen."""
    table = degradation(np.random.default_rng(0), 400)
    sensor, half = table[:, 4 + 14], []
    for engine in range(1, 401):
        y = sensor[table[:, 0] == engine]
        if abs(y[-5:].mean() - y[:5].mean()) > 60:
            middle = y[len(y) // 2 - 5 : len(y) // 2 + 5].mean()
            half.append((middle - y[:10].mean()) / (y[-2:].mean() - y[:10].mean()))
    assert len(half) > 30
    assert np.quantile(half, 0.1) < 0.09
    assert np.quantile(half, 0.9) > 0.13


def test_the_standin_is_a_function_of_its_stream():
    assert np.array_equal(standin(3).train.y, standin(3).train.y)
    assert not np.array_equal(standin(3).train.y[:100], standin(4).train.y[:100])
