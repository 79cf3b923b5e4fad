"""Every call that writes, syncs, cuts or renames a file fails once: the error is said, with an exit code of its own,
all that was there before stays usable, and the same command ends the run as if nothing had been."""
import argparse
import json
import os
import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path

from .progress import Progress
from .runs import COMPLETED, STORAGE, Forge, check, same_as

SOURCE = Path(__file__).resolve().parent / "fault_shim.c"
# Nothing hangs here: the long patience is that of a machine with much else to do.
SETTINGS = {"train.max_steps": 60, "train.checkpoint_every": 20, "train.eval_every": 20, "train.hung_after_seconds": 60}
SAID = {"ENOSPC": "No space left on device", "EIO": "Input/output error"}
SQLITE_SAYS = ("disk I/O error", "database or disk is full")
WRITES = ("write", "writev", "pwrite")


class Shim:
    """fault_shim.c, built, and the file in which it notes what it did."""

    def __init__(self, folder):
        self.library = Path(folder, "fault_shim.so")
        self.mark = Path(folder, "fault-mark")
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", self.library, SOURCE, "-ldl"], check=True)

    def environment(self, root, **settings):
        """What a process must find so that files below the root are in the shim's hands."""
        return dict(LD_PRELOAD=str(self.library), FORGE_FAULT_ROOT=str(root), FORGE_FAULT_MARK=str(self.mark), **settings)


def part(text):
    """Of "2/8" what a list is cut with to get the second of eight parts."""
    try:
        which, parts = map(int, text.split("/"))
    except ValueError:
        which, parts = 0, 0
    if not 1 <= which <= parts:
        raise argparse.ArgumentTypeError(f"'{text}': a part such as 2/8, the second of eight")
    return slice(which - 1, None, parts)


def is_tried_again(line):
    """Whether a run survives that this call fails once: a disk that others write to may be full for a moment."""
    return "/checkpoints/.tmp-" in line or line.startswith("forge-supervise write ") and line.endswith("/events.jsonl")


def faults_of(line):
    return list(SAID) + (["short"] if line.split(" ")[1] in WRITES else [])


class Start:
    """A folder of runs and cache as forge finds it, made anew for each fault."""

    def __init__(self, forge, folder, straight, shim):
        self.folder = Path(folder, "faulty")
        self.straight = straight
        self.shim = shim
        self.log = Path(folder, "calls.log")
        self.forge = Forge(forge.program, self.folder, self.folder / "cache")
        self.cache = forge.cache

    def prepare(self):
        """Puts the files there and returns the run, whose folder need not exist yet."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.shim.mark.unlink(missing_ok=True)
        return self.arrange()

    def calls(self):
        """Which calls an undisturbed run makes, and how many of each."""
        self.prepare()
        self.log.unlink(missing_ok=True)
        done = self.run(FORGE_FAULT_LOG=str(self.log))
        check(done.returncode == COMPLETED, f"forge run under the shim: {done.stderr}")
        return Counter(self.log.read_text().splitlines())

    def run(self, **settings):
        environment = dict(self.forge.environment)
        if settings:
            environment.update(self.shim.environment(self.folder, **settings))
        return subprocess.run(self.forge.command("text", SETTINGS), cwd=self.forge.root, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)

    def spoil(self, line, at, kind):
        """One run with one fault, and the same command after it. Its exit code, None where it was never met."""
        run = self.prepare()
        done = self.run(FORGE_FAULT_CALL=line, FORGE_FAULT_AT=str(at), FORGE_FAULT_KIND=kind)
        what = f"{kind} at call {at} of '{line}'"
        if not self.shim.mark.exists():
            check(done.returncode == COMPLETED, f"{what} was not met: {done.stderr}")
            return None
        check(done.returncode in (COMPLETED, STORAGE), f"{what}: exit code {done.returncode}: {done.stderr}")
        if done.returncode == STORAGE:
            check(kind != "short", f"{what} is no error: {done.stderr}")
            check(not is_tried_again(line), f"{what} ended the run: {done.stderr}")
            check(any(said in done.stderr for said in (SAID[kind], *SQLITE_SAYS)), f"{what} was told as {done.stderr}")
        before = run.acknowledged()
        shown = subprocess.run([self.forge.program, "runs", "--json"], env=self.forge.environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        check(shown.returncode == 0 and isinstance(json.loads(shown.stdout), list), f"{what}: forge runs: {shown}")
        again = self.run()
        check(again.returncode == COMPLETED, f"{what}: the same command again: {again.stderr}")
        check(run.acknowledged().startswith(before), f"{what}: events were lost")
        same_as(self.straight, run)
        return done.returncode


class First(Start):
    name = "a first run"

    def arrange(self):
        self.folder.mkdir()
        return self.forge.run_at(self.straight.folder.name)


class Again(Start):
    name = "a run that was interrupted"

    def arrange(self):
        """As a crash may leave it: a torn event, a checkpoint half written and one that is damaged."""
        shutil.copytree(self.cache, self.folder / "cache")
        self.forge.runs.mkdir()
        run = self.straight.copy_stopped_at(self.straight.folder.name, 40, self.forge)
        with open(run.folder / "events.jsonl", "a") as events:
            events.write('{"event":"tra')
        aside = run.checkpoints_folder / ".tmp-000000060-1"
        aside.mkdir()
        (aside / "weights.safetensors").write_bytes(b"half")
        with open(run.checkpoints()[-1] / "optimizer.safetensors", "r+b") as file:
            file.truncate(100)
        return run


def prove(forge, folder, seed, most=None, once=False, of_them=slice(None)):
    """Every call of both starts with every fault, its first, its last and one other time; or each call with one of
    these; or `most` of them; and of what was chosen a part."""
    generator = random.Random(seed)
    shim = Shim(folder)
    straight = forge.train("text", SETTINGS)
    for kind_of_start in (First, Again):
        start = kind_of_start(forge, folder, straight, shim)
        calls = start.calls()
        faults = []
        for line, count in sorted(calls.items()):
            of_call = []
            for kind in faults_of(line):
                of_call += [(line, at, kind) for at in sorted({1, generator.randint(1, count), count})]
            faults += [generator.choice(of_call)] if once else of_call
        if most is not None:
            faults = generator.sample(faults, min(most, len(faults)))
        faults = faults[of_them]
        outcomes = Counter()
        with Progress(f"faults, {start.name}", len(faults)) as progress:
            for done, fault in enumerate(faults):
                outcomes[start.spoil(*fault)] += 1
                progress.show(done + 1)
        print(f"faults, {start.name}: {len(faults)} faults in {len(calls)} calls, with {', '.join(SAID)} or a short write: "
              f"{outcomes[STORAGE]} times an error that was said with exit code {STORAGE}, {outcomes[COMPLETED]} times "
              f"none was needed, {outcomes[None]} not met; then every loss and the last weights as undisturbed")
    straight.remove()
