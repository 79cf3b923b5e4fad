"""The training loop, top to bottom, and the evaluation of a model."""
import contextlib
import json
import math
import os
import resource
import shutil
import sys
import time

import torch
import torch.nn.functional as F

import divergence
import safetensors_files
from model import Model
from numbers_by_counter import draw_initial
from optimizers import Optimizer
from parts import wide
from protocol import TrainingFailed, WrongRequest
from rows import Rows
from schedule import learning_rate
from steps import Step, Updates

# What weights are kept in. Matrices are bfloat16 where train.bfloat16_weights says so.
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.float32}
WARM_UP_STEPS = 5  # of a process: slow, so they do not count for tokens_per_second
PROGRESS_SECONDS = 0.25
STATE_FILE = "state.json"
MOST_ROW_LOSSES = 1 << 16  # of more evaluation rows, the loss of each is not reported


def build(experiment, device):
    """The model; names and shapes of its weights come from it. It has the values of those weights
    that constructors of the user's own blocks draw."""
    train = experiment["train"]
    narrow = train["precision"] == "bfloat16"
    with torch.no_grad():
        model = Model(experiment["model"], weights_seed(experiment), torch.bfloat16 if narrow else None,
                      train.get("recompute", "none"))
    model.to(device, DTYPES[train["precision"]])
    if narrow and train.get("bfloat16_weights", "none") != "none":
        for weight in model.parameters():
            if weight.dim() == 2:
                weight.data = weight.data.bfloat16()
    model.prepare(train["seq_len"])
    return model


def make_updates(experiment, model):
    return Updates(model, lambda weights: Optimizer(experiment["optimizer"], weights),
                   experiment["train"]["grad_clip"])


def say(line):
    """On the run's log."""
    print(line, file=sys.stderr, flush=True)


def weights_seed(experiment):
    own = experiment["train"].get("initial_weights_seed")
    return experiment["seed"] if own is None else own


def weights_in(folder):
    """The tensors of a checkpoint or of a model folder of Hugging Face."""
    for name in ("weights.safetensors", "model.safetensors"):
        if os.path.exists(os.path.join(folder, name)):
            return safetensors_files.read(os.path.join(folder, name))
    with open(os.path.join(folder, "model.safetensors.index.json"), encoding="utf-8") as file:
        shards = set(json.load(file)["weight_map"].values())
    if any(os.path.basename(shard) != shard for shard in shards):
        raise WrongRequest(f"'{folder}' has an index that leads out of it")
    tensors = {}
    for shard in sorted(shards):
        tensors.update(safetensors_files.read(os.path.join(folder, shard)))
    return tensors


def copy_into(model, tensors):
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name not in tensors or tensors[name].shape != weight.shape:
                raise WrongRequest(f"the weights lack '{name}' of shape {list(weight.shape)}")
            weight.copy_(tensors[name])


def load_start_weights(model, request):
    """Those of a folder, or drawn as the request says for each weight."""
    folder = request.get("initial_weights", "")
    if folder:
        return copy_into(model, weights_in(folder))
    weights, seed = request.get("weights", []), weights_seed(request["experiment"])
    own = dict(model.named_parameters())
    for weight in weights:
        if weight["name"] not in own:
            raise WrongRequest(f"this backend's model has no weight '{weight['name']}'", "weights")
    copy_into(model, {weight["name"]: own[weight["name"]] if weight["init"]["kind"] == "module" else
                      torch.from_numpy(draw_initial(weight, seed)) for weight in weights})


def on_device(batch, device):
    return [torch.from_numpy(part).to(device) for part in batch]


def evaluate(model, rows, batch_size, device, show):
    """Token-weighted mean loss of all rows in nats, how many targets were scored, and of each row
    the mean loss and the number of scored targets."""
    losses, tokens = [], []
    model.eval()  # dropout of a user's own block
    with torch.no_grad():
        for first in range(0, rows.count, batch_size):
            count = min(batch_size, rows.count - first)
            inputs, targets = on_device(rows.batch(first, count), device)
            logits = wide(model(inputs).flatten(0, 1))
            loss = F.cross_entropy(logits, targets.flatten(), reduction="none")
            losses += loss.view(targets.shape).double().sum(1).tolist()
            tokens += (targets != -100).sum(1).tolist()
            show("evaluate", (first + count) / rows.count)
    model.train()
    row_losses = [round(loss / max(1, scored), 6) for loss, scored in zip(losses, tokens)]
    return (sum(losses) / sum(tokens) if any(tokens) else 0.0), sum(tokens), row_losses, tokens


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_memory(device):
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    return peak_resident()


