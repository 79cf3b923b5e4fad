"""Blocks of the user's own: classes of Python files whose text the request holds (docs/OWN_BLOCKS.md).

The request's model.blocks has, for each name, the file's path, its text ("source"), what forge knows
of it ("described") and the settings that the constructor gets.
"""
import contextlib
import linecache
import os
import sys
import textwrap
import traceback
import types

import torch
from torch import nn

from numbers_by_counter import philox, stream_number
from protocol import WrongRequest

FORGES_KEYS = ("file", "at", "source", "described")
ROLES = ("projection", "gate", "mixer_output", "mlp_output")
RULES = {"constant": ("value",), "normal": ("std",), "truncated_normal": ("std", "cut"),
         "uniform": ("bound",), "log_uniform": ("low", "high"), "inverse_softplus": ("low", "high")}
MOST_FRAMES = 6
MODULE_PREFIX = "own_block_"  # of the Python modules that hold users' classes
loaded_files = {}  # path of a user's file -> name of its block


class OwnBlockError(WrongRequest):
    """The user's file is at fault. It is said with the file's own lines."""


class Context:
    """What a block may look at besides its input."""

    def __init__(self, layer, ids):
        self.layer = layer  # number of the layer, from 0
        self.ids = ids  # token ids [rows, length]; None in the trial before training


class Settings(dict):
    """The block's section of the config. It knows which keys were read: one that nobody reads is a
    misspelt one."""

    def __init__(self, name, values):
        super().__init__(values)
        self.name, self.read = name, set()

    def __getitem__(self, key):
        self.read.add(key)
        if key not in self.keys_given():
            raise KeyError(f"model.blocks.{self.name}.{key} is not set")
        return super().__getitem__(key)

    def get(self, key, default=None):
        self.read.add(key)
        return super().get(key, default)

    def __contains__(self, key):
        self.read.add(key)
        return super().__contains__(key)

    def __iter__(self):
        self.read.update(self.keys_given())
        return super().__iter__()

    def keys(self):
        self.read.update(self.keys_given())
        return super().keys()

    def items(self):
        self.read.update(self.keys_given())
        return super().items()

    def keys_given(self):
        return dict.keys(self)


def frames_of_user(problem):
    """The last frames of a traceback, from the first one in a user's file on; "" without one."""
    if isinstance(problem, SyntaxError) and problem.filename in loaded_files:
        return "".join(traceback.format_exception_only(type(problem), problem))
    frames = traceback.extract_tb(problem.__traceback__)
    own = [place for place, frame in enumerate(frames) if frame.filename in loaded_files]
    if not own:
        return ""
    kept = frames[own[0]:]
    hidden = len(kept) - MOST_FRAMES
    if hidden > 0:
        kept = [kept[0]] + kept[1 + hidden:]
    text = textwrap.dedent("".join(traceback.format_list(kept)))
    return text + "".join(traceback.format_exception_only(type(problem), problem))


def name_of_problem(problem):
    """The block whose file the exception passed through; "" for others."""
    if isinstance(problem, SyntaxError) and problem.filename in loaded_files:
        return loaded_files[problem.filename]
    for frame in traceback.extract_tb(problem.__traceback__):
        if frame.filename in loaded_files:
            return loaded_files[frame.filename]
    return ""


def failure(name, doing, problem):
    said = str(problem.args[0]) if isinstance(problem, KeyError) and problem.args else str(problem)
    message = f"block '{name}' fails in {doing}: {type(problem).__name__}: {said}"
    frames = frames_of_user(problem)
    hint = ("docs/OWN_BLOCKS.md says what a block is: __init__(self, section, model) and "
            "forward(self, x, context)" if not frames else "")
    if isinstance(problem, ModuleNotFoundError):
        hint = "a block is one file, whose text is kept with the run: it imports installed modules only"
    if "deterministic" in message and isinstance(problem, RuntimeError):
        hint = ("train.deterministic: false lets a GPU compute it, with other bits each time; or write it with "
                "operations of which Torch has deterministic ones")
    said = [part for part in (frames.rstrip("\n"), hint) if part]
    return OwnBlockError(message, f"model.blocks.{name}.file", "\n".join(said))


@contextlib.contextmanager
def blaming(name, doing):
    """What the user's code throws is said to be the user's."""
    try:
        yield
    except OwnBlockError:
        raise
    except Exception as problem:
        raise failure(name, doing, problem) from problem


def wrong(name, message, hint=""):
    return OwnBlockError(f"block '{name}' {message}", f"model.blocks.{name}.file", hint)


def class_name(block_name):
    """my_mixer -> MyMixer."""
    return "".join(part[:1].upper() + part[1:] for part in block_name.split("_"))


