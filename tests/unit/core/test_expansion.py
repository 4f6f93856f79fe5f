"""Experiment files: extending, cases, dropped keys, the place of each value, and refused input."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from fedrepro.core.expansion import MOST_EXPERIMENTS, PLACEHOLDER, SECTIONS, expand
from fedrepro.core.experiment import SCALES, expanded, load_experiment, load_experiments, scaled
from fedrepro.core.study import load_studies
from fedrepro.errors import UserError
from fedrepro.files import ROOT
from tests.configs import EXPERIMENT, changed, write_study, write_yaml

BASE = """\
rounds: 40
dataset:
  name: line
  sizes: {train: 10, test: 5}
algorithms:
  fedavg: {lr: 0.1}
  toy: {servers: 2}
scales:
  demo: {rounds: 4, seeds: 2}
  smoke: {extends: demo, rounds: 1}
"""


def files(folder: Path, **texts: str) -> list[Path]:
    for name, text in texts.items():
        write_yaml(folder / f"{name}.yaml", text)
    return sorted(folder.glob("*.yaml"))


def plain(folder: Path, **texts: str) -> dict[str, Any]:
    return {name: e.tree.plain() for name, e in expand(files(folder, **texts)).items()}


def refused(folder: Path, **texts: str) -> str:
    """The error message without the folder."""
    with pytest.raises(UserError) as caught:
        expand(files(folder, **texts))
    told = str(caught.value)
    assert "\n" not in told
    return told.replace(f"{folder}/", "")


def test_a_file_extends_another_and_says_only_what_differs(tmp_path):
    own = "extends: _base\nrounds: 7\ndataset:\n  sizes: {test: 6}\n  noise: 0.5\n"
    found = plain(tmp_path, _base=BASE, line=own)
    assert list(found) == ["line"]  # a file whose name begins with _ is no experiment
    assert found["line"]["rounds"] == 7
    assert found["line"]["dataset"] == {"name": "line", "sizes": {"train": 10, "test": 6}, "noise": 0.5}
    assert found["line"]["algorithms"] == {"fedavg": {"lr": 0.1}, "toy": {"servers": 2}}


def test_order_is_that_of_the_base_and_of_the_sections(tmp_path):
    own = "extends: _base\nalgorithms:\n  new: {}\n  toy: {servers: 3}\ntitle: A line\nseeds: 3\n"
    (found,) = plain(tmp_path, _base=BASE, line=own).values()
    assert list(found) == ["title", "dataset", "rounds", "seeds", "algorithms", "scales"]
    assert list(found) == [key for key in SECTIONS if key in found]
    assert list(found["algorithms"]) == ["fedavg", "toy", "new"]


def test_lists_are_replaced_and_chains_are_followed(tmp_path):
    found = plain(
        tmp_path,
        _a="dataset: {sizes: [1, 2, 3], keep: a}\nrounds: 1\n",
        b="extends: _a\ndataset: {sizes: [4]}\nrounds: 2\n",
        c="extends: b\nrounds: 3\n",
    )
    assert found == {
        "b": {"dataset": {"sizes": [4], "keep": "a"}, "rounds": 2},
        "c": {"dataset": {"sizes": [4], "keep": "a"}, "rounds": 3},
    }


def test_what_is_inherited_can_be_dropped_and_given_anew(tmp_path):
    own = "extends: _base\nwithout: [algorithms.fedavg, dataset, scales.*.seeds]\ndataset: {name: other}\n"
    (found,) = plain(tmp_path, _base=BASE, line=own).values()
    assert found["algorithms"] == {"toy": {"servers": 2}}
    assert found["dataset"] == {"name": "other"}
    assert found["scales"] == {"demo": {"rounds": 4}, "smoke": {"rounds": 1}}


def test_a_scale_extends_another(tmp_path):
    (found,) = plain(tmp_path, line=BASE).values()
    assert found["scales"] == {"demo": {"rounds": 4, "seeds": 2}, "smoke": {"rounds": 1, "seeds": 2}}


CASES = """\
id: "{data}_{split}"
title: "{label}, {split}"
for_each:
  data:
    mnist: {label: MNIST, size: 60, hidden: [3]}
    cifar:
      label: CIFAR
      size: 50
      hidden: [4, 5]
      model: {width: 64}
  split:
    iid: {}
    dir:
      without: [dataset.whole]
      partition: {alpha: 0.5}
dataset: {name: "{data}", train: "{size}", whole: true}
model: {layers: "{hidden}", twice: ["{size}", "{label}", 1]}
only_for:
  cifar_dir: {rounds: 3}
