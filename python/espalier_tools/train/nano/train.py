"""Trains nano: tokenizer first, then the network, in legs that go on where the last one ended."""

import hashlib
import json
import pathlib
import tempfile

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from espalier_tools.train.nano import ship
from espalier_tools.train.nano.batches import Batch, Batches
from espalier_tools.train.nano.data_mix import Mix, tokenizer_texts
from espalier_tools.train.nano.model import SHAPE, initialise
from espalier_tools.train.nano.text import Encoder, train_tokenizer
from espalier_tools.train.network import Network, elementwise
from espalier_tools.train.run import Run, Schedule, rank

TOKENIZER_TEXTS = 12000
TOKENS = 3000  # of a step and process
SEED = 20261130
# The ends of a request and of a tool's description shall know their function in the middle of the network already, in terms
# of its name's embedding: then the layers above find by likeness whether the list has what is asked. Left alone, the
# network learns what is asked where the name is written, too late to refuse.
HINT_LAYER = 3
HINT_WEIGHT = 0.3


def tokenizer_in(folder: pathlib.Path) -> PreTrainedTokenizerFast:
    """nano's tokenizer; trained if the folder has none."""
    if not (folder / "tokenizer.json").exists():
        keep_tokenizer(train_tokenizer(tokenizer_texts(TOKENIZER_TEXTS)), folder)
    return AutoTokenizer.from_pretrained(folder)


def keep_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: pathlib.Path) -> None:
    """All files of a tokenizer; tokenizer.json comes last, so that where it is the others are."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        tokenizer.save_pretrained(temporary)
        for path in sorted(pathlib.Path(temporary).iterdir(), key=lambda path: path.name == "tokenizer.json"):
            path.replace(folder / path.name)


def train(folder: pathlib.Path, steps: int, leg_minutes: float, rate: float, begin: pathlib.Path | None) -> bool:
    """Whether the training is finished; if not, the same call goes on. `begin`: a nano whose weights it starts from."""
    network = Network(SHAPE)
    initialise(network, SEED)
    if begin is not None:
        earlier, tokenizer = ship.load(begin)
        network.load_state_dict(earlier.state_dict())
        if not (folder / "tokenizer.json").exists():
            keep_tokenizer(tokenizer, folder)
    tokenizer = tokenizer_in(folder)
    schedule = Schedule(steps=steps, rate=rate, decay_from=0.6, average=0.995, muon=True)
    description = {"task": "nano", "seed": SEED, "tokens_a_step": TOKENS}
    if begin is not None:
        description["begins_with"] = ship.digest(begin)
    run = Run(folder, network, schedule, description)
    batches = batches_of(tokenizer, {**description, "steps": steps})
    elementwise.fused = True

    def loss(step: int):
        batch = batches.batch(step, rank())
        hidden, taps = network(batch.ids, (HINT_LAYER,), batch.lengths)
        logits = network.logits(hidden[0, batch.places])
        loss = (F.cross_entropy(logits, batch.labels, reduction="none") * batch.weights).sum() / batch.weights.sum()
        hinted = network.logits(network.embedding_norm(taps[0][0, batch.hint_places]))
        if len(batch.hints):
            loss = loss + HINT_WEIGHT * F.cross_entropy(hinted, batch.hints)
        numbers = {
            "right": share_right(logits, batch.labels),
            "decided": share_right(logits[batch.weights > 1], batch.labels[batch.weights > 1]),
            "hints": share_right(hinted, batch.hints),
            "labels": len(batch.labels),
        }
        return loss, numbers

    return run.train(loss, leg_minutes)


def batches_of(tokenizer: PreTrainedTokenizerFast, settings: dict) -> Batches:
    """What a run of these settings reads; the curriculum is over where it began with trained weights."""
    seed, begun = settings["seed"], "begins_with" in settings
    return Batches(Mix(Encoder(tokenizer), seed), TOKENS, 1 if begun else settings["steps"], seed)


def data_digest(folder: pathlib.Path, tokenizer: PreTrainedTokenizerFast) -> str:
    """SHA-256 of the token ids of every hundredth step of a run."""
    settings = json.loads((folder / "run.json").read_text())
    batches, total = batches_of(tokenizer, settings), hashlib.sha256()
    for step in range(0, settings["steps"], 100):
        total.update(batches.batch(step).ids.numpy().tobytes())
    return total.hexdigest()


@torch.no_grad()
def share_right(logits: Tensor, labels: Tensor) -> float:
    """The share of labels that are most probable; 1 of none."""
    return (logits.argmax(-1) == labels).float().mean().item() if len(labels) else 1.0


def trained(folder: pathlib.Path) -> tuple[Network, PreTrainedTokenizerFast]:
    """The averaged weights of a run, and its tokenizer."""
    network = Network(SHAPE)
    network.load_state_dict(torch.load(folder / "checkpoint.pt", weights_only=True)["average"])
    return network, tokenizer_in(folder)
