"""Commands that share a queue are killed with all that they started: no run is done twice, none is lost."""
import json
import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

from .kill import kill
from .progress import Progress
from .runs import SUSPENDED, Forge, check, same_as, suspend

STEPS = 400
RUNS = 8
SETTINGS = {"train.max_steps": STEPS, "train.checkpoint_every": 50}
LONGEST_WAIT = 1.0  # seconds between two kills
PATIENCE = 300  # seconds without a kill within which all must be done


def is_dying(folder):
    """Whether a process has been killed and is only taken apart: it computes nothing more."""
    exiting, sigkill = 0x4, 1 << 8  # PF_EXITING, and the bit of signal 9
    if int((folder / "stat").read_text().rsplit(") ", 1)[1].split()[6]) & exiting:
        return True
    status = (folder / "status").read_text()
    pending = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask & sigkill for mask in pending)


class Watcher:
    """What goes on in a folder of runs, read from /proc."""

    def __init__(self, runs):
        self.runs = str(runs)

    def processes(self):
        """(kind, run, pid) of every process of forge's there."""
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                here = os.readlink(folder / "cwd")
                gone = is_dying(folder)  # a zombie, too
            except (OSError, IndexError):
                continue
            if gone or not words[0]:
                continue
            if len(words) > 2 and words[1] == b"supervise" and words[2].decode().startswith(self.runs):
                found.append(("supervisor", Path(words[2].decode()).name, int(folder.name)))
            elif words[0].endswith(b"forge-worker-libtorch") and here.startswith(self.runs + "/"):
                found.append(("worker", Path(here).name, int(folder.name)))
        return found

    def check_one_at_a_time(self, most):
        """No run has two workers, and no more run than there is room for."""
        workers = Counter(run for kind, run, _ in self.processes() if kind == "worker")
        # Between two looks at /proc one may have gone and its successor come.
        if any(count > 1 for count in workers.values()) or len(workers) > most:
            time.sleep(0.05)
            again = Counter(run for kind, run, _ in self.processes() if kind == "worker")
            both = workers & again
            check(all(count <= 1 for count in again.values()), f"a run has two workers: {again}")
            check(len(both) <= most, f"{len(both)} runs at once where {most} have room")


class Commands:
    """Two overlapping `forge run` commands that are issued again whenever one has ended too early."""

    def __init__(self, forge):
        self.forge = forge
        self.seeds = ("1..5", "4..8")
        self.processes = [None, None]
        self.issued = 0

    def keep_going(self):
        for i, process in enumerate(self.processes):
            if process is None or (process.poll() not in (None, 0)):
                command = self.forge.command("text", SETTINGS) + ["--seed", self.seeds[i]]
                self.processes[i] = subprocess.Popen(command, env=self.forge.environment, cwd=self.forge.root,
                                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                     stderr=subprocess.DEVNULL, start_new_session=True)
                self.issued += 1

    def pids(self):
        return [process.pid for process in self.processes if process and process.poll() is None]

    def are_done(self):
        return all(process is not None and process.poll() == 0 for process in self.processes)


def victims_of(what, commands, watcher):
    if what == "forge":
        return [random.choice(commands.pids())] if commands.pids() else []
    if what == "everything":
        return commands.pids() + [pid for _, _, pid in watcher.processes()]
    return [pid for kind, _, pid in watcher.processes() if kind == what][:1]


def suspend_one(watcher, room, generator):
    """Suspends a supervisor, in half of the cases with its worker, while the others go on; tells whether it did."""
    processes = watcher.processes()
    supervisors = [(run, pid) for kind, run, pid in processes if kind == "supervisor"]
    if not supervisors:
        return False
    run, supervisor = generator.choice(supervisors)
    workers = [pid for kind, of, pid in processes if kind == "worker" and of == run]

    def look():
        watcher.check_one_at_a_time(room)
        time.sleep(0.01)
    return suspend([supervisor] + (workers if generator.random() < 0.5 else []), look)


def one_round(straight, forge, most_kills, generator, kills, progress):
    commands, watcher = Commands(forge), Watcher(forge.runs)
    room = os.cpu_count()  # runs of one thread
    struck = 0
    commands.keep_going()
    quiet_since = time.monotonic()
    while not commands.are_done():
        pause = time.monotonic() + generator.uniform(0, LONGEST_WAIT)
        while time.monotonic() < pause and not commands.are_done():
            watcher.check_one_at_a_time(room)
            time.sleep(0.01)
        if struck < most_kills:
            if generator.random() < SUSPENDED and suspend_one(watcher, room, generator):
                kills["suspended"] += 1
                quiet_since = time.monotonic()
            what = generator.choice(("worker", "supervisor", "forge", "everything"))
            hit = [pid for pid in victims_of(what, commands, watcher) if kill(pid)]
            if hit:
                struck += 1
                kills[what] += 1
                progress.show(killed(kills))
                quiet_since = time.monotonic()
        commands.keep_going()
        check(time.monotonic() - quiet_since < PATIENCE, f"{forge.runs}: runs are left after {PATIENCE} s")
    for seed in range(1, RUNS + 1):
        check_done_once(straight[seed], forge)
    return struck


def killed(kills):
    return sum(kills.values()) - kills["suspended"]


def check_done_once(straight, forge):
    run = forge.run_at(straight.folder.name)
    check(run.is_done(), f"{run.folder} was lost")
    ends = [event for event in run.events() if event["event"] == "ended" and event["status"] == "completed"]
    check(len(ends) == 1, f"{run.folder} was completed {len(ends)} times")
    same_as(straight, run)


def prove(forge, folder, count, seed):
    generator = random.Random(seed)
    straight = {}
    for number in range(1, RUNS + 1):
        straight[number] = forge.train("text", {**SETTINGS, "seed": number})
    kills, rounds = Counter(), 0
    with Progress("queue", count) as progress:
        while killed(kills) < count:
            others = Forge(forge.program, Path(folder, f"queue-{rounds}"), forge.cache)
            one_round(straight, others, min(20, count - killed(kills)), generator, kills, progress)
            rounds += 1
    what = ", ".join(f"{number} of {name}" for name, number in sorted(kills.items()) if name != "suspended")
    print(f"queue: {killed(kills)} kills ({what}) and {kills['suspended']} suspended supervisors in {rounds} rounds of "
          f"{RUNS} runs asked for by two commands: no run done twice, none lost, never two workers on one place, every number as undisturbed")


def prove_first_starts(forge, folder, count):
    """So many commands at once, in a folder that none of them finds there."""
    others = Forge(forge.program, Path(folder, "first"), forge.cache)
    settings = {"train.max_steps": 7, "train.eval_every": 0, "train.checkpoint_every": 0}
    forge.train("text", settings)  # so that the data is there
    processes = [subprocess.Popen(others.command("text", settings) + ["--seed", str(1 + i % 10)], env=others.environment,
                                  cwd=others.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) for i in range(count)]
    with Progress("first-starts", count) as progress:
        for done, process in enumerate(processes):
            output, prose = process.communicate(timeout=600)
            check(process.returncode == 0, f"one of {count} first starts ended with {process.returncode}: {prose}")
            check(json.loads(output)[0]["status"] == "completed", output)
            progress.show(done + 1)
    attempts = [len(others.run_at(folder.name).attempts()) for folder in others.runs.iterdir()
                if (folder / "run.json").exists()]
    check(attempts == [1] * min(10, count), f"attempts of the runs: {attempts}")
    print(f"first-starts: {count} commands at once for {min(10, count)} runs in a new folder: all succeed, "
          "each run was done once")
