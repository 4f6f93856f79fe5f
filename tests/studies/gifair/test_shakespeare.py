"""Plays by hand, windows by hand, and the stand-in's roles."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from fedrepro.core import parts
from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset
from fedrepro.data.partitions.by_client import by_client
from fedrepro.data.preparation import ordered, shuffled
from fedrepro.errors import UserError
from fedrepro.studies.gifair.datasets.shakespeare import (
    VOCABULARY,
    Role,
    encode,
    long_enough,
    read_roles,
    read_table,
    select,
    shakespeare,
    shakespeare_size,
    split_plays,
    windows,
)
from fedrepro.studies.gifair.dialogue import dialogue

WORKS = """\
The head of the file,  by William Shakespeare

THE SONNETS

by William Shakespeare

  From fairest creatures. We desire increase,
    and so on.

1601

A SMALL PLAY, WITH A COMMA


by William Shakespeare

Dramatis Personae

    A line before anyone speaks.

ACT I. SCENE 1.
  ANNA. Good   morrow,
    sir.                          Exit
SCENE 2.
    still Anna.
  Second Lord. Who?
   three blanks are nothing
  SECOND LORD. I.
    (Aside.) Not I.
  BEN. One.
    Two.
  Ben5. Not a name.

THE COMEDY OF ERRORS

by William Shakespeare

ACT I. SCENE 1
not yet
DROMIO. Sir,
at once.
  Indented.

