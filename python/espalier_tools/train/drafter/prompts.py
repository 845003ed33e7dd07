"""Prompts from which the drafter's training text is regenerated.

The target model answers them later; this file only asks. Everything that is said lives in data/prompts.json; here it
is drawn, filled in and split. A prompt's split is that of its *subject* (a topic, a coding task, a made-up text, a
passage, a tool), so that a held-out prompt never shares its subject with a training one.

Not for measuring answers: nothing here knows what a good answer is.
"""

from __future__ import annotations

import functools
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DATA_PATH = Path(__file__).parent / "data" / "prompts.json"
CLASSES = ("chat", "code", "copy", "tool")
SPLITS = ("train", "validation", "test")

# Subjects go 85/5/10 to train/validation/test, patterns 90/10 to train/test (validation asks with training patterns).
VALIDATION_FROM_PERCENT = 85
TEST_FROM_PERCENT = 90

# Shares of prompts, chosen by eye: enough of each for the drafter to meet it, most prompts left plain.
SINGLE_SHARE = 0.10
PASSAGE_SHARE = 0.08
SNIPPET_SHARE = 0.25
PASSAGE_COPY_SHARE = 0.4
SYSTEM_SHARE = 0.08
SUFFIX_SHARE = 0.20
PREFIX_SHARE = 0.08
CASUAL_SHARE = 0.12
TEST_PATTERN_SHARE = 0.5

# A draw that was seen before is thrown away; this many in a row mean that the data has been used up.
MAX_REPEATED_DRAWS = 20_000

Message = dict[str, str]
Chat = list[Message]

_SLOT = re.compile(r"\{([a-z_]+)(?::(\d+)-(\d+))?\}")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class Draw:
    """What one draw may use: the data, the split it serves, its random numbers and the caller's passages."""

    data: dict
    split: str
    rng: random.Random
    passages: tuple[str, ...]
    singles: list[str]


def prompts(class_name: str, split: str, seed: int, passages: Sequence[str] = ()) -> Iterator[Chat]:
    """Yields chats of class_name for split, no two alike, the same ones for the same arguments.

    Endless in practice; raises RuntimeError if the data has no new prompt left. passages are prose texts for prompts
    that summarise, continue or copy; those of other splits are left out here, so pass the same ones for each split.
    """
    if class_name not in CLASSES or split not in SPLITS:
        raise ValueError(f"prompts: expected a class of {CLASSES} and a split of {SPLITS}, got {class_name}, {split}")
    draw = _prepare(class_name, split, seed, passages)
    make = _MAKERS[class_name]
    seen: set[bytes] = set()
    repeated = 0
    while repeated < MAX_REPEATED_DRAWS:
        chat = make(draw)
        key = _digest(json.dumps(chat))
        repeated = repeated + 1 if key in seen else 0
        if not repeated:
            seen.add(key)
            yield chat
    raise RuntimeError(f"prompts: {class_name}/{split} is used up after {len(seen)} prompts; add to {DATA_PATH}")


# --- Splits ---------------------------------------------------------------------------------------------------------


def subject_split(subject: str) -> str:
    """The split of a topic, task, tool, text or passage; one that contains a shorter topic follows that topic."""
    return _bucket_split(_root(subject))


def pattern_split(pattern: str) -> str:
    """The split of a pattern: test, or train (which serves validation too)."""
    return "test" if _percent(pattern) >= TEST_FROM_PERCENT else "train"


def _bucket_split(key: str) -> str:
    """The split of a key by its hash alone."""
    percent = _percent(key)
    if percent >= TEST_FROM_PERCENT:
        return "test"
    return "validation" if percent >= VALIDATION_FROM_PERCENT else "train"


