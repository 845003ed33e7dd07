"""python -m espalier_tools.train COMMAND: trains models on CPU cores, in legs. The same command again goes on.

nano            the LFM2 assistant that the repository ships: tokenizer, training, evaluation
nano-evaluate   exact calls, refusals, talk and perplexity of a nano
drafter         a DSpark drafter for any Llama or LFM2 target: its text, training, evaluation
"""

import argparse
import json
import os
import pathlib
import sys

import torch
from torch import distributed

from espalier_tools.bench.install import cache_folder
from espalier_tools.train import card
from espalier_tools.train.files import DiskFull, write_json

RUNS = cache_folder() / "train"
OUT_HELP = "folder of the run and of what comes of it (default: one in ~/.cache/espalier/train)"


def nano(options: argparse.Namespace) -> bool:
    from espalier_tools.train.nano.train import train

    if not train(options.out / "run", options.steps, options.leg_minutes, options.rate, options.begin):
        return False
    return nano_finish(options)


def nano_finish(options: argparse.Namespace) -> bool:
    from espalier_tools.train.nano import evaluate, ship
    from espalier_tools.train.nano.train import data_digest, trained

    run, folder = options.out / "run", options.out / "nano"
    network, tokenizer = trained(run)
    ship.save(network, tokenizer, folder)
    unrounded = evaluate.evaluate(network.eval(), tokenizer, options.count)["percent"]
    result = evaluate.evaluate(*ship.load(folder), options.count) | {"percent_before_rounding": unrounded}
    write_json(options.out / "wrong.json", result.pop("wrong"))
    write_json(folder / "evaluation.json", result)
    text = card.nano_text(run, result, "./dev train nano", data_digest(run, tokenizer))
    card.write(folder, run, text, ("loss", "right", "decided"))
    print(json.dumps(result["percent"]))
    return True


def nano_evaluate(options: argparse.Namespace) -> bool:
    from espalier_tools.train.nano import evaluate, ship

    result = evaluate.evaluate(*ship.load(options.model), options.count, options.seed)
    if options.out:
        write_json(options.out, result)
    print(json.dumps({"percent": result["percent"], "perplexity": result["perplexity"]}))
    return True


def drafter(options: argparse.Namespace) -> bool:
    from espalier_tools.train.drafter.make import make
    from espalier_tools.train.drafter.train import Recipe

    folder = options.out or RUNS / f"{options.target.stem}-drafter"
    recipe = Recipe(
        layers=options.layers,
        block=options.block,
        draft_vocab=options.draft_vocab or None,
        steps=options.steps,
    )
    return make(options.target, folder, recipe, options.prompts, options.shards, options.leg_minutes)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="of torch; two processes with one each, started by torchrun, take half the time of one with two")
    commands = parser.add_subparsers(dest="command", required=True)

    command = commands.add_parser("nano", help="train, evaluate and write nano")
    command.add_argument("--out", type=pathlib.Path, default=RUNS / "nano", help=OUT_HELP)
    command.add_argument("--steps", type=int, default=8000)
    command.add_argument("--rate", type=float, default=2e-3)
    command.add_argument("--begin", type=pathlib.Path, help="a nano to start from, in a new --out")
    command.add_argument("--leg-minutes", type=float, default=115)
    command.add_argument("--count", type=int, default=500, help="cases of each kind in the evaluation")

    command = commands.add_parser("nano-evaluate", help="evaluate a nano")
    command.add_argument("--model", type=pathlib.Path, required=True)
    command.add_argument("--count", type=int, default=500)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--out", type=pathlib.Path)

    command = commands.add_parser("drafter", help="text, training and evaluation of a drafter")
    command.add_argument("--target", type=pathlib.Path, required=True, help="HF directory or GGUF file")
    command.add_argument("--out", type=pathlib.Path, help=OUT_HELP)
    command.add_argument("--prompts", default="general", help="general, nano, or a JSONL file of {messages, tools, class}")
    command.add_argument("--shards", type=int, default=24, help="of 256 prompts each")
    command.add_argument("--layers", type=int, default=1)
    command.add_argument("--block", type=int, default=5, help="tokens proposed at once")
    command.add_argument("--draft-vocab", type=int, default=16384, help="tokens that can be proposed; 0: all")
    command.add_argument("--steps", type=int, default=18000)
    command.add_argument("--leg-minutes", type=float, default=115)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    torch.set_num_threads(options.threads)
    if "RANK" in os.environ:  # one of the processes that torchrun started
        distributed.init_process_group("gloo")
    command = {"nano": nano, "nano-evaluate": nano_evaluate, "drafter": drafter}[options.command]
    try:
        finished = command(options)
    except (DiskFull, ValueError, OSError) as error:  # the world's faults; anything else is ours and shows where it is
        sys.exit(f"train: {error}")
    if not finished:
        sys.exit("train: the leg is over; run the same command to go on")


if __name__ == "__main__":
    main()