def reset_peak_memory(device):
    """Of a GPU: unused memory is returned, too. What a process held at most on a CPU is not forgotten."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak_resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Training:
    """A run from its first to its last step. What is in `state` survives a stop."""

    def __init__(self, request, device, events, asked):
        self.request, self.device, self.events, self.asked = request, device, events, asked
        self.experiment = request["experiment"]
        self.config = self.experiment["train"]
        shuffled = self.experiment["data"]["order"] == "shuffled"
        self.rows = Rows(request["train_tokens"], self.experiment, shuffled)
        self.held_out = Rows(request["evaluation_tokens"], self.experiment, False)
        self.validation = (Rows(request["validation_tokens"], self.experiment, False)
                          if request.get("validation_tokens") else None)
        self.model = build(self.experiment, device)
        self.updates = make_updates(self.experiment, self.model)
        self.steps = Step(self.model, self.updates, self.experiment, device, say, self.show)
        self.state = {"step": 0, "elapsed": 0.0, "timed_steps": 0, "timed_seconds": 0.0,
                      "window_steps": 0, "window_loss": 0.0, "window_norm": 0.0, "train_loss": None,
                      "peak_memory": 0, "peak_resident": 0}
        self.tokens_per_step = self.config["batch_size"] * self.config["seq_len"]
        self.parameters = sum(weight.numel() for weight in self.model.parameters())
        self.evaluated = self.saved = -1
        self.eval_loss = None
        self.last_progress = 0.0

    def run(self):
        self.load()
        state, config = self.state, self.config
        self.events.send("started", parameters=self.parameters, first_step=state["step"],
                         max_steps=config["max_steps"], tokens_per_step=self.tokens_per_step,
                         **self.micro_batch_field())
        self.resume_clock()
        while not (self.is_last_step() or self.is_stop_step() or self.asked.stop.is_set()):
            self.step()
            if state["step"] % config["log_every"] == 0:
                self.report()
                self.begin_window()
            if self.is_due("eval_every"):
                self.evaluate()
            if self.is_due("checkpoint_every") or self.asked.save.is_set():
                self.asked.save.clear()
                self.save()
        completed = self.is_last_step()
        if completed and state["window_steps"]:
            # In the checkpoint the window stays open: a run that goes on from there has its mean.
            self.report()
        if completed:
            self.evaluate()
        if state["step"] > 0:
            self.save()
        self.finish(completed)
        return completed

    def is_last_step(self):
        return self.state["step"] >= self.config["max_steps"]

    def is_stop_step(self):
        return 0 < self.request.get("stop_after", 0) <= self.state["step"]

    def micro_batch_field(self):
        rows = self.config["micro_batch_size"]
        return {"micro_batch_size": rows} if 0 < rows < self.config["batch_size"] else {}

    def is_due(self, every):
        return self.config[every] > 0 and self.state["step"] % self.config[every] == 0

    def load(self):
        folder = self.request.get("resume_from", "")
        if folder:
            self.load_checkpoint(folder)
        else:
            load_start_weights(self.model, self.request)
            self.updates.copy_weights()
        self.steps.set_totals(self.state["window_loss"], self.state["window_norm"])
        self.first_step = self.state["step"]
        # A run of a few steps must still have steps that count.
        self.dropped = min(WARM_UP_STEPS, (self.config["max_steps"] - self.first_step) // 2)
        self.began = time.monotonic() - self.state["elapsed"]

    def step(self):
        state, size = self.state, self.config["batch_size"]
        inputs, targets = self.rows.batch(state["step"] * size, size)
        self.steps.run(inputs, targets, state["step"], self.learning_rate(state["step"]))
        state["window_steps"] += 1
        state["step"] += 1
        if state["step"] - self.first_step == self.dropped:
            self.resume_clock()
        else:
            self.segment_steps += 1
        self.show("train", state["step"] / self.config["max_steps"])

    def learning_rate(self, step):
        return learning_rate(self.experiment["schedule"], self.experiment["optimizer"]["lr"], step,
                             self.config["max_steps"])

    def resume_clock(self):
        synchronize(self.device)
        self.segment_began, self.segment_steps = time.monotonic(), 0

    def settle_clock(self):
        """Seconds and steps since the clock was resumed; training alone is counted."""
        synchronize(self.device)
        seconds, steps = time.monotonic() - self.segment_began, self.segment_steps
        state = self.state
        if state["step"] - self.first_step > self.dropped:
            state["timed_steps"] += steps
            state["timed_seconds"] += seconds
        self.resume_clock()
        state["elapsed"] = time.monotonic() - self.began
        state["peak_memory"] = max(state["peak_memory"], peak_memory(self.device))
        state["peak_resident"] = max(state["peak_resident"], peak_resident())
        return seconds, steps

    def report(self):
        seconds, steps = self.settle_clock()
        state = self.state
        self.read_totals()
        state["train_loss"] = state["window_loss"] / state["window_steps"]
        self.events.send(
            "train", step=state["step"], tokens=state["step"] * self.tokens_per_step,
            loss=state["train_loss"], learning_rate=self.learning_rate(state["step"] - 1),
            gradient_norm=state["window_norm"] / state["window_steps"],
            tokens_per_second=(steps * self.tokens_per_step / seconds
                               if steps > 0 and seconds > 0 else None),
            elapsed_seconds=state["elapsed"])
        self.require_finite_totals()

    def begin_window(self):
        state = self.state
        state["window_steps"], state["window_loss"], state["window_norm"] = 0, 0.0, 0.0
        self.steps.set_totals(0.0, 0.0)

    def read_totals(self):
        self.state["window_loss"], self.state["window_norm"] = self.steps.read_totals()

    def require_finite_totals(self):
        """Throws Diverged where a loss since the last report was no number."""
        state = self.state
        if not math.isfinite(state["window_loss"]) or not math.isfinite(state["window_norm"]):
            raise divergence.not_finite(
                self.model, self.steps.inputs,
                f"the training loss or the gradient is not a finite number at step {state['step']}")

    def evaluate(self):
        step = self.state["step"]
        if self.evaluated == step:
            return
        self.settle_clock()
        began = time.monotonic()
        self.eval_loss, tokens, row_losses, row_tokens = evaluate(
            self.model, self.held_out, self.config["eval_batch_size"], self.device, self.show)
        seconds = time.monotonic() - began
        more = {}
        if self.validation:
            more["validation_loss"] = evaluate(
                self.model, self.validation, self.config["eval_batch_size"], self.device,
                self.show)[0]
        is_short = len(row_losses) <= MOST_ROW_LOSSES
        if self.is_last_step() and is_short and math.isfinite(self.eval_loss):
            more.update(row_losses=row_losses, row_tokens=row_tokens)
        self.events.send("evaluation", step=step, loss=self.eval_loss, tokens=tokens,
                         seconds=seconds, **more)
        self.evaluated = step
        self.resume_clock()

    def save(self):
        step = self.state["step"]
        if self.saved == step:
            return
        self.settle_clock()
        self.read_totals()
        self.require_finite_totals()
        self.show("save", 0.0)
        with pinned_checkpoints(self.request["run_dir"]) as folder:
            aside = os.path.join(folder, f".tmp-{step:09d}")
            shutil.rmtree(aside, ignore_errors=True)
            os.mkdir(aside)
            size = safetensors_files.write(os.path.join(aside, "weights.safetensors"),
                                           dict(self.model.named_parameters()))
            size += safetensors_files.write(os.path.join(aside, "optimizer.safetensors"),
                                            self.updates.named_state())
            size += write_synced(os.path.join(aside, STATE_FILE), json.dumps(self.state))
            replace_folder(aside, os.path.join(folder, f"{step:09d}"))
        self.events.send("checkpoint", step=step, path=f"checkpoints/{step:09d}", bytes=size)
        self.saved = step
        self.resume_clock()

    def load_checkpoint(self, folder):
        with open(os.path.join(folder, STATE_FILE), encoding="utf-8") as file:
            self.state.update(json.load(file))
        copy_into(self.model, safetensors_files.read(os.path.join(folder, "weights.safetensors")))
        self.updates.load_state(
            safetensors_files.read(os.path.join(folder, "optimizer.safetensors")), self.state["step"])

    def finish(self, completed):
        self.settle_clock()
        state = self.state
        seconds = state["timed_seconds"]
        self.events.send(
            "finished", completed=completed, step=state["step"],
            eval_loss=self.eval_loss if self.evaluated == state["step"] else None,
            train_loss=state["train_loss"],
            tokens_per_second=state["timed_steps"] * self.tokens_per_step / seconds
            if seconds > 0 else 0.0,
            wall_seconds=state["elapsed"], peak_memory_bytes=state["peak_memory"],
            peak_resident_bytes=state["peak_resident"], parameters=self.parameters,
            **self.start_fields())

    def start_fields(self):
        """How long this process took until its first step was done, and how much of it the compiler."""
        fields = {"first_step_seconds": self.steps.first_step_seconds,
                  "compile_seconds": self.steps.compile_seconds}
        return {key: seconds for key, seconds in fields.items() if seconds is not None}

    def show(self, phase, fraction):
        now = time.monotonic()
        if now - self.last_progress >= PROGRESS_SECONDS:
            self.last_progress = now
            self.events.send("progress", step=self.state["step"], phase=phase, fraction=fraction)


@contextlib.contextmanager
def opened_folder(path, dir_fd=None):
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=dir_fd)
    try:
        yield folder
    finally:
        os.close(folder)


@contextlib.contextmanager
def pinned_checkpoints(run_dir):
    """A path that leads into the run's folder `checkpoints`, which is held open: a link that somebody
    puts in its place is refused, and none that comes there later is followed."""
    with contextlib.ExitStack() as opened:
        try:
            run = opened.enter_context(opened_folder(run_dir))
            # Fails where somebody removed the run folder: it must not come back.
            with contextlib.suppress(FileExistsError):
                os.mkdir("checkpoints", dir_fd=run)
            folder = opened.enter_context(opened_folder("checkpoints", run))
        except NotADirectoryError as problem:
            raise TrainingFailed(f"'{run_dir}/checkpoints' is no folder, and checkpoints are kept there",
                                 hint="remove it, or put what it leads to in its place") from problem
        yield f"/proc/self/fd/{folder}"


def write_synced(path, text):
    data = text.encode()
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return len(data)


def sync_folder(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_folder(aside, folder):
    """After a crash at any moment the folder is there whole or not at all."""
    sync_folder(aside)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(aside, folder)
    sync_folder(os.path.dirname(folder))
