"""Claims files, config/studies/<study>/claims.yaml: reading, expanding and checking. Nothing here imports pandas.

`defaults` are merged under every claim (where its kind has the key), `shared` blocks under the claims that extend them.
A claim with `for_each` is a family: one claim per combination of its axes' cases, which fill its `{placeholders}`; a
case's key that is a key of a claim is a change. `except` names members that do not exist, `only_for` changes one.
`readings` are other ways to understand the claim, as changes to it. Nothing is computed: each value is in the file.
"""

import ast
import itertools
import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro.core.expansion import Located, cases, changed, read_located
from fedrepro.core.schemas import schema, validate
from fedrepro.errors import UserError, nearest

MAX_LENGTH = 200
MAX_EXPONENT = 100
MOST_CLAIMS = 500  # per family; a larger product is a mistake
FAMILY_KEYS = ("for_each", "extends", "except", "only_for")  # of an entry, not of a claim
#: blocks of alternatives, or that mean something as a whole: replaced, not merged
WHOLE = ("margin", "tolerance", "direction", "needs", "numbers", "borrow")
KINDS: dict[str, frozenset[str]] = {
    kind: frozenset(schema("claim")["$defs"][kind]["properties"]) - {"id", "kind"}
    for kind in schema("claim")["properties"]["kind"]["enum"]
}
KEYS: frozenset[str] = frozenset().union(*KINDS.values(), {"kind", "readings"})  # of a claim of any kind
Evaluation = Callable[[Mapping[str, float]], float]


@dataclass(frozen=True)
class Claim:
    """One sentence or number of a paper and its test."""

    id: str
    spec: dict[str, Any]  # complete, with its id and family
    readings: dict[str, dict[str, Any]]  # name → the complete spec of another reading
    tree: Located


@dataclass(frozen=True)
class Claims:
    """All claims of a study, in the order of the file."""

    study: str
    claims: dict[str, Claim]
    transforms: dict[str, str]  # metric → the scale on which its intervals are made


def load_claims(path: str | Path, checked: bool = True) -> Claims:
    """The claims of a study; UserError where the file is wrong. Checking takes most of the time; a list needs none."""
    path = Path(path)
    file = read_located(path)
    if checked:
        validate(file.plain(), "claims_file", path)
    found: dict[str, Claim] = {}
    for key, entry in file.value["claims"].value.items():
        for claim in _members(key, entry, file):
            for way, spec in {"": claim.spec, **claim.readings}.items() if checked else ():
                _check(spec, path, f"{claim.id}.readings.{way}" if way else claim.id)
            if claim.id in found:
                raise UserError(f"{entry.places[0]}: claims: the id '{claim.id}' is there twice")
            found[claim.id] = claim
    transforms = file.value["transforms"].plain() if "transforms" in file.value else {}
    return Claims(path.resolve().parent.name, found, transforms)


def _members(key: str, entry: Located, file: Located) -> Iterator[Claim]:
    """The claims of one entry of the file."""
    said = f"{entry.places[0]}: {key}"
    body = _over(_base(entry, file, said), entry.only(lambda name: name not in FAMILY_KEYS))
    axes = entry.value["for_each"].value if "for_each" in entry.value else {}
    left = dict(entry.value["only_for"].value) if "only_for" in entry.value else {}
    absent = set(entry.value["except"].value) if "except" in entry.value else set()
    named = {axis: _axis(axis, given, file, said) for axis, given in axes.items()}
    if (number := math.prod(len(given.value) for given in named.values())) > MOST_CLAIMS:
        raise UserError(f"{said}.for_each: {number} claims, at most {MOST_CLAIMS} are possible")
    ids = []
    for chosen in itertools.product(*(cases(axis, given, (*KEYS, "without")) for axis, given in named.items())):
        values: dict[str, Located] = {}
        mine = body
        for way, given, changes in chosen:
            if twice := values.keys() & given:
                raise UserError(f"{changes.file}: {way}: two axes give '{min(twice)}'")
            values |= given
            mine = _over(mine, changes)
        name = str(Located(key, key, entry.places).filled(values, key).value)
        if name in absent:
            absent.remove(name)
            continue
        ids.append(name)
        if name in left:
            mine = _over(mine, left.pop(name))
        yield _claim(name, key, mine.filled(values, name), file)
    for name in [*left, *sorted(absent)]:
        raise UserError(f"{said}: '{name}' is none of its claims{nearest(name, ids)}")


def _base(entry: Located, file: Located, said: str) -> Located:
    """The shared block that an entry extends, or an empty one."""
    shared = file.value["shared"].value if "shared" in file.value else {}
    if "extends" not in entry.value:
        return Located({}, "", entry.places)
    if (name := entry.value["extends"].value) not in shared:
        raise UserError(f"{said}.extends: '{name}' is unknown{nearest(name, shared)}")
    found: Located = shared[name]
    return found


