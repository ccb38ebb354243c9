"""The files of a checkpoint, in the layouts of torch.save and safetensors, without torch.

Source: zip layout of torch.save (stored members, data descriptors, ``data.pkl`` in protocol 2 with
persistent ids for storages); safetensors (8-byte length, JSON header, raw tensors).
"""

import collections
import hashlib
import io
import json
import math
import pickle
import struct
import sys
import types
import zipfile
from array import array

_WORDS = {"d": ("DoubleStorage", 8), "B": ("ByteStorage", 1), "f": ("FloatStorage", 4)}


def _stand_in(module, name, what):
    """Something that pickle writes as ``module.name`` although torch is not here."""
    if module not in sys.modules:
        sys.modules[module] = types.ModuleType(module)
    what.__module__, what.__name__, what.__qualname__ = module, name, name
    setattr(sys.modules[module], name, what)
    return what


def _rebuild(storage, offset, size, stride, *_):
    """What loading a tensor gives: its numbers."""
    del stride
    return Tensor(storage.typecode, list(storage[offset : offset + math.prod(size)]), tuple(size))


class Tensor:
    """Numbers with a shape; ``code`` is that of the array module."""

    def __init__(self, code, values, shape):
        self.code, self.values, self.shape = code, values, shape

    def __eq__(self, other):
        return (self.code, self.values, self.shape) == (other.code, other.values, other.shape)

    __hash__ = None


class _Storage:
    """A tensor's bytes while it is being pickled."""

    def __init__(self, code, values):
        self.code, self.values = code, values


class _Pickler(pickle.Pickler):
    def __init__(self, file, kinds, rebuild):
        super().__init__(file, protocol=2)
        self.storages, self._kinds, self._rebuild = [], kinds, rebuild

    def persistent_id(self, item):
        if not isinstance(item, _Storage):
            return None
        self.storages.append(item)
        key = str(len(self.storages) - 1)
        return ("storage", self._kinds[item.code], key, "cpu", len(item.values))

    def reducer_override(self, item):
        if not isinstance(item, Tensor):
            return NotImplemented
        stride, step = [], 1
        for n in reversed(item.shape):
            stride.insert(0, step)
            step *= n
        storage = _Storage(item.code, item.values)
        empty = collections.OrderedDict()
        return (self._rebuild, (storage, 0, item.shape, tuple(stride), False, empty))


class _OneWay(io.RawIOBase):
    """A stream that cannot seek: zipfile then writes data descriptors, as torch does."""

    def __init__(self):
        self.parts = []

    def writable(self):
        return True

    def write(self, data):
        self.parts.append(bytes(data))
        return len(data)


def dump(value, stem):
    """The bytes of ``torch.save(value)`` to a file whose name without ending is ``stem``."""
    saved = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    try:
        kinds = {c: _stand_in("torch", n, type(n, (), {})) for c, (n, _) in _WORDS.items()}
        rebuild = _stand_in("torch._utils", "_rebuild_tensor_v2", types.FunctionType(
            _rebuild.__code__, _rebuild.__globals__))  # fmt: skip
        text = io.BytesIO()
        pickler = _Pickler(text, kinds, rebuild)
        pickler.dump(value)
    finally:
        for name, module in saved.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
    content = [array(s.code, s.values).tobytes() for s in pickler.storages]
    digest = hashlib.sha256(text.getvalue() + b"".join(content)).hexdigest()
    members = [("data.pkl", text.getvalue()), (".format_version", b"1"),
               (".storage_alignment", b"64"), ("byteorder", sys.byteorder.encode())]  # fmt: skip
    members += [(f"data/{k}", data) for k, data in enumerate(content)]
    mark = str(int(digest[:32], 16)).zfill(40)[:40].encode()
    members += [("version", b"3\n"), (".data/serialization_id", mark)]
    out = _OneWay()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for name, data in members:
            info = zipfile.ZipInfo(f"{stem}/{name}", (1980, 1, 1, 0, 0, 0))
            file.writestr(info, data)
    return b"".join(out.parts)


class _Unpickler(pickle.Unpickler):
    """Knows tensors and nothing else: a checkpoint cannot run code here."""

    def __init__(self, text, read):
        super().__init__(io.BytesIO(text))
        self._read = read

    def find_class(self, module, name):
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        for code, (storage, _) in _WORDS.items():
            if (module, name) == ("torch", storage):
                return code
        raise pickle.UnpicklingError(f"{module}.{name} does not belong in a checkpoint")

    def persistent_load(self, mark):
        _, code, key, _, _ = mark
        storage = array(code)
        storage.frombytes(self._read(key))
        return storage


def load(path):
    """The value that `dump` was given.

    Raises:
        zipfile.BadZipFile: the file is torn.
    """
    with zipfile.ZipFile(path) as file:
        stem = file.namelist()[0].split("/")[0]
        text = file.read(f"{stem}/data.pkl")
        return _Unpickler(text, lambda key: file.read(f"{stem}/data/{key}")).load()


def dump_safetensors(tensors, shapes):
    """The bytes of a safetensors file of double numbers."""
    header, at, content = {"__metadata__": {"format": "pt"}}, 0, []
    for name, values in tensors.items():
        data = array("d", values).tobytes()
        header[name] = {"dtype": "F64", "shape": list(shapes[name]),
                        "data_offsets": [at, at + len(data)]}  # fmt: skip
        at += len(data)
        content.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(content)


def load_safetensors(path):
    """Numbers by name.

    Raises:
        ValueError: the file is torn.
    """
    with open(path, "rb") as file:
        content = file.read()
    if len(content) < 8:
        raise ValueError(f"{path}: too short for a safetensors file")
    (n,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + n])
    header.pop("__metadata__", None)
    out = {}
    for name, about in header.items():
        start, end = about["data_offsets"]
        values = array("d")
        values.frombytes(content[8 + n + start : 8 + n + end])
        if len(values) != math.prod(about["shape"]):
            raise ValueError(f"{path}: {name} is cut short")
        out[name] = list(values)
    return out
