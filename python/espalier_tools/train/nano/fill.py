"""Filling a wording's slots with values such that one reading of where each value starts and ends is natural."""

import random
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from espalier_tools.train.nano import pools
from espalier_tools.train.nano.surface import SLOT
from espalier_tools.train.nano.values import Value

Draw = Callable[[str, random.Random], Value]  # kind -> a value

CLOSED = frozenset(
    ("minutes", "percent", "degrees", "amount", "time", "date", "currency", "language", "phone", "expression")
)
"""Kinds whose values are known by their form, so that whatever stands beside them cannot be confused with them."""

ARTICLES = frozenset(("a", "an", "the", "my", "some", "this", "our", "your"))

TRIES = 40  # redraws of a slot's value before the wording is given up


@dataclass(frozen=True)
class Filled:
    text: str
    arguments: dict[str, Any]  # slot -> canonical
    surfaces: dict[str, str]  # slot -> as the text has it


class Unfillable(Exception):
    """No drawn value was unambiguous in a wording."""


def kind_of_slot(slot: str) -> str:
    """Talk names its slots by kind, numbered where one kind is wanted twice: person, person2, person_2."""
    return slot.rstrip("0123456789").rstrip("_")


def fill(wording: str, kinds: Mapping[str, str], draw: Draw, rng: random.Random) -> Filled:
    """Fills every slot; kinds maps slots to kinds, and slots that it lacks are named by their kind."""
    parts = SLOT.split(wording)  # literal, slot, literal, slot, ..., literal
    literals, slots = parts[::2], parts[1::2]
    values: dict[str, Value] = {}
    for at, slot in enumerate(slots):
        kind = kinds.get(slot) or kind_of_slot(slot)
        before = (slots[at - 1], values[slots[at - 1]]) if at and not literals[at].strip() else None
        values[slot] = _clear(kind, literals[at], literals[at + 1], before, values, draw, rng)
    text = literals[0] + "".join(values[slot].surface + literal for slot, literal in zip(slots, literals[1:]))
    return Filled(text, {s: v.canonical for s, v in values.items()}, {s: v.surface for s, v in values.items()})


def _clear(
    kind: str,
    left: str,
    right: str,
    before: tuple[str, Value] | None,
    taken: dict[str, Value],
    draw: Draw,
    rng: random.Random,
) -> Value:
    """A value that is not taken and does not hold the words around its slot."""
    used = {value.surface for value in taken.values()}
    for _ in range(TRIES):
        value = draw(kind, rng)
        if value.surface in used:
            continue
        if kind in CLOSED or (
            not _holds(value.surface, left)
            and not _holds(value.surface, right)
            and not _doubles(value.surface, left, right)
            and (before is None or _apart(before[1].surface, value.surface))
        ):
            return value
    raise Unfillable(f"{kind} between {left!r} and {right!r}")


def _holds(surface: str, literal: str) -> bool:
    return bool(literal.strip(" .?!")) and literal.lower() in f" {surface.lower()} "


def _doubles(surface: str, left: str, right: str) -> bool:
    """Whether a value repeats what is beside it: "are you there?" before "?", "the office" after "the"."""
    marks = surface[-1] in "?!" and right[:1] in (".", "?", "!", ",")
    words = (left.lower().split() or [""])[-1], surface.lower().split()[0]
    return marks or ARTICLES.issuperset(words)


def _apart(first: str, second: str) -> bool:
    """Whether two values side by side part visibly: a name in capitals, then a text that starts in lower case."""
    if first.isascii() and first.replace(" ", "").isdigit() or first in pools.LANGUAGES or first in pools.CURRENCIES:
        return True
    capitals = all(word[:1].isupper() for word in first.split())
    return (capitals or first in pools.RELATIONS) and (second[:1].islower() or second.startswith(("I ", "I'm ")))
