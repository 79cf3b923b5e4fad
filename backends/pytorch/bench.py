"""Training speed on random token ids, in windows that forge asks for: docs/PROTOCOL.md."""
import json
import math
import sys
import time

import numpy as np
import torch

import training
from protocol import WrongRequest
from steps import Step

FEWEST_WARM_UP_STEPS = 5  # compiling and recording are over then
WARM_UP_SECONDS = 1
WINDOW_SECONDS = 1
DIFFERENT_STEPS = 8  # whose tokens are used in turn


class Bench:
    """The training of an experiment, as far as its speed goes."""

    def __init__(self, request, device, events):
        self.request, self.device, self.events = request, device, events
        self.experiment = request["experiment"]
        train = self.experiment["train"]
        self.tokens_per_step = train["batch_size"] * train["seq_len"]
        self.model = training.build(self.experiment, device)
        draw_any_weights(self.model)
        updates = training.make_updates(self.experiment, self.model)
        updates.copy_weights()
        self.steps = Step(self.model, updates, self.experiment, device, training.say, self.show)
        chance = np.random.default_rng(self.experiment["data"].get("seed", 1))
        shape = (train["batch_size"], train["seq_len"] + 1)
        self.rows = [chance.integers(0, self.experiment["model"]["vocab_size"], shape, dtype=np.int64)
                     for _ in range(DIFFERENT_STEPS)]
        self.step, self.last_shown = 0, 0.0

    def run(self, lines):
        steps = self.warm_up()
        steps = self.request.get("window_steps", 0) or steps
        self.events.send("ready", window_steps=steps, tokens_per_step=self.tokens_per_step)
        start_peak = training.peak_memory(self.device)
        training.reset_peak_memory(self.device)
        for line in lines:
            wanted = json.loads(line).get("window", 0)
            if wanted < 1:
                raise WrongRequest("a window of no steps was asked for")
            self.events.send("window", steps=wanted, seconds=self.seconds_of(wanted, "window"))
        self.events.send("result", values=self.values(start_peak))

    def values(self, start_peak):
        peak = training.peak_memory(self.device)
        on_gpu = self.device.type == "cuda"
        values = {"peak_memory_bytes": peak, "start_peak_memory_bytes": max(peak, start_peak),
                  "peak_memory": "reserved by the allocator" if on_gpu else "resident",
                  "peak_resident_bytes": training.peak_resident(),
                  "first_step_seconds": self.steps.first_step_seconds}
        if self.steps.compile_seconds is not None:
            values["compile_seconds"] = self.steps.compile_seconds
        if self.experiment["train"]["micro_batch_size"]:
            values["micro_batch_size"] = self.experiment["train"]["micro_batch_size"]
        return values

    def seconds_of(self, count, phase):
        rate = self.experiment["optimizer"]["lr"]
        began = time.monotonic()
        for _ in range(count):
            rows = self.rows[self.step % len(self.rows)]
            inputs, targets = (np.ascontiguousarray(part) for part in (rows[:, :-1], rows[:, 1:]))
            self.steps.run(inputs, targets, self.step, rate)
            self.step += 1
            self.show(phase, 0.0)
        self.steps.wait()
        return time.monotonic() - began

    def warm_up(self):
        """Ever more steps at a time until a device has prepared all; returns the steps of a window."""
        began, count = time.monotonic(), 1
        while True:
            of_step = self.seconds_of(count, "warm up") / count
            enough = self.step >= FEWEST_WARM_UP_STEPS
            if enough and time.monotonic() - began >= WARM_UP_SECONDS:
                return max(1, math.ceil(WINDOW_SECONDS / max(of_step, 1e-6)))
            if enough:
                count *= 2

    def show(self, phase, fraction):
        now = time.monotonic()
        if now - self.last_shown >= training.PROGRESS_SECONDS:
            self.last_shown = now
            self.events.send("progress", step=self.step, phase=phase, fraction=fraction)


def draw_any_weights(model):
    """Their values do not change the speed."""
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.02)


def bench(request, device, events):
    Bench(request, device, events).run(sys.stdin.buffer)
