"""A trial of a user's own block before training: one row forward and backward. Shape mistakes, values
that are not finite, weights without use and looks at later tokens are named here; operations and
memory are counted."""
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import own_blocks
from own_blocks import Context, blaming, wrong

CAUSALITY_LENGTH = 24


def product(numbers):
    return math.prod(int(number) for number in numbers)


def operations_of(name, inputs, out):
    """2 for each multiply-add of a matrix product or convolution; other operations count nothing."""
    if name in ("mm", "bmm"):
        return 2 * product(inputs[0].shape) * int(inputs[1].shape[-1])
    if name in ("addmm", "baddbmm"):
        return 2 * product(inputs[1].shape) * int(inputs[2].shape[-1])
    if name in ("convolution", "_convolution"):
        return 2 * product(out.shape) * product(inputs[1].shape[1:])
    if name.startswith("_scaled_dot_product"):
        query, key = inputs[0], inputs[1]
        return 4 * product(query.shape) * int(key.shape[-2])
    return 0


class Counter(TorchDispatchMode):
    """Counts the operations that Torch dispatches."""

    def __init__(self):
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        name = function.__name__.split(".")[0]
        self.flops += operations_of(name, args, out[0] if isinstance(out, tuple) else out)
        return out


class Saved:
    """Numbers that autograd keeps for the backward pass, weights not counted."""

    def __init__(self, built):
        self.weights = {weight.data_ptr() for weight in built.parameters()}
        self.kept = {}  # by place in memory: views of one tensor count once

    def keep(self, tensor):
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        if storage.data_ptr() not in self.weights:
            self.kept[storage.data_ptr()] = storage.nbytes() / tensor.element_size()
        return tensor

    def numbers(self):
        return sum(self.kept.values())


