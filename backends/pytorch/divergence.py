"""Which part of a model made numbers that are not finite."""
import torch

import own_blocks
from protocol import Diverged


HINT = "lower optimizer.lr, lengthen schedule.warmup_steps or set train.grad_clip"


def is_finite(value):
    return bool(torch.isfinite(torch.as_tensor(value)).all())


def not_finite(model, inputs, what):
    """The Diverged for a loss that is no number: where that begins in a forward pass."""
    for name, weight in model.named_parameters():
        if not is_finite(weight.detach()):
            return Diverged(f"{what}: '{name}' has values that are not finite", "", HINT)
    found = first_module(model, inputs)
    if found is None:
        return Diverged(what, "", HINT)
    name, module = found
    return said(name, module, f"{what}: it gives values that are not finite for finite inputs", what)


def of_gradients(model, norm):
    """The same for gradients, which are there. The backward pass goes from the last weight to the first."""
    what = f"the norm of the gradients is {norm.item()}"
    owners = {name: module for name, module in model.named_modules()}
    for name, weight in reversed(list(model.named_parameters())):
        if weight.grad is not None and not is_finite(weight.grad):
            owner = next((part for part in prefixes(name) if is_own(owners.get(part))), None)
            if owner:
                return said(owner, owners[owner],
                            f"{what}: its backward pass gives '{name}' a gradient that is not finite", what)
            return Diverged(f"{what}, first that of '{name}'", "", HINT)
    return Diverged(what, "", HINT)


def prefixes(name):
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def is_own(module):
    return type(module).__module__.startswith(own_blocks.MODULE_PREFIX)


def said(name, module, message, otherwise):
    """Of a block of the user's own, or of a part of forge's model."""
    if not is_own(module):
        return Diverged(f"{otherwise}, first in '{name}'", "", HINT)
    block = type(module).__module__[len(own_blocks.MODULE_PREFIX):]
    layer = next((part for part in name.split(".") if part.isdigit()), "?")
    return Diverged(f"block '{block}' in layer {layer}: {message}", f"model.blocks.{block}.file",
                    "for example a division by a sum that is 0, a logarithm of 0, or an exponential that "
                    f"grows without bound; else {HINT}")


def first_module(model, inputs):
    """The first module that is a user's block, or has no parts, whose output is not finite."""
    found, hooks = [], []

    def hook(name):
        def look(module, _, out):
            if not found and isinstance(out, torch.Tensor) and not is_finite(out):
                found.append((name, module))
        return look
    inside = ()
    for name, module in model.named_modules():
        if inside and name.startswith(inside):
            continue
        if is_own(module):
            inside += (name + ".",)
        if is_own(module) or not list(module.children()):
            hooks.append(module.register_forward_hook(hook(name)))
    try:
        with torch.no_grad():
            model(inputs)
    finally:
        for one in hooks:
            one.remove()
    return found[0] if found else None
