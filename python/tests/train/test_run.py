"""Runs in legs: nothing is lost to kill -9, to a leg's end or to a full disk, and the result is the same."""

import errno
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import torch
from torch import nn

from espalier_tools.train import files, run
from espalier_tools.train.run import Run, Schedule

SCHEDULE = Schedule(steps=60, rate=0.05, warmup=5)


def make(folder, steps=60):
    torch.manual_seed(5)
    model = nn.Linear(4, 1)
    whole = Run(folder, model, SCHEDULE, {"task": "test"})

    def loss(step):
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
        if step == steps:
            whole._leg_over = True
        return (model(x) - x.sum(-1, keepdim=True)).square().mean(), {}

    return whole, loss


def test_legs_give_what_one_piece_gives(tmp_path):
    one, loss = make(tmp_path / "one")
    assert one.train(loss, 5)
    for steps in (7, 30, 60):
        legs, loss = make(tmp_path / "legs", steps)
        finished = legs.train(loss, 5)
    assert finished and legs.step == one.step == 60
    for name, value in one.average.values.items():
        assert torch.equal(value, legs.average.values[name])
    lines = [json.loads(line) for line in (tmp_path / "legs" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [20, 40, 60]


PART = """
import sys, pathlib
sys.path[:0] = [{tests!r}]
import torch
from torch import distributed, nn
from espalier_tools.train.run import Run, Schedule, rank
distributed.init_process_group("gloo")
torch.manual_seed(5 + rank())
model = nn.Linear(4, 3, bias=False)
with torch.no_grad():
    model.weight.copy_(torch.arange(12.).view(3, 4) / 12)
run = Run(pathlib.Path(sys.argv[1]), model, Schedule(steps=30, rate=0.05, warmup=5, muon=True), {{"task": "test"}})
x = torch.randn(16, 4, generator=torch.Generator().manual_seed(1)).chunk(distributed.get_world_size())[rank()]
run.train(lambda step: ((model(x) - x[:, :3]).square().mean(), {{}}), 5)
"""


def test_processes_together_make_the_steps_of_one(tmp_path):
    script = PART.format(tests=str(pathlib.Path(__file__).parent))
    weights = []
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(29600 + os.getpid() % 1000), "WORLD_SIZE": str(processes)}
        parts = [
            subprocess.Popen([sys.executable, "-c", script, str(folder)], env={**environment, "RANK": str(number)})
            for number in range(processes)
        ]
        assert [part.wait(timeout=120) for part in parts] == [0] * processes
        weights.append(torch.load(folder / "checkpoint.pt", weights_only=True)["model"]["weight"])
        assert len((folder / "log.jsonl").read_text().splitlines()) == 1  # of 20 steps, by the first process
    assert torch.allclose(weights[0], weights[1], atol=2e-3), "Muon computes in bf16"
    assert not torch.allclose(weights[0], torch.arange(12.0).view(3, 4) / 12, atol=0.1)


CHILD = """
import sys, time
sys.path[:0] = [{tests!r}]
import pathlib
from espalier_tools.train import run
run.CHECKPOINT_SECONDS, run.TRAINING_PER_SAVE = 0.05, 0
from test_run import make
whole, loss = make(pathlib.Path(sys.argv[1]))
def slow(step):
    time.sleep(0.02)
    return loss(step)
whole.train(slow, 5)
"""


def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path):
    code = CHILD.format(tests=str(pathlib.Path(__file__).parent))
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stderr=subprocess.DEVNULL)
    log = tmp_path / "log.jsonl"
    until = time.monotonic() + 60
    while not (log.exists() and log.read_text().count("\n") >= 2) and time.monotonic() < until:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    again, loss = make(tmp_path)
    assert 20 < again.step < 60  # some steps are kept
    assert again.train(loss, 5)
    one, loss = make(tmp_path / "one")
    one.train(loss, 5)
    assert all(torch.equal(value, again.average.values[name]) for name, value in one.average.values.items())
    steps = [json.loads(line)["step"] for line in log.read_text().splitlines()]
    assert steps == [20, 40, 60]  # lines of lost steps do not stand twice


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    first, loss = make(tmp_path, 30)
    first.train(loss, 5)
    before = (tmp_path / "checkpoint.pt").read_bytes()

    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    second, loss = make(tmp_path)
    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(files.DiskFull, match="no space left; free some"):
        second.train(loss, 5)
    assert (tmp_path / "checkpoint.pt").read_bytes() == before
    assert not list(tmp_path.glob(".*.part"))
    monkeypatch.undo()
    third, loss = make(tmp_path)
    assert third.step == 31 and third.train(loss, 5)


def test_a_run_killed_before_its_first_checkpoint_begins_its_log_anew(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"step": 20}\n{"step": 4')
    first, loss = make(tmp_path)
    first.train(loss, 5)
    steps = [json.loads(line)["step"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert steps == [20, 40, 60]


def test_what_a_killed_save_left_is_removed(tmp_path):
    (tmp_path / ".checkpoint.pt.77.part").write_bytes(b"half")
    make(tmp_path)
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize("content", [b"", b"no checkpoint", None])
def test_a_damaged_checkpoint_is_named(tmp_path, content):
    first, loss = make(tmp_path, 3)
    first.train(loss, 5)
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(path.read_bytes()[:-900] if content is None else content)
    with pytest.raises(ValueError, match=r"checkpoint\.pt: damaged .*; remove it to begin anew, or give another folder"):
        make(tmp_path)


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    first, loss = make(tmp_path, 3)
    first.train(loss, 5)
    with pytest.raises(ValueError, match=r"of another model \(1 tensors differ: weight is \(1, 4\), expected \(1, 5\)\)"):
        Run(tmp_path, nn.Linear(5, 1), SCHEDULE, {"task": "test"})
    with pytest.raises(ValueError, match="task is 'test', expected 'other'"):
        Run(tmp_path, nn.Linear(4, 1), SCHEDULE, {"task": "other"})


def test_other_settings_are_recorded_with_their_step(tmp_path):
    first, loss = make(tmp_path, 3)
    first.train(loss, 5)
    for rate in (0.01, 0.01, 0.02):
        Run(tmp_path, nn.Linear(4, 1), Schedule(steps=60, rate=rate, warmup=5), {"task": "test"})
    about = json.loads((tmp_path / "run.json").read_text())
    assert about["rate"] == 0.05 and about["changes"] == [{"step": 4, "rate": 0.01}, {"step": 4, "rate": 0.02}]


def test_signals_are_as_before_when_training_is_over(tmp_path):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    whole, loss = make(tmp_path, 3)
    whole.train(loss, 5)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_the_rate_rises_holds_and_falls():
    rates = [SCHEDULE.rate_at(step) for step in range(60)]
    assert rates[0] == pytest.approx(0.01) and rates[4] == rates[29] == 0.05
    assert rates[-1] == pytest.approx(0.05 * (1 - 0.97 * 29 / 30)) and rates == sorted(rates[:30]) + sorted(rates[30:])[::-1]
    assert run.CHECKPOINT_SECONDS <= 300  # at most five minutes are lost
