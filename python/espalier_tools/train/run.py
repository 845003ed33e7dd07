"""A training run in legs: checkpoints that survive kill -9, a log that follows them, a clean end when time or disk is up.

A run is a folder: run.json (its settings), checkpoint.pt (model, average, optimizer, step), log.jsonl (one line each
LOG_STEPS steps). Starting the same command again goes on from the checkpoint; data follow from the step alone, so a
run in legs is the same as a run in one piece. One process at a time, or processes that torchrun started together: each
computes its part of a step, the gradients are averaged, and the first one writes.
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
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, distributed, nn

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
    muon: bool = False  # for matrices, embeddings aside; AdamW for the rest

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


def rank() -> int:
    """The number of this process among those of the run."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def averaged_gradients(parameters: Iterable[nn.Parameter], flag: bool) -> bool:
    """Puts the mean of all processes' gradients in the place of each one's own; whether the flag is set in any."""
    if not distributed.is_initialized():
        return flag
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([*(gradient.flatten() for gradient in gradients), torch.tensor([float(flag)])])
    distributed.all_reduce(flat)
    flat /= distributed.get_world_size()
    for gradient, mean in zip(gradients, flat[:-1].split([gradient.numel() for gradient in gradients])):
        gradient.copy_(mean.view_as(gradient))
    return flat[-1].item() > 0


def optimizers_of(parameters: dict[str, nn.Parameter], schedule: Schedule) -> list[torch.optim.Optimizer]:
    """AdamW, and Muon before it where the schedule says so; its steps have the size of AdamW's, so one rate serves both."""
    shared = {"lr": schedule.rate, "weight_decay": schedule.weight_decay}
    matrices = [p for name, p in parameters.items() if schedule.muon and p.dim() == 2 and "embed" not in name]
    taken = {id(p) for p in matrices}
    others = [p for p in parameters.values() if id(p) not in taken]
    found = [torch.optim.Muon(matrices, adjust_lr_fn="match_rms_adamw", **shared)] if matrices else []
    return found + ([torch.optim.AdamW(others, betas=schedule.betas, fused=True, **shared)] if others else [])


class Run:
    """`loss(step)` gives the loss of a step and numbers to log; the run does the rest.

    ValueError for a folder whose checkpoint is damaged or of another task or model. Other settings than those the run
    began with hold from now on, are told, and stand in run.json with their step.
    """

    def __init__(self, folder: pathlib.Path, model: nn.Module, schedule: Schedule, description: dict):
        self.folder, self.model, self.schedule = folder, model, schedule
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.optimizers = optimizers_of(self.parameters, schedule)
        self.average = Average(self.parameters, schedule.average)
        self.step = 0
        self.seconds = 0.0  # of training, over all legs
        self.description = description
        self._leg_over = False
        self._stop = False
        self._resume()

    # ---- checkpoints ------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        path = self.folder / "checkpoint.pt"
        if rank() == 0:
            remove_parts(self.folder, path.name)
        if path.exists():
            self._load(path)
        if rank() == 0:
            self._record_settings()
            self._cut_log()

    def _load(self, path: pathlib.Path) -> None:
        try:
            saved = torch.load(path, weights_only=True)
            model, average, optimizers = saved["model"], saved["average"], saved["optimizers"]
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
        if len(optimizers) != len(self.optimizers):
            raise ValueError(f"{path}: of other optimizers; give the settings it began with, or another folder")
        for optimizer, state in zip(self.optimizers, optimizers):  # the state is the checkpoint's, the settings are those of now
            settings = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
            optimizer.load_state_dict(state)
            for group, setting in zip(optimizer.param_groups, settings):
                group.update(setting)

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
        if rank() != 0:
            return
        state = {
            "model": {name: p.detach() for name, p in self.parameters.items()},
            "average": self.average.values,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
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
        handlers = [signal.signal(number, lambda *_: setattr(self, "_leg_over", True)) for number in signals]
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
            self._leg_over = self._leg_over or started - begin > 60 * leg_minutes
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
        for group in (group for optimizer in self.optimizers for group in optimizer.param_groups):
            group["lr"] = self.schedule.rate_at(self.step)
        value, numbers = loss(self.step)
        value.backward()
        self._stop = averaged_gradients(self.parameters.values(), self._leg_over)
        norm = nn.utils.clip_grad_norm_(self.parameters.values(), self.schedule.clip)
        for optimizer in self.optimizers:
            if math.isfinite(norm):
                optimizer.step()
            optimizer.zero_grad()
        self.step += 1
        self.average.update(self.parameters, self.step)
        for name, number in {"loss": value.item(), "norm": norm.item(), **numbers}.items():
            logged.setdefault(name, []).append(number)
        return logged

    def _log(self, logged: dict[str, list[float]]) -> None:
        if rank() != 0:
            return
        means = {name: round(sum(values) / len(values), 5) for name, values in logged.items()}
        line = json.dumps({"step": self.step, "seconds": round(self.seconds, 1), **means})
        append_line(self.folder / "log.jsonl", line)
        print(f"{self.step}/{self.schedule.steps} {line}", file=sys.stderr, flush=True)

    def load_average(self) -> None:
        """Puts the averaged weights into the model, for evaluation and shipping."""
        with torch.no_grad():
            for name, value in self.average.values.items():
                self.parameters[name].copy_(value)
