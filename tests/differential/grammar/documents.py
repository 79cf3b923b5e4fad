"""Random YAML documents, as configs are written."""

import re

# Left out on purpose, because yaml-cpp's scanner has it otherwise and no config needs it: the lone
# tag "!" (PyYAML then reads even a quoted scalar as a plain one), tags with ',' or '[' or %-escapes
# or a handle, a tag alone as the whole document, '?' without a key, and U+0085, U+2028 and U+2029,
# which PyYAML takes for line breaks.
SCALARS = [
    "1", "-7", "0", "010", "0x1F", "0b11", "1_000", "1:30", "1.5", "1e-3", "1.0e-3", "1.e+3", ".5", "-.inf",
    ".nan", "yes", "no", "on", "Off", "true", "False", "~", "null", "", "abc", "a b", "a: b", "'q'", '"dq"',
    "'it''s'", '"a\\tb\\u00e9"', "# c", "a # c", "a#b", "2024-01-02", "é", "日本", "/path/x.yaml:Attr",
    "a:b", "x-y", "- a", "a, b", "[1, 2]", "{a: 1}", "{a: 1, b: [x, 'y']}", "[]", "{}", "!var 'x'",
    "!call:torch.optim:AdamW", "!var x", "!tuple [1, 2]", "!dlist {a: 1, b: ~}", "!call:m:f {a: 1}",
    "!singleton:a.b:C@name [1]", "!dict@n {a: 1}", "08", "0o7", "1e5", "12e03", "+1", "=", "'<<'", "!!str 1",
    "!!int '3'", "!!float 1", "`a", "@a", "%a", "a%b", "\"a\nb\"", "? a", "a ? b", "1.0", "6.", "1.2.3",
    "190:20:30", "0.1e-1", "1e+3", "-", "--", "---", "...", "{a, b: }", "[a: 1, b]", "'a' b", "\"\\x41\"",
]
KEYS = ["a", "b", "c", "lr", "name", ".define", ".h", "1", "yes", "'q'", "\"d\"", "x y", "~", "1.5", "a.b", "é", "on"]
TAGS = ["!call:m:f", "!factory:m:g", "!partial:m:h@id", "!dlist", "!list", "!dict", "!tuple", "!var", "!singleton:a:b"]


class Documents:
    def __init__(self, random):
        self.random = random
        self.anchors = []

    def _pick(self, choices):
        return self.random.choice(choices)

    def scalar(self):
        return self._pick(SCALARS)

    def _anchor(self):
        if self.random.random() > 0.15:
            return ""
        name = self._pick(["x", "y", "base", "a_1", f"n{len(self.anchors)}"])
        self.anchors.append(name)
        return f"&{name} "

    def value(self, indent, depth):
        """What stands behind 'key:' or '-', with its newline."""
        roll = self.random.random()
        if self.anchors and roll < 0.08:
            return f" *{self._pick(self.anchors)}\n"
        properties = self._anchor() + (self._pick(TAGS) + " " if self.random.random() < 0.1 else "")
        if depth <= 0 or roll < 0.5:
            return f" {properties}{self.scalar()}{self._pick(['', '', '', ' # comment'])}\n"
        if roll < 0.58:
            return self.block_scalar(indent)
        if roll < 0.64:
            return f" {properties}first line\n{indent}  second line\n"
        if roll < 0.72:
            return f" {properties}{self.flow(2)}\n"
        nested = self.mapping if roll < 0.88 else self.sequence
        return f" {properties}".rstrip() + "\n" + nested(indent + self._pick(["  ", "  ", "    ", " "]), depth - 1)

    def block_scalar(self, indent):
        lines = [self._pick(["text", "", "  more", "# no comment", "a: b", "é"]) for _ in range(self.random.randrange(4))]
        body = "".join(f"{indent}  {line}\n" if line else "\n" for line in lines)
        return f" {self._pick(['|', '>', '|-', '>-', '|+', '>+', '|2'])}\n{body}"

    def flow(self, depth):
        if depth <= 0 or self.random.random() < 0.3:
            return self._pick(["1", "a", "'q'", "x y", "1.5", "~", "yes", "", "a:b"])
        items = [self.flow(depth - 1) for _ in range(self.random.randrange(4))]
        if self.random.random() < 0.5:
            return "[" + ", ".join(items) + self._pick(["", "", ","]) + "]"
        return "{" + ", ".join(f"{self._pick(KEYS)}: {item}" for item in items) + "}"

    def mapping(self, indent, depth):
        text = ""
        for _ in range(self.random.randrange(1, 5)):
            if self.random.random() < 0.05:
                text += self._pick(["\n", f"{indent}# comment\n", "# comment\n", "  \n"])
            if self.anchors and self.random.random() < 0.1:
                merged = self._pick(self.anchors)
                text += f"{indent}<<: " + self._pick([f"*{merged}", f"[*{merged}, *{self._pick(self.anchors)}]", "{a: 9, z: 1}"]) + "\n"
            text += f"{indent}{self._pick(KEYS)}:" + self.value(indent, depth)
        return text

    def sequence(self, indent, depth):
        return "".join(f"{indent}-" + self.value(indent + " ", depth) for _ in range(self.random.randrange(1, 4)))


# Tags and directives that only a mutation makes; see what is left out above.
STRANGE = re.compile(r"!(?![a-z!])|!\w*[\[{\"#,]|^%(?!YAML)|&(?!\w+\s)|[|>]#|[\[,{]\s*:", re.M)


def document(random):
    maker = Documents(random)
    roll = random.random()
    if roll < 0.15:
        text = "a: " + maker.scalar()
    elif roll < 0.25:
        text = maker.flow(3)
    elif roll < 0.3:
        text = maker.sequence("", 2)
    else:
        text = maker.mapping("", 3)
    if random.random() < 0.05:
        text = random.choice(["---\n", "# head\n", "\n", "%YAML 1.1\n---\n", "---\n---\n"]) + text
    if random.random() < 0.05:
        text += random.choice(["...\n", "---\n", "# tail", "\n\n", "...\na: 1\n"])
    if random.random() < 0.05 and text:
        at = random.randrange(len(text))
        mutated = text[:at] + random.choice(["", ":", " ", "\t", "[", "}", "'", "\"", "-", "#", "&", "*", ",", "\n"]) + text[at + random.randrange(2):]
        text = text if STRANGE.search(mutated) else mutated
    return {"kind": "yaml", "text": text}
