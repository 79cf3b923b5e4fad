"""The learning rate at a step, counted from 0: docs/MATHEMATICS.md."""
import math


def learning_rate(schedule, lr, step, max_steps):
    warmup = schedule["warmup_steps"]
    if step < warmup:
        return lr * (step / warmup)
    kind = schedule["type"]
    if kind == "infinite_lr":
        return infinite_lr(schedule, lr, step)
    if kind == "constant":
        return lr
    return lr * {"cosine": cosine, "linear": linear, "inv_sqrt": inv_sqrt, "wsd": wsd}[kind](
        schedule, step, max_steps)


def infinite_lr(schedule, lr, step):
    constant, cooldown = schedule["constant_lr"], schedule["cooldown_steps"]
    cooled = step - schedule["warmup_steps"]
    if cooled < cooldown:
        return constant + (lr - constant) * (1 + math.cos(math.pi * (cooled / cooldown))) / 2
    begin = schedule["checkpoint_step"]
    if 0 <= begin <= step:
        lowest = schedule["min_lr"]
        return lowest + (constant - lowest) * math.exp(-(step - begin) / schedule["tau"])
    return lr if cooldown == 0 else constant


def progress(schedule, step, max_steps):
    return (step - schedule["warmup_steps"]) / (max_steps - schedule["warmup_steps"])


def cosine(schedule, step, max_steps):
    lowest = schedule["lr_min_ratio"]
    if step > max_steps or max_steps <= schedule["warmup_steps"]:
        return lowest
    length = schedule["cycle_length"]
    sign = 1 if math.floor(step / (max_steps * length)) % 2 == 0 else -1
    bent = progress(schedule, step, max_steps) ** schedule["cosine_theta"]
    return lowest + (1 - lowest) * (1 + sign * math.cos(math.pi * (bent / length))) / 2


def linear(schedule, step, max_steps):
    lowest = schedule["lr_min_ratio"]
    if step > max_steps or max_steps <= schedule["warmup_steps"]:
        return lowest
    part = progress(schedule, step, max_steps)
    return part * lowest + (1 - part)


def inv_sqrt(schedule, step, _):
    power = schedule["exp_factor"]
    return max(schedule["warmup_steps"] ** power / step ** power, schedule["lr_min_ratio"])


def wsd(schedule, step, max_steps):
    cycle = int(max_steps * schedule["cycle_length"])
    end = max_steps if step == max_steps else cycle * (step // cycle + 1)
    decay = int(end * schedule["decay_fraction"])
    if step <= end - decay:
        return 1
    part = (step - (end - decay)) / decay
    return 1 / (part * (1 / schedule["lr_min_ratio"]) + (1 - part))
