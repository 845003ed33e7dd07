"""A training run in legs: checkpoints that survive kill -9, a log that follows them, a clean end when time or disk is up.

A run is a folder: run.json (its settings), checkpoint.pt (model, average, optimizer, step), log.jsonl (one line each
LOG_STEPS steps). Starting the same command again goes on from the checkpoint; data follow from the step alone, so a
run in legs is the same as a run in one piece. One process at a time.
"""

import dataclasses
import io
import json
import math
import pathlib
import pickle
import signal
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from espalier_tools.train.files import append_line, remove_parts, write_json, write_whole

CHECKPOINT_SECONDS = 150
LOG_STEPS = 20
TRAINING_PER_SAVE = 3  # times the seconds of a save are trained, at least, before the next: a slow disk gets a quarter


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
    """`loss(step)` gives the loss of a step and numbers to log; the run does the rest.

    ValueError for a folder whose checkpoint is damaged or of another task or model. Other settings than those the run
    began with hold from now on, are told, and stand in run.json with their step.
    """

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
        remove_parts(self.folder, path.name)
        if path.exists():
            self._load(path)
        self._record_settings()
        self._cut_log()

    def _load(self, path: pathlib.Path) -> None:
        try:
            saved = torch.load(path, weights_only=True)
            model, average, optimizer = saved["model"], saved["average"], saved["optimizer"]
            self.step, self.seconds = saved["step"], saved["seconds"]
        except (RuntimeError, EOFError, KeyError, TypeError, pickle.UnpicklingError) as error:  # all mean a damaged file
            what = f"{type(error).__name__}: {error}".splitlines()[0]
            raise ValueError(f"{path}: damaged ({what}); remove it to begin anew, or give another folder") from error
        expected = {name: tuple(p.shape) for name, p in self.parameters.items()}
        found = {name: tuple(value.shape) for name, value in model.items()}
        if found != expected:
            other = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
            name = other[0]
            raise ValueError(
                f"{path}: of another model ({len(other)} tensors differ: {name} is {found.get(name)}, expected "
                f"{expected.get(name)}); give the settings it began with, or another folder"
            )
        with torch.no_grad():
            for name, value in model.items():
                self.parameters[name].copy_(value)
        self.average.values = {name: average[name] for name in self.parameters}  # in this order, as `update` pairs them
        self.optimizer.load_state_dict(optimizer)
        for group in self.optimizer.param_groups:  # the state is the checkpoint's, the settings are those of now
            group.update(betas=self.schedule.betas, weight_decay=self.schedule.weight_decay)

    def _record_settings(self) -> None:
        """Writes run.json, or adds to it what is set otherwise than when the run began."""
        path = self.folder / "run.json"
        settings = json.loads(json.dumps({**self.description, **dataclasses.asdict(self.schedule)}))
        if self.step == 0 or not path.exists():
            write_json(path, settings)
            return
        begun = json.loads(path.read_text())
        if begun.get("task") != settings.get("task"):
            raise ValueError(f"{path}: task is {begun.get('task')!r}, expected {settings.get('task')!r}; give another folder")
        changes = begun.pop("changes", [])
        last = begun | {name: value for change in changes for name, value in change.items()}
        other = {name: value for name, value in settings.items() if last.get(name) != value}
        if other:
            print(f"{path}: from step {self.step} on with {other}", file=sys.stderr)
            write_json(path, {**begun, "changes": [*changes, {"step": self.step, **other}]})

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
        signals = (signal.SIGTERM, signal.SIGINT)
        handlers = [signal.signal(number, lambda *_: setattr(self, "_stop", True)) for number in signals]
        try:
            self._loop(loss, leg_minutes)
        finally:
            for number, handler in zip(signals, handlers):  # what comes after training may be interrupted as ever
                signal.signal(number, handler)
        return self.step >= self.schedule.steps

    def _loop(self, loss, leg_minutes: float) -> None:
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
            if time.monotonic() - saved > max(CHECKPOINT_SECONDS, TRAINING_PER_SAVE * save_seconds):
                saved = time.monotonic()
                self.save()
                save_seconds = time.monotonic() - saved
        self.save()

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
        append_line(self.folder / "log.jsonl", line)
        print(f"{self.step}/{self.schedule.steps} {line}", file=sys.stderr, flush=True)

    def load_average(self) -> None:
        """Puts the averaged weights into the model, for evaluation and shipping."""
        with torch.no_grad():
            for name, value in self.average.values.items():
                self.parameters[name].copy_(value)
