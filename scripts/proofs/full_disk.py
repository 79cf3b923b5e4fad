"""A disk that fills up in mid-run: the run stops with an exit code of its own, all that was recorded is
readable, and with room again it ends as if nothing had been."""
import json
import random
import shutil
import subprocess
from pathlib import Path

from .kill import structure_of
from .runs import STORAGE, Run, check, same_as

STEPS = 1500
SETTINGS = {"train.max_steps": STEPS, "train.checkpoint_every": 30, "train.keep_checkpoints": 3}
SMALLEST = 40_000  # bytes that are left at least, so that a run can begin


class SmallDisk:
    """A file system of 8 MiB in memory. Needs the right to mount."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def __enter__(self):
        self.folder.mkdir(parents=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(self.folder)],
                              stderr=subprocess.PIPE, text=True)
        check(done.returncode == 0, f"no small file system to be had: {done.stderr.strip()} (run as root)")
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    def fill_up_to(self, free):
        """Leaves so many bytes free."""
        room = shutil.disk_usage(self.folder).free
        (self.folder / "filler").write_bytes(b"x" * max(0, room - free))

    def make_room(self):
        (self.folder / "filler").unlink()


def one_round(forge, straight, disk, free):
    """One run on a disk with so many bytes free; whether they were too few."""
    with disk:
        forge.runs = disk.folder
        run = straight.fresh_copy("template")
        small = Run(forge, shutil.move(str(run.folder), str(disk.folder / straight.folder.name)))
        request = json.loads((small.folder / "request.json").read_text())
        request["run_dir"] = str(small.folder)
        (small.folder / "request.json").write_text(json.dumps(request) + "\n")
        disk.fill_up_to(free)
        process = forge.supervise(small)
        _, prose = process.communicate(timeout=300)
        if process.returncode == 0:
            same_as(straight, small)
            return False
        check(process.returncode == STORAGE, f"{free} bytes free: exit code {process.returncode}, {prose}")
        for checkpoint in small.checkpoints():
            structure_of(checkpoint)
        before = small.acknowledged()
        small.events()  # every whole line is JSON
        last = small.events()[-1]
        said = prose if last["event"] != "ended" else last["reason"]
        check("No space left on device" in said, f"{free} bytes free: it was said that {said!r}")
        disk.make_room()
        shown = subprocess.run([forge.program, "runs", "--json"], env=dict(forge.environment, FORGE_RUNS_DIR=str(disk.folder)),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(shown.returncode == 0 and json.loads(shown.stdout)[0]["status"] == "failed", f"forge runs: {shown}")
        small.supervise_to_end()
        check(small.acknowledged().startswith(before), "events were lost")
        same_as(straight, small)
    return True


def prove(forge, folder, count, seed):
    generator = random.Random(seed)
    straight = forge.train("text", SETTINGS)
    needed = sum(file.stat().st_size for file in straight.folder.rglob("*") if file.is_file())
    full = rounds = 0
    while full < count:
        rounds += 1
        check(rounds <= 3 * count + 10, f"only {full} of {rounds} disks were too small")
        free = generator.randrange(SMALLEST, max(SMALLEST + 1, needed))
        full += one_round(forge, straight, SmallDisk(Path(folder, f"disk-{rounds}")), free)
    print(f"full-disk: {full} disks of 8 MiB filled up in mid-run: own exit code, all records readable, and with room "
          f"again every loss as undisturbed")
