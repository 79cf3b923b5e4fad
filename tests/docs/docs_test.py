#!/usr/bin/env python3
"""Tests of the Markdown pages: links lead somewhere, named files exist, commands and options are those of the program."""
import argparse
import functools
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted(page for pattern in ("*.md", "docs/*.md", "projects/*/README.md", "core/*/README.md", "backends/*/README.md",
                                                         "tests/*/README.md")
               for page in ROOT.glob(pattern))
# errors.md shows mistakes, in a workspace of its own; CHANGELOG.md names keys that are gone.
OWN_PAGES = [page for page in PAGES if page.name not in ("errors.md", "CHANGELOG.md")]
FORGE = "forge"

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
INLINE_CODE = re.compile(r"`([^`\n]+)`")
FOLDERS = "core app backends tests scripts docs cmake templates projects benchmarks".split()
# A path without placeholders such as NAME, <kind>, *, {a,b}, …; files that a reader writes are exempt.
PATH = re.compile(r"(?:%s)/[a-z0-9_./-]+" % "|".join(FOLDERS))
SECTIONS = "model train data optimizer schedule tokenizer external".split()
OTHER_FILE = re.compile(r"\.(json|yaml|txt|tokens|model|safetensors|cpp|h|py)$")  # tokenizer.json is a file, not a key
WEIGHTS = {"model.embed_tokens", "model.norm", "model.layers"}  # names of weights look like keys
OWN_FILE = re.compile(r"^templates/configs|/my_")
COMMAND = re.compile(r"^(?:\$ )?(?:\S*/)?forge (.+)")


def text_of(page):
    return page.read_text(encoding="utf-8")