def _digest(text: str) -> bytes:
    """A short stable hash of text."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def _percent(text: str) -> int:
    """A stable number of 0..99 for text, whatever its case and outer spaces."""
    return int.from_bytes(_digest(text.strip().lower()), "big") % 100


@functools.cache
def _root(subject: str) -> str:
    """The shortest topic that stands in subject as whole words, or subject itself."""
    return next(_topics_in(subject), subject)


def _all_splits(subject: str) -> set[str]:
    """The splits of all topics that stand in subject; a single prompt with more than one belongs to none."""
    return {subject_split(topic) for topic in _topics_in(subject)} or {_bucket_split(subject)}


def _topics_in(subject: str) -> Iterator[str]:
    """The topics that stand in subject as whole words, shortest first."""
    words = f" {' '.join(_words(subject))} "
    return (topic for padded, topic in _padded_topics() if padded in words)


@functools.cache
def _padded_topics() -> tuple[tuple[str, str], ...]:
    """All topics between spaces, shortest first, with the topics themselves."""
    topics = {topic for group in load()["topics"].values() for topic in group}
    return tuple((f" {' '.join(_words(t))} ", t) for t in sorted(topics, key=lambda t: (len(t), t)))


def _words(text: str) -> list[str]:
    """The words of text in lower case, without an article in front and without punctuation."""
    words = re.findall(r"[\w'-]+", text.lower())
    return words[1:] if len(words) > 1 and words[0] in ("a", "an", "the") else words


# --- Data -----------------------------------------------------------------------------------------------------------


@functools.cache
def load() -> dict:
    """The content of prompts.json."""
    return json.loads(DATA_PATH.read_text(encoding="utf-8"))


def _prepare(class_name: str, split: str, seed: int, passages: Sequence[str]) -> Draw:
    """The start of a run: seeded numbers, this split's passages and its single prompts in random order."""
    rng = random.Random(f"{class_name}/{split}/{seed}")
    singles = [s for s in load()["single"].get(class_name, []) if _all_splits(s) == {split}]
    rng.shuffle(singles)
    mine = tuple(p for p in passages if _bucket_split(p) == split)
    return Draw(load(), split, rng, mine, singles)


@functools.cache
def _subjects(path: tuple[str, ...], split: str) -> tuple:
    """The entries of a list in the data that belong to split; an entry is a text or an object with a "name"."""
    entries = functools.reduce(lambda node, key: node[key], path, load())
    return tuple(e for e in entries if subject_split(e if isinstance(e, str) else e["name"]) == split)


@functools.cache
def _topics(kind: str, split: str) -> tuple[str, ...]:
    """The topics of split in all groups that a kind of pattern fits."""
    groups = load()["kinds"].get(kind) or list(load()["topics"])
    return tuple(topic for group in groups for topic in _subjects(("topics", group), split))


@functools.cache
def _patterns(path: tuple[str, ...], split: str) -> tuple[str, ...]:
    """The patterns of a list in the data that split may use: all of them for test, else the training ones."""
    patterns = functools.reduce(lambda node, key: node[key], path, load())
    return tuple(p for p in patterns if split == "test" or pattern_split(p) == "train")


def _pick_pattern(draw: Draw, path: tuple[str, ...]) -> str:
    """One pattern of a list; the test split takes half of its patterns from those training never saw."""
    patterns = _patterns(path, draw.split)
    unseen = tuple(p for p in patterns if pattern_split(p) == "test")
    if unseen and draw.rng.random() < TEST_PATTERN_SHARE:
        patterns = unseen
    return draw.rng.choice(patterns)


def _pick_kind(draw: Draw, table: str) -> str:
    """One kind of a class's patterns, as often as it has patterns."""
    kinds = {kind: len(patterns) for kind, patterns in draw.data["patterns"][table].items()}
    return draw.rng.choices(list(kinds), list(kinds.values()))[0]


def _fill(text: str, rng: random.Random, grammar: dict[str, list[str]]) -> str:
    """Replaces each {symbol} by a random entry of the grammar, filled in turn, and {int:a-b} by a number."""

    def value(match: re.Match) -> str:
        symbol, low, high = match.groups()
        if low:
            return str(rng.randint(int(low), int(high)))
        return _fill(rng.choice(grammar[symbol]), rng, grammar) if symbol in grammar else match.group()

    return _SLOT.sub(value, text)


# --- Chat -----------------------------------------------------------------------------------------------------------


def _chat(draw: Draw) -> Chat:
    """A question or a wish in one turn."""
    if draw.singles and draw.rng.random() < SINGLE_SHARE:
        return [_user(draw.singles.pop())]
    if draw.passages and draw.rng.random() < PASSAGE_SHARE:
        return [_user(_about_passage(draw, ("patterns", "passage", "chat")))]
    return _with_system(draw, _styled(draw, _about_topic(draw)))


def _about_topic(draw: Draw) -> str:
    """A chat pattern with topics that fit it: {other} from the same group as {topic}, {extra} from any fitting one."""
    kind = _pick_kind(draw, "chat")
    while not _topics(kind, draw.split):  # a small split may lack a small kind
        kind = _pick_kind(draw, "chat")
    pattern = _fill(_pick_pattern(draw, ("patterns", "chat", kind)), draw.rng, draw.data["slots"])
    topic, extra = draw.rng.choice(_topics(kind, draw.split)), draw.rng.choice(_topics(kind, draw.split))
    text = _with_article(pattern, topic).replace("{extra}", extra)
    return _capitalised(text.replace("{other}", draw.rng.choice(_neighbours(kind, draw.split, topic))))


