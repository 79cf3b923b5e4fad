"""A disk that fills up in mid-run: the run stops with an exit code of its own, all that was recorded is
readable, and with room again it ends as if nothing had been."""
import errno
import json
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

from .faults import SAID, SQLITE_SAYS, Shim
from .kill import structure_of
from .progress import Progress
from .runs import COMPLETED, STORAGE, Forge, check, same_as, wait_for

SETTINGS = {"train.max_steps": 600, "train.checkpoint_every": 30, "train.keep_checkpoints": 3}
TOO_SMALL = "a checkpoint takes"  # of a disk that is seen to have no room for one
SMALLEST = 20_000  # bytes that are left at least, so that a run can begin


class MountedDisk:
    """A file system of 8 MiB in memory, most of it taken. Needs the right to mount."""

    name = "file systems of 8 MiB"

    def __init__(self, folder):
        self.folder = Path(folder, "disk")
        self.environment = {}

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(self.folder)],
                              stderr=subprocess.PIPE, text=True)
        check(done.returncode == 0, f"no small file system to be had: {done.stderr.strip()} (run as root, or --budget)")
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    def free(self):
        return shutil.disk_usage(self.folder).free

    def leave(self, room):
        """Takes all but so many bytes."""
        (self.folder / "filler").write_bytes(b"x" * max(0, self.free() - room))

    def fill(self):
        """Takes what is left while others write, too."""
        try:
            with open(self.folder / "filler", "ab", buffering=0) as filler:
                while filler.write(b"x" * 4096):
                    pass
        except OSError as problem:
            return problem.errno == errno.ENOSPC

    def make_room(self):
        (self.folder / "filler").unlink()
        self.environment = {}


class Budget:
    """So many bytes that forge and its processes can write before every write says that the disk is full."""

    name = "budgets of bytes"
    plenty = 1 << 40

    def __init__(self, folder):
        self.folder = Path(folder, "disk")
        self.shim = Shim(folder)
        self.environment = {}

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.leave(self.plenty)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def free(self):
        spent = self.shim.mark.read_bytes() if self.shim.mark.exists() else b""
        return self.plenty - int.from_bytes(spent, "little")

    def leave(self, room):
        self.shim.mark.unlink(missing_ok=True)
        self.environment = self.shim.environment(self.folder, FORGE_FAULT_BUDGET=str(room))

    def make_room(self):
        self.environment = {}


