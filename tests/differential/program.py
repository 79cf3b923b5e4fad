"""Talks to forge_differential, the side of forge."""

import json
import os
import select
import subprocess

SECONDS = 20  # that an answer may take

# Template files of a case go to memory where that is possible. Local time is UTC, as in oracle.py.
MEMORY = "/dev/shm"
ENVIRONMENT = {**os.environ, "TZ": "UTC"}
if os.access(MEMORY, os.W_OK):
    ENVIRONMENT["TMPDIR"] = MEMORY


class Program:
    def __init__(self, path):
        self._path = path
        self._process = None

    def ask(self, case):
        """The answer: {"text": …}, {"parts": …}, {"value": …}, {"error": …} or {"crash": …}."""
        if self._process is None:
            self._process = subprocess.Popen(
                [self._path], env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self._process.stdin.write(json.dumps(case).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._crash("ended")
        ready, _, _ = select.select([self._process.stdout], [], [], SECONDS)
        if not ready:
            return self._crash(f"gave no answer within {SECONDS} s")
        line = self._process.stdout.readline()
        return json.loads(line) if line else self._crash("ended")

    def _crash(self, what):
        self.close()
        return {"crash": f"the program {what}"}

    def close(self):
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill()
        process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
