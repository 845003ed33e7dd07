"""A training run in legs: checkpoints that survive kill -9, a log that follows them, a clean end when time or disk is up.

A run is a folder: checkpoint.pt (model, average, optimizer, step, and what the task adds), log.jsonl (one line each
LOG_STEPS steps). Starting the same command again goes on from the checkpoint; data follow from the step alone, so a
run in legs is the same as a run in one piece up to rounding.
"""

import dataclasses
import io
import json
import math
import pathlib
import signal
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from espalier_tools.train.files import DiskFull, write_json, write_whole

CHECKPOINT_SECONDS = 150
LOG_STEPS = 20
KEEP_PER_SAVE = 3  # times the time of a save that at least lies between two


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Learning rate: linear warm-up, constant, then linear to `floor` times the rate from `decay_from` of the steps on."""

    steps: int
    rate: float
    warmup: int = 40
    decay_from: float = 0.5
    floor: float = 0.03
    clip: float = 1.0
    average: float = 0.99  # decay of the average of weights that is evaluated and shipped
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0

    def rate_at(self, step: int) -> float:
        if step < self.warmup:
            return self.rate * (step + 1) / self.warmup
        decayed = (step / self.steps - self.decay_from) / (1 - self.decay_from)
        return self.rate * (1 - (1 - self.floor) * min(1.0, max(0.0, decayed)))


class Average:
    """Exponential average of the trained parameters; short at the beginning, when all of them still move."""

    def __init__(self, parameters: dict[str, nn.Parameter], decay: float):
        self.decay = decay
        self.values = {name: p.detach().clone() for name, p in parameters.items()}

    @torch.no_grad()
    def update(self, parameters: dict[str, nn.Parameter], step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.values.values()), [p.detach() for p in parameters.values()], 1 - decay)


class Run:
    """`loss(step)` gives the loss of a step and numbers to log; the run does the rest."""

    def __init__(self, folder: pathlib.Path, model: nn.Module, schedule: Schedule, description: dict):
        self.folder, self.model, self.schedule = folder, model, schedule
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=schedule.rate, betas=schedule.betas, weight_decay=schedule.weight_decay
        )
        self.average = Average(self.parameters, schedule.average)
        self.step = 0
        self.seconds = 0.0  # of training, over all legs
        self.description = description
        self._stop = False
        self._resume()

    # ---- checkpoints ------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        path = self.folder / "checkpoint.pt"
        if path.exists():
            saved = torch.load(path, weights_only=True)
            with torch.no_grad():
                for name, value in saved["model"].items():
                    self.parameters[name].copy_(value)
            self.average.values = saved["average"]
            self.optimizer.load_state_dict(saved["optimizer"])
            self.step, self.seconds = saved["step"], saved["seconds"]
            self._cut_log()
        else:
            write_json(self.folder / "run.json", {**self.description, **dataclasses.asdict(self.schedule)})

    def _cut_log(self) -> None:
        """Drops lines of steps that were lost with a killed process: they will come again."""
        path = self.folder / "log.jsonl"
        if path.exists():
            lines = [line for line in path.read_text().splitlines() if line.endswith("}")]
            kept = [line for line in lines if json.loads(line)["step"] <= self.step]
            write_whole(path, lambda file: file.write("".join(f"{line}\n" for line in kept).encode()))

    def save(self) -> None:
        state = {
            "model": {name: p.detach() for name, p in self.parameters.items()},
            "average": self.average.values,
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "seconds": self.seconds,
        }
        content = io.BytesIO()  # torch turns a full disk into an error that does not say so
        torch.save(state, content)
        write_whole(self.folder / "checkpoint.pt", lambda file: file.write(content.getbuffer()))

    # ---- the loop ---------------------------------------------------------------------------------------------

    def train(self, loss: Callable[[int], tuple[Tensor, dict[str, float]]], leg_minutes: float) -> bool:
        """Trains until the schedule or the leg ends; whether the schedule did. Ends cleanly, with a
        checkpoint, on SIGTERM and SIGINT; DiskFull leaves the last checkpoint as it is."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(self, "_stop", True))
        begin, saved, save_seconds, logged = time.monotonic(), time.monotonic(), 0.0, {}
        while self.step < self.schedule.steps and not self._stop:
            started = time.monotonic()
            if started - begin > 60 * leg_minutes:
                break
            logged = self._one_step(loss, logged)
            self.seconds += time.monotonic() - started
            if self.step % LOG_STEPS == 0:
                self._log(logged)
                logged = {}
            if time.monotonic() - saved > max(CHECKPOINT_SECONDS, KEEP_PER_SAVE * save_seconds):
                saved = time.monotonic()
                self.save()
                save_seconds = time.monotonic() - saved
        self.save()
        return self.step >= self.schedule.steps

    def _one_step(self, loss, logged: dict[str, list[float]]) -> dict[str, list[float]]:
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule.rate_at(self.step)
        value, numbers = loss(self.step)
        value.backward()
        norm = nn.utils.clip_grad_norm_(self.parameters.values(), self.schedule.clip)
        if math.isfinite(norm):
            self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        self.average.update(self.parameters, self.step)
        for name, number in {"loss": value.item(), "norm": norm.item(), **numbers}.items():
            logged.setdefault(name, []).append(number)
        return logged

    def _log(self, logged: dict[str, list[float]]) -> None:
        means = {name: round(sum(values) / len(values), 5) for name, values in logged.items()}
        line = json.dumps({"step": self.step, "seconds": round(self.seconds, 1), **means})
        try:
            with (self.folder / "log.jsonl").open("a") as file:
                file.write(line + "\n")
        except OSError as error:
            raise DiskFull(f"{self.folder}/log.jsonl: {error.strerror}; free some space and run again") from error
        print(f"{self.step}/{self.schedule.steps} {line}", file=sys.stderr, flush=True)

    def load_average(self) -> None:
        """Puts the averaged weights into the model, for evaluation and shipping."""
        with torch.no_grad():
            for name, value in self.average.values.items():
                self.parameters[name].copy_(value)
