"""A contract of a part: a sentence that holds or not."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self


class Broken(AssertionError):
    """A contract that does not hold, with what was found."""


class Contract(NamedTuple):
    """`check` raises `Broken`, or what the part itself raises, if the sentence does not hold. It may write into the
    folder that it is given."""

    says: str
    check: Callable[[Path], None]

    @classmethod
    def of(cls, says: str, check: Callable[..., None], *given: Any) -> Self:
        """A contract whose check needs no folder."""
        return cls(says, lambda _: check(*given))


Contracts = Callable[[str], Iterator[Contract]]  # name of a part → its contracts


def hold(condition: object, found: str = "it does not") -> None:
    """`Broken` unless the condition is true. found: what was found instead."""
    if not condition:
        raise Broken(found)
