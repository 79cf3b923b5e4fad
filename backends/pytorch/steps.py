"""One training step: forward, backward, clipping and update; on a GPU compiled, and replayed as one
CUDA graph."""
import math
import time

import torch

import compilation
import divergence
from model import loss_of, scored_of
from own_blocks import has_own_blocks, seed_step

RUNS_BEFORE_RECORDING = 3  # they allocate memory and let libraries choose what to compute by


def copy_all(targets, sources):
    if not targets:
        return  # Torch's function refuses empty lists
    if hasattr(torch, "_foreach_copy_"):
        torch._foreach_copy_(targets, sources)
        return
    for target, source in zip(targets, sources):
        target.copy_(source)


class Updates:
    """An optimizer over all weights of a model, and the clipping of their gradients. Of weights in
    bfloat16 it updates float32 copies. `make_optimizer` makes it of tensors by name; `limit` is the largest
    global norm of the gradients, 0: none."""

    def __init__(self, model, make_optimizer, limit):
        self.names = [name for name, _ in model.named_parameters()]
        self.weights = list(model.parameters())
        self.narrow = [weight for weight in self.weights if weight.dtype == torch.bfloat16]
        self.updated = [weight.detach().float() if weight.dtype == torch.bfloat16 else weight
                        for weight in self.weights]
        self.copies = [copy for copy, weight in zip(self.updated, self.weights) if copy is not weight]
        for copy in self.copies:
            copy.grad = torch.zeros_like(copy)
        self.limit = limit or math.inf
        self.optimizer = make_optimizer(dict(zip(self.names, self.updated)))

    def copy_weights(self):
        """Takes the model's weights as they are now."""
        with torch.no_grad():
            copy_all(self.copies, self.narrow)

    def set_learning_rate(self, rate):
        self.optimizer.set_learning_rate(rate)

    def forget_gradients(self):
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def clip(self):
        """Returns the norm before."""
        copy_all([copy.grad for copy in self.copies], [weight.grad for weight in self.narrow])
        return torch.nn.utils.clip_grad_norm_(self.updated, self.limit)

    @torch.no_grad()
    def update(self):
        self.optimizer.step()
        copy_all(self.narrow, self.copies)

    def named_state(self):
        """What the optimizer keeps, by the names of weights with ".first_moment" and such."""
        state = self.optimizer.named_state()
        for name, weight, updated in zip(self.names, self.weights, self.updated):
            if updated is not weight:
                state[name + ".master_weight"] = updated
        return state

    @torch.no_grad()
    def load_state(self, state, step):
        self.optimizer.restore(state, step)
        for name, weight, updated in zip(self.names, self.weights, self.updated):
            if updated is not weight:
                updated.copy_(state[name + ".master_weight"])


class Step:
    """The steps of a model. Losses and norms are added up on the device, which the host need not wait
    for. `say` takes a line for the log; `show` is called while something is compiled."""

    def __init__(self, model, updates, experiment, device, say=print, show=None):
        self.model, self.updates, self.device, self.say = model, updates, device, say
        self.show = show
        self.train, self.seed = experiment["train"], experiment["seed"]
        self.draws = has_own_blocks(experiment["model"])
        self.totals = torch.zeros(2, dtype=torch.float64, device=device)
        self.inputs = self.targets = None
        self.rows_loss, self.is_compiling = self.eager_loss, False
        compiled = compilation.compiled(self.eager_loss, device, self.train["deterministic"], say)
        if compiled:
            self.rows_loss, self.is_compiling = compiled, True
        self.graph, self.runs, self.is_recordable = None, 0, device.type == "cuda"
        self.first_step_seconds = self.compile_seconds = None

    def eager_loss(self, inputs, targets, scored):
        return loss_of(self.model(inputs), targets, self.train["z_loss"], scored)

    def run(self, inputs, targets, step, rate):
        """The 0-based step on int64 arrays [rows, length], with that learning rate."""
        began = time.monotonic()
        self.upload(inputs, targets)
        if self.draws:
            seed_step(self.seed, step)
        self.updates.set_learning_rate(rate)
        if self.graph is None and self.is_recordable and self.runs >= RUNS_BEFORE_RECORDING:
            self.record()
        if self.graph is not None:
            self.graph.replay()
        else:
            self.work()
        self.runs += 1
        if self.first_step_seconds is None:
            self.wait()
            self.first_step_seconds = time.monotonic() - began

    def upload(self, inputs, targets):
        """To the same memory each time, which a recorded step reads."""
        parts = [torch.from_numpy(part) for part in (inputs, targets)]
        if self.device.type != "cuda":
            self.inputs, self.targets = parts
            return
        if self.inputs is None:
            self.inputs, self.targets = (torch.empty_like(part, device=self.device) for part in parts)
        for part, to in zip(parts, (self.inputs, self.targets)):
            to.copy_(part.pin_memory(), non_blocking=True)

    def work(self):
        loss = self.compile_gradients() if self.is_compiling else self.gradients()
        norm = self.updates.clip()
        if self.device.type != "cuda":
            self.require_finite(loss, norm)
        self.updates.update()
        self.totals += torch.stack((loss.double(), norm.double()))

    def require_finite(self, loss, norm):
        """Throws Diverged where a number is none. The weights are still those that it is of. On a CPU
        it costs nothing to look at each step."""
        if not divergence.is_finite(loss):
            raise divergence.not_finite(self.model, self.inputs, f"the training loss is {loss.item()}")
        if not divergence.is_finite(norm):
            self.gradients()  # again, since clipping has spread what is no number
            raise divergence.of_gradients(self.model, norm)

    def gradients(self):
        """Of as many rows at once as train.micro_batch_size says. Returns the step's loss."""
        self.updates.forget_gradients()
        count = len(self.inputs)
        rows = self.train["micro_batch_size"] or count
        scored = scored_of(self.targets, self.train["z_loss"])
        losses = []
        for first in range(0, count, rows):
            part = slice(first, first + rows)
            loss = self.rows_loss(self.inputs[part], self.targets[part], scored)
            loss.backward()
            losses.append(loss.detach().double())
        return losses[0] if len(losses) == 1 else torch.stack(losses).sum()

    def compile_gradients(self):
        """The first gradients by compiled code. Where that fails, those of plain code."""
        began = time.monotonic()
        try:
            with compilation.signs_of_life(self.show):
                loss = self.gradients()
                self.wait()
            self.compile_seconds = time.monotonic() - began
            self.say(f"note: steps are compiled, which took {self.compile_seconds:.1f} s")
        except Exception as problem:  # a compiler's, or one that plain code throws again
            self.rows_loss = self.eager_loss
            loss = self.gradients()
            self.say(f"note: steps are not compiled: {compilation.one_line(problem)}")
        self.is_compiling = False
        return loss

    def record(self):
        """Records the work of a step. Nothing is computed by that."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
                self.work()
            self.graph = graph
        except RuntimeError as problem:
            self.is_recordable = False
            self.updates.forget_gradients()
            self.say("note: steps are not replayed as a CUDA graph, so they start slower: " +
                     compilation.one_line(problem))

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def read_totals(self):
        """Losses and norms since they were last set; waits for the device."""
        return self.totals.tolist()

    def set_totals(self, loss, norm):
        self.totals.copy_(torch.tensor([loss, norm], dtype=torch.float64))
