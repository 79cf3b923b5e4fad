"""Random trees of templates: one main template, what it extends, includes and imports."""

from grammar import literals
from grammar.expressions import BOOL, DICT, FLOAT, INT, LIST, STR, TEXTS
from grammar.statements import Statements

VARIABLES = {"n": 7, "f": 2.5, "s": "xay b", "u": "ü日😀", "flag": True}
SCOPE = [("n", INT), ("f", FLOAT), ("s", STR), ("u", STR), ("flag", BOOL)]
PREAMBLE = (
    "{% set ns = namespace(k='na', m=1) %}{% set lst = [3, 1, 2] %}{% set dct = {'a': 1, 'k': 'v'} %}"
    "{% set words = ['b', 'a', 'C'] %}")
PREAMBLE_SCOPE = [("lst", LIST), ("dct", DICT), ("words", TEXTS)]
BLOCKS = ["a", "b", "c", "d"]
MARKERS = ["\n#--- %s ---\n", "\n# ----- %s -----\n", "\n#---%s---\n", "\n#--- %s --- \n"]


def _maker(random, templates, has_parent=False):
    maker = Statements(random)
    maker.has_parent = has_parent
    maker.scope = SCOPE + PREAMBLE_SCOPE
    maker.templates = templates
    return maker


def _library(random):
    maker = _maker(random, [])
    text = PREAMBLE + "{% set x = 'lib' %}{% set _hidden = 1 %}"
    return text + "".join(maker.macro(1) for _ in range(2)) + maker.body(1)


def _part(random):
    """A template that is only included."""
    return _maker(random, []).body(2)


def _base(random, parent):
    maker = _maker(random, [], bool(parent))
    text = f"{{% extends '{parent}' %}}" if parent else PREAMBLE
    for name in random.sample(BLOCKS, random.randrange(1, 5)):
        roll = random.random()
        if roll < 0.05 and not parent:
            text += "{% block " + name + " required %} {% endblock %}"
        else:
            maker.blocks = [name]
            if roll < 0.4:
                text += maker.header(1)
            else:
                text += maker.block(2)
        text += maker.body(1, 1)
    return text


def _main(random, maker, parent):
    if not parent:
        maker.blocks = random.sample(BLOCKS, random.randrange(3))
        return PREAMBLE + maker.body(3, random.randrange(2, 8))
    text = PREAMBLE if random.random() < 0.8 else ""
    name = f"'{parent}'" if random.random() < 0.85 else f"('{parent}' if flag else 'nope')"
    text += maker.tag(f"extends {name}")
    if random.random() < 0.1:
        text = f"{{% if {maker.expression(BOOL, 1)} %}}{text}{{% endif %}}"
    maker.blocks = random.sample(BLOCKS, random.randrange(1, 5))
    while maker.blocks:
        text += maker.block(2) if random.random() < 0.6 else maker.header(1) + maker.body(1, 1)
        text += maker.set_(1) if random.random() < 0.2 else ""
    return text


def _mutated(random, text):
    """The text with one small damage, so that errors are compared as well."""
    at = random.randrange(len(text) + 1)
    roll = random.random()
    if roll < 0.4:
        return text[:at] + text[at + random.randrange(1, 4):]
    if roll < 0.8:
        return text[:at] + random.choice(["%}", "{%", "{{", "}}", "-", "(", ")", "'", "|", ".", "x", "\n",
                                          "{#", ",", " ", "1", "[", "]", "if ", ":", "=", "~"]) + text[at:]
    return text[:at] + text[at:at + 8] + text[at:]


def tree(random):
    """A case for the templating stage."""
    files = {"part": _part(random), "lib": _library(random), "dir/part2": _part(random)}
    parent = None
    if random.random() < 0.5:
        files["base"] = _base(random, None)
        parent = "base"
        if random.random() < 0.4:
            files["middle"] = _base(random, "base")
            parent = "middle"
    maker = _maker(random, ["part", "lib", "dir/part2"], bool(parent))
    files["main"] = _main(random, maker, parent)
    if random.random() < 0.2:  # a template inside another's file
        moved = random.choice([name for name in files if name != "main"])
        marker = random.choice(MARKERS) % moved
        files["main"] += marker + files.pop(moved)
    if random.random() < 0.08:
        damaged = random.choice(sorted(files))
        files[damaged] = _mutated(random, files[damaged])
    used = "".join(files.values())
    files = {name: text for name, text in files.items() if name == "main" or name in used}
    return {"kind": "render", "files": files, "main": "main", "variables": VARIABLES}


def expression(random):
    """One printed expression: errors in one do not hide those of others."""
    maker = _maker(random, [])
    text = PREAMBLE + "{{ " + maker.expression(None, 4) + " }}"
    if random.random() < 0.03:
        text = _mutated(random, text)
    return {"kind": "render", "files": {"main": text}, "main": "main", "variables": VARIABLES}


def lines(random):
    """A text for the line preprocessor alone."""
    pieces = ["--", "<<", ">>", "==", "=>", " ", "  ", "\t", "##", "#", "a", "b c", "[a]", "[b!]", "[a.b]",
              "[1]", "!", "\n", "\n", "\n", "\r\n", "\r", "{% x %}", "'", "\u00a0", "\u2028", "\v", "é",
              "[é]", "[a!!]", "-", "x ## y", "\x1c", "\x85", "\u3000"]
    text = "".join(random.choice(pieces) for _ in range(random.randrange(1, 25)))
    return {"kind": "lines", "text": text}


def split(random):
    """A file for the cutting at markers alone."""
    pieces = ["\n", "\n", "#", "---", "----", "--", " ", "a", "a.b", "x/y", "é", "a-b", "\t", "\n#--- n ---\n",
              "\u00a0", "\n\n", "_1", "²", "٣", "text"]
    text = "".join(random.choice(pieces) for _ in range(random.randrange(1, 25)))
    return {"kind": "split", "text": text}