"""


def test_cases_are_multiplied_and_fill_in_names_and_numbers(tmp_path):
    found = plain(tmp_path, images=CASES)
    assert list(found) == ["cifar_dir", "cifar_iid", "mnist_dir", "mnist_iid"]
    assert found["mnist_iid"] == {
        "title": "MNIST, iid",
        "dataset": {"name": "mnist", "train": 60, "whole": True},
        "model": {"layers": [3], "twice": [60, "MNIST", 1]},
    }
    assert found["cifar_dir"] == {
        "title": "CIFAR, dir",
        "dataset": {"name": "cifar", "train": 50},
        "partition": {"alpha": 0.5},
        "model": {"layers": [4, 5], "twice": [50, "CIFAR", 1], "width": 64},
        "rounds": 3,
    }


def test_a_list_of_values_is_an_axis_too(tmp_path):
    found = plain(tmp_path, a='id: "of_{clients}"\nfor_each: {clients: [20, 50]}\nrounds: "{clients}"\n')
    assert found == {"of_20": {"rounds": 20}, "of_50": {"rounds": 50}}


def test_cases_are_inherited(tmp_path):
    base = 'for_each: {data: {a: {size: 1}, b: {size: 2}}}\nrounds: "{size}"\n'
    found = plain(
        tmp_path,
        _base=base,
        one='extends: _base\nid: "{data}"\n',
        two='extends: _base\nwithout: [for_each.data.b]\nid: "{data}_local"\nfor_each: {data: {a: {size: 5}}}\n',
        three="extends: _base\nwithout: [for_each]\nrounds: 9\n",
    )
    assert found == {"a": {"rounds": 1}, "a_local": {"rounds": 5}, "b": {"rounds": 2}, "three": {"rounds": 9}}


def test_every_value_knows_where_it_stands(tmp_path):
    own = "extends: _base\nrounds: 7\ndataset:\n  sizes: {test: 6}\n"
    found = expand(files(tmp_path, _base=BASE, images=CASES, line=own))

    def place(name: str, *way: str) -> str:
        node = found[name].tree.at(*way)
        return f"{node.file.name}:{node.places[0].line}"

    assert place("line", "rounds") == "line.yaml:2"
    assert place("line", "dataset", "sizes", "test") == "line.yaml:4"
    assert place("line", "dataset", "sizes", "train") == "_base.yaml:4"
    assert place("line", "scales", "smoke", "rounds") == "_base.yaml:10"
    assert place("line", "scales", "smoke", "seeds") == "_base.yaml:9"
    assert place("mnist_iid", "dataset", "train") == "images.yaml:5"  # the place of the number, not of its placeholder
    assert place("cifar_iid", "dataset", "train") == "images.yaml:8"
    assert place("cifar_dir", "rounds") == "images.yaml:19"
    assert place("mnist_iid", "title") == "images.yaml:2"
    assert [path.name for path in found["line"].files] == ["line.yaml", "_base.yaml"]
    assert [path.name for path in found["mnist_iid"].files] == ["images.yaml"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("extends: bsae\n", "a.yaml: extends: 'bsae' is unknown; did you mean '_base'?"),
        ("extends: ../_base\n", "a.yaml: extends: '../_base' is unknown"),
        ("extends: a\n", "a.yaml: extends: a extends a, a circle"),
        ("extends: [_base]\n", "a.yaml: extends: ['_base'] is not of type string"),
        ("extends:\n", "a.yaml: extends: None is not of type string"),
        ("extend: _base\n", "a.yaml: unknown key 'extend'; did you mean 'extends'?"),
        ("extends: _base\nwithout: rounds\n", "a.yaml: without: 'rounds' is not of type array"),
        ("extends: _base\nwithout: [5]\n", "a.yaml: without.0: 5 is not of type string"),
        ("extends: _base\nwithout: [round]\n", "a.yaml: without: 'round' is not there; did you mean 'rounds'?"),
        ("extends: _base\nwithout: [rounds.x]\n", "a.yaml: without: 'rounds.x' is not there"),
        ("extends: _base\nwithout: ['']\n", "a.yaml: without: '' is not there"),
        ("extends: _base\nwithout: ['*']\n", "a.yaml: without: '*' is not there"),
        ("extends: _base\nwithout: [scales.*.dataset]\n", "a.yaml: without: 'scales.*.dataset' is not there"),
        ("extends: _base\nrounds: {x: 1}\n", "a.yaml: rounds: replaces a value by a block, that of _base.yaml:1"),
        (
            "extends: _base\nalgorithms: {toy: 3}\n",
            "a.yaml: algorithms.toy: replaces a block by a value, that of _base.yaml:7",
        ),
        ("for_each: 5\n", "a.yaml: for_each: 5 is not of type object"),
        ("for_each: {}\n", "a.yaml: for_each: {} should be non-empty"),
        ("for_each: {x: 5}\n", "a.yaml: for_each.x: 5 is not of type object or array"),
        ("for_each: {x: {}}\n", "a.yaml: for_each.x: {} should be non-empty"),
        ("for_each: {x: []}\n", "a.yaml: for_each.x: [] should be non-empty"),
        ("for_each: {x: [[1]]}\n", "a.yaml: for_each.x.0: [1] is not of type number or string"),
        ("for_each: {x: {a: 5}}\n", "a.yaml: for_each.x.a: 5 is not of type object"),
        ("for_each: {x: {a: {without: 5}}}\n", "a.yaml: for_each.x.a.without: 5 is not of type array"),
        ("for_each: {x: {a: {scales: 5}}}\n", "a.yaml: for_each.x.a.scales: 5 is not of type object"),
        ("for_each: {x: {a: {}}, y: [1]}\n", 'a.yaml: for_each: needs an id, such as id: "{x}_{y}"'),
        ("id: b\n", "a.yaml: id: is possible with for_each only"),
        ("only_for: {b: {}}\n", "a.yaml: only_for: is possible with for_each only"),
        ("id: b\nfor_each: {x: [1, 2]}\n", "a.yaml: id: 'b' is an experiment of a.yaml already"),
        ('id: "{y}"\nfor_each: {x: [1]}\n', "a.yaml: id: {y} has no value; valid: x"),
        ('rounds: "{size}"\n', "a.yaml: rounds: {size} has no value"),
        (
            'id: "{x}"\nfor_each: {x: {a: {size: 1}}}\ndataset: {deep: ["{sise}"]}\n',
            "a.yaml: dataset.deep: {sise} has no value; did you mean 'size'?",
        ),
        (
            'id: "{x}"\nfor_each: {x: {a: {datset: {name: b}}}}\n',
            "a.yaml: for_each.x.a.datset: is not a key; did you mean 'dataset'?",
        ),
        ('id: "{x}"\nfor_each: {x: {a: {y: "{z}"}}}\n', "a.yaml: for_each.x.a.y: a value cannot hold a placeholder"),
        ('id: "{x}"\nfor_each: {x: {a: {y: 1}}, y: [2]}\n', "a.yaml: for_each.y: two axes give 'y'"),
        (
            'id: "{x}"\nfor_each: {x: {a: {without: [rounds]}}}\n',
            "a.yaml: for_each.x.a.without: 'rounds' is not there",
        ),
        (
            'id: "of_{x}"\nfor_each: {x: [1]}\nonly_for: {of_2: {}}\n',
            "a.yaml: only_for: 'of_2' is unknown; did you mean 'of_1'?",
        ),
        ("scales: {demo: {extends: smok}, smoke: {}}\n", "a.yaml: scales.demo.extends: 'smok' is unknown; did you"),
        ("scales: {demo: {extends: 5}}\n", "a.yaml: scales.demo.extends: 5 is not of type string"),
        (
            "scales: {demo: {extends: smoke}, smoke: {extends: demo}}\n",
            "a.yaml: scales.demo.extends: demo extends smoke extends demo, a circle",
        ),
        (
            'id: "{x}"\nfor_each: {x: {a: {y: [1]}}}\nscales: {demo: {extends: "{y}"}}\n',
            "a.yaml: scales.demo.extends: '[1]' is unknown",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_file_and_key(tmp_path, text, says):
    assert refused(tmp_path, _base=BASE, a=text).startswith(says)


def test_two_files_that_give_one_experiment_are_refused(tmp_path):
    told = refused(tmp_path, a="rounds: 1\n", b='id: "{x}"\nfor_each: {x: {a: {}}}\n')
    assert told == "b.yaml: id: 'a' is an experiment of a.yaml already"


def test_a_circle_is_named(tmp_path):
    assert refused(tmp_path, a="extends: _b\n", _b="extends: _c\n", _c="extends: _b\n") == (
        "_c.yaml: extends: a extends _b extends _c extends _b, a circle"
    )


def test_a_long_chain_is_no_recursion(tmp_path):
    texts = {f"_f{i}": f"extends: _f{i + 1}\n" for i in range(1500)}
    assert plain(tmp_path, a="extends: _f0\n", _f1500="rounds: 5\n", **texts) == {"a": {"rounds": 5}}


def test_a_huge_product_is_refused_before_it_is_built(tmp_path):
    axes = "".join(f"  x{i}: [{', '.join(map(str, range(10)))}]\n" for i in range(30))
    begin = time.perf_counter()
    told = refused(tmp_path, a=f'id: "{{x0}}"\nfor_each:\n{axes}')
    assert told == f"a.yaml: for_each: {10**30} experiments, at most {MOST_EXPERIMENTS} are possible"
    assert time.perf_counter() - begin < 5


def test_placeholders_do_not_explode(tmp_path):
    """Values with placeholders would double with every step of a chain; they are refused."""
    values = ", ".join(f'v{i}: "{{v{i + 1}}}{{v{i + 1}}}"' for i in range(40))
    told = refused(tmp_path, a=f'id: "{{x}}"\nfor_each: {{x: {{a: {{{values}}}}}}}\ntitle: "{{v0}}"\n')
    assert told == "a.yaml: for_each.x.a.v0: a value cannot hold a placeholder"


@pytest.mark.parametrize("depth", [50, 5000])
def test_deep_nesting_ends_in_a_line_or_a_tree(tmp_path, depth):
    deep = "dataset: " + "{a: " * depth + "1" + "}" * depth + "\n"
    if depth > 1000:
        assert refused(tmp_path, _b=deep, a="extends: _b\n") == "_b.yaml: not valid YAML"
    else:
        node = plain(tmp_path, _b=deep, a="extends: _b\n" + deep)["a"]["dataset"]
        for _ in range(depth):
            node = node["a"]
        assert node == 1


def test_an_error_in_what_is_inherited_names_the_file_it_stands_in(tmp_path):
    folder = write_study(tmp_path, "toy") / "experiments"
    write_yaml(folder / "_base.yaml", changed(EXPERIMENT, {"rounds": -1}))
    write_yaml(folder / "line.yaml", "extends: _base\ntitle: B\n")
    with pytest.raises(UserError, match=r"experiments/_base\.yaml: rounds: -1 is too small"):
        load_experiments(tmp_path, "smoke")
    write_yaml(folder / "_base.yaml", EXPERIMENT)
    write_yaml(folder / "line.yaml", 'extends: _base\nid: "of_{x}"\nfor_each: {x: [1, 2]}\nseeds: 0\n')
    with pytest.raises(UserError, match=r"experiments/line\.yaml \(of_1\): seeds: 0 is too small"):
        load_experiments(tmp_path, "smoke")
    write_yaml(folder / "line.yaml", 'extends: _base\nid: "of/{x}"\nfor_each: {x: [1, 2]}\n')
    with pytest.raises(UserError, match=r"experiments/line\.yaml: 'of/1' is no name"):
        load_experiments(tmp_path, "smoke")


def test_one_experiment_is_loaded_by_its_id(tmp_path):
    folder = write_study(tmp_path, "toy") / "experiments"
    write_yaml(folder / "_base.yaml", EXPERIMENT)
    write_yaml(folder / "lines.yaml", 'extends: _base\nid: "of_{x}"\nfor_each: {x: [1, 2]}\nrounds: "{x}"\n')
    one = load_experiment(tmp_path, "toy/of_2", "paper")
    assert (one.id, one.spec["rounds"], one.path.name) == ("toy/of_2", 2, "lines.yaml")
    assert [path.name for path in one.files] == ["lines.yaml", "_base.yaml"]
    assert one == load_experiments(tmp_path, "paper")["toy/of_2"]
    for wrong, says in [
        ("toy/of_3", "experiment 'toy/of_3' is unknown; did you mean 'of_"),
        ("toi/of_2", "study 'toi' is unknown; did you mean 'toy'?"),
    ]:
        with pytest.raises(UserError) as caught:
            load_experiment(tmp_path, wrong, "paper")
        assert str(caught.value).startswith(says)


@pytest.mark.parametrize("scale", SCALES)
def test_located_values_with_a_scale_are_the_spec(scale):
    """Including the order and the seeds per job: `fedrepro show --config` prints exactly what is run."""
    experiments = load_experiments(ROOT / "config", scale)
    for study in load_studies(ROOT / "config"):
        for name, e in expanded(ROOT / "config", study).items():
            assert json.dumps(scaled(e.tree, scale).plain()) == json.dumps(experiments[f"{study}/{name}"].spec)


def test_all_values_of_the_committed_experiments_stand_where_they_say():
    texts: dict[Path, list[str]] = {}
    checked = 0

    def check(node: Any) -> None:
        nonlocal checked
        if node.is_block:
            for child in node.value.values():
                check(child)
        elif not isinstance(node.value, list):
            place = node.places[0]
            lines = texts.setdefault(place.file, place.file.read_text().splitlines())
            line = lines[place.line - 1]
            assert place.key in line
            if not PLACEHOLDER.search(line):  # the file has the pattern, the tree has the result
                assert node.text in line
                assert yaml.safe_load(node.text) == node.value
                checked += 1

    for study in load_studies(ROOT / "config"):
        for e in expanded(ROOT / "config", study).values():
            check(e.tree)
    assert checked > 4000
