"""Where a drafter's training prompts come from: general ones, nano's own, or a file of the user's.

A source gives a stream of requests for each shard of each split, the same one whenever it is asked.
"""

import hashlib
import json
import pathlib
import random
from collections.abc import Callable, Iterator
from typing import Protocol

from espalier_tools.train import sources
from espalier_tools.train.drafter.prompts import prompts, subject_split
from espalier_tools.train.drafter.target import Request

SAMPLED = 0.25  # of the answers in training text; the others, and all in other splits, are greedy
TEMPERATURES = (0.5, 0.8, 1.0)
OWN_QUESTIONS = 0.25  # of the general chat prompts


class PromptSource(Protocol):
    shares: dict[str, float]  # of each class in training text
    tests: dict[str, int]  # prompts of each class in held-out text, enough for some 3,000 tokens of answers

    def prompts(self, split: str, shard: int, rng: random.Random) -> Callable[[str], list[int]]:
        """A function that draws the token ids of the next prompt of a class."""


def requests(source: PromptSource, split: str, shard: int, shares: dict[str, float]) -> Iterator[Request]:
    """Endless; the same for the same arguments."""
    rng = random.Random(f"{split}/{shard}")
    draw = source.prompts(split, shard, rng)
    sampled = SAMPLED if split == "train" else 0.0
    while True:
        kind = rng.choices(list(shares), list(shares.values()))[0]
        prompt = draw(kind)
        yield Request(prompt, kind, rng.choice(TEMPERATURES) if rng.random() < sampled else 0.0)


def _chat(tokenizer, messages: list[dict], tools: list[dict] | None = None) -> list[int]:
    return tokenizer.apply_chat_template(messages, tools=tools or None, add_generation_prompt=True, return_dict=False)


class GeneralPrompts:
    """Chat, code, copying and tools, as for any assistant; `questions` are those that the target asks itself."""

    shares = {"chat": 0.62, "code": 0.16, "copy": 0.14, "tool": 0.08}
    tests = {"chat": 32, "code": 32, "copy": 256}

    def __init__(self, tokenizer, questions: list[str]):
        self.tokenizer, self.questions = tokenizer, questions
        self.passages = sources.passages()

    def prompts(self, split: str, shard: int, rng: random.Random) -> Callable[[str], list[int]]:
        streams = {kind: prompts(kind, split, shard, self.passages) for kind in self.shares}
        own = [text for text in self.questions if subject_split(text) == split]
        asked = rng.sample(own, len(own))

        def draw(kind: str) -> list[int]:
            if kind == "chat" and asked and rng.random() < OWN_QUESTIONS:
                return _chat(self.tokenizer, [{"role": "user", "content": asked.pop()}])
            return _chat(self.tokenizer, next(streams[kind]))

        return draw


class NanoPrompts:
    """What nano is asked: requests under a list of tools, talk, and beginnings of prose."""

    shares = {"tool": 0.6, "talk": 0.15, "prose": 0.25}
    tests = {"tool": 192, "talk": 192, "prose": 32}

    def __init__(self, tokenizer):
        from espalier_tools.train.nano.data_mix import word_list

        self.tokenizer, self.words = tokenizer, word_list()

    def prompts(self, split: str, shard: int, rng: random.Random) -> Callable[[str], list[int]]:
        from espalier_tools.train.nano.data_mix import generator, prose

        made, passages = generator(split, split, self.words), prose(split)

        def draw(kind: str) -> list[int]:
            if kind == "prose":
                return self.tokenizer.encode(rng.choice(passages)[: rng.randint(40, 200)])
            stage = rng.choice(("1", "2", "2")) if kind == "tool" else "chat"
            while True:
                conversation = made.conversation(rng.getrandbits(48), 0, stage)
                if kind == "talk" or conversation["kinds"][0] == "call":
                    return _chat(self.tokenizer, conversation["messages"][:1], conversation["tools"])

        return draw


class FilePrompts:
    """Prompts of a JSONL file: {"messages": [...], "tools": [...], "class": "chat"} a line; tools and class may be absent.

    A tenth of each class, by hash, is kept for the test. ValueError names a line that is no prompt.
    """

    def __init__(self, tokenizer, path: pathlib.Path):
        self.tokenizer = tokenizer
        self.entries: dict[tuple[str, str], list[dict]] = {}
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            entry = self._entry(line, f"{path}:{number}")
            split = "test" if hashlib.sha256(line.encode()).digest()[0] < 26 else "train"
            self.entries.setdefault((split, entry.get("class", "chat")), []).append(entry)
        kinds = sorted({kind for _, kind in self.entries})
        for split in ("train", "test"):
            for kind in kinds:
                if (split, kind) not in self.entries:
                    raise ValueError(f"{path}: no {split} prompt of class {kind!r}; give some twenty of each class or more")
        self.tests = {kind: min(64, len(self.entries["test", kind])) for kind in kinds}
        self.shares = {kind: float(len(self.entries["train", kind])) for kind in kinds}

    @staticmethod
    def _entry(line: str, where: str) -> dict:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where}: not JSON ({error}); expected one object a line") from error
        messages = entry.get("messages") if isinstance(entry, dict) else None
        if not messages or not all(isinstance(m, dict) and {"role", "content"} <= m.keys() for m in messages):
            raise ValueError(f'{where}: expected {{"messages": [{{"role": ..., "content": ...}}, ...]}}, got {line[:80]}')
        return entry

    def prompts(self, split: str, shard: int, rng: random.Random) -> Callable[[str], list[int]]:
        """Each prompt once a round, in another order each round; sampling makes repeated ones differ."""
        rounds: dict[str, list[dict]] = {}

        def draw(kind: str) -> list[int]:
            if not rounds.get(kind):
                rounds[kind] = rng.sample(self.entries[split, kind], len(self.entries[split, kind]))
            entry = rounds[kind].pop()
            return _chat(self.tokenizer, entry["messages"], entry.get("tools"))

        return draw
