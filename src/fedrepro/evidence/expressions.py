"""Arithmetic in claims files: checked before it is evaluated, and evaluated without `eval`."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping

from fedrepro.errors import nearest

MAX_LENGTH = 200
MAX_EXPONENT = 100
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
FUNCTIONS: dict[str, Callable[..., float]] = {"abs": abs, "min": min, "max": max, "sqrt": math.sqrt}


def check_expression(text: str, names: Iterable[str]) -> ast.expr:
    """The syntax tree of `text`; ValueError at anything but numbers, `names`, + - * / ** and FUNCTIONS."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"an expression has at most {MAX_LENGTH} characters, this one {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"'{text}' is not an arithmetic expression") from error
    _check(tree, set(names))
    return tree


def _check(node: ast.expr, names: set[str]) -> None:
    children: list[ast.expr] = []
    match node:
        case ast.Constant(value=value) if type(value) in (int, float):
            pass
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"'{name}' is not one of the given numbers{nearest(name, names)}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            children = [operand]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            children = [left, right]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            children = args
        case _:
            raise ValueError(f"'{ast.unparse(node)}' is not allowed: only + - * / ** and {', '.join(FUNCTIONS)}")
    for child in children:
        _check(child, names)


def evaluate(text: str, numbers: Mapping[str, float]) -> float:
    """The finite value of an arithmetic expression over named numbers; else ValueError."""
    tree = check_expression(text, numbers)
    try:
        result = _value(tree, numbers)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ValueError(f"'{text}' has no value: {error}") from error
    if not math.isfinite(result):
        raise ValueError(f"'{text}' is not finite")
    return result


def _value(node: ast.expr, numbers: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name):
            return float(numbers[name])
        case ast.UnaryOp(operand=operand):
            return -_value(operand, numbers)
        case ast.Call(func=ast.Name(id=name), args=args):
            return FUNCTIONS[name](*(_value(argument, numbers) for argument in args))
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _value(left, numbers), _value(right, numbers)
    if isinstance(op, ast.Pow):
        if abs(b) > MAX_EXPONENT:
            raise ValueError(f"exponent {b:.4g} is larger than {MAX_EXPONENT}")
        if a < 0 and not b.is_integer():
            raise ValueError(f"({a:.4g}) ** {b:.4g} is not a real number")
    return OPERATORS[type(op)](a, b)
