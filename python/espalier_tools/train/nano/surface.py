"""Small variations of a wording, applied before its slots are filled so that values are never touched."""

import random
import re

SLOT = re.compile(r"\{(\w+)\}")
Weighted = tuple[tuple[str, int], ...]  # texts and how often each is drawn

IMPERATIVES = frozenset("""
set start begin cancel stop remove delete create make add put schedule plan book remind send text message email write call phone ring
dial save read show list check search find look play pause hold skip go change turn switch enable disable open launch close quit
exit take grab lock move rename give get tell navigate direct guide translate convert calculate compute work define dim brighten
raise lower increase decrease wake note jot store record keep capture let put bring drop erase clear mute unmute ping notify
ask order buy print pay reserve extract explain fetch visit browse exchange say select run shut mark file inform
""".split())
"""First words after which "please" and "could you" read well."""

PREFIXES = (
    ("Please ", 4),
    ("please ", 2),
    ("Could you please ", 2),
    ("Can you ", 3),
    ("Could you ", 2),
    ("Would you ", 1),
    ("I need you to ", 1),
    ("I'd like you to ", 1),
    ("Hey, ", 2),
    ("hey ", 1),
    ("Hi, ", 1),
    ("OK, ", 1),
    ("ok, ", 1),
    ("Quick, ", 1),
    ("can you please ", 2),
    ("Now ", 1),
    ("Assistant, ", 1),
)
OPENERS = (
    ("Hey, ", 3),
    ("hey, ", 2),
    ("Hi, ", 2),
    ("OK, ", 2),
    ("ok ", 1),
    ("So, ", 1),
    ("Hello, ", 1),
)  # before any wording
COURTESIES = ((" please", 4), (", please", 3), (", thanks", 3), (" thanks", 1))  # behind any wording
SUFFIXES = (*COURTESIES, (" when you can", 1), (" for me", 1), (" right away", 1), (" now", 1))  # behind imperatives
CONTRACTIONS = (
    ("what is ", "what's "),
    ("What is ", "What's "),
    ("I am ", "I'm "),
    ("i am ", "i'm "),
    ("do not ", "don't "),
    ("I would ", "I'd "),
    ("Do not ", "Don't "),
    ("I have to", "I've got to"),
    ("it is ", "it's "),
    ("how is ", "how's "),
    ("How is ", "How's "),
    ("where is ", "where's "),
    ("Where is ", "Where's "),
    ("who is ", "who's "),
    ("cannot ", "can't "),
    ("I will ", "I'll "),
)

FREE_TEXT = frozenset(("message", "task", "topic", "phrase", "subject", "event", "label", "song", "item"))
"""Kinds after which a bare "please" could be part of the value."""


def _pick(rng: random.Random, weighted: Weighted) -> str:
    return rng.choices([text for text, _ in weighted], [weight for _, weight in weighted])[0]


def lower_first(text: str) -> str:
    """Lower-cases the first letter, but not of "I" or of an acronym."""
    first = text.split(" ", 1)[0]
    return text if first in ("I", "I'm", "I'd", "I'll", "I've") or first[1:2].isupper() else text[:1].lower() + text[1:]


def is_imperative(wording: str) -> bool:
    return wording.split(" ", 1)[0].strip(",").lower() in IMPERATIVES


def last_kind(wording: str, kinds: dict[str, str]) -> str | None:
    """The kind of the slot with which a wording ends, final punctuation aside; None where it ends otherwise."""
    match = re.search(r"\{(\w+)\}[.!?]?$", wording)
    return kinds.get(match.group(1)) if match else None


def vary(wording: str, kinds: dict[str, str], rng: random.Random) -> str:
    """The wording with a chance of other punctuation, capitals, politeness and contractions; slots stay as they are."""
    asks = wording.endswith("?")
    suffixes = SUFFIXES if is_imperative(wording) else COURTESIES
    prefix = ""
    roll = rng.random()
    if is_imperative(wording) and roll < 0.22:
        prefix = _pick(rng, PREFIXES)
    elif not wording.startswith("{") and not re.match(r"(?i)(hey|hi|ok|hello|please)\b", wording) and roll < 0.06:
        prefix = _pick(rng, OPENERS)
    if prefix:
        wording = prefix + lower_first(wording)
    if rng.random() < 0.3:
        for long, short in CONTRACTIONS:
            wording = wording.replace(long, short)
    wording = _ending(wording, kinds, suffixes, rng, asks or prefix.lower().startswith(("could", "can", "would")))
    return lower_first(wording) if rng.random() < 0.3 and not wording.startswith("{") else wording


def _ending(wording: str, kinds: dict[str, str], suffixes: Weighted, rng: random.Random, asks: bool) -> str:
    kind = last_kind(wording, kinds)
    mark = wording[-1] if wording[-1:] in ".!?" else ""
    body = wording.removesuffix(mark) if mark else wording
    if rng.random() < 0.12 and kind not in FREE_TEXT and "please" not in body.lower() and body[-1] not in "'\"":
        body += _pick(rng, suffixes)
    roll = rng.random()
    if asks:
        return body if kind == "message" or roll < 0.25 else body + "?"
    if mark or kind in ("message", "phrase"):
        return body if roll < 0.5 else body + mark
    return body + ("." if roll < 0.3 else "!" if roll < 0.32 else "")