@functools.cache
def _neighbours(kind: str, split: str, topic: str) -> tuple[str, ...]:
    """The other topics of topic's group, of the whole kind where the split has no others in the group."""
    groups = [g for g in load()["kinds"].get(kind) or load()["topics"] if topic in load()["topics"][g]]
    near = [t for group in groups for t in _subjects(("topics", group), split) if t != topic]
    return tuple(near) or tuple(t for t in _topics(kind, split) if t != topic) or (topic,)


def _with_article(pattern: str, topic: str) -> str:
    """The pattern with its topic; "a {topic}" becomes "an" before a vowel."""
    if topic[0] in "aeiou":
        pattern = re.sub(r"\b([Aa]) \{topic\}", r"\1n {topic}", pattern)
    return pattern.replace("{topic}", topic)


def _about_passage(draw: Draw, path: tuple[str, ...]) -> str:
    """A pattern around some sentences of one of the caller's passages."""
    pattern = _fill(_pick_pattern(draw, path), draw.rng, draw.data["slots"])
    return _around(pattern, _excerpt(draw.rng.choice(draw.passages), draw.rng), draw.rng)


def _around(pattern: str, text: str, rng: random.Random) -> str:
    """The pattern with its text, and with some word of the text where it asks for one."""
    word = rng.choice(re.findall(r"[A-Za-z]{4,}", text) or [text])
    return pattern.replace("{word}", word).replace("{text}", text)


def _excerpt(passage: str, rng: random.Random) -> str:
    """Two to six sentences of a passage that stand together."""
    sentences = _SENTENCE_END.split(passage.strip())
    length = rng.randint(2, 6)
    start = rng.randint(0, max(0, len(sentences) - length))
    return " ".join(sentences[start : start + length])


def _styled(draw: Draw, text: str) -> str:
    """Text as different people would type it: greeted, with a wish about the form, or carelessly."""
    slots = draw.data["slots"]
    if draw.rng.random() < SUFFIX_SHARE:
        text = f"{text} {_fill('{suffix}', draw.rng, slots)}"
    if draw.rng.random() < PREFIX_SHARE:
        text = f"{_fill('{prefix}', draw.rng, slots)} {text}"
    return text.lower().rstrip("?.") if draw.rng.random() < CASUAL_SHARE else text


def _with_system(draw: Draw, text: str) -> Chat:
    """A user's turn, now and then under a system prompt of its own."""
    if draw.rng.random() >= SYSTEM_SHARE:
        return [_user(text)]
    return [_system(draw.rng.choice(draw.data["systems"])), _user(text)]


def _capitalised(text: str) -> str:
    """Text with its first letter large."""
    return text[:1].upper() + text[1:]


def _user(text: str) -> Message:
    """A user's message."""
    return {"role": "user", "content": text}


def _system(text: str) -> Message:
    """A system message."""
    return {"role": "system", "content": text}


# --- Code -----------------------------------------------------------------------------------------------------------


def _code(draw: Draw) -> Chat:
    """A coding question: a task by name, or one about a piece of code."""
    if draw.singles and draw.rng.random() < SINGLE_SHARE:
        return [_user(draw.singles.pop())]
    snippets = _subjects(("snippets",), draw.split)
    if snippets and draw.rng.random() < SNIPPET_SHARE:
        return [_user(_about_snippet(draw, snippets))]
    family = draw.rng.choices(list(draw.data["tasks"]), [len(t) for t in draw.data["tasks"].values()])[0]
    tasks = _subjects(("tasks", family), draw.split) or _subjects(("tasks", "general"), draw.split)
    family = family if _subjects(("tasks", family), draw.split) else "general"
    pattern = _pick_pattern(draw, ("patterns", "code", family))
    text = _fill(pattern.replace("{task}", draw.rng.choice(tasks)), draw.rng, draw.data["slots"])
    return _with_system(draw, _code_styled(draw, text))