def _axis(axis: str, given: Located, file: Located, said: str) -> Located:
    """An axis of a family: its own cases, or those of the file's axis that it names."""
    if not isinstance(given.value, str):
        return given
    known = file.value["axes"].value if "axes" in file.value else {}
    if given.value not in known:
        raise UserError(f"{said}.for_each.{axis}: there is no axis '{given.value}'{nearest(given.value, known)}")
    found: Located = known[given.value]
    return found


def _claim(name: str, family: str, body: Located, file: Located) -> Claim:
    """The claim of a complete body, with its readings."""
    defaults = file.value["defaults"] if "defaults" in file.value else Located({}, "", body.places)
    main = _over(defaults.only(lambda key: key == "kind"), body.only(lambda key: key != "readings"))
    kind = main.value["kind"].value if "kind" in main.value else ""
    allowed = KINDS.get(kind, ()) if isinstance(kind, str) else ()  # another type is refused by the schema
    main = _over(defaults.only(lambda key: key in allowed), main)
    given = {"id": name, "family": family}
    known = {key: Located(text, json.dumps(text), body.places[:1]) for key, text in given.items()}
    main = main._replace(value={**known, **main.value})
    readings = body.value["readings"].value if "readings" in body.value else {}
    found = {way: _over(main.only(lambda key: key != "reading"), changes) for way, changes in readings.items()}
    whole = main._replace(value={**main.value, **body.only(lambda key: key == "readings").value})
    return Claim(name, main.plain(), {way: tree.plain() for way, tree in found.items()}, whole)


def _over(base: Located, over: Located) -> Located:
    """`over` merged over a claim; the blocks of WHOLE, and blocks that meet values, are replaced."""
    kept = base.only(
        lambda key: key not in over.value or (key not in WHOLE and base.value[key].is_block is over.value[key].is_block)
    )
    return changed(kept, over)


def _check(spec: dict[str, Any], path: Path, at: str) -> None:
    validate(spec, "claim", path, at)
    if spec["kind"] == "consistency":
        try:
            check_expression(spec["expression"], spec["numbers"])
        except ValueError as error:
            raise UserError(f"{path}: {at}.expression: {error}") from error


def every_quantity(claim: Any) -> Iterator[dict[str, Any]]:
    """Every quantity in a claim."""
    if isinstance(claim, dict) and "experiment" in claim:
        yield claim
    for value in claim.values() if isinstance(claim, dict) else claim if isinstance(claim, list) else ():
        yield from every_quantity(value)


def quantities_of(claim: Any) -> Iterator[tuple[str, str]]:
    """(experiment, algorithm or "") of every quantity in a claim."""
    for quantity in every_quantity(claim):
        yield str(quantity["experiment"]), str(quantity.get("algorithm", ""))


def _power(a: float, b: float) -> float:
    if abs(b) > MAX_EXPONENT:
        raise ValueError(f"exponent {b:.4g} is larger than {MAX_EXPONENT}")
    if a < 0 and not b.is_integer():
        raise ValueError(f"({a:.4g}) ** {b:.4g} is not a real number")
    return float(a**b)


OPERATORS: dict[type[ast.operator], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _power,
}
FUNCTIONS: dict[str, Callable[..., float]] = {"abs": abs, "min": min, "max": max, "sqrt": math.sqrt}


def check_expression(text: str, names: Iterable[str]) -> Evaluation:
    """The function that evaluates `text`; ValueError at anything but numbers, `names`, + - * / ** and FUNCTIONS."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"an expression has at most {MAX_LENGTH} characters, this one {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"'{text}' is not an arithmetic expression") from error
    return _compiled(tree, set(names))


def _compiled(node: ast.expr, names: set[str]) -> Evaluation:
    call: Callable[..., float]
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return lambda numbers: float(value)
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"'{name}' is not one of the given numbers{nearest(name, names)}")
            return lambda numbers: float(numbers[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            call, nodes = operator.neg, [operand]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            call, nodes = OPERATORS[type(op)], [left, right]
        case ast.Call(func=ast.Name(id=name), args=nodes, keywords=[]) if name in FUNCTIONS:
            call = FUNCTIONS[name]
        case _:
            raise ValueError(f"'{ast.unparse(node)}' is not allowed: only + - * / ** and {', '.join(FUNCTIONS)}")
    children = [_compiled(child, names) for child in nodes]
    return lambda numbers: call(*(child(numbers) for child in children))


def evaluate(text: str, numbers: Mapping[str, float]) -> float:
    """The finite value of an arithmetic expression over named numbers; else ValueError."""
    expression = check_expression(text, numbers)
    try:
        result = expression(numbers)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ValueError(f"'{text}' has no value: {error}") from error
    if not math.isfinite(result):
        raise ValueError(f"'{text}' is not finite")
    return result
