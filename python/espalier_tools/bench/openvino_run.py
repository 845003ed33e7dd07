"""One measurement of OpenVINO GenAI: MODEL THREADS WORK...; prints tokens per second of each work as JSON.

Runs in the virtual environment of openvino-genai. Times are the pipeline's own: to the first token, and between tokens. No
two texts begin with the same token: the pipeline keeps what it has computed, and would only look the second one up.
"""

import itertools
import json
import sys

import numpy
import openvino
import openvino_genai

TEXT_TOKENS, BATCH_TOKENS, WARM_UP_TOKENS = 32, 16, 4
text_numbers = itertools.count()


def text_without_meaning(tokens: int) -> numpy.ndarray:
    return (next(text_numbers) * 97 + numpy.arange(tokens, dtype=numpy.int64) * 2654435761) % 30000 + 100


def timed(pipeline, sequences: int, prompt: int, new_tokens: int):
    """Metrics of one answer of `new_tokens` to `sequences` texts of `prompt` tokens."""
    ids = numpy.stack([text_without_meaning(prompt) for _ in range(sequences)])
    inputs = openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids)))
    config = openvino_genai.GenerationConfig(max_new_tokens=new_tokens, ignore_eos=True, do_sample=False)
    return pipeline.generate(inputs, config).perf_metrics


def rate(pipeline, work: str) -> float:
    kind, amount = work.split(":")[0], int(work.split(":")[1])
    if kind == "generate":
        return 1e3 / timed(pipeline, 1, WARM_UP_TOKENS, amount).get_tpot().mean
    if kind == "batch":  # its time per token counts the tokens of all sequences
        return 1e3 / timed(pipeline, amount, TEXT_TOKENS, BATCH_TOKENS).get_tpot().mean
    return amount * 1e3 / timed(pipeline, 1, amount, 1).get_ttft().mean


def main() -> None:
    model, threads, works = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    pipeline = openvino_genai.LLMPipeline(model, "CPU", INFERENCE_NUM_THREADS=threads)
    for work in works:  # shapes that are new are compiled
        if not work.startswith("generate"):
            rate(pipeline, work)
    timed(pipeline, 1, WARM_UP_TOKENS, WARM_UP_TOKENS)
    print(json.dumps({work: rate(pipeline, work) for work in works}))


main()