def _about_snippet(draw: Draw, snippets: Sequence[dict[str, str]]) -> str:
    """A question about a given piece of code: to explain, correct, comment, translate or test it."""
    snippet = draw.rng.choice(snippets)
    pattern = _pick_pattern(draw, ("patterns", "code", "snippet"))
    text = _fill(pattern, draw.rng, {**draw.data["slots"], "own_language": [snippet["language"]]})
    block = f"```{snippet['language'].lower()}\n{snippet['code']}\n```"
    return text.replace("{code}", draw.rng.choice((block, snippet["code"])))


def _code_styled(draw: Draw, text: str) -> str:
    """Text with a wish about the code, or typed carelessly."""
    if draw.rng.random() < SUFFIX_SHARE:
        text = f"{text} {_fill('{code_suffix}', draw.rng, draw.data['slots'])}"
    return text[:1].lower() + text[1:].rstrip("?.") if draw.rng.random() < CASUAL_SHARE else text


# --- Copy -----------------------------------------------------------------------------------------------------------


def _copy(draw: Draw) -> Chat:
    """A wish whose answer repeats most of the prompt."""
    if draw.singles and draw.rng.random() < SINGLE_SHARE / 2:
        return [_user(draw.singles.pop())]
    if draw.passages and draw.rng.random() < PASSAGE_COPY_SHARE:
        return [_user(_about_passage(draw, ("patterns", "passage", "copy")))]
    kind = _pick_kind(draw, "copy")
    pattern = _fill(_pick_pattern(draw, ("patterns", "copy", kind)), draw.rng, draw.data["slots"])
    return [_user(_around(pattern, _material(draw, kind), draw.rng))]


def _material(draw: Draw, kind: str) -> str:
    """A made-up text of the kind that a copy pattern asks for, of the draw's split."""
    words = draw.data["grammars"]["words"]
    source, change = draw.data["copy_kinds"][kind]
    while True:
        grammar = {**draw.data["slots"], **words, "item": [draw.rng.choice(words["thing"])]}  # one {item} a text
        text = _fill(draw.rng.choice(draw.data["grammars"][source]), draw.rng, grammar)
        if _bucket_split(text) == draw.split:
            return _CHANGES[change](text, draw.rng)


def _misspelled(text: str, rng: random.Random) -> str:
    """Text with two neighbouring letters exchanged in about one long word of four."""

    def spoil(match: re.Match) -> str:
        word = match.group()
        if rng.random() > 0.25:
            return word
        at = rng.randrange(1, len(word) - 1)
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]

    return re.sub(r"[A-Za-z]{4,}", spoil, text)


def _unpunctuated(text: str, _rng: random.Random) -> str:
    """Text in small letters, without full stops and commas."""
    return re.sub(r"[.,!?]", "", text).lower()


def _unchanged(text: str, _rng: random.Random) -> str:
    """Text as it is."""
    return text


_CHANGES: dict[str, Callable[[str, random.Random], str]] = {
    "none": _unchanged,
    "misspelled": _misspelled,
    "unpunctuated": _unpunctuated,
}


# --- Tools ----------------------------------------------------------------------------------------------------------


def _tool(draw: Draw) -> Chat:
    """A request under a system prompt that lists the tools at hand, the right one mostly among them."""
    tools = _subjects(("tools",), draw.split)
    wanted = draw.rng.choice(tools)
    listed = draw.rng.sample(tools, min(len(tools), draw.rng.choice((1, 1, 2, 3, 4))))
    if wanted not in listed and draw.rng.random() < 0.95:
        listed[draw.rng.randrange(len(listed))] = wanted
    indent = draw.rng.choice((None, None, 2))
    text = json.dumps([_tool_schema(tool) for tool in listed], indent=indent)
    pattern = _pick_pattern(draw, ("patterns", "tool", "system"))
    grammar = {**draw.data["slots"], **draw.data["grammars"]["words"]}
    request = _fill(draw.rng.choice(wanted["requests"]), draw.rng, grammar)
    return [_system(pattern.replace("{tools}", text)), _user(_capitalised(request))]


def _tool_schema(tool: dict) -> dict:
    """A tool as JSON schema; "name:type" is a required parameter, "name:type?" an optional one."""
    fields = dict(spec.split(":") for spec in tool["parameters"])
    properties = {name: {"type": kind.rstrip("?")} for name, kind in fields.items()}
    required = [name for name, kind in fields.items() if not kind.endswith("?")]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": tool["name"], "description": tool["description"], "parameters": parameters}


_MAKERS: dict[str, Callable[[Draw], Chat]] = {"chat": _chat, "code": _code, "copy": _copy, "tool": _tool}
