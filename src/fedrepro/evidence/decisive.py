"""Decisive settings: what a run has against what the experiment has at the scale `paper`.

`needs` of a claim names the settings that it hangs on, dotted, each `equal`, `reach` (at least the published number) or
a number (at least this one); a block stands for all settings in it. Without `needs`, all must be equal but those of
APART.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from fedrepro.core.experiment import Setting, settings_of
from fedrepro.evidence.quantities import Quantity, fitting_settings

#: settings that no claim hangs on: how many seeds, how they are run, what is logged and how it is named
APART = ("seeds", "seeds_per_job", "evaluate", "title", "source", "strategy", "divergence")
ABSENT = "none"
Spec = Mapping[str, Any]


class Gap(NamedTuple):
    """A setting, dotted; what the run has, and what was published or is asked for."""

    setting: str
    has: Any
    wants: Any

    def __str__(self) -> str:
        smaller = _is_number(self.has) and _is_number(self.wants) and self.has < self.wants
        return f"{self.setting} {_text(self.has)} {'of' if smaller else 'instead of'} {_text(self.wants)}"


def gaps(config: Spec, paper: Spec, quantity: Quantity) -> list[Gap]:
    """The settings in which a run's config differs from the published ones, as far as the quantity depends on them."""
    blocks = [key for key in {**paper, **config} if key not in (*APART, "algorithms", "scales")]
    found = [gap for key in blocks for gap in _compared(key, config.get(key, ABSENT), paper.get(key, ABSENT))]
    return [*found, *_arm_gaps(quantity, config["algorithms"], paper["algorithms"])]


def _arm_gaps(quantity: Quantity, has: Spec, paper: Spec) -> Iterator[Gap]:
    """Differences in the hyper-parameters of the settings that the quantity takes."""
    name, wanted = quantity["algorithm"], quantity.get("setting", "all")
    arm = next((a for a in paper if a == name or name in paper[a].get("variants", {})), name)
    if arm not in paper or arm not in has:
        yield Gap(f"algorithms.{arm}", *("there" if arm in specs else ABSENT for specs in (has, paper)))
        return
    ours, theirs = (_settings(arm, specs[arm], "" if arm == name else name) for specs in (has, paper))
    chosen = list(theirs) if wanted == "all" else fitting_settings(theirs, wanted)
    if ours != theirs and not (wanted != "all" and chosen and all(ours.get(s) == theirs[s] for s in chosen)):
        yield from _compared(f"algorithms.{arm}", has[arm], paper[arm])


def _settings(arm: str, spec: Spec, variant: str) -> dict[str, Setting]:
    """The settings of an arm; of one variant, named without it."""
    every = settings_of(arm, spec)
    if not variant:
        return every
    mine = {name: setting for name, setting in every.items() if setting.variant == variant}
    return {name.removeprefix(variant).removeprefix(","): setting for name, setting in mine.items()}


def _compared(key: str, has: Any, wants: Any) -> Iterator[Gap]:
    if isinstance(has, dict) and isinstance(wants, dict):
        for name in {**wants, **has}:
            yield from _compared(f"{key}.{name}", has.get(name, ABSENT), wants.get(name, ABSENT))
    elif has != wants:
        yield Gap(key, _flat(has), _flat(wants))


def shortfalls(needs: str | Mapping[str, Any], config: Spec, found: Iterable[Gap]) -> list[Gap]:
    """Those of the gaps that break the needs."""
    if isinstance(needs, str):  # all
        return list(found)
    broken: list[Gap] = []
    for key, how in needs.items():
        touched = [gap for gap in found if f"{gap.setting}.".startswith(f"{key}.") or key.startswith(f"{gap.setting}.")]
        if how == "equal":
            broken += touched
        elif how == "reach":
            broken += [gap for gap in touched if not _reaches(gap.has, gap.wants)]
        elif (has := _at(config, key)) is not None and not _reaches(has, how):
            broken.append(Gap(key, _flat(has), how))
    return list(dict.fromkeys(broken))


def _reaches(has: Any, wants: Any) -> bool:
    """has ≥ wants; `all` reaches any number."""
    return (_is_number(has) and _is_number(wants) and bool(has >= wants)) or (has == "all" and _is_number(wants))


def _at(config: Spec, dotted: str) -> Any:
    """The setting's value; None where it belongs to an algorithm of another run, ABSENT where it is not there."""
    node: Any = config
    for i, key in enumerate(dotted.split(".")):
        if not isinstance(node, dict) or key not in node:
            return None if i == 1 and dotted.startswith("algorithms.") else ABSENT
        node = node[key]
    return node


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flat(value: Any) -> Any:
    """A block or list as text, so that gaps can be compared and listed."""
    return _text(value) if isinstance(value, dict | list) else value


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_text(child)}" for key, child in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def evidence(found: Iterable[Gap]) -> str:
    """`published settings`, or what is reduced."""
    listed = ", ".join(map(str, found))
    return f"reduced: {listed}" if listed else "published settings"
