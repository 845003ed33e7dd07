"""Golden vectors of the sampler, from transformers' logits processors.

Writes tests/golden/sampling/cases.json: for each case the logits, the sampling options, the tokens of prompt
and answer, and the probabilities that transformers draws from after its processors, in the order in which
`generate` runs them (GenerationMixin._get_logits_processor). Presence and frequency penalties, which
transformers does not have, follow the formula of OpenAI's API reference and stand between the
repetition penalty and the temperature.

Run from python/:  python -m espalier_tools.golden.sampling
"""

import json
import random

import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from espalier_tools.golden import GOLDEN

TARGET = GOLDEN / "sampling/cases.json"
CASES = 120
# Probabilities this near to a cut are decided by rounding, not by rules; such cases are drawn again.
MARGIN = 1e-5


def answer_penalties(scores, answer, presence, frequency):
    """score -= frequency * count + presence, for tokens of the answer. scores: [1, vocab]."""
    counts = torch.bincount(torch.tensor(answer, dtype=torch.long), minlength=scores.shape[1])
    return scores - frequency * counts - presence * (counts > 0)


def processed(case):
    """Probabilities after all processors, [vocab], and the distance to the nearest cut."""
    logits = torch.tensor([case["logits"]], dtype=torch.float32)
    ids = torch.tensor([case["prompt"] + case["answer"]], dtype=torch.long)
    before = LogitsProcessorList()
    if case["logit_bias"]:
        before.append(SequenceBiasLogitsProcessor({(t,): b for t, b in case["logit_bias"]}))
    if case["repetition_penalty"] != 1:
        before.append(RepetitionPenaltyLogitsProcessor(case["repetition_penalty"]))
    scores = before(ids, logits)
    scores = answer_penalties(
        scores, case["answer"], case["presence_penalty"], case["frequency_penalty"]
    )
    scores = TemperatureLogitsWarper(case["temperature"])(ids, scores)
    margin = 1.0
    if case["top_k"]:
        scores = TopKLogitsWarper(case["top_k"])(ids, scores)
    if case["top_p"] < 1:
        tail = scores.softmax(-1).sort().values.cumsum(-1)
        margin = (tail - (1 - case["top_p"])).abs().min().item()
        scores = TopPLogitsWarper(case["top_p"])(ids, scores)
    if case["min_p"]:
        probabilities = scores.softmax(-1)
        ratio = probabilities / probabilities.max()
        margin = min(margin, (ratio - case["min_p"]).abs().min().item())
        scores = MinPLogitsWarper(case["min_p"])(ids, scores)
    return scores.softmax(-1)[0], margin


def draw_case(rng):
    vocab = rng.choice([5, 17, 64, 100])
    scale = rng.choice([0.5, 2.0, 6.0])
    tokens = lambda count: [rng.randrange(vocab) for _ in range(count)]
    biased = sorted(set(tokens(rng.choice([0, 0, 3]))))
    pick = lambda off, *on: off if rng.random() < 0.5 else rng.choice(on)
    return {
        "logits": [round(rng.gauss(0, scale), 5) for _ in range(vocab)],
        "prompt": tokens(rng.randrange(1, 12)),
        "answer": tokens(rng.randrange(0, 12)),
        "temperature": rng.choice([0.1, 0.7, 1.0, 1.5]),
        "top_k": pick(0, 1, 3, 10, vocab),
        "top_p": pick(1.0, 0.1, 0.5, 0.9, 0.95),
        "min_p": pick(0.0, 0.02, 0.1, 0.5),
        "repetition_penalty": pick(1.0, 0.8, 1.1, 1.3),
        "presence_penalty": pick(0.0, -0.5, 0.7),
        "frequency_penalty": pick(0.0, -0.2, 0.4),
        "logit_bias": [[token, rng.choice([-100.0, -2.5, 3.25])] for token in biased],
    }


def main():
    rng = random.Random(20)
    cases = []
    while len(cases) < CASES:
        case = draw_case(rng)
        probabilities, margin = processed(case)
        if margin < MARGIN:
            continue
        case["probabilities"] = [float(f"{p:.7g}") for p in probabilities.tolist()]
        cases.append(case)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
