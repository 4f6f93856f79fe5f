"""Claims files, config/studies/<study>/claims.yaml: reading and checking. Their arithmetic is checked before it is
evaluated, and evaluated without `eval`. Nothing here imports pandas."""

import ast
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedrepro.core.schemas import validate
from fedrepro.errors import UserError, nearest
from fedrepro.files import read_yaml

MAX_LENGTH = 200
MAX_EXPONENT = 100
Evaluation = Callable[[Mapping[str, float]], float]


def load_claims(path: str | Path) -> dict[str, Any]:
    """The claims file; UserError where it breaks the schema, repeats an id or has an invalid expression."""
    claims: dict[str, Any] = read_yaml(Path(path))

    def by_id(place: list[Any]) -> list[Any]:
        if len(place) < 2 or not isinstance(claims["claims"][place[1]], dict):
            return place
        return [claims["claims"][place[1]].get("id", f"claim {place[1] + 1}"), *place[2:]]

    validate(claims, "claims", path, place=by_id)
    seen: set[str] = set()
    for claim in claims["claims"]:
        if claim["id"] in seen:
            raise UserError(f"{path}: claims: the id '{claim['id']}' is there twice")
        seen.add(claim["id"])
        if claim["kind"] == "consistency":
            try:
                check_expression(claim["expression"], claim["numbers"])
            except ValueError as error:
                raise UserError(f"{path}: {claim['id']}.expression: {error}") from error
    return claims


def quantities_of(claim: Any) -> Iterator[tuple[str, str]]:
    """(experiment, algorithm or "") of every quantity in a claim."""
    if isinstance(claim, dict) and "experiment" in claim:
        yield str(claim["experiment"]), str(claim.get("algorithm", ""))
    for value in claim.values() if isinstance(claim, dict) else claim if isinstance(claim, list) else ():
        yield from quantities_of(value)


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
