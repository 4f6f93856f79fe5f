"""Values of a config file with their text and their line."""

from __future__ import annotations

import pytest

from fedrepro.core.expansion import read_located
from fedrepro.files import read_yaml
from tests.configs import message


def test_located_values_are_those_of_the_file_with_their_text_and_line(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("γ: 1.0e-4 # small\nmore:\n  sizes: [1,  2]\n  flow: {a: 'x', b: }\n  long:\n    one\n    two\n")
    found = read_located(file)
    assert found.plain() == read_yaml(file)
    small, more = found.value["γ"], found.value["more"]
    assert (small.value, small.text, small.places) == (1.0e-4, "1.0e-4", ((file, 1, "γ"),))
    assert [(key, node.text, node.places[0].line) for key, node in more.value.items()] == [
        ("sizes", "[1,  2]", 3),
        ("flow", "{}", 4),
        ("long", "'one two'", 5),
    ]
    assert more.value["flow"].written() == "{a: 'x', b: }"
    assert more.written() == ""


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2\n", "a: &x {b: 1}\nc: *x\n", "1: 2\n", "a: !!python/name:os.system\n", "a: [\n"]
)
def test_located_values_are_read_as_safely(tmp_path, text):
    file = tmp_path / "a.yaml"
    file.write_text(text)
    assert message(read_located, file) == message(read_yaml, file)