def without_code_blocks(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors_of(page):
    """The anchors that GitHub gives the page's headings."""
    headings = re.findall(r"^#+ +(.+)$", without_code_blocks(text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code_of(text):
    """Every line of a code block and every piece of inline code."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip()
        else:
            yield from INLINE_CODE.findall(line)


def commands_of(text):
    """Every call of forge in the page's code, as a list of words."""
    for code in code_of(text):
        for part in re.split(r"&&|\|\|?|;|<\(", re.sub(r"\s#.*", "", code)):
            match = COMMAND.match(part.strip())
            if match:
                yield re.sub(r"\s{2,}.*", "", match.group(1)).split()  # two blanks begin a remark


@functools.lru_cache(maxsize=None)
def options_of(command):
    """The options of a command, such as "runs logs"; None if there is no such command."""
    done = subprocess.run([FORGE, *command.split(), "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0 or f"Usage: forge {command}".strip() not in done.stdout:
        return None
    lines = re.findall(r"^ {2,6}(-.*)$", done.stdout, re.MULTILINE)
    return {option for line in lines for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line.split("  ")[0])}


def problems_of(words, declared):
    """What is wrong with one call of forge."""
    if words[0] in ("-p", "-t"):
        words = words[2:]
    if not words or not re.fullmatch(r"[a-z][a-z-]*", words[0]):
        return
    command = words[0]
    if len(words) > 1 and re.fullmatch(r"[a-z][a-z-]*", words[1]) and options_of(" ".join(words[:2])) is not None:
        command = " ".join(words[:2])
    known = options_of(command)
    if known is None:
        yield f"no command 'forge {command}'"
        return
    if "--" in words:
        words = words[:words.index("--")]
    for word in words:
        option = word.split("=")[0].strip("[]")
        if re.fullmatch(r"--[a-z][a-z-]*", option) and option not in known | declared | options_of(""):
            yield f"'forge {command}' has no option {option}"


def template_arguments():
    """Options that configs of the shipped projects, and examples of the pages, declare for themselves."""
    files = [*PAGES, *(file for folder in ("templates", "projects") for file in (ROOT / folder).rglob("*.yaml"))]
    return {option for file in files for option in re.findall(r"names:.*?(--[a-z][a-z-]*)", text_of(file))}


class Pages(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        broken = []
        for page in PAGES:
            for target in LINK.findall(without_code_blocks(text_of(page))):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                file = (page.parent / name).resolve() if name else page
                if not file.exists():
                    broken.append(f"{page.relative_to(ROOT)}: no file {target}")
                elif anchor and anchor not in anchors_of(file):
                    broken.append(f"{page.relative_to(ROOT)}: no heading {target}")
        self.assertFalse(broken, "\n".join(["", *broken]))

    def test_named_files_exist(self):
        missing = []
        for page in OWN_PAGES:
            for code in INLINE_CODE.findall(without_code_blocks(text_of(page))):
                path = code.split(" ")[0].rstrip("/")
                if not PATH.fullmatch(path) or OWN_FILE.search(path):
                    continue
                if not (ROOT / path).exists() and not (page.parent / path).exists():
                    missing.append(f"{page.relative_to(ROOT)}: no file {path}")
        self.assertFalse(missing, "\n".join(["", *missing]))

    def test_sources_that_a_room_names_are_in_it(self):
        missing = [f"{page.relative_to(ROOT)}: no {name} in this room"
                   for page in PAGES if page.relative_to(ROOT).parts[0] in ("core", "backends")
                   for name in re.findall(r"`([a-z_]+\.(?:h|cpp))`", text_of(page)) if not any(page.parent.rglob(name))]
        self.assertFalse(missing, "\n".join(["", *missing]))

    def test_keys_are_those_of_a_config(self):
        listed = subprocess.run([FORGE, "keys"], stdout=subprocess.PIPE, check=True, text=True).stdout
        keys = set(re.findall(r"^[a-z_.]+", listed, re.MULTILINE))
        sections = {key.rsplit(".", depth)[0] for key in keys for depth in range(1, key.count(".") + 1)}
        wrong = []
        for page in OWN_PAGES:
            for code in code_of(text_of(page)):
                for key in re.findall(r"(?<![\w./<-])((?:%s)\.[a-z_.]*[a-z_])(?![\w<.(/-])" % "|".join(SECTIONS), code):
                    if key not in keys | sections | WEIGHTS and not key.startswith(("data.sources.", "model.blocks.")) and not OTHER_FILE.search(key):
                        wrong.append(f"{page.relative_to(ROOT)}: no key {key}")
        self.assertFalse(wrong, "\n".join(["", *wrong]))

    def test_commands_and_options_are_those_of_the_program(self):
        declared = template_arguments()
        wrong = [f"{page.relative_to(ROOT)}: {problem}"
                 for page in OWN_PAGES for words in commands_of(text_of(page))
                 for problem in problems_of(words, declared)]
        self.assertFalse(wrong, "\n".join(["", *wrong]))


def commands_with_help():
    """Every command, with the examples of its help."""
    page = subprocess.run([FORGE, "man"], stdout=subprocess.PIPE, check=True, text=True).stdout.replace("\\", "")
    for command in ["", *re.findall(r"^\.SS forge (.+)$", page, re.MULTILINE)]:
        text = subprocess.run([FORGE, *command.split(), "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout
        part = re.search(r"^Examples:\n((?:  .*\n)+)", text, re.MULTILINE)
        for line in part.group(1).splitlines() if part else ():
            yield command, re.split(r"\s{2,}| \| | > ", line.strip())[0]  # two blanks begin a remark


# Commands that read templates and configs alone, and answer at once.
CHEAP = "arguments check diff explain graph index keys ls meta model pp show targets tlist trefs".split()
# What an example needs that a fresh clone does not have: a run, and a config of Forgather's.
OWN = re.compile(r"-[0-9a-f]{4,}$|^my_config$")


class Examples(unittest.TestCase):
    def test_options_are_those_of_the_program(self):
        declared = template_arguments()
        wrong = [f"forge {command} --help: {problem}" for command, example in commands_with_help()
                 for problem in problems_of(shlex.split(example)[1:], declared)]
        self.assertFalse(wrong, "\n".join(["", *wrong]))

    def test_cheap_ones_work_in_a_fresh_clone(self):
        wrong = []
        with tempfile.TemporaryDirectory() as empty:
            for command, example in commands_with_help():
                words = shlex.split(example)[1:]
                written = {"-o", "--output"} & set(words)
                if command not in CHEAP or written or any(OWN.search(word) for word in words):
                    continue
                done = subprocess.run([FORGE, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env={**os.environ, "FORGE_RUNS_DIR": empty + "/runs"})
                if done.returncode not in ((0, 1) if command in ("diff", "check") else (0,)):
                    wrong.append(f"forge {command} --help: {example}: {done.stderr}")
        self.assertFalse(wrong, "\n".join(["", *wrong]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forge", default=FORGE, help="the program")
    known_arguments, rest = parser.parse_known_args()
    FORGE = known_arguments.forge
    unittest.main(argv=[sys.argv[0], *rest])