class Trial:
    def __init__(self, name, model, dtype, seed):
        self.name, self.model, self.dtype, self.seed = name, model, dtype, seed
        self.built = own_blocks.build(name, model, 0, seed)
        self.module = own_blocks.module_name(name, self.built)
        self.weights = own_blocks.weights_of(name, self.built)
        self.built.to(dtype)

    def row(self, length, draw=0):
        generator = torch.Generator().manual_seed(draw)
        shape = (1, length, self.model["hidden_size"])
        return torch.randn(shape, generator=generator).to(self.dtype)

    def ids(self, x, draw=0):
        return ((torch.arange(x.shape[1]) + draw) % self.model["vocab_size"]).expand(x.shape[0], -1)

    def forward(self, x, ids=None):
        """The block's output for rows, checked. Chance in it is the same at every call."""
        torch.manual_seed(self.seed & 0x7FFFFFFF)
        with blaming(self.name, f"forward for an input of {list(x.shape)}"):
            out = self.built(x, Context(0, self.ids(x) if ids is None else ids))
        if not isinstance(out, torch.Tensor):
            raise wrong(self.name, f"gives a {type(out).__name__} and not a tensor")
        if out.shape != x.shape:
            raise wrong(self.name, f"gives {list(out.shape)} for an input of {list(x.shape)}",
                        "the output is added to the residual stream: it has the input's shape, "
                        "[rows, length, hidden_size]")
        if out.dtype != x.dtype:
            raise wrong(self.name, f"gives {out.dtype} for an input of {x.dtype}",
                        "make tensors with the input's dtype, such as torch.zeros(…, dtype=x.dtype)")
        if not torch.isfinite(out.detach()).all():
            raise wrong(self.name, "gives values that are not finite for its first row",
                        "for example a softmax of which everything is masked, or a division by 0")
        return out

    def check_gradients(self, length):
        """Forward and backward of one row. Returns the numbers that autograd keeps a token."""
        before = {name: buffer.clone() for name, buffer in self.built.named_buffers()}
        saved = Saved(self.built)
        x = self.row(length).requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(saved.keep, lambda kept: kept):
            out = self.forward(x)
        with blaming(self.name, "its backward pass"):
            (out * self.row(length, 1)).sum().backward()
        for name, weight in self.built.named_parameters():
            if weight.grad is None:
                raise wrong(self.name, f"has the weight '{name}', which forward does not use",
                            "a weight without a gradient cannot be trained: remove it")
            if not torch.isfinite(weight.grad).all():
                raise wrong(self.name, f"gives '{name}' a gradient that is not finite")
        for name, buffer in self.built.named_buffers():
            if not torch.equal(before[name], buffer):
                raise wrong(self.name, f"changes its buffer '{name}' in forward",
                            "checkpoints keep weights alone: a run could not resume with it")
        return saved.numbers() / length

    def check_repeats(self, length):
        """The same input and seed of Torch's give the same output: else no run could be repeated."""
        with torch.no_grad():
            one, other = (self.forward(self.row(length)) for _ in range(2))
        if not torch.equal(one, other):
            raise wrong(self.name, "computes other values when it is given the same input again",
                        "chance in a block comes from torch, which forge seeds before each step: not from "
                        "random or numpy, nor from what an earlier call left behind")

    def check_bfloat16(self, length):
        """Forward and backward of one row as training in bfloat16 computes them."""
        x = self.row(length).bfloat16().requires_grad_()
        with blaming(self.name, f"forward in bfloat16 for an input of {list(x.shape)}"):
            out = own_blocks.call(self.built, x, 0, self.ids(x))
        with blaming(self.name, "its backward pass in bfloat16"):
            out.float().sum().backward()
        if not torch.isfinite(out.detach()).all():
            raise wrong(self.name, "gives values that are not finite in bfloat16",
                        "an exponential or a product of many numbers that float32 still holds")

    def check_state(self, length):
        """Nothing but weights goes from one step to the next. What a first call keeps, such as tables
        for rows of a length, may stay."""
        def numbers():
            return {f"{name}.{key}".lstrip("."): value
                    for name, module in self.built.named_modules()
                    for key, value in vars(module).items() if isinstance(value, (bool, int, float, str))}

        with torch.no_grad():
            self.forward(self.row(length))
            before = numbers()
            self.forward(self.row(length, 1))
        for name, value in numbers().items():
            if before.get(name, value) != value:
                raise wrong(self.name, f"changes its '{name}' from {before[name]} to {value} in forward",
                            "checkpoints keep weights alone: a run could not resume with it")

    def check_sight(self, length):
        """What an output is made of, in training and in evaluation: its own row, up to its token."""
        short = min(length, CAUSALITY_LENGTH)
        for training in (True, False):
            self.built.train(training)
            self.require_own_row(short)
            # Every place of a short row, and places of a whole one that no chunk ends at.
            self.require_causal(short, range(1, short), 1e-5)
            if length > short:
                self.require_causal(length, sorted({1, *(length * part // 4 | 1 for part in (1, 2, 3)), length - 1}), 1e-4)
        self.built.train()

    def when(self):
        return "" if self.built.training else " in evaluation (module.eval())"

    def require_own_row(self, length):
        """Rows of a batch are texts of their own, and in an evaluation what follows a row may be the next one."""
        with torch.no_grad():
            own, *others = (self.row(length, draw) for draw in range(3))
            outputs = [self.forward(torch.cat((own, other)))[0] for other in others]
        difference, scale = (outputs[0] - outputs[1]).abs().max().item(), outputs[0].abs().max().item()
        if difference > 1e-5 * scale + 1e-30:
            raise wrong(self.name, f"lets a row see other rows of its batch{self.when()}",
                        f"the output of a row changes by {difference:.2g} when the next row of the batch does; the batch is "
                        "dimension 0 of the input, which nothing may be mixed over")

    def require_causal(self, length, places, tolerance):
        """`tolerance`: rounding, relative to the largest output."""
        with torch.no_grad():
            row, other = self.row(length), self.row(length, 2)
            ids, other_ids = self.ids(row), self.ids(row, 1)
            whole = self.forward(row, ids)
            scale = whole.abs().max().item()
            for place in places:
                changed = self.forward(torch.cat((row[:, :place], other[:, place:]), 1),
                                       torch.cat((ids[:, :place], other_ids[:, place:]), 1))
                differences = (whole - changed)[0, :place].abs().amax(1)
                if differences.max().item() <= tolerance * scale + 1e-30:
                    continue
                seeing = int((differences > tolerance * scale + 1e-30).nonzero()[0]) + 1
                raise wrong(self.name, f"lets a token see later ones{self.when()}",
                            f"in a row of {length} the output of token {seeing} changes by "
                            f"{differences.max().item():.2g} when inputs from token {place + 1} on change; a language "
                            "model must not see what it predicts")

    def flops(self, length):
        """Of a token of a row, {"fixed", "per_length", "declared"}: affine in the row's length."""
        declared = getattr(self.built, "flops", None)
        if declared is not None:
            with blaming(self.name, "flops"):
                at = [float(declared(n)) for n in (length, 2 * length)]
            if not all(math.isfinite(number) and number >= 0 for number in at):
                raise wrong(self.name, f"declares {at[0]} FLOPs a token")
            lengths = (length, 2 * length)
        else:
            lengths = (length, max(1, length // 2))
            at = [self.counted(n) / n for n in lengths]
        slope = (at[1] - at[0]) / (lengths[1] - lengths[0]) if lengths[1] != lengths[0] else 0.0
        return {"fixed": at[0] - slope * lengths[0], "per_length": slope,
                "declared": declared is not None}

    def counted(self, length):
        with torch.no_grad(), Counter() as counter:
            self.forward(self.row(length))
        return counter.flops


def describe(experiment, dtypes):
    """What forge knows of each own block of the model: its weights, operations and memory."""
    model, train = experiment["model"], experiment["train"]
    dtype = dtypes.get(train["precision"], torch.float32)
    described = {}
    for name in model["blocks"]:
        with torch.enable_grad():
            trial = Trial(name, model, dtype, experiment["seed"])
            saved = trial.check_gradients(train["seq_len"])
            trial.check_repeats(min(train["seq_len"], CAUSALITY_LENGTH))
            trial.check_state(min(train["seq_len"], CAUSALITY_LENGTH))
            trial.check_sight(train["seq_len"])
            if train["precision"] == "bfloat16":
                trial.check_bfloat16(train["seq_len"])
            described[name] = {"module": trial.module, "weights": trial.weights,
                               "flops": trial.flops(train["seq_len"]), "saved": saved,
                               "torch": torch.__version__}
    return described
