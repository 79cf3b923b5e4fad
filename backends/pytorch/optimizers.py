"""What updates the weights, by optimizer.type. Formulas and sources: docs/MATHEMATICS.md.

All decays are decoupled: w becomes (1 - rate decay) w - rate direction. A group's rate is the scheduled
one times its `lr_factor`.
"""
import inspect

import torch

MOMENTS = {"exp_avg": "first_moment", "exp_avg_sq": "second_moment", "momentum": "momentum"}


def group_of(name, shape):
    """What optimizers tell weights apart by: docs/PROTOCOL.md."""
    if name == "model.embed_tokens.weight":
        return "embeddings"
    if name == "lm_head.weight":
        return "head"
    if len(shape) == 2:
        return "matrices"
    module = name.split(".")[-2] if "." in name else ""
    if "norm" in module:
        return "norms"
    return "canon" if module.startswith("canon") or module.endswith("conv1d") else "vectors"


class WithMomentum(torch.optim.Optimizer):
    """Keeps one moment of each weight at most."""

    def __init__(self, groups, settings):
        self.settings = settings
        super().__init__(groups, {})

    def momentum_of(self, weight):
        state = self.state[weight]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(weight)
        return state["momentum"]

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    direction = self.direction(weight, weight.grad)
                    weight.mul_(1 - group["lr"] * group["weight_decay"])
                    weight.sub_(direction * group["lr"])


class Lion(WithMomentum):
    def direction(self, weight, gradient):
        beta1, beta2 = self.settings["lion"]["betas"]
        momentum = self.momentum_of(weight)
        sign = (beta1 * momentum + (1 - beta1) * gradient).sign_()
        momentum.mul_(beta2).add_(gradient, alpha=1 - beta2)
        return sign


class SGD(WithMomentum):
    def direction(self, weight, gradient):
        factor = self.settings["sgd"]["momentum"]
        if factor == 0:
            return gradient
        momentum = self.momentum_of(weight).mul_(factor).add_(gradient)
        return gradient + factor * momentum if self.settings["sgd"]["nesterov"] else momentum


class Muon(WithMomentum):
    def direction(self, weight, gradient):
        muon, (rows, columns) = self.settings["muon"], weight.shape
        factor = muon["momentum"]
        momentum = self.momentum_of(weight).mul_(factor).add_(gradient, alpha=1 - factor)
        ahead = (1 - factor) * gradient + factor * momentum if muon["nesterov"] else momentum
        adjusted = {"original": max(1.0, rows / columns) ** 0.5,
                    "match_rms_adamw": 0.2 * max(rows, columns) ** 0.5}[muon["adjust_lr"]]
        return orthogonalised(ahead, muon) * adjusted


def orthogonalised(matrix, muon):
    """U V' of the singular value decomposition U S V', roughly, by Newton-Schulz iterations."""
    a, b, c = muon["newton_schulz_coefficients"]
    is_tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if is_tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(muon["newton_schulz_steps"]):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if is_tall else x


def adamw(groups, settings):
    """On a GPU by one kernel for all weights of a group."""
    is_fused = (groups[0]["params"][0].is_cuda
                and "fused" in inspect.signature(torch.optim.AdamW).parameters)
    return torch.optim.AdamW(groups, lr=settings["lr"], betas=tuple(settings["betas"]),
                             eps=settings["eps"],
                             **({"fused": True, "capturable": True} if is_fused else {}))


class Optimizer:
    """Updates all weights, tensors by name. On a GPU its learning rates are there, too, so that a recorded
    step reads them."""

    def __init__(self, settings, weights):
        self.names = weights
        muon = {name for name, weight in self.names.items() if settings["type"] == "muon"
                and group_of(name, weight.shape) == "matrices"}
        rest = [name for name in self.names if name not in muon]
        make = {"lion": Lion, "sgd": SGD}.get(settings["type"], adamw)
        self.parts = [make(self.groups(rest, settings), settings)] if rest else []
        if muon:
            self.parts.append(Muon(self.groups(muon, settings), settings))

    def groups(self, names, settings):
        """One for each weight decay, in the model's order."""
        own = settings.get("weight_decay_of", {})
        groups = {}
        for name, weight in self.names.items():
            if name not in names:
                continue
            group = group_of(name, weight.shape)
            is_rest = settings["type"] == "muon" and group != "matrices"
            lr = (settings["muon"]["adamw_lr"] if is_rest else None) or settings["lr"]
            decay = own.get(group, settings["weight_decay"])
            factor = lr / settings["lr"] if lr != settings["lr"] else 1.0
            rate = torch.tensor(lr, dtype=torch.float32, device=weight.device) if weight.is_cuda else lr
            groups.setdefault(decay, {"params": [], "lr": rate, "lr_factor": factor,
                                      "weight_decay": decay})["params"].append(weight)
        return list(groups.values())

    def set_learning_rate(self, rate):
        """The scheduled one, of which each group has its share."""
        for part in self.parts:
            for group in part.param_groups:
                if torch.is_tensor(group["lr"]):
                    group["lr"].fill_(rate * group["lr_factor"])
                else:
                    group["lr"] = rate * group["lr_factor"]

    def step(self):
        for part in self.parts:
            part.step()

    def named_state(self):
        """What a checkpoint keeps of every weight, by the weight's name and that of the moment."""
        tensors = {}
        for name, weight in self.names.items():
            for part in self.parts:
                for key, value in part.state.get(weight, {}).items():
                    if key in MOMENTS:
                        tensors[f"{name}.{MOMENTS[key]}"] = value
        return tensors

    def restore(self, tensors, step):
        for part in self.parts:
            is_adamw = isinstance(part, torch.optim.AdamW)
            for name, weight in self.names.items():
                if not any(weight is own for group in part.param_groups for own in group["params"]):
                    continue
                keys = ("exp_avg", "exp_avg_sq") if is_adamw else ("momentum",)
                kept = {key: tensors[f"{name}.{MOMENTS[key]}"].clone().to(weight)
                        for key in keys if f"{name}.{MOMENTS[key]}" in tensors}
                if kept and is_adamw:
                    device = weight.device if weight.is_cuda else "cpu"
                    kept["step"] = torch.tensor(float(step), device=device)
                if kept:
                    part.state[weight] = kept
