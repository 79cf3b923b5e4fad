"""Says on stderr how far a proof is: on a terminal in one line that changes, elsewhere every ten seconds."""
import sys
import time

INTERVALS = {True: 0.2, False: 10}  # seconds between two lines, on a terminal and elsewhere


class Progress:
    def __init__(self, name, total, stream=None, clock=time.monotonic):
        self.name, self.total, self.clock = name, total, clock
        self.stream = stream or sys.stderr
        self.on_terminal = self.stream.isatty()
        self.began = self.said = clock()
        self.is_open = False

    def show(self, done, what=""):
        """That so many of the total are done."""
        now = self.clock()
        if now - self.said < INTERVALS[self.on_terminal]:
            return
        self.said = now
        text = f"{self.name}: {done} of {self.total}{', ' + what if what else ''}, {now - self.began:.0f} s"
        if self.on_terminal:
            self.stream.write(f"\r\033[K{text}")
            self.is_open = True
        else:
            self.stream.write(text + "\n")
        self.stream.flush()

    def end(self):
        """Leaves the line to what is printed next."""
        if self.is_open:
            self.stream.write("\r\033[K")
            self.stream.flush()
            self.is_open = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