ACT II. SCENE 1
nobody's
DROMIO. Again.
<<THIS NOTICE
goes on>>
LUCE. Who?
Who else?
"""


def standin(seed: int = 0, **parameters) -> Dataset:
    return shakespeare(Source(np.random.default_rng(seed), "standin"), **parameters)


def write(path, text: str | bytes):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- plays ------------------------------------------------------------------------------------------------------------


def test_works_are_split_into_plays_and_roles():
    plays = split_plays(WORKS)
    assert [title for title, _ in plays] == ["A SMALL PLAY, WITH A COMMA", "THE COMEDY OF ERRORS"]
    assert plays[0][1] == {
        "ANNA": ["Good   morrow,", "sir.                          Exit", "still Anna."],
        "SECOND LORD": ["Who?", "I.", "(Aside.) Not I."],
        "BEN": ["One.", "Two."],
    }
    assert plays[1][1] == {
        "DROMIO": ["Sir,", "at once.", "  Indented.", "", "Again."],
        "LUCE": ["Who?", "Who else?"],
    }


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_roles_text_is_its_lines_with_single_blanks_and_two_lines_are_too_few(tmp_path, newline):
    path = write(tmp_path / "works.txt", ("\ufeff" + WORKS).replace("\n", newline))
    assert read_roles(path) == {
        ("A SMALL PLAY, WITH A COMMA", "ANNA"): "Good morrow, sir. Exit still Anna. ",
        ("A SMALL PLAY, WITH A COMMA", "SECOND LORD"): "Who? I. (Aside.) Not I. ",
        ("THE COMEDY OF ERRORS", "DROMIO"): "Sir, at once. Indented. Again. ",
    }


def test_a_mark_of_byte_order_is_no_part_of_a_title_and_only_a_line_of_its_own_names_the_author(tmp_path):
    text = "\ufeffP\n\nby William Shakespeare\n  A. One,\n    two by William Shakespeare\n    three.\n  B. Four.\n"
    assert read_roles(write(tmp_path / "works.txt", text)) == {("P", "A"): "One, two by William Shakespeare three. "}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"by William Shakespeare \xff", r"works\.txt: not UTF-8 text: byte 0xff at 23"),
        (b"", r"works\.txt: no play found"),
        ("THE SONNETS\n\nby William Shakespeare\n\n  One voice. Only.\n", r"works\.txt: no play found"),
    ],
)
def test_a_file_that_is_not_the_works_is_refused(tmp_path, content, said):
    with pytest.raises(UserError, match=said):
        read_roles(write(tmp_path / "works.txt", content))


# --- symbols and windows ----------------------------------------------------------------------------------------------


def test_symbols_are_leafs():
    assert len(VOCABULARY) == len(set(VOCABULARY)) == 80
    assert encode("\n !}Az").tolist() == [0, 1, 2, 79, 25, 78]
    assert encode(VOCABULARY).tolist() == list(range(80))
    for wrong in ("naïve", "3*4", "“"):
        with pytest.raises(UserError, match="characters outside the 80 symbols"):
            encode(wrong)


def test_windows_stay_inside_their_role():
    texts = [np.arange(83, dtype=np.uint8), np.arange(100, 181, dtype=np.uint8), np.arange(120, 202, dtype=np.uint8)]
    split = windows(texts, group=np.array([0, 1, 0]))
    assert split.shape == (80,)
    assert split.start.tolist() == [0, 1, 2, 83, 164, 165]
    assert split.y.tolist() == [80, 81, 82, 180, 200, 201]
    assert split.client.tolist() == [0, 0, 0, 1, 2, 2]
    assert split.group.tolist() == [0, 0, 0, 1, 0, 0]
    assert np.array_equal(split.samples(), [np.arange(a, a + 80) for a in (0, 1, 2, 100, 120, 121)])


def test_the_table_must_agree_with_the_text(tmp_path):
    texts = {("P", "A"): "a" * 90, ("P", "B"): "b" * 80, ("Q", "A"): "c" * 81}
    a, b, other = (Role(*name, "male", n, ()) for name, n in ((("P", "A"), 90), (("P", "B"), 80), (("Q", "A"), 81)))
    assert list(select(texts, [other, a], tmp_path)) == [("Q", "A"), ("P", "A")]
    assert list(long_enough(texts, tmp_path)) == [("P", "A"), ("Q", "A")]
    for role, said in (
        (b, "B of 'P', listed in shakespeare_roles.csv, has 80 characters: a window and its next symbol take 81"),
        (Role("P", "C", "male", 90, ()), "C of 'P', listed in shakespeare_roles.csv, does not speak"),
        (Role("P", "A", "male", 91, ()), "has 90 characters, not 91: another edition"),
    ):
        with pytest.raises(UserError, match=said):
            select(texts, [a, role], tmp_path)
    with pytest.raises(UserError, match="no role has 81 characters"):
        long_enough({("P", "B"): "b" * 80}, tmp_path)


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_sets_have_the_thesis_numbers():
    table = read_table()
    assert sum("31" in row.sets for row in table) == 31
    assert Counter(row.gender for row in table if "2" in row.sets) == {"male": 25, "female": 10}
    assert len({(row.play, row.role) for row in table}) == len(table)
    text = {g: [r.characters for r in table if "2" in r.sets and r.gender == g] for g in ("male", "female")}
    assert np.mean(text["male"]) > np.mean(text["female"])  # §2.5.2: male devices have more text


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("P,A,male,many,31", "each row needs play, role, gender, characters"),
        ("P,A,male", "each row needs play, role, gender, characters"),
        ("P,A,neither,90,31", "A of 'P': gender is one of"),
        ("P,A,male,90,32", "A of 'P': gender is one of .*'32'"),
    ],
)
def test_a_broken_table_is_refused(tmp_path, row, said):
    with pytest.raises(UserError, match=said):
        read_table(write(tmp_path / "roles.csv", f"play,role,gender,characters,sets\n{row}\n"))


# --- the data set -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("roles", ["31", 31, "2", "all"])
@pytest.mark.parametrize("samples", [1, 50])
def test_the_standin_has_the_real_roles_and_the_size_that_is_planned(roles, samples):
    data = standin(roles=roles, samples=samples)
    clients = {"31": 31, "2": 35, "all": 1129}[str(roles)]
    assert shakespeare_size(roles=roles, samples=samples) == (clients, len(data.train))
    assert np.array_equal(np.unique(data.train.client), np.arange(clients))
    assert len(data.facts["client_names"]) == clients
    assert (data.kind, data.outputs, data.test, data.validation) == ("standin", 80, None, None)
    assert data.train.x.dtype == np.uint8
    assert data.train.x.max() < 80


def test_all_windows_of_the_standin_are_as_many_as_the_real_roles_have():
    table = [row for row in read_table() if "2" in row.sets]
    data = standin(roles="2", samples=0)
    assert np.bincount(data.train.client).tolist() == [row.characters - 80 for row in table]
    assert shakespeare_size(roles="2", samples=0) == (35, len(data.train))
    clients, total = shakespeare_size(roles="all", samples=0)
    assert clients == 1129
    assert total == pytest.approx(4_226_158, rel=1e-3)


def test_groups_are_genders():
    data = standin(roles="2", samples=3)
    assert data.facts["group_names"].tolist() == ["male", "female"]
    of_client = data.train.group[np.unique(data.train.client, return_index=True)[1]]
    assert np.bincount(of_client).tolist() == [25, 10]
    assert [("male", "female")[g] for g in of_client] == [row.gender for row in read_table() if "2" in row.sets]
    assert standin(roles="31", samples=3).train.group is None


def test_a_limit_keeps_the_first_windows():
    few, more = standin(samples=5).train, standin(samples=9).train
    for client in (0, 30):
        a, b = (split.samples(np.flatnonzero(split.client == client)) for split in (few, more))
        assert (len(a), len(b)) == (5, 9)
    assert np.array_equal(few.samples(np.arange(5)), more.samples(np.arange(5)))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"roles": "32"}, r"shakespeare: roles = '32' is unknown"), ({"samples": -1}, r"shakespeare: samples = -1")],
)
def test_a_wrong_value_is_named(wrong, said):
    with pytest.raises(UserError, match=said):
        standin(**wrong)
    with pytest.raises(UserError, match=said):
        parts.dataset("shakespeare").size(**wrong)


def test_it_is_split_by_role_at_random_or_by_place():
    data = standin(roles="2", samples=100)
    rng = np.random.default_rng(0)
    dealt = by_client(data, rng)
    assert dealt.groups == [row.gender for row in read_table() if "2" in row.sets]
    shares = {"train": 0.7, "validation": 0.1, "test": 0.2}
    at_random, by_place = shuffled(dealt, rng, **shares), ordered(dealt, rng, **shares)
    for cut in (at_random, by_place):
        assert {name: set(map(len, rows)) for name, rows in cut.rows.items()} == {
            "train": {70},
            "validation": {10},
            "test": {20},
        }
    for train, test in zip(by_place.rows["train"], by_place.rows["test"], strict=True):
        assert data.train.start[train].max() < data.train.start[test].min()
    start = data.train.start
    assert start[at_random.rows["train"][0]].max() > start[at_random.rows["test"][0]].min()


# --- the stand-in's speech --------------------------------------------------------------------------------------------


def bigram_loss(text: str, model: str) -> float:
    """Mean −log p(next | character) of `text` under the add-one bigram model of another text."""
    pairs, singles = Counter(pairwise(model)), Counter(model[:-1])
    return -float(np.mean([np.log((pairs[a, b] + 1) / (singles[a] + 80)) for a, b in pairwise(text)]))


def test_each_role_speaks_its_own_way():
    """Held-out text of a role is more likely under its own bigrams than under any other role's."""
    texts = dialogue(np.random.default_rng(3), [12_000] * 6, [False] * 3 + [True] * 3)
    known, fresh = [t[:8000] for t in texts], [t[8000:] for t in texts]
    loss = np.array([[bigram_loss(text, model) for model in known] for text in fresh])
    own, others = np.diag(loss), loss[~np.eye(6, dtype=bool)].reshape(6, 5)
    assert (own < others.min(axis=1) - 0.1).all()


def test_roles_of_one_gender_share_words_and_all_share_function_words():
    texts = dialogue(np.random.default_rng(4), [40_000] * 6, [False] * 3 + [True] * 3)
    words = [set(text.lower().replace(",", "").replace(".", "").split()) for text in texts]
    assert {"the", "and", "of"} <= set.intersection(*words)
    same = [len(words[a] & words[b]) for a in range(3) for b in range(a)]
    different = [len(words[a] & words[b]) for a in range(3) for b in range(3, 6)]
    assert min(same) > max(different)
    assert all(len(mine - set.union(*words[:i], *words[i + 1 :])) > 24 for i, mine in enumerate(words))


def test_speech_is_sentences_of_the_length_asked_for():
    (text,) = dialogue(np.random.default_rng(5), [5000], [True])
    assert len(text) == 5000
    assert set(text) <= set(VOCABULARY)
    assert "  " not in text
    assert not any(mark in text for mark in (" .", " ,", " ;", " !", " ?"))
    sentences = [s for end in ".!?" for s in text.split(f"{end} ")[1:-1]]
    assert sentences
    assert all(sentence[0].isupper() for sentence in sentences)
