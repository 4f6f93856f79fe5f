"""What the paper says and what we test, in words."""

from collections.abc import Mapping
from typing import Any

from fedrepro.evidence.published import Printed
from fedrepro.evidence.quantities import Quantity, Untested, label

Spec = Mapping[str, Any]


def paper_says(spec: Spec, printed: Printed) -> str:
    """The quotation, else the printed number with spread and runs, else the statement."""
    ref = spec.get("published", spec.get("stated"))
    if "quote" in spec:
        return str(spec["quote"])
    try:
        return str(spec["statement"]) if ref is None else str(printed.number(ref))
    except Untested:
        return str(spec["statement"])


def our_test(spec: Spec, printed: Printed) -> str:
    """The rule with its quantities and numbers."""
    match spec["kind"]:
        case "value":
            weaker = "".join(f"; direction: {side} {limit:.6g}" for side, limit in spec.get("direction", {}).items())
            band = f"{_ref(spec['published'], printed)} ± {_amount(spec['tolerance'])}"
            return f"{_named(spec['ours'])} within {band}{weaker}"
        case "ordering":
            return _ordering(spec, printed)
        case "threshold":
            return _threshold(spec, printed)
        case "trend":
            margin = spec.get("margin", {}).get("absolute", 0.0)
            strong = f": rank correlation beyond {'−' * (spec['direction'] == 'falling')}{margin:.4g}"
            verb = {"rising": "rises", "falling": "falls"}[spec["direction"]]
            return f"{_named(spec['ours'])} {verb} with {spec['ours']['along']}{strong}"
    return f"{spec['expression']} = {_ref(spec['stated'], printed)} ± {spec['tolerance']['absolute']:.4g}"


def _ordering(spec: Spec, printed: Printed) -> str:
    better, worse = spec["better"], spec["worse"]
    who = f"{better['metric']}: {label(better, worse)} {spec['by']} than {label(worse, better)} by more than 0"
    small = _below(spec, "differences below {} do not matter")
    size = ""
    if "published" in spec:
        size = f"; by {_ref(spec['published'], printed)} ± {_amount(spec['tolerance'])}"
    return who + small + size


def _threshold(spec: Spec, printed: Printed) -> str:
    words, limit = ("at most", spec["at_most"]) if "at_most" in spec else ("at least", spec["at_least"])
    text = _named(limit, spec["ours"]) if isinstance(limit, dict) else _ref(limit, printed)
    every = " in every seed" * bool(spec.get("every_seed"))
    return f"{_named(spec['ours'])} {words} {text}{every}" + _below(spec, "within {} of it counts")


def _below(spec: Spec, words: str) -> str:
    margin = spec.get("margin") or {}
    return f" ({words.format(_amount(margin))})" if any(margin.values()) else ""


def _named(quantity: Quantity, other: Quantity | None = None) -> str:
    chosen = f" ({quantity['setting']})" if quantity.get("setting", "all") != "all" else ""
    if other and quantity["algorithm"] == other["algorithm"] and quantity["metric"] != other["metric"]:
        return str(quantity["metric"])
    return f"{quantity['metric']} of {quantity['algorithm']}{chosen}"


def _amount(given: Mapping[str, float]) -> str:
    if "relative" in given:
        return f"{100 * given['relative']:.4g} %"
    return f"{given.get('absolute', 0.0):.4g}"


def _ref(ref: float | str, printed: Printed) -> str:
    try:
        return f"{printed.number(ref).value:.6g}"
    except Untested:
        return str(ref)
