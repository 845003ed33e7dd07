"""Trains nano: tokenizer first, then the network, in legs that go on where the last one ended."""

import pathlib

import torch
import torch.nn.functional as F
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from espalier_tools.train.nano.batches import Batches
from espalier_tools.train.nano.data_mix import Mix, tokenizer_texts
from espalier_tools.train.nano.model import SHAPE, initialise
from espalier_tools.train.nano.text import Encoder, train_tokenizer
from espalier_tools.train.network import Network
from espalier_tools.train.run import Run, Schedule

TOKENIZER_TEXTS = 12000
TOKENS = 3000  # of a step
SEED = 20261130


def tokenizer_in(folder: pathlib.Path) -> PreTrainedTokenizerFast:
    """nano's tokenizer; trained if the folder has none."""
    if not (folder / "tokenizer.json").exists():
        train_tokenizer(tokenizer_texts(TOKENIZER_TEXTS)).save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def train(folder: pathlib.Path, steps: int, leg_minutes: float, rate: float) -> bool:
    """Whether the training is finished; if not, the same call goes on."""
    tokenizer = tokenizer_in(folder)
    network = Network(SHAPE)
    initialise(network, SEED)
    schedule = Schedule(steps=steps, rate=rate, average=0.995)
    run = Run(folder, network, schedule, {"task": "nano", "seed": SEED, "tokens_a_step": TOKENS})
    batches = Batches(Mix(Encoder(tokenizer), SEED), TOKENS, steps, SEED)

    def loss(step: int):
        batch = batches.batch(step)
        hidden, _ = network(batch.ids, lengths=batch.lengths)
        logits = network.logits(hidden[0, batch.places])
        right = (logits.detach().argmax(-1) == batch.labels).float().mean().item()
        return F.cross_entropy(logits, batch.labels), {"right": right, "labels": len(batch.labels)}

    return run.train(loss, leg_minutes)


def trained(folder: pathlib.Path) -> tuple[Network, PreTrainedTokenizerFast]:
    """The averaged weights of a run, and its tokenizer."""
    network = Network(SHAPE)
    network.load_state_dict(torch.load(folder / "checkpoint.pt", weights_only=True)["average"])
    return network, tokenizer_in(folder)
