"""The real text: the roles and windows that LEAF counts."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.dataset import Dataset
from fedrepro.data.partitions.by_client import by_client
from fedrepro.data.preparation import shuffled
from fedrepro.studies.gifair.datasets.shakespeare import (
    VOCABULARY,
    WINDOW,
    encode,
    read_roles,
    read_table,
    shakespeare_size,
)

HAMLET = "THE TRAGEDY OF HAMLET, PRINCE OF DENMARK: HAM"


@pytest.fixture(scope="module")
def everyone(real) -> Dataset:
    return real("shakespeare", roles="all", samples=0)


@pytest.fixture(scope="module")
def spoken(everyone) -> dict[tuple[str, str], str]:
    (path,) = everyone.found.paths.values()
    return read_roles(path)


def text_of(data: Dataset, name: str) -> str:
    rows = np.flatnonzero(data.train.client == data.facts["client_names"].tolist().index(name))
    first, last = data.train.start[rows[[0, -1]]]
    return "".join(VOCABULARY[symbol] for symbol in data.train.x[first : last + WINDOW + 1])


def test_roles_and_windows_are_as_many_as_leafs(everyone, spoken):
    assert everyone.kind == "real"
    assert len(np.unique(everyone.train.client)) == len(everyone.facts["client_names"]) == 1129
    assert len(set(everyone.facts["client_names"].tolist())) == 1129
    assert len(everyone.train) == 4_226_158
    assert len({play for play, _ in spoken}) == 36
    assert len(spoken) == 1144  # fifteen have no window
    counts = np.bincount(everyone.train.client)
    assert counts.mean() == pytest.approx(3743.28, abs=0.01)
    assert counts.std() == pytest.approx(6212.26, abs=0.01)


def test_known_lines_are_spoken_by_their_roles(everyone):
    assert "To be, or not to be- that is the question: Whether" in text_of(everyone, HAMLET)
    assert "Now is the winter of our discontent Made glorious" in text_of(everyone, "KING RICHARD III: GLOUCESTER")
    assert "The pleasing punishment that women bear" in text_of(everyone, "THE COMEDY OF ERRORS: AEGEON")
    assert text_of(everyone, "THE COMEDY OF ERRORS: LUCE").startswith(" [Within] What a coil is there, Dromio?")


def test_no_window_reaches_into_another_role_and_each_is_followed_by_its_target(everyone):
    train = everyone.train
    assert int(train.x.max()) < 80
    assert np.array_equal(train.y, train.x[train.start + WINDOW])
    step = np.diff(train.start)
    same = train.client[1:] == train.client[:-1]
    assert (step[same] == 1).all()
    assert (step[~same] == WINDOW + 1).all()  # the last target of a role is the last of its symbols
    assert train.start[0] == 0
    assert len(train.x) == train.start[-1] + WINDOW + 1


def test_symbols_read_back_as_the_text(everyone, spoken):
    play, role = HAMLET.split(": ")
    assert text_of(everyone, HAMLET) == spoken[play, role]


def test_the_listed_roles_are_those_with_most_text(spoken):
    """The table lists all roles down to the smallest one used, and its sets are the largest roles."""
    table = read_table()
    lengths = {name: len(text) for name, text in spoken.items()}
    largest = sorted(lengths, key=lengths.get, reverse=True)[: len(table)]
    assert [(row.play, row.role) for row in table] == largest
    assert [row.characters for row in table] == [lengths[name] for name in largest]
    assert [row for row in table if "31" in row.sets] == table[:31]
    for gender, n in (("male", 25), ("female", 10)):
        of_gender = [row for row in table if row.gender == gender]
        assert [row for row in table if "2" in row.sets and row.gender == gender] == of_gender[:n]
        assert len(of_gender) >= n


@pytest.mark.parametrize(("roles", "clients", "total"), [("31", 31, 927_159), ("2", 35, 989_678)])
def test_the_thesis_sets(real, roles, clients, total):
    data = real("shakespeare", roles=roles, samples=0)
    assert (len(np.unique(data.train.client)), len(data.train)) == (clients, total)
    assert shakespeare_size(roles=roles, samples=0) == (clients, total)
    assert data.facts["client_names"][0] == HAMLET
    if roles == "2":
        names = data.facts["client_names"][np.unique(data.train.client[data.train.group == 1])]
        assert {"AS YOU LIKE IT: ROSALIND", "CYMBELINE: IMOGEN"} <= set(names.tolist())
        assert len(names) == 10


def test_a_limit_keeps_a_roles_first_windows(real, spoken):
    data = real("shakespeare", roles="31", samples=1000)
    assert np.bincount(data.train.client).tolist() == [1000] * 31
    play, role = HAMLET.split(": ")
    assert np.array_equal(data.train.samples(np.array([999]))[0], encode(spoken[play, role][999:1079]))


def test_all_windows_can_be_dealt_out_and_cut(everyone):
    rng = np.random.default_rng(0)
    cut = shuffled(by_client(everyone, rng), rng, train=0.7, validation=0.1, test=0.2)
    held = np.concatenate([np.concatenate(rows) for rows in cut.rows.values()])
    assert np.array_equal(np.sort(held), np.arange(4_226_158))
    assert len(cut.rows["train"]) == 1129
