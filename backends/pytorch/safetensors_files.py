"""Reads and writes safetensors: eight bytes of length, a JSON header, the tensors' bytes."""
import json
import os
import struct

import torch

DTYPES = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16,
          "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
ALIGNMENT = 64
LARGEST_HEADER = 100_000_000


def write(path, tensors):
    """Writes a dictionary of names and tensors, synced; returns the number of bytes."""
    header, offset, kept = {}, 0, []
    for name, tensor in tensors.items():
        values = tensor.detach().cpu().contiguous()
        size = values.numel() * values.element_size()
        header[name] = {"dtype": NAMES[values.dtype], "shape": list(values.shape),
                        "data_offsets": [offset, offset + size]}
        offset += size
        kept.append(values)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in kept:
            # NumPy has no bfloat16: its bytes are those of a number of 16 bits.
            flat = values.view(-1).view(torch.int16) if values.dtype == torch.bfloat16 else values.view(-1)
            file.write(memoryview(flat.numpy()).cast("B"))
        file.flush()
        os.fsync(file.fileno())
    return 8 + len(text) + offset


def read(path):
    """The tensors of a file by name, on the CPU."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    length = struct.unpack_from("<Q", data)[0]
    if length > min(LARGEST_HEADER, len(data) - 8):
        raise ValueError(f"'{path}' is no safetensors file")
    begin = 8 + length
    tensors = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        if not 0 <= first <= last <= len(data) - begin:
            raise ValueError(f"'{name}' lies outside of '{path}'")
        count = (last - first) // torch.empty(0, dtype=dtype).element_size()
        flat = torch.frombuffer(data, dtype=dtype, count=count, offset=begin + first) if count else (
            torch.empty(0, dtype=dtype))
        tensors[name] = flat.reshape(entry["shape"])
    return tensors