def call(forge, arguments, environment):
    return subprocess.run(arguments, cwd=forge.root, env={**forge.environment, **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300)


def bytes_needed(forge, disk):
    """How many a run takes that nothing hinders."""
    with disk:
        before = disk.free()
        small = Forge(forge.program, disk.folder, forge.cache)
        done = call(small, small.command("text", SETTINGS), disk.environment)
        check(done.returncode == COMPLETED, f"forge run on an empty disk: {done.stderr}")
        return before - disk.free()


def one_round(forge, straight, disk, room):
    """One run on a disk with so many bytes free; whether they were too few."""
    with disk:
        small = Forge(forge.program, disk.folder, forge.cache)
        run = straight.fresh_copy(straight.folder.name, small)
        command = small.command("text", SETTINGS)
        disk.leave(room)
        done = call(small, command, disk.environment)
        if done.returncode == COMPLETED:
            same_as(straight, run)
            return False
        check(done.returncode == STORAGE, f"{room} bytes free: exit code {done.returncode}, {done.stderr}")
        check(any(said in done.stderr for said in (SAID["ENOSPC"], *SQLITE_SAYS, TOO_SMALL)), f"{room} bytes free: it was said that {done.stderr!r}")
        for checkpoint in run.checkpoints():
            structure_of(checkpoint)
        before = run.acknowledged()
        run.events()  # every whole line is JSON
        listed = call(small, [forge.program, "runs", "--json"], disk.environment)
        check(listed.returncode == COMPLETED and len(json.loads(listed.stdout)) == 1,
              f"forge runs on the full disk: {listed}")
        disk.make_room()
        shown = call(small, [forge.program, "runs", "--json"], {})
        check(shown.returncode == COMPLETED and len(json.loads(shown.stdout)) == 1, f"forge runs: {shown}")
        again = call(small, command, {})
        check(again.returncode == COMPLETED, f"with room again: {again.stderr}")
        check(run.acknowledged().startswith(before), "events were lost")
        same_as(straight, run)
    return True


WAITING = {"train.max_steps": 4000, "train.checkpoint_every": 50, "train.keep_checkpoints": 2}
KEPT = 12  # seconds of a full disk, in which the queue is looked after more than once


def waiting_round(forge, straight, disk):
    """A queue of its own that meets a full disk: the run that writes fails, those behind it wait for room."""
    with disk:
        small = Forge(forge.program, disk.folder, forge.cache)
        command = small.command("text", WAITING)
        command[command.index("--threads") + 1] = str(os.cpu_count())  # one run at a time
        done = call(small, command + ["--seed", "1..3", "--detach"], {})
        check(done.returncode == COMPLETED, f"forge run --detach: {done.stderr}")

        def status():
            return json.loads(call(small, [forge.program, "status", "--json"], {}).stdout)

        def waits():
            return [entry["run"] for entry in status()["waiting"]]
        wait_for(lambda: status()["running"], "the first run")
        behind = waits()
        check(len(behind) == 2, f"{behind} wait behind the first of three runs")
        wait_for(lambda: disk.fill() and not status()["running"], "the first run to fail on the full disk")
        until = time.monotonic() + KEPT
        while time.monotonic() < until:
            check(waits() == behind, f"of {behind} wait {waits()} on the full disk")
            time.sleep(0.2)
        check(status()["waiting"][0].get("no_room"), "forge status does not say that they wait for room")
        check(status()["unserved"] is None, "nobody looks after the queue of a full disk")
        disk.make_room()
        wait_for(lambda: not waits() and not status()["running"], "the end of those that waited")
        for name in behind:
            same_as(straight[name], small.run_at(name))
        again = call(small, command + ["--seed", "1..3"], {})
        check(again.returncode == COMPLETED, f"the same command with room again: {again.stderr}")
        for name, run in straight.items():
            same_as(run, small.run_at(name))


def prove_waiting(forge, folder, count):
    """Needs the right to mount: processes that run already must meet the full disk."""
    command = forge.command("text", WAITING)
    command[command.index("--threads") + 1] = str(os.cpu_count())
    done = call(forge, command + ["--seed", "1..3"], {})
    check(done.returncode == COMPLETED, f"forge run: {done.stderr}")
    straight = {run["id"]: forge.run_at(run["id"]) for run in json.loads(done.stdout)}
    with Progress("full-disk, waiting", count) as progress:
        for number in range(count):
            waiting_round(forge, straight, MountedDisk(folder))
            progress.show(number + 1)
    for run in straight.values():
        run.remove()
    print(f"full-disk: {count} queues whose disk was full for {KEPT} s: the run that wrote failed alone, two that "
          f"waited stayed, and with room again began by themselves and ended as undisturbed")


def prove(forge, folder, count, seed, kind_of_disk=MountedDisk):
    generator = random.Random(seed)
    straight = forge.train("text", SETTINGS)
    disk = kind_of_disk(folder)
    needed = bytes_needed(forge, disk)
    full = rounds = 0
    with Progress("full-disk", count) as progress:
        while full < count:
            rounds += 1
            check(rounds <= 3 * count + 10, f"only {full} of {rounds} disks were too small")
            full += one_round(forge, straight, disk, generator.randrange(SMALLEST, max(SMALLEST + 1, needed)))
            progress.show(full)
    straight.remove()
    print(f"full-disk: {full} {disk.name} that were full in mid-run: own exit code, all records readable, and with "
          f"room again every loss and the last weights as undisturbed")
