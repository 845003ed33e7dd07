"""How often nano calls the right function with the right arguments, talks when talk is asked, and refuses when it must.

    python -m espalier_tools.train nano-evaluate --model FOLDER --count 500 --out FILE

Answers are greedy. A call is right if the whole of it is: function, every argument, nothing else. Cases of new values or
names whose request holds none are left out, so that the percentage is of what its name says.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from espalier_tools.train import sources
from espalier_tools.train.drafter.target import Generator, Request
from espalier_tools.train.nano.batches import Batch
from espalier_tools.train.nano.data_mix import DATA, prose, word_list
from espalier_tools.train.nano.evaluation import NO_CALL, REFUSAL, SPLITS, Evaluation
from espalier_tools.train.nano.text import Encoder
from espalier_tools.train.network import Network

KINDS = tuple(SPLITS)
CALL = "<|tool_call_start|>"
REFUSED = "I can't"  # how every refusal begins
LENGTH = 640
ANSWER = "<|im_start|>assistant\n"
UNENDED = "<no end>"  # stands behind an answer that ran into LENGTH: never a right one


def is_right(expected: str, answer: str) -> bool:
    if expected == NO_CALL:
        return CALL not in answer and not answer.startswith(REFUSED) and not answer.endswith(UNENDED)
    if expected == REFUSAL:
        return CALL not in answer and answer.startswith(REFUSED)
    return answer == expected


def answers(network: Network, tokenizer, cases: list[dict]) -> list[str]:
    """The greedy answer to each case; UNENDED alone where the prompt leaves no place for one."""
    encoder = Encoder(tokenizer)
    begin = tokenizer.encode(ANSWER, add_special_tokens=False)
    prompts = [encoder.encode(case).ids + begin for case in cases]
    stops = {tokenizer.eos_token_id}

    def requests() -> Iterator[Request]:
        return (Request(prompt, str(number)) for number, prompt in enumerate(prompts))

    found = [UNENDED] * len(cases)
    for transcript in Generator(network, (), stops, 48, LENGTH, seed=0).run(requests()):
        ids = transcript.ids[transcript.prompt_length :].tolist()
        text = tokenizer.decode([token for token in ids if token not in stops])
        found[int(transcript.kind)] = text if ids[-1] in stops else text + UNENDED
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


def _hit(kind: str, case: dict, answer: str) -> bool:
    """Whether a case adds to the percentage of its kind."""
    return CALL not in answer if kind == "false_refusal" else is_right(case["expected"], answer)


def evaluate(network: Network, tokenizer, count: int, seed: int = 0, kinds: tuple[str, ...] = KINDS) -> dict:
    """Percentages by kind of case, examples of what went wrong, and the perplexity of held-out prose."""
    network.eval()
    evaluation = Evaluation(DATA, word_list(), sources.bfcl_folder())
    counted, percent, wrong = {}, {}, {}
    for kind in kinds:
        cases = [case for case in evaluation.cases(kind, count, seed) if case["counts"]]
        given = answers(network, tokenizer, cases)
        hits = [_hit(kind, case, answer) for case, answer in zip(cases, given)]
        counted[kind], percent[kind] = len(cases), 100 * sum(hits) / max(len(cases), 1)
        wrong[kind] = [
            {"user": case["messages"][-1]["content"], "expected": case["expected"], "answer": answer}
            for case, answer, hit in zip(cases, given, hits)
            if hit == (kind == "false_refusal")
        ][:12]
    held_out = perplexity(network, tokenizer, prose("test")[:60])
    return {"count": count, "counted": counted, "percent": percent, "perplexity": held_out, "wrong": wrong}
