"""Values of the kinds in the functions files: what a request says (surface) and what the call holds (canonical).

Copied kinds are a mixture of natural, pseudo and random-word values, so that a model has to copy instead of remembering.
Every value belongs to one split by the hash of its kind and canonical form, except kinds too small to be divided.
"""

import random
from dataclasses import dataclass
from typing import Sequence

from espalier_tools.train.nano import compose, pools, pseudo
from espalier_tools.train.nano.splits import split_of

NATURAL, PSEUDO = 0.4, 0.7  # bounds of the mixture: natural below the first, pseudo below the second, then random words
FORBIDDEN = frozenset('"\\{}[]=|<>\n\t')  # marks of the call's syntax, of JSON and of the chat template
ENDS = frozenset(".,;:!-'& ")  # a value that ends so would run into the request's own punctuation

UNDIVIDED = frozenset(("minutes", "percent", "degrees", "amount", "currency", "language", "date"))
"""Kinds with so few values that a split would leave gaps in what can be asked; they are shared by the splits."""

EVERYDAY = frozenset(
    text.casefold()
    for pool in (pools.RELATIONS, pools.LISTS, pools.ROOMS, pools.PLACES, pools.PLACE_CATEGORIES)
    for text in pool
)
"""Always training values: what most people say most often must not be missing for the sake of a test."""


@dataclass(frozen=True)
class Value:
    """`surface` stands in the request; `canonical` is the argument, a str or an int."""

    surface: str
    canonical: str | int


@dataclass(frozen=True)
class Style:
    """How pseudo and random-word values of a kind look: letters of case and numbers of words."""

    case: str  # "title", "lower", "sentence" or "mixed"
    words: tuple[int, ...]  # drawn from; repeats weigh
    natural: float = NATURAL


STYLES = {
    "person": Style("title", (1, 1, 2, 2, 2, 3)),
    "city": Style("title", (1, 1, 1, 2)),
    "song": Style("title", (1, 2, 2, 3, 4)),
    "artist": Style("title", (1, 2, 2, 3)),
    "show": Style("title", (1, 2, 3, 4)),
    "app": Style("title", (1, 1, 2)),
    "place": Style("title", (1, 2, 2, 3)),
    "folder": Style("mixed", (1, 1, 2, 2)),
    "file": Style("mixed", (1, 1, 2, 2)),
    "url": Style("lower", (1, 1, 2)),
    "label": Style("lower", (1, 1, 2, 2, 3)),
    "list": Style("lower", (1, 1, 2), 0.6),
    "room": Style("lower", (1, 1, 2), 0.6),
    "place_category": Style("lower", (1, 2, 2), 0.6),
    "event": Style("mixed", (1, 2, 2, 3)),
    "task": Style("lower", (2, 2, 3, 3, 4)),
    "topic": Style("lower", (1, 2, 2, 3, 4)),
    "item": Style("lower", (1, 1, 2, 2)),
    "subject": Style("mixed", (1, 2, 2, 3)),
    "message": Style("sentence", (2, 3, 4, 5, 6, 8, 10, 12)),
    "phrase": Style("sentence", (1, 2, 3, 4, 5)),
    "word": Style("lower", (1,)),
}
"""The copied kinds."""


class Values:
    """Draws values; immutable, and deterministic in the random generator that is passed."""

    def __init__(self, words: Sequence[str]):
        self._words = [word for word in words if word not in pools.DELIMITERS and "'" not in word] or list(pools.NOUNS)

    def draw(self, kind: str, split: str, rng: random.Random) -> Value:
        """A value of the kind that belongs to the split."""
        for _ in range(1000):
            value = self._any(kind, rng)
            if usable(value.surface) and allowed(kind, value.canonical, split):
                return value
        raise ValueError(f"{kind}: expected a value of split {split} within 1000 draws; widen its pool")

    def _any(self, kind: str, rng: random.Random) -> Value:
        if kind in compose.CONVERTED:
            return Value(*compose.CONVERTED[kind](rng))
        if kind not in STYLES:
            text = compose.NATURAL[kind](rng)
            return Value(text, text)
        text = self._copied(kind, STYLES[kind], rng)
        return Value(text, text)

    def _copied(self, kind: str, style: Style, rng: random.Random) -> str:
        roll = rng.random()
        if roll < style.natural:
            return compose.NATURAL[kind](rng)
        rest = (roll - style.natural) / (1 - style.natural)
        count = rng.choice(style.words)
        if rest < (PSEUDO - NATURAL) / (1 - NATURAL):
            parts = [pseudo.word(rng) for _ in range(min(count, 3))]
            if kind == "message":  # a whole sentence of pseudo-words is no message; one in a sentence is
                return compose.message_about(_cased(parts, "title", rng), rng)
        else:
            parts = rng.choices(self._words, k=count)
        if rng.random() < 0.08 and kind not in ("person", "message", "word"):
            parts[-1 if count > 1 else 0] = pseudo.number_part(rng) if count > 1 else parts[0] + pseudo.number_part(rng)
        return compose.dressed(kind, _cased(parts, style.case, rng), rng)


def _cased(parts: list[str], case: str, rng: random.Random) -> str:
    """Joins words in the manner of the kind; 6 % of the titles are typed in lower case, as people do."""
    if case == "mixed":
        case = rng.choice(("title", "sentence", "lower"))
    if case == "title" and rng.random() > 0.06:
        parts = [pseudo.capital(part) for part in parts]
    text = ("-" if len(parts) == 2 and rng.random() < 0.08 else " ").join(parts)
    return pseudo.capital(text) if case == "sentence" and rng.random() < 0.6 else text


def usable(surface: str) -> bool:
    """Whether a text can be copied into a call as it stands and has clear ends."""
    return bool(surface) and FORBIDDEN.isdisjoint(surface) and surface[-1] not in ENDS and surface[0] not in ENDS


def allowed(kind: str, canonical: str | int, split: str) -> bool:
    """Whether a value may appear in a split."""
    if kind in UNDIVIDED:
        return True
    text = str(canonical)
    if text.casefold() in EVERYDAY or (kind == "time" and text.endswith(("00", "15", "30", "45"))):
        return split == "train"
    return split_of(kind, text) == split
