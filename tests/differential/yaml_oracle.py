"""What the original reads from a YAML text: PyYAML's SafeLoader with Forgather's additions.

Repeated keys override, `<<` merges mappings of any tag, tags of one's own are kept as data, names
that begin with '.' are left out at the root. Values without a place in a config (dates, sets,
bytes …) are errors.
"""

import yaml
from yaml.constructor import ConstructorError, SafeConstructor


class _Constructor(SafeConstructor):
    pass


def _notation(node, constructor, path=()):
    """The notation of forge_answers.cpp for a composed node."""
    if node in path:
        raise ConstructorError(None, None, "a node that contains itself", node.start_mark)
    path = path + (node,)
    standard = node.tag.startswith("tag:yaml.org,2002:")
    if isinstance(node, yaml.SequenceNode):
        if standard and node.tag != "tag:yaml.org,2002:seq":
            raise ConstructorError(None, None, f"unsupported {node.tag}", node.start_mark)
        value = [_notation(item, constructor, path) for item in node.value]
    elif isinstance(node, yaml.MappingNode):
        if standard and node.tag != "tag:yaml.org,2002:map":
            raise ConstructorError(None, None, f"unsupported {node.tag}", node.start_mark)
        constructor.flatten_mapping(node)
        entries = {}
        for key, entry in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConstructorError(None, None, "a key is no scalar", key.start_mark)
            scalar = _scalar(key, constructor)
            identity = (type(scalar), scalar) if isinstance(scalar, str) else scalar
            text, is_string = key.value, isinstance(scalar, str)
            entries[identity] = [text, is_string, _notation(entry, constructor, path)]
        value = {"m": list(entries.values())}
    else:
        value = _scalar_notation(node, constructor) if standard else node.value or None
    return value if standard else {"t": node.tag, "v": value}


def _scalar(node, constructor):
    if not node.tag.startswith("tag:yaml.org,2002:"):
        return node.value
    return constructor.construct_object(node)


def _scalar_notation(node, constructor):
    value = _scalar(node, constructor)
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"i": value}
    if isinstance(value, float):
        return {"f": repr(value)}
    raise ConstructorError(None, None, f"unsupported {type(value)}", node.start_mark)


def load(text):
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        value = _notation(root, loader)
    finally:
        loader.dispose()
    if isinstance(root, yaml.MappingNode):
        entries = value["v"] if "t" in value else value
        entries["m"] = [e for e in entries["m"] if not (e[1] and e[0].startswith("."))]
    return value
