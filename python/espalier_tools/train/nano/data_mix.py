"""What nano reads, by how far its training is: conversations of the generator, dialogues and prose."""

import pathlib
import random

import yaml

from espalier_tools.train import sources
from espalier_tools.train.nano.aliases import renamed
from espalier_tools.train.nano.generator import TALK, Generator, exchange
from espalier_tools.train.nano.text import Encoded, Encoder, pieces
from espalier_tools.train.nano.words import read_words

DATA = pathlib.Path(__file__).with_name("data")

# From this part of the training on: weights of the generator's stages, of prose and of dialogues. Copying is learned
# from bare requests first; without them it stays at nothing while everything else is known already.
CURRICULUM = (
    (0.00, {"0": 80, "refusal": 5, "prose": 2, "dialogue": 3}),
    (0.06, {"0": 30, "1": 30, "refusal": 25, "prose": 4, "dialogue": 3}),
    (0.16, {"0": 16, "copy": 22, "1": 14, "2": 30, "refusal": 8, "chat": 14, "prose": 4, "dialogue": 6}),
)

DIALOGUES_WITH_TOOLS = 0.6  # share whose tools have nothing to do with what is said


def word_list() -> list[str]:
    return read_words([sources.source("shakespeare"), sources.bfcl_folder()])


def generator(wordings: str, values: str, words: list[str] | None = None) -> Generator:
    return Generator(DATA, words or word_list(), wordings, values, sources.bfcl_folder())


def dialogues() -> list[dict]:
    """Exchanges of the dialogue corpus, each once."""
    found = {}
    for path in sorted(sources.dialogue_folder().glob("*.yml")):
        for turns in yaml.safe_load(path.read_text("utf-8"))["conversations"]:
            texts = [str(turn).strip() for turn in turns]
            if len(texts) >= 2 and all(texts) and max(map(len, texts)) <= 300:
                found[tuple(texts[: 2 * (len(texts) // 2)])] = None
    return [
        {"tools": [], "messages": [m for said, answer in zip(texts[::2], texts[1::2]) for m in exchange(said, answer, TALK)]}
        for texts in found
    ]


class Mix:
    """Encoded sequences of one split by index: a pure function of the index and of the progress of training."""

    def __init__(self, encoder: Encoder, seed: int):
        self.encoder, self.seed = encoder, seed
        self.words = word_list()
        self.generator = generator("train", "train", self.words)
        self.dialogues = dialogues()
        self.prose = prose("train")

    def conversation(self, index: int, progress: float) -> dict:
        weights = next(weights for begin, weights in reversed(CURRICULUM) if progress >= begin)
        rng = random.Random(f"{self.seed}/{index}")
        kind = rng.choices(list(weights), list(weights.values()))[0]
        if kind == "prose":
            return {"text": rng.choice(self.prose)}
        if kind == "dialogue":
            tools = self.generator.conversation(index, self.seed)["tools"] if rng.random() < DIALOGUES_WITH_TOOLS else []
            return {**rng.choice(self.dialogues), "tools": tools}
        return renamed(self.generator.conversation(index, self.seed, kind), self.words, rng)

    def __call__(self, index: int, progress: float) -> Encoded:
        return self.encoder.encode(self.conversation(index, progress))


def prose(split: str) -> list[str]:
    """Passages of one split: every twentieth is validation, the one after it test."""
    kinds = {0: "validation", 1: "test"}
    return [text for i, text in enumerate(sources.passages()) if kinds.get(i % 20, "train") == split]


def tokenizer_texts(count: int, seed: int = 1) -> list[str]:
    """What the tokenizer is trained on: the mix of the last stage of training."""
    mix = Mix(None, seed)
    rng = random.Random(seed)
    conversations = (mix.conversation(rng.getrandbits(48), 1.0) for _ in range(count))
    return ["".join(piece.text for piece in pieces(conversation)) for conversation in conversations]
