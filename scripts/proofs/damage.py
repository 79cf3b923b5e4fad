"""A damaged checkpoint is named and skipped, and the run goes on from the one before it."""
import json
import random
import shutil
import subprocess

from .progress import Progress
from .runs import check, same_as

FILES = ("weights.safetensors", "optimizer.safetensors", "manifest.json")
BEFORE, NEWEST, STEPS = 50, 75, 90


def flip(path, generator):
    content = bytearray(path.read_bytes())
    bit = generator.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    return f"bit {bit} of {path.name} flipped"


def truncate(path, generator):
    size = generator.randrange(path.stat().st_size)
    with open(path, "r+b") as file:
        file.truncate(size)
    return f"{path.name} cut to {size} bytes"


def remove(path, _):
    path.unlink()
    return f"{path.name} removed"


def exchange(path, _):
    """The file of another checkpoint: whole, but not what belongs there."""
    shutil.copy(path.parent.parent / f"{BEFORE:09}" / path.name, path)
    return f"{path.name} of another checkpoint"


def refused_by_worker(worker, run, checkpoint, file):
    """The worker itself does not load it either, whoever asks it to."""
    request = json.loads((run.folder / "request.json").read_text())
    request["resume_from"] = str(checkpoint)
    done = subprocess.run([worker], input=json.dumps(request) + "\n", stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, timeout=60)
    last = json.loads(done.stdout.splitlines()[-1])
    check(done.returncode == 1 and last["event"] == "failed", f"the worker said {last}")
    check("is damaged" in last["message"] and file in last["message"], f"the worker said {last}")


def one_round(straight, worker, file, harm, generator):
    run = straight.copy_stopped_at("damaged", NEWEST)
    checkpoint = run.checkpoints_folder / f"{NEWEST:09}"
    what = harm(checkpoint / file, generator)
    if harm is exchange and file == "manifest.json":
        file = ".safetensors"  # a manifest that is whole fits none of the files beside it
    if worker:
        refused_by_worker(worker, run, checkpoint, file)
    run.supervise_to_end()
    attempt = run.attempts()[-1]
    check(attempt["resume_from"].endswith(f"{BEFORE:09}"), f"{what}: it went on from {attempt['resume_from']!r}")
    check(len(attempt["damaged"]) == 1 and f"{NEWEST:09}" in attempt["damaged"][0] and file in attempt["damaged"][0],
          f"{what}: that is said as {attempt['damaged']}")
    same_as(straight, run)
    run.remove()


def prove(forge, worker, flips, truncations, seed, files=FILES):
    generator = random.Random(seed)
    # Every checkpoint is kept, so that a copy can be made as of any of them.
    straight = forge.train("text", {"train.max_steps": STEPS, "train.keep_checkpoints": 9})
    harms = [(flip, generator.choice(FILES)) for _ in range(flips)]
    harms += [(truncate, generator.choice(FILES)) for _ in range(truncations)]
    harms += [(harm, file) for harm in (remove, exchange) for file in files]
    with Progress("damage", len(harms)) as progress:
        for done, (harm, file) in enumerate(harms):
            one_round(straight, worker, file, harm, generator)
            progress.show(done + 1)
    straight.remove()
    print(f"damage: {flips} flipped bits, {truncations} truncations, missing and exchanged: {', '.join(files)}: "
          f"all named, skipped, refused by the worker; every loss as undisturbed")
