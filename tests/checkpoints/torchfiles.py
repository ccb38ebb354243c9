"""Writers of the files that training frameworks leave, byte for byte in their format; stdlib only.

Source: torch 2.13 (`torch.save`, new and old format; `torch.distributed.checkpoint`), the
safetensors format description, PKWARE APPNOTE 6.3 for the zip records.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

ITEM = {"Float": ("f", 4), "Long": ("q", 8), "Byte": ("B", 1), "BFloat16": ("H", 2)}


@dataclass
class Tensor:
    """Numbers of one kind and their shape."""

    kind: str
    data: bytes
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.data) // ITEM[self.kind][1]


@dataclass
class Made:
    """An object of a class that the pickle names: arguments, then a state."""

    module: str
    name: str
    args: tuple[Any, ...] = ()
    state: Any = None


def floats(count: int, seed: int) -> bytes:
    """Bytes that look like weights: never a zero page, the same for the same seed."""
    block = b"".join(
        struct.pack("<f", ((seed * 7919 + i * 104729) % 20011 + 1) / 20011.0) for i in range(2048)
    )
    return (block * (count // 2048 + 1))[: count * 4]


def tensor(count: int, seed: int, *, shape: tuple[int, ...] | None = None) -> Tensor:
    return Tensor("Float", floats(count, seed), shape or (count,))


def scalar(value: float, kind: str = "Float") -> Tensor:
    return Tensor(kind, struct.pack("<" + ITEM[kind][0], value), ())


@dataclass
class Pickled:
    """A protocol-2 pickle as torch writes it; tensors go to ``storages``."""

    legacy: bool = False
    out: bytearray = field(default_factory=lambda: bytearray(b"\x80\x02"))
    storages: list[Tensor] = field(default_factory=list)

    def dump(self, value: Any) -> bytes:
        self._put(value)
        return bytes(self.out) + b"."

    def _put(self, value: Any) -> None:
        if value is None or isinstance(value, bool):
            self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        elif isinstance(value, int):
            self._int(value)
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            raw = value.encode()
            self.out += b"X" + struct.pack("<I", len(raw)) + raw
        elif isinstance(value, dict):
            self._dict(value)
        elif isinstance(value, list | tuple):
            self.out += b"(" if isinstance(value, tuple) else b"]("
            for one in value:
                self._put(one)
            self.out += b"t" if isinstance(value, tuple) else b"e"
        elif isinstance(value, Tensor):
            self._tensor(value)
        else:
            self._made(value)

    def _int(self, value: int) -> None:
        if -(2**31) <= value < 2**31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            raw = value.to_bytes(9, "little", signed=True)
            self.out += b"\x8a\x09" + raw

    def _dict(self, value: dict[Any, Any]) -> None:
        self.out += b"}("
        for key, one in value.items():
            self._put(key)
            self._put(one)
        self.out += b"u"

    def _global(self, module: str, name: str) -> None:
        self.out += b"c" + f"{module}\n{name}\n".encode()

    def _tensor(self, value: Tensor) -> None:
        key = str(len(self.storages))
        self.storages.append(value)
        self._global("torch._utils", "_rebuild_tensor_v2")
        self.out += b"(("
        self._put("storage")
        self._global("torch", f"{value.kind}Storage")
        for one in (key, "cpu", value.count, *((None,) if self.legacy else ())):
            self._put(one)
        self.out += b"tQ"
        self._put(0)
        self._put(value.shape)
        self._put(tuple(1 for _ in value.shape))
        self._put(False)
        self._global("collections", "OrderedDict")
        self.out += b")Rt"  # the hooks, then the arguments
        self.out += b"R"

    def _made(self, value: Made) -> None:
        self._global(value.module, value.name)
        self._put(value.args)
        self.out += b"\x81"
        if value.state is not None:
            self._put(value.state)
            self.out += b"b"


def torch_zip(value: Any, *, crc: bool = True, top: str = "archive") -> bytes:
    """`torch.save`: stored members aligned to 64, data descriptors, zip64 end records."""
    pickled = Pickled()
    members = {"data.pkl": pickled.dump(value), "byteorder": b"little"}
    members.update({f"data/{i}": t.data for i, t in enumerate(pickled.storages)})
    members["version"] = b"3\n"
    digest = hashlib.sha1(b"".join(members.values()), usedforsecurity=False).hexdigest()
    members[".data/serialization_id"] = (str(int(digest, 16)) * 2)[:40].encode()
    return zip_bytes({f"{top}/{name}": data for name, data in members.items()}, crc=crc)


def zip_bytes(members: dict[str, bytes], *, crc: bool = True) -> bytes:
    out, directory = bytearray(), bytearray()
    for name, data in members.items():
        raw, at = name.encode(), len(out)
        check = zlib.crc32(data) if crc else 0
        pad = -(at + 30 + len(raw) + 4) % 64
        extra = struct.pack("<2sH", b"FB", pad) + b"Z" * pad
        head = struct.pack("<4s5H3I2H", b"PK\3\4", 0, 0x808, 0, 0, 0, 0, 0, 0, len(raw), len(extra))
        out += head + raw + extra + data
        out += struct.pack("<4s3I", b"PK\7\x08", check, len(data), len(data))
        sizes = (check, len(data), len(data), len(raw), 0, 0, 0, 0, 0, at)
        directory += struct.pack("<4s6H3I5H2I", b"PK\1\2", 0, 0, 0x808, 0, 0, 0, *sizes) + raw
    start, count = len(out), len(members)
    out += directory
    zip64 = struct.pack(
        "<4sQ2H2I4Q", b"PK\6\6", 44, 30, 45, 0, 0, count, count, len(directory), start
    )
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(directory), start, 0)
    return bytes(out) + zip64 + struct.pack("<4sIQI", b"PK\6\7", 0, len(out), 1) + end


def torch_legacy(value: Any) -> bytes:
    """`torch.save` of the old format: five pickles, then each storage after its count."""
    pickled = Pickled(legacy=True)
    body = pickled.dump(value)
    magic = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
    keys = [str(i) for i in range(len(pickled.storages))]
    system = {"protocol_version": 1001, "little_endian": True}
    out = magic + Pickled().dump(1001) + Pickled().dump(system) + body + Pickled().dump(keys)
    return out + b"".join(struct.pack("<q", t.count) + t.data for t in pickled.storages)


def safetensors(tensors: dict[str, Tensor]) -> bytes:
    """The safetensors format: header length, JSON header, the tensors one after another."""
    names = {"Float": "F32", "BFloat16": "BF16", "Long": "I64"}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, one in tensors.items():
        end = at + len(one.data)
        header[name] = {
            "dtype": names[one.kind],
            "shape": list(one.shape),
            "data_offsets": [at, end],
        }
        at = end
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw + b"".join(t.data for t in tensors.values())


def dcp(shards: list[dict[str, Any]], *, save_id: str = "save-1") -> dict[str, bytes]:
    """A DCP directory: one file a rank, each item a torch zip, and the ``.metadata`` pickle."""
    module = "torch.distributed.checkpoint.metadata"
    files: dict[str, bytes] = {}
    storage, tensors = [], []
    for rank, items in enumerate(shards):
        blob, name = b"", f"__{rank}_0.distcp"
        for fqn, value in items.items():
            body = torch_zip(value)
            index = Made(module, "MetadataIndex", (), {"fqn": fqn, "offset": (rank,), "index": 0})
            place = {"relative_path": name, "offset": len(blob), "length": len(body)}
            info = Made("torch.distributed.checkpoint.filesystem", "_StorageInfo", (), place)
            storage.append((index, info))
            if isinstance(value, Tensor):
                size = Made("torch", "Size", (value.shape,))
                meta = {"size": size.args[0], "properties": None, "chunks": []}
                tensors.append((fqn, Made(module, "TensorStorageMetadata", (), meta)))
            blob += body
        files[name] = blob
    state = {
        "state_dict_metadata": dict(tensors),
        "planner_data": {},
        "storage_data": Pairs(storage),
        "storage_meta": Made(module, "StorageMeta", (), {"save_id": save_id}),
        "version": "1.0.0",
    }
    files[".metadata"] = _PairPickled().dump(Made(module, "Metadata", (), state))
    return files


@dataclass
class Pairs:
    """A dict whose keys are objects."""

    items: list[tuple[Any, Any]]


class _PairPickled(Pickled):
    def _put(self, value: Any) -> None:
        if not isinstance(value, Pairs):
            super()._put(value)
            return
        self.out += b"}("
        for key, one in value.items:
            self._put(key)
            self._put(one)
        self.out += b"u"
