"""Drives a headless Chromium through its DevTools protocol, over a pair of pipes: no library needed."""
import base64
import json
import os
import select
import shutil
import signal
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SECONDS_TO_WAIT = 30


def find():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Failure(Exception):
    """The browser or a page did not do what was asked."""


class Browser:
    """A browser with one page. Messages are JSON that ends with a NUL, on its descriptors 3 and 4."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="forge-chromium-", ignore_cleanup_errors=True)
        to_browser, self.output = os.pipe()
        self.input, from_browser = os.pipe()
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", "--disable-background-networking", "--disable-component-update",
                   "--disable-sync", "--mute-audio", "--force-color-profile=srgb", "--remote-debugging-pipe",
                   f"--user-data-dir={self.folder.name}", "about:blank"]
        # Moved up first: one of the pipes may hold the numbers 3 or 4 itself.
        high = [os.dup2(fd, 100 + i) for i, fd in enumerate((to_browser, from_browser))]
        actions = [(os.POSIX_SPAWN_DUP2, high[0], 3), (os.POSIX_SPAWN_DUP2, high[1], 4)]
        actions += [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
        self.pid = os.posix_spawn(program, command, os.environ, file_actions=actions, setpgroup=0)
        for fd in (to_browser, from_browser, *high):
            os.close(fd)
        self.buffer, self.last_id, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for fd in (self.output, self.input):
            os.close(fd)
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        self.folder.cleanup()

    def call(self, method, **parameters):
        """The result of a command. Events that come meanwhile are kept."""
        self.last_id += 1
        message = dict(id=self.last_id, method=method, params=parameters)
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.output, data):]
        while True:
            answer = self.next_message(method)
            if answer.get("id") != self.last_id:
                self.events.append(answer)
            elif "error" in answer:
                raise Failure(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def next_message(self, what):
        end = time.monotonic() + SECONDS_TO_WAIT
        while b"\0" not in self.buffer:
            if not select.select([self.input], [], [], max(0, end - time.monotonic()))[0]:
                raise Failure(f"no answer to {what} within {SECONDS_TO_WAIT} s")
            read = os.read(self.input, 1 << 20)
            if not read:
                raise Failure("the browser ended")
            self.buffer += read
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def wait_for(self, method):
        """The parameters of the next event of that name; one that was kept counts."""
        while True:
            for event in self.events:
                if event.get("method") == method:
                    self.events.remove(event)
                    return event["params"]
            self.events.append(self.next_message(method))

    def taken(self, *methods):
        """All events so far of these names, in their order."""
        return [event for event in self.events if event.get("method") in methods]

    # What tests do with a page.

    def open(self, path):
        self.events.clear()
        self.call("Page.navigate", url=f"file://{path}")
        self.wait_for("Page.loadEventFired")

    def value(self, expression):
        """What a JavaScript expression gives; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failure(f"{expression}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def settle(self):
        """Until what was asked for is drawn."""
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def size(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.settle()

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[dict(name="prefers-color-scheme", value=scheme)])
        self.settle()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y, count=1):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=count)

    def drag(self, start, end):
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, button="left", clickCount=1)
        for i in range(1, 6):
            self.mouse("mouseMoved", *(a + (b - a) * i / 5 for a, b in zip(start, end)), button="left", buttons=1)
        self.mouse("mouseReleased", *end, button="left", clickCount=1)
        self.settle()

    def key(self, key, text=None, modifiers=0):
        code = {"Enter": 13, "Tab": 9, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
                "Escape": 27}.get(key, ord(key[0].upper()))
        text = {"Enter": "\r", " ": " "}.get(key, text if text is not None else key if len(key) == 1 else "")
        common = dict(key=key, windowsVirtualKeyCode=code, modifiers=modifiers)
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.settle()

    def screenshot(self, path, whole=False):
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))
