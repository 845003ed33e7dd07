"""Training text of a drafter: the target's own answers, in shards that are whole or not there.

Shard k holds the answers to prompts of its own seed and is the same whenever and in whatever order it is made; shards
that are there already are left alone, so generation ends and goes on at any time with one shard lost at most. Questions
that the target asks itself (Magpie) come first and lie in questions.json.
"""

import hashlib
import io
import itertools
import json
import pathlib
import zipfile

import numpy as np

from espalier_tools.train.drafter.requests import PromptSource, requests
from espalier_tools.train.drafter.target import Generator, Request, Transcript, default_taps
from espalier_tools.train.files import write_json, write_whole

SHARD_PROMPTS = 256
SLOTS = 64
LENGTH = 384  # tokens of prompt and answer
QUESTIONS = 3000


def before_user(tokenizer) -> str:
    """What the chat template writes before a user's first words."""
    mark = "\u2603"
    messages = [{"role": "user", "content": mark}]
    return tokenizer.apply_chat_template(messages, tokenize=False).split(mark)[0]


def own_questions(network, tokenizer, stops: set[int], count: int) -> list[str]:
    """Questions that the target writes where a user would: sampled at temperature 1, each once."""
    prefix = tokenizer.encode(before_user(tokenizer), add_special_tokens=False)
    generator = Generator(network, (), stops, 128, len(prefix) + 80, seed=1)
    found = {}
    for transcript in generator.run(iter([Request(prefix, "question", 1.0)] * count)):
        if transcript.ids[-1] in stops:
            text = tokenizer.decode(transcript.ids[len(prefix) : -1]).strip()
            if 8 <= len(text) <= 300:
                found[text] = None
    return list(found)


def write_shard(path: pathlib.Path, transcripts: list[Transcript]) -> None:
    """All transcripts of a shard end to end; lengths tell them apart."""
    columns = {
        "ids": np.concatenate([t.ids for t in transcripts]),
        "lengths": np.array([len(t.ids) for t in transcripts], np.int32),
        "prompt_lengths": np.array([t.prompt_length for t in transcripts], np.int32),
        "taps": np.concatenate([t.taps for t in transcripts]),
        "top_ids": np.concatenate([t.top_ids for t in transcripts]),
        "top_logits": np.concatenate([t.top_logits for t in transcripts]),
        "kinds": np.array([t.kind for t in transcripts]),
    }
    content = io.BytesIO()
    np.savez(content, **columns)
    write_whole(path, lambda file: file.write(content.getbuffer()))


def read_shard(path: pathlib.Path) -> list[Transcript]:
    try:
        with np.load(path) as columns:
            values = {name: columns[name] for name in columns.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: damaged ({error}); remove it, and it is made again") from error
    ends = np.cumsum(values["lengths"])
    transcripts = []
    for i, end in enumerate(ends):
        start = end - values["lengths"][i]
        rows = slice(start - i, end - i - 1)  # one row less than tokens in each transcript
        transcripts.append(
            Transcript(
                ids=values["ids"][start:end],
                prompt_length=int(values["prompt_lengths"][i]),
                taps=values["taps"][rows],
                top_ids=values["top_ids"][rows],
                top_logits=values["top_logits"][rows],
                kind=str(values["kinds"][i]),
            )
        )
    return transcripts


class TextMaker:
    """Fills a folder with shards of one target."""

    def __init__(self, network, tokenizer, folder: pathlib.Path, taps: tuple[int, ...] | None = None):
        self.network, self.tokenizer, self.folder = network, tokenizer, folder
        self.taps = taps or default_taps(len(network.shape.layer_types))
        self.stops = {tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|endoftext|>")} - {None}
        self._check_settings()

    def _check_settings(self) -> None:
        """Writes text.json, or refuses a folder with text of other settings."""
        path = self.folder / "text.json"
        shape = self.network.shape
        settings = {"taps": list(self.taps), "hidden": shape.hidden, "vocab": shape.vocab, "length": LENGTH}
        if not path.exists():
            write_json(path, settings)
        found = json.loads(path.read_text())
        if found != settings:
            raise ValueError(f"{path}: {found}, expected {settings}; give another folder for this target")

    def questions(self) -> list[str]:
        path = self.folder / "questions.json"
        if not path.exists():
            write_json(path, own_questions(self.network, self.tokenizer, self.stops, QUESTIONS))
        return json.loads(path.read_text())

    def shard(
        self, source: PromptSource, split: str, number: int, shares: dict[str, float] | None = None, count: int = SHARD_PROMPTS
    ) -> pathlib.Path:
        """The path of a shard, made if it is not there."""
        path = self.folder / f"{split}-{number:04d}.npz"
        if not path.exists():
            wanted = itertools.islice(requests(source, split, number, shares or source.shares), count)
            generator = Generator(self.network, self.taps, self.stops, SLOTS, LENGTH, seed=number)
            write_shard(path, list(generator.run(wanted)))
        return path


def digest(folder: pathlib.Path) -> str:
    """SHA-256 over the token ids of the training shards of a folder, in order: what a model card names as its data."""
    total = hashlib.sha256()
    for path in sorted(folder.glob("train-*.npz")):
        with np.load(path) as columns:
            total.update(columns["ids"].tobytes())
    return total.hexdigest()
