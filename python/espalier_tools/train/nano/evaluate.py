"""How often nano calls the right function with the right arguments, talks when talk is asked, and refuses when it must.

    python -m espalier_tools.train nano-evaluate --model FOLDER --count 500 --out FILE

Answers are greedy. A case counts if the whole call is right: function, every argument, nothing else.
"""

import math
import pathlib
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from espalier_tools.train import sources
from espalier_tools.train.drafter.target import Generator, Request
from espalier_tools.train.nano.batches import Batch
from espalier_tools.train.nano.data_mix import DATA, prose, word_list
from espalier_tools.train.nano.evaluation import NO_CALL, REFUSAL, Evaluation
from espalier_tools.train.nano.text import Encoder
from espalier_tools.train.network import Network

KINDS = (
    "values",
    "foreign",
    "wordings",
    "independent",
    "small_talk",
    "knowledge",
    "refusal",
    "false_refusal",
    "extraction",
    "other_tools",
)
CALL = "<|tool_call_start|>"
LENGTH = 640
ANSWER = "<|im_start|>assistant\n"


def is_right(expected: str, answer: str) -> bool:
    if expected == NO_CALL:
        return CALL not in answer and not answer.startswith("I can't")
    if expected == REFUSAL:
        return CALL not in answer
    return answer == expected


def answers(network: Network, tokenizer, cases: list[dict]) -> list[str]:
    """The greedy answer to each case."""
    encoder = Encoder(tokenizer)
    begin = tokenizer.encode(ANSWER, add_special_tokens=False)
    prompts = [encoder.encode(case)[0] + begin for case in cases]
    stops = {tokenizer.eos_token_id}

    def requests() -> Iterator[Request]:
        return (Request(prompt, str(number)) for number, prompt in enumerate(prompts))

    found = [""] * len(cases)
    for transcript in Generator(network, (), stops, 48, LENGTH, seed=0).run(requests()):
        ids = transcript.ids[transcript.prompt_length :].tolist()
        found[int(transcript.kind)] = tokenizer.decode([token for token in ids if token not in stops])
    return found


def perplexity(network: Network, tokenizer, passages: list[str]) -> dict[str, float]:
    """Of prose, a byte and a token: exp of the mean negative log-probability."""
    total, tokens, size = 0.0, 0, 0
    encoder = Encoder(tokenizer)
    for text in passages:
        batch = Batch.of([encoder.encode({"text": text})])
        with torch.no_grad():
            logits = network.logits(network(batch.ids)[0][0, batch.places])
        total += F.cross_entropy(logits, batch.labels, reduction="sum").item()
        tokens += len(batch.labels)
        size += len(text.encode())
    return {"token": math.exp(total / tokens), "byte": math.exp(total / size)}


def evaluate(network: Network, tokenizer, count: int, seed: int = 0, kinds: tuple[str, ...] = KINDS) -> dict:
    """Percentages by kind of case, examples of what went wrong, and the perplexity of held-out prose."""
    network.eval()
    evaluation = Evaluation(DATA, word_list(), sources.bfcl_folder())
    result, wrong = {}, {}
    for kind in kinds:
        cases = evaluation.cases(kind, count, seed)
        given = answers(network, tokenizer, cases)
        if kind == "false_refusal":
            result[kind] = 100 * sum(CALL not in answer for answer in given) / count
            bad = [(case, answer) for case, answer in zip(cases, given) if CALL not in answer]
        else:
            right = [is_right(case["expected"], answer) for case, answer in zip(cases, given)]
            result[kind] = 100 * sum(right) / count
            bad = [(case, answer) for case, answer, good in zip(cases, given, right) if not good]
        wrong[kind] = [
            {"user": case["messages"][-1]["content"], "expected": case["expected"], "answer": answer}
            for case, answer in bad[:12]
        ]
    return {"count": count, "percent": result, "perplexity": perplexity(network, tokenizer, prose("test")[:60]), "wrong": wrong}
