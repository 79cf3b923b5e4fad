#!/usr/bin/python3
"""Writes the inputs that fuzzing begins with: write_seeds.py FOLDER makes FOLDER/TARGET/… from the
recorded cases of tests/golden and the shipped templates."""
import hashlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def cases(name):
    return json.loads((ROOT / "tests" / "golden" / name).read_text())


def templates():
    for expression, *_ in cases("jinja_cases.json")["expressions"]:
        yield "{{ " + expression + " }}"
    for name in ("jinja_cases.json", "template_cases.json"):
        recorded = cases(name)
        for case in recorded.get("templates", []) + recorded.get("render", []):
            # A case of several files becomes one file with inline templates.
            files = dict(case["files"])
            text = files.pop(case.get("main", "main"))
            yield text + "".join(f"\n#--- {other} ---\n{files[other]}" for other in files)
    for folder in ("templates", "projects"):
        for path in (ROOT / folder).rglob("*.yaml"):
            yield path.read_text()


def documents():
    for text, _ in cases("yaml_cases.json")["cases"]:
        yield text
    for path in (ROOT / "projects").rglob("tables/*.yaml"):
        yield path.read_text()


def protocol_lines():
    """The lines that docs/PROTOCOL.md shows, each as one that arrives in one piece."""
    for line in (ROOT / "docs" / "PROTOCOL.md").read_text().splitlines():
        if line.startswith("{") and line.endswith("}"):
            yield "\x07" + line + "\n"


def main():
    for target, texts in (("protocol_fuzz", protocol_lines()), ("templates_fuzz", templates()),
                          ("yaml_fuzz", documents())):
        folder = Path(sys.argv[1]) / target
        folder.mkdir(parents=True, exist_ok=True)
        for text in texts:
            content = text.encode("utf-8", "surrogatepass")
            (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)


main()
