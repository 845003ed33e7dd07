"""One command from a target to its drafter: text, training, evaluation; each part goes on where it ended."""

import pathlib
import time

from espalier_tools.train import card, quantise
from espalier_tools.train.drafter import dspark
from espalier_tools.train.drafter.evaluate import evaluate, text_table
from espalier_tools.train.drafter.requests import FilePrompts, GeneralPrompts, NanoPrompts, PromptSource
from espalier_tools.train.drafter.tables import CountTable
from espalier_tools.train.drafter.target import Transcript, load_network
from espalier_tools.train.drafter.text import TextMaker, digest, read_shard
from espalier_tools.train.drafter.train import Recipe, Trainer, mask_token
from espalier_tools.train.files import write_json


def save(model: dspark.DSpark, folder: pathlib.Path) -> None:
    """8-bit weights under the published names (X.weight with X.scales and X.biases), and config.json."""
    quantise.save_checkpoint(folder, dict(dspark.published_tensors(model)), model.config.to_json())


class Maker:
    """All parts of a drafter's making, in one folder: text/, run/, and the drafter itself in drafter/."""

    def __init__(self, target: pathlib.Path, folder: pathlib.Path, recipe: Recipe, prompts: str):
        self.network, self.tokenizer = load_network(target)
        self.folder, self.recipe = folder, recipe
        self.maker = TextMaker(self.network, self.tokenizer, folder / "text")
        self.source = self._source(prompts)

    def _source(self, prompts: str) -> PromptSource:
        if prompts == "general":
            return GeneralPrompts(self.tokenizer, self.maker.questions())
        return NanoPrompts(self.tokenizer) if prompts == "nano" else FilePrompts(self.tokenizer, pathlib.Path(prompts))

    def text(self, shards: int, deadline: float) -> list[pathlib.Path] | None:
        """Paths of the training shards; None if `deadline` (time.monotonic) came first."""
        paths = []
        for number in range(shards):
            if time.monotonic() > deadline:
                return None
            paths.append(self.maker.shard(self.source, "train", number))
        return paths

    def test_texts(self) -> list[Transcript]:
        """Greedy answers to prompts that training never saw, of each kind."""
        tests = enumerate(self.source.tests.items())
        shards = [self.maker.shard(self.source, "test", i, {kind: 1.0}, count) for i, (kind, count) in tests]
        return [transcript for path in shards for transcript in read_shard(path)]

    def trainer(self, shards: list[pathlib.Path]) -> Trainer:
        return Trainer(self.folder / "run", self.network, mask_token(self.tokenizer), shards, self.recipe)

    def finish(self, trainer: Trainer) -> dict:
        """Writes the averaged weights and what the written drafter reaches on held-out text."""
        trainer.run.load_average()
        save(trainer.model, self.folder / "drafter")
        model = dspark.load(self.folder / "drafter", self.network.embed_tokens.weight)
        table = CountTable([t.ids[t.prompt_length :] for t in trainer.transcripts], self.network.shape.vocab)
        result = evaluate(self.test_texts(), model, table, network=self.network)
        write_json(self.folder / "drafter" / "evaluation.json", result)
        return result

    def write_card(self, result: dict, target: str, command: str) -> None:
        run = self.folder / "run"
        text = card.drafter_text(run, result, target, command, digest(self.folder / "text"))
        card.write(self.folder / "drafter", run, text, ("soft", "right0", "right1", "right2"))


def make(
    target: pathlib.Path, folder: pathlib.Path, recipe: Recipe, prompts: str, shards: int, leg_minutes: float
) -> bool:
    """Whether the drafter is finished; if not, the same call goes on. `prompts`: "general", "nano" or a JSONL file."""
    deadline = time.monotonic() + 60 * leg_minutes
    maker = Maker(target, folder, recipe, prompts)
    paths = maker.text(shards, deadline)
    if paths is None:
        return False
    trainer = maker.trainer(paths)
    if not trainer.train((deadline - time.monotonic()) / 60):
        return False
    result = maker.finish(trainer)
    command = f"./dev train drafter --target {target.name} --prompts {prompts} --shards {shards} --steps {recipe.steps} --block {recipe.block}"
    maker.write_card(result, target.stem, command)
    print(text_table(result))
    return True