def load_class(name, block):
    """The class of the block's file."""
    path, source = block["file"], block["source"]
    if "\r" in source.replace("\r\n", "\n"):
        # What stands behind it in a comment would run, and nobody has seen it.
        raise wrong(name, "has a carriage return without a line feed, which ends a line for Python alone",
                    "end its lines by a line feed")
    loaded_files[path] = name
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    module = types.ModuleType(MODULE_PREFIX + name)
    module.__file__ = path
    sys.modules[module.__name__] = module
    with blaming(name, "its file"):
        exec(compile(source, path, "exec"), module.__dict__)  # the user's own code
    wanted = class_name(os.path.splitext(os.path.basename(path))[0])
    found = getattr(module, wanted, None)
    if not isinstance(found, type) or not issubclass(found, nn.Module):
        classes = [key for key, value in vars(module).items()
                   if isinstance(value, type) and value.__module__ == module.__name__]
        raise wrong(name, f"has no class {wanted} that is a torch.nn.Module",
                    "its classes are " + ", ".join(classes) if classes else "its file has no class")
    return found


def layer_seed(name, layer, seed, position):
    """Of all that the constructor of a layer's block draws."""
    stream = stream_number(f"model.layers.{layer}.{name}{position}")
    low, high, *_ = philox((0, 0, stream & 0xFFFFFFFF, stream >> 32), seed)
    return (high & 0x7FFFFFFF) << 32 | low


def build(name, model, layer, seed, position=""):
    """The block of a layer, or of a position in it, constructed with a seed of its own."""
    block = model["blocks"][name]
    found = load_class(name, block)
    settings = Settings(name, {key: value for key, value in block.items()
                               if key not in FORGES_KEYS})
    others = {key: value for key, value in model.items() if key != "blocks"}
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), blaming(name, "its constructor"):
        torch.manual_seed(layer_seed(name, layer, seed, position))
        built = found(settings, others)
    unread = sorted(set(settings.keys_given()) - settings.read)
    if unread:
        raise wrong(name, f"does not read model.blocks.{name}.{unread[0]}",
                    "it reads " + ", ".join(sorted(settings.read)) if settings.read else
                    "it reads no settings")
    return built


def call(module, x, layer, ids):
    """The block's output for an input of forge's. Of bfloat16 the block is computed by Torch's autocast,
    which takes weights in float32 and chooses the precision of each operation."""
    context = Context(layer, ids)
    if x.dtype != torch.bfloat16:
        return module(x, context)
    with torch.autocast(x.device.type, torch.bfloat16):
        return module(x, context).to(x.dtype)


def module_name(name, built):
    """What the block is called in the names of its weights: model.layers.0.NAME.…"""
    given = getattr(built, "module", name)
    if not isinstance(given, str) or not given.isidentifier():
        raise wrong(name, f"has module = {given!r}, which is no name")
    return given


def require_free_name(name, parent):
    """Two modules of one name would be one."""
    if name in dict(parent.named_children()):
        raise WrongRequest(f"two blocks of a layer have weights called {name}.…", "model.layers",
                           "`module` of a block's class is what its weights are called by")


def has_own_blocks(model):
    return bool(model.get("blocks"))


def seed_step(seed, step):
    """Chance within a step, such as dropout, is a function of seed and step: a run that resumes draws
    the same."""
    low, high, *_ = philox((step & 0xFFFFFFFF, step >> 32, 0x6F776E, 0), seed)
    torch.manual_seed((high & 0x7FFFFFFF) << 32 | low)


def checked_rule(name, weight, rule):
    """The initial distribution that a block declares for a weight, as the description has it."""
    if isinstance(rule, str):
        if rule not in ROLES:
            raise wrong(name, f"declares '{rule}' for {weight}, which is no role",
                        "the roles are " + ", ".join(ROLES))
        return {"role": rule}
    if not isinstance(rule, dict) or rule.get("kind") not in RULES:
        raise wrong(name, f"declares {rule!r} for {weight}, which is no initial distribution",
                    "for example {'kind': 'normal', 'std': 0.02}; the kinds are " +
                    ", ".join(RULES))
    keys = RULES[rule["kind"]]
    numbers = {key: rule.get(key) for key in keys}
    if set(rule) != {"kind", *keys} or not all(
            isinstance(number, (int, float)) for number in numbers.values()):
        raise wrong(name, f"declares {rule!r} for {weight}",
                    f"{rule['kind']} has the numbers " + ", ".join(keys))
    return {"kind": rule["kind"], **{key: float(number) for key, number in numbers.items()}}


def weights_of(name, built):
    """Names, shapes and initial distributions of the block's weights."""
    declared = getattr(built, "initial", {})
    if not isinstance(declared, dict):
        raise wrong(name, "has an `initial` that is no dictionary",
                    "for example initial = {'out.weight': 'mixer_output'}")
    weights = dict(built.named_parameters())
    for weight in declared:
        if weight not in weights:
            raise wrong(name, f"declares initial values of '{weight}', which it does not have",
                        "its weights are " + ", ".join(weights))
    described = []
    for weight, values in weights.items():
        if values.dtype != torch.float32:
            raise wrong(name, f"has '{weight}' in {values.dtype}", "weights are built in float32")
        rule = declared.get(weight)
        if rule in ROLES and values.dim() != 2:
            raise wrong(name, f"declares the role {rule} for '{weight}' of shape "
                        f"{list(values.shape)}", "matrices have roles: two dimensions")
        described.append({
            "name": weight, "shape": list(values.shape) or [1],
            "init": {"kind": "module"} if rule is None else checked_rule(name, weight, rule)})
        if not values.dim():
            raise wrong(name, f"has '{weight}' without dimensions", "give it the shape [1]")
    return described
