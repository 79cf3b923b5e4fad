"""Rows of token files: docs/PROTOCOL.md, "Token files" and "The order of rows"."""
import struct

import numpy as np

from numbers_by_counter import permuted_index, stream_number
from protocol import WrongRequest

HEADER = struct.Struct("<8sIIQQ16s16s8s")
UNSCORED = -100


class TokenFile:
    def __init__(self, path):
        with open(path, "rb") as file:
            head = file.read(HEADER.size)
        if len(head) < HEADER.size:
            raise WrongRequest(f"'{path}' ends within its header")
        magic, version, width, count, documents, *_ = HEADER.unpack(head)
        if magic != b"forgetok" or version != 2 or width not in (2, 4):
            raise WrongRequest(f"'{path}' is no token file of version 2")
        places = (HEADER.size + count * width + 7) // 8 * 8
        whole = np.memmap(path, np.uint8, "r")
        if places + 8 * documents > whole.size:
            raise WrongRequest(f"'{path}' is cut off")
        end = HEADER.size + count * width
        self.ids = whole[HEADER.size:end].view(np.uint16 if width == 2 else np.int32)
        self.starts = whole[places:places + 8 * documents].view(np.uint64)

    def document(self, number):
        first = int(self.starts[number])
        last = number + 1 == len(self.starts)
        return self.ids[first:len(self.ids) if last else int(self.starts[number + 1])]


class Rows:
    """Inputs and targets of one token file by their position: how many rows were served before."""

    def __init__(self, sources, experiment, shuffled):
        if len(sources) != 1 or not sources[0].get("path"):
            raise WrongRequest("rows come from one token file", "data.source",
                               "mixtures and tasks are for libtorch")
        source = sources[0]
        self.file = TokenFile(source["path"])
        self.seq_len = experiment["train"]["seq_len"]
        self.pad = source.get("pad_id")
        short = source.get("short_last_row", False)
        targets = max(0, len(self.file.ids) - 1)
        held = (len(self.file.starts) if self.pad is not None else
                (targets + (self.seq_len - 1 if short else 0)) // self.seq_len)
        self.first = source.get("first_row", 0)
        self.count = source["rows"] or held - self.first
        if not 0 < self.count <= held - self.first:
            raise WrongRequest(f"'{source['path']}' holds {held} rows, not {self.first} + {source['rows']}")
        order_seed = experiment["data"].get("order_seed")
        self.seed = experiment["seed"] if order_seed is None else order_seed
        self.shuffled = shuffled
        name = source.get("name", "")
        self.stream = stream_number("rows of " + name if name else "rows")

    def row_at(self, position):
        epoch, row = divmod(position, self.count)
        if not self.shuffled:
            return self.first + row
        stream = (self.stream + epoch) & 0xFFFFFFFFFFFFFFFF
        return self.first + permuted_index(row, self.count, self.seed, stream)

    def batch(self, position, count):
        """int64 inputs and targets [count, seq_len]; a target that is not scored is -100."""
        inputs = np.full((count, self.seq_len), self.pad or 0, np.int64)
        targets = np.full((count, self.seq_len), UNSCORED, np.int64)
        for i in range(count):
            row = self.row_at(position + i)
            if self.pad is not None:
                ids = self.file.document(row)[:self.seq_len]
                inputs[i, :len(ids)] = ids
            else:
                first = row * self.seq_len
                ids = self.file.ids[first:first + self.seq_len + 1]
                inputs[i, :len(ids) - 1] = ids[:-1]
            targets[i, :len(ids) - 1] = ids[1:]
        return inputs, targets
