#!/usr/bin/env python3
"""Says which checkpoints on this node are whole, as one JSON document on standard output.

usage: python3 - PATH... [--deep] [--newest N] [--limit SECONDS] [--quiet SECONDS] < this file

One file, standard library only, Python 3.6 and up, reads only. It never unpickles: pickles are
walked by an interpreter that makes inert values and runs nothing. Quick level: structure, small
checksums, pointers, and each checkpoint against the one before. ``--deep``: every checksum.
"""

import errno
import hashlib
import json
import math
import mmap
import os
import re
import socket
import stat
import struct
import sys
import time
import zlib

VERSION = 1
SMALL = 64 * 1024  # members up to this size are checksummed at the quick level
WHOLE = 256 * 1024  # files up to this size are read at once
PAGE = 4096
WINDOW = 16 << 20
PICKLE_MAX = 512 << 20
DIRECTORY_MAX = 256 << 20
ITEMS_SAMPLED = 400  # items of a DCP shard that the quick level opens
FILES_LISTED = 200
YOUNG = 120.0  # seconds; an older save that is sound is not asked for its writers
FILES_MAX = 200000
DEPTH = 7
# Whatever a damaged file can make the readers below raise.
TROUBLE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
LEVELS = ("pass", "warn", "unknown", "fail")
FALL_BACK = (
    "resume from the step before; move this one out of the directory (never rename it in place)"
)
REMEDY = {
    "C02": FALL_BACK,
    "C03": "the save was interrupted: " + FALL_BACK,
    "C15": "the trainer would skip optimizer and scheduler without a word: " + FALL_BACK,
    "C17": "look for the missing ranks on the other nodes, else " + FALL_BACK,
    "C18": "resume only if the runbook does not require what is missing",
    "C21": "compare with the job's configuration: did the model or the world size change?",
    "C24": "do not load this file; find out who wrote it",
    "C29": "wait until the save has ended, or stop what writes there; then inspect again",
    "C30": "free space or remount before relaunching, then inspect again",
    "limit": "inspect this path alone, with a longer --limit",
}


class DamageError(Exception):
    """What is wrong: rule, words, level."""

    def __init__(self, code, text, level="fail"):
        super(DamageError, self).__init__(text)
        self.code = code
        self.text = text
        self.level = level


class Deadline(object):
    """When to stop starting new work."""

    end = None

    @classmethod
    def passed(cls):
        """Claims that the time is used up."""
        return cls.end is not None and time.monotonic() > cls.end


def finding(code, text, component="", level="fail", remedy=""):
    """One finding, as it is printed."""
    return {
        "level": level,
        "code": code,
        "component": component,
        "finding": text[:400],
        "remedy": "" if level == "pass" else remedy or REMEDY.get(code, FALL_BACK),
    }


def worst(findings):
    """The worst level among findings; pass when there is none."""
    return max([f["level"] for f in findings], key=LEVELS.index) if findings else "pass"


def ranges(numbers):
    """Numbers folded: 0-3,7."""
    parts, numbers = [], sorted(set(numbers))
    for n in numbers:
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ",".join(str(a) if a == b else "%d-%d" % (a, b) for a, b in parts)


def some(names, n=3):
    """The first few names, and how many more."""
    names = sorted(names)
    return ", ".join(names[:n]) + (" and %d more" % (len(names) - n) if len(names) > n else "")


# ---------------------------------------------------------------- pickles, inert
class Name(object):
    """A global that a pickle names."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name


class Inert(object):
    """An object that a pickle would have made: its name, arguments, and state."""

    __slots__ = ("args", "name", "state")

    def __init__(self, name, args=(), state=None):
        self.name = name
        self.args = args
        self.state = state


HOSTILE_FIRST = frozenset(
    "os posix nt subprocess sys socket shutil pty commands importlib runpy ctypes code codeop pdb "
    "bdb webbrowser multiprocessing asyncio signal pickle _pickle marshal imp zipimport urllib "
    "requests http ftplib smtplib telnetlib pip pkgutil timeit trace profile cProfile pydoc "
    "threading _thread platform tempfile fileinput glob linecache site sysconfig resource atexit "
    "gc inspect".split()
)
HOSTILE_PART = frozenset(
    "os posix nt subprocess sys eval exec execfile system popen __import__ import_module spawn "
    "__globals__ __builtins__ __subclasses__ __reduce__ __code__ runstring load_module".split()
)
BUILTINS = ("builtins", "__builtin__")
SAFE_BUILTINS = frozenset(
    "set frozenset list dict tuple int float str unicode long bytes bytearray bool complex object "
    "slice range xrange type NoneType Ellipsis NotImplemented getattr Exception ValueError "
    "RuntimeError KeyError TypeError StopIteration".split()
)
EMPTY_DICTS = frozenset(
    "collections.OrderedDict collections.defaultdict builtins.dict "
    "__builtin__.dict collections.Counter".split()
)
UNWRAPPED = frozenset(
    "torch.Size builtins.set builtins.frozenset builtins.list builtins.tuple builtins.bytearray "
    "__builtin__.set __builtin__.frozenset __builtin__.list __builtin__.bytearray "
    "torch._utils._rebuild_parameter torch.nn.parameter.Parameter "
    "builtins.int builtins.float".split()
)
SCALARS = frozenset((str, int, float, bool, bytes, type(None), Inert, Name))


def hostile(name):
    """Claims that a pickle with this global could run something of its own."""
    parts = name.split(".")
    if parts[0] in BUILTINS:
        return len(parts) != 2 or parts[1] not in SAFE_BUILTINS
    return parts[0] in HOSTILE_FIRST or any(p in HOSTILE_PART for p in parts[1:])


def _global(module, name):
    full = "%s.%s" % (module, name)
    if hostile(full):
        raise DamageError("C24", "a pickle in it names %s: hostile, refused" % full[:80])
    return Name(full)


def _called(func, args):
    if not isinstance(func, Name):
        return Inert("?", args)
    name = func.name
    if name in EMPTY_DICTS:
        return {}
    if name in UNWRAPPED:
        return args[0] if args else []
    if name == "_codecs.encode":
        return args[0].encode("latin-1")
    if name.endswith(".getattr") and name.split(".")[0] in BUILTINS:
        if len(args) == 2 and isinstance(args[0], Name) and isinstance(args[1], str):
            return _global(args[0].name, args[1])
        raise DamageError("C24", "a pickle in it looks up an attribute by itself: hostile, refused")
    return Inert(name, args)


def _key(key):
    # Hashing a tuple nested a hundred levels deep takes for ever: such keys stay opaque.
    if type(key) in SCALARS or (type(key) is tuple and all(type(k) in SCALARS for k in key)):
        return key
    return Inert("key", key)


def _set_items(target, flat):
    if isinstance(target, Inert):
        if not isinstance(target.state, dict):
            target.state = {}
        target = target.state
    if isinstance(target, dict):
        for i in range(0, len(flat) - 1, 2):
            target[_key(flat[i])] = flat[i + 1]


def _append(target, values):
    if isinstance(target, list):
        target.extend(values)


def _build(target, state):
    if isinstance(target, Inert):
        if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
            state = state[1]
        target.state = state


def _line(data, pos):
    end = data.index(b"\n", pos)
    return data[pos:end], end + 1


def _sized(data, pos, width):
    n = int.from_bytes(data[pos : pos + width], "little")
    start = pos + width
    if start + n > len(data):
        raise EOFError
    return data[start : start + n], start + n


def _text(raw):
    return str(raw, "utf-8", "backslashreplace")


_TAKE = {  # opcode: width of the length, and what to make of the bytes
    0x8C: (1, _text), 0x58: (4, _text), 0x8D: (8, _text),
    0x43: (1, bytes), 0x42: (4, bytes), 0x8E: (8, bytes), 0x96: (8, bytes),
    0x55: (1, lambda raw: str(raw, "latin-1")), 0x54: (4, lambda raw: str(raw, "latin-1")),
}  # fmt: skip
_FIXED = {0x4A: "<i", 0x4B: "<B", 0x4D: "<H", 0x47: ">d"}
_CONST = {0x4E: None, 0x88: True, 0x89: False, 0x29: ()}
_FIXED = {op: struct.Struct(fmt) for op, fmt in _FIXED.items()}


def walk(data, pos=0):
    """The value of one pickle made inert, and where it ends; runs nothing, hashes nothing deep.

    Raises DamageError (hostile), or anything of TROUBLE when the bytes are no whole pickle.
    """
    stack, marks, memo = [], [], {}
    push, pop = stack.append, stack.pop
    take, fixed, const = _TAKE, _FIXED, _CONST
    while True:
        op = data[pos]
        pos += 1
        if op == 0x71 or op == 0x68:  # BINPUT, BINGET
            if op == 0x71:
                memo[data[pos]] = stack[-1]
            else:
                push(memo[data[pos]])
            pos += 1
        elif op == 0x72 or op == 0x6A:  # LONG_BINPUT, LONG_BINGET
            index = int.from_bytes(data[pos : pos + 4], "little")
            if op == 0x72:
                memo[index] = stack[-1]
            else:
                push(memo[index])
            pos += 4
        elif op in take:
            width, make = take[op]
            raw, pos = _sized(data, pos, width)
            push(make(raw))
        elif op == 0x94:  # MEMOIZE
            memo[len(memo)] = stack[-1]
        elif op in fixed:
            push(fixed[op].unpack_from(data, pos)[0])
            pos += fixed[op].size
        elif op in const:
            push(const[op])
        elif op == 0x28:  # MARK
            marks.append(len(stack))
        elif 0x85 <= op <= 0x87:  # TUPLE1..3
            n = op - 0x84
            if n > len(stack):
                raise IndexError
            made = tuple(stack[-n:])
            del stack[-n:]
            push(made)
        elif op == 0x74:  # TUPLE
            at = marks.pop()
            made = tuple(stack[at:])
            del stack[at:]
            push(made)
        elif op == 0x7D:
            push({})
        elif op == 0x5D or op == 0x8F:
            push([])
        elif op == 0x75 or op == 0x65 or op == 0x90:  # SETITEMS, APPENDS, ADDITEMS
            at = marks.pop()
            values = stack[at:]
            del stack[at:]
            (_set_items if op == 0x75 else _append)(stack[-1], values)
        elif op == 0x73:
            value, key = pop(), pop()
            _set_items(stack[-1], [key, value])
        elif op == 0x61:
            value = pop()
            _append(stack[-1], [value])
        elif op == 0x52 or op == 0x81:  # REDUCE, NEWOBJ
            args = pop()
            func = pop()
            args = args if isinstance(args, tuple) else ()
            push(_called(func, args) if op == 0x52 or isinstance(func, Name) else Inert("?", args))
        elif op == 0x62:  # BUILD
            value = pop()
            _build(stack[-1], value)
        elif op == 0x51:  # BINPERSID
            push(Inert("persistent", pop()))
        elif op == 0x63:  # GLOBAL
            module, pos = _line(data, pos)
            name, pos = _line(data, pos)
            push(_global(_text(module), _text(name)))
        elif op == 0x93:
            name, module = pop(), pop()
            push(_global(str(module), str(name)))
        elif op == 0x2E:  # STOP
            return pop(), pos
        elif op == 0x80:
            pos += 1
        elif op == 0x95:
            pos += 8
        else:
            pos = _rare(op, data, pos, stack, marks, memo)


def _rare(op, data, pos, stack, marks, memo):
    if op in (0x8A, 0x8B):
        raw, pos = _sized(data, pos, 1 if op == 0x8A else 4)
        stack.append(int.from_bytes(raw[:4096], "little", signed=True))
    elif op in (0x49, 0x4C, 0x46, 0x53, 0x56, 0x50, 0x70, 0x67):  # the text protocol
        raw, pos = _line(data, pos)
        _textual(op, raw[:4000], stack, memo)
    elif op == 0x30:
        stack.pop()
    elif op == 0x31:
        del stack[marks.pop() :]
    elif op == 0x32:
        stack.append(stack[-1])
    elif op in (0x6C, 0x64, 0x91, 0x69, 0x6F):  # LIST, DICT, FROZENSET, INST, OBJ
        at = marks.pop()
        values = stack[at:]
        del stack[at:]
        if op == 0x69:
            module, pos = _line(data, pos)
            name, pos = _line(data, pos)
            stack.append(_called(_global(_text(module), _text(name)), tuple(values)))
        elif op == 0x6F:
            stack.append(_called(values[0], tuple(values[1:])))
        elif op == 0x64:
            stack.append({})
            _set_items(stack[-1], values)
        else:
            stack.append(values)
    elif op == 0x92:
        kwargs, args, func = stack.pop(), stack.pop(), stack.pop()
        stack.append(Inert(getattr(func, "name", "?"), args, kwargs))
    elif op in (0x97, 0x98):
        if op == 0x97:
            stack.append(Inert("buffer"))
    else:
        raise ValueError("opcode 0x%02x" % op)
    return pos


def _textual(op, raw, stack, memo):
    if op == 0x70:
        memo[int(raw)] = stack[-1]
    elif op == 0x67:
        stack.append(memo[int(raw)])
    elif op == 0x49:
        stack.append(
            {b"00": False, b"01": True}.get(raw, None) if raw in (b"00", b"01") else int(raw)
        )
    elif op == 0x4C:
        stack.append(int(raw.rstrip(b"L")))
    elif op == 0x46:
        stack.append(float(raw))
    elif op == 0x50:
        stack.append(Inert("persistent", _text(raw)))
    else:
        stack.append(_text(raw).strip("'\""))


_WALKED = {}  # ranks of one save often carry the same pickle: walk it once


def walk_whole(data, what):
    """The value of a pickle that fills ``data`` exactly."""
    if data in _WALKED:
        return _WALKED[data]
    try:
        value, end = walk(data)
    except TROUBLE as error:
        raise DamageError(
            "C09", "%s is no whole pickle (%s)" % (what, type(error).__name__)
        ) from None
    if end != len(data):
        raise DamageError("C09", "%s has %d bytes after its end" % (what, len(data) - end))
    if len(data) <= WHOLE and len(_WALKED) < 256:
        _WALKED[data] = value
    return value


def tensors(value, limit=200000):
    """Tensors (Inert, with storage, offset, size as arguments) inside a value, each object once."""
    seen, todo, found = set(), [value], []
    while todo and len(seen) < limit:
        v = todo.pop()
        if id(v) in seen or not isinstance(v, (dict, list, tuple, Inert)):
            continue
        seen.add(id(v))
        if isinstance(v, Inert):
            if "_rebuild_" in v.name and "tensor" in v.name:
                found.append(v)
            else:
                todo += [v.state, v.args]
        else:
            todo += list(v.values()) if isinstance(v, dict) else v
    return found


def persistent(value):
    """Every storage that a value names: key -> (type name, number of elements)."""
    found, seen, todo = {}, set(), [value]
    while todo and len(seen) < 2000000:
        v = todo.pop()
        if not isinstance(v, (dict, list, tuple, Inert)) or id(v) in seen:
            continue
        seen.add(id(v))
        if isinstance(v, Inert):
            if v.name == "persistent" and isinstance(v.args, tuple) and len(v.args) >= 5:
                kind = v.args[1].name if isinstance(v.args[1], Name) else ""
                found[str(v.args[2])] = (kind.rpartition(".")[2], v.args[4])
            else:
                todo += [v.args, v.state]
        elif isinstance(v, dict):
            todo += [k for k in v if isinstance(k, Inert)]
            todo += list(v.values())
        else:
            todo += v
    return found


_STORAGES = {}


def storages_of(value):
    """As `persistent`, once for a pickle that many ranks share."""
    known = _STORAGES.get(id(value))
    if known is None or known[0] is not value:
        known = value, persistent(value)
        if len(_STORAGES) < 256:
            _STORAGES[id(value)] = known
    return known[1]


ITEM_BYTES = {
    "DoubleStorage": 8, "FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2, "LongStorage": 8,
    "IntStorage": 4, "ShortStorage": 2, "CharStorage": 1, "ByteStorage": 1, "BoolStorage": 1,
    "ComplexFloatStorage": 8, "ComplexDoubleStorage": 16, "UntypedStorage": 1, "QInt32Storage": 4,
}  # fmt: skip
ITEM_FORMAT = {"DoubleStorage": "<d", "FloatStorage": "<f", "LongStorage": "<q", "IntStorage": "<i"}


def storage_bytes(kind, count):
    """Bytes that a storage of this type takes; 0 when the type is not known."""
    return ITEM_BYTES.get(kind, 0) * count if isinstance(count, int) and count > 0 else 0


def elements(tensor):
    """How many numbers a tensor holds."""
    size = tensor.args[2] if len(tensor.args) > 2 else ()
    n = 1
    for d in size if isinstance(size, (tuple, list)) else ():
        n *= d if isinstance(d, int) and 0 <= d < 1 << 48 else 0
    return n


# ---------------------------------------------------------------- bytes of a file
class Bytes(object):
    """A regular file that is read at given places; small ones are read once."""

    def __init__(self, path, size):
        self.fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        self.size = size
        self.all = os.pread(self.fd, size, 0) if size <= WHOLE else None

    def read(self, offset, count):
        """Up to ``count`` bytes from ``offset``."""
        if self.all is not None:
            return self.all[offset : offset + count] if offset >= 0 else b""
        return os.pread(self.fd, count, offset) if offset >= 0 and count > 0 else b""

    def exactly(self, offset, count, limit=PICKLE_MAX):
        """Exactly ``count`` bytes, or DamageError."""
        if count > limit:
            raise DamageError(
                "limit", "a part of %d bytes is too large to read here" % count, "unknown"
            )
        got = self.read(offset, count)
        while len(got) < count:
            more = self.read(offset + len(got), count - len(got))
            if not more:
                raise DamageError("C06", "ends early: %d bytes wanted at %d" % (count, offset))
            got += more
        return got

    def crc(self, offset, count):
        """CRC-32 of a range."""
        crc = 0
        step = WINDOW if Options.map_files else 1 << 18  # the latter fits the processor's cache
        while count > 0:
            part = min(count, step)
            if Options.map_files:
                crc = self._mapped(offset, part, crc)
            else:
                data = os.pread(self.fd, part, offset)
                if not data:
                    raise DamageError("C06", "ends early at %d" % offset)
                crc, part = zlib.crc32(data, crc), len(data)
            offset, count = offset + part, count - part
        return crc

    def _mapped(self, offset, count, crc):
        # Without a copy this runs at the rate of crc32 itself; a bad block ends the process, so
        # only a child that may die does it.
        start = offset - offset % mmap.ALLOCATIONGRANULARITY
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        window = mmap.mmap(self.fd, offset - start + count, flags, mmap.PROT_READ, offset=start)
        view = memoryview(window)
        part = view[offset - start :]
        try:
            return zlib.crc32(part, crc)
        finally:
            part.release()
            view.release()
            window.close()

    def close(self):
        """Lets the file go."""
        os.close(self.fd)


def zero_pages(src, size, count):
    """Which of ``count`` sampled pages are all zero, and a checksum over the samples."""
    last, zero, crc = max(size - PAGE, 0), [], 0
    for i in range(count + 1):
        page = src.read(last * i // count // PAGE * PAGE if i < count else last, PAGE)
        crc = zlib.crc32(page, crc)
        if page.count(0) == len(page):
            zero.append(i)
    return frozenset(zero), crc


# ---------------------------------------------------------------- torch zip
class Zip(object):
    """A stored-only zip inside a range of a file: members by name without the top folder."""

    def __init__(self, src, base, size):
        self.src = src
        self.members = {}  # name -> (payload offset, size, crc)
        self.crc_off = False
        self._read(base, size)

    def _read(self, base, size):
        if size < 22:
            raise DamageError("C06", "only %d bytes: no zip" % size)
        if self.src.read(base, 4) != b"PK\3\4":
            head = self.src.read(base, PAGE)
            raise DamageError(
                "C06", "begins with zeros" if head.count(0) == len(head) else "no zip at its begin"
            )
        tail_at = max(base, base + size - 98)
        tail = self.src.exactly(tail_at, base + size - tail_at)
        end = tail[-22:]
        if end[:4] != b"PK\5\6" or end[20:] != b"\0\0":
            what = (
                "ends in zeros"
                if not end.strip(b"\0")
                else "the zip directory's end is not at its end"
            )
            raise DamageError("C06", what + ": cut, torn, or something was appended")
        count, length, offset = struct.unpack("<HII", end[10:20])
        records = base + size - 22
        if len(tail) >= 42 and tail[-42:-38] == b"PK\6\7":
            records = base + struct.unpack("<Q", tail[-34:-26])[0]
            record = self.src.exactly(records, 56)
            if record[:4] != b"PK\6\6" or records + 56 != base + size - 42:
                raise DamageError("C06", "the zip64 record is damaged")
            count, length, offset = struct.unpack("<QQQ", record[32:56])
        elif 0xFFFFFFFF in (length, offset) or count == 0xFFFF:
            raise DamageError("C06", "the zip64 record is missing")
        if base + offset + length != records:
            raise DamageError("C06", "the zip directory does not end where the end record begins")
        entries = self._directory(self.src.exactly(base + offset, length, DIRECTORY_MAX), count)
        self._locals(entries, base, base + offset)

    def _directory(self, raw, count):
        pos, entries, fmt = 0, [], struct.Struct("<4s4xHH4xIIIHHH8xI")
        while pos < len(raw):
            sig, flags, method, crc, packed, plain, n, m, k, at = fmt.unpack_from(raw, pos)
            name = raw[pos + 46 : pos + 46 + n]
            if sig != b"PK\1\2" or len(name) != n:
                raise DamageError("C06", "the zip directory is damaged")
            if method or (packed != plain):
                raise DamageError("C06", "a member is compressed: no torch.save writes that")
            if 0xFFFFFFFF in (plain, at):
                plain, at = _zip64(raw[pos + 46 + n : pos + 46 + n + m], plain, at)
            entries.append((at, plain, crc, name, flags))
            pos += 46 + n + m + k
        if len(entries) != count or not entries:
            raise DamageError(
                "C06", "the zip directory lists %d members, its end says %d" % (len(entries), count)
            )
        return sorted(entries)

    def _locals(self, entries, base, directory):
        self.crc_off = not any(e[2] for e in entries) and any(e[1] for e in entries)
        previous, read, crc_of = None, self.src.read, zlib.crc32
        limit = len(entries)
        for i in range(limit):
            at, size, crc, name, flags = entries[i]
            after = base + entries[i + 1][0] if i + 1 < limit else directory
            start = base + at
            small = size <= SMALL
            head = read(start, 30 + len(name) + 64 + (size if small else 0))
            if head[:4] != b"PK\3\4" or head[30 : 30 + len(name)] != name:
                raise DamageError("C07", "the header of member %s is damaged" % _text(name)[-60:])
            payload = start + 30 + len(name) + head[28] + 256 * head[29]
            if previous is None and start != base:
                raise DamageError("C06", "the first member does not begin the file")
            previous = payload + size
            gap = after - previous
            if gap != 0 or flags & 8:
                self._descriptor(previous, gap, crc, flags, name)
            if small and not self.crc_off:
                inside = head[payload - start : payload - start + size]
                if len(inside) != size:
                    inside = self.src.exactly(payload, size)
                if crc_of(inside) != crc:
                    raise DamageError(
                        "C08", "member %s does not match its checksum" % _text(name)[-60:]
                    )
            self.members[_text(name.partition(b"/")[2] or name)] = (payload, size, crc)

    def _descriptor(self, at, gap, crc, flags, name):
        if not flags & 8 or gap not in (12, 16, 20, 24):
            raise DamageError(
                "C07", "member %s does not end where the next begins" % _text(name)[-60:]
            )
        raw = self.src.exactly(at, gap)
        raw = raw[4:] if raw[:4] == b"PK\7\b" else raw if gap in (12, 20) else b""
        if raw[:4] != struct.pack("<I", crc):
            raise DamageError("C07", "the checksum after member %s is damaged" % _text(name)[-60:])

    def get(self, name, limit=PICKLE_MAX):
        """The bytes of a member; KeyError when it is not there."""
        at, size, _crc = self.members[name]
        return self.src.exactly(at, size, limit)

    def identity(self):
        """The same text for the same content, without reading it; empty when unknowable."""
        if self.crc_off:
            return ""
        if ".data/serialization_id" in self.members:
            return "t:" + _text(self.get(".data/serialization_id", 256))[:64]
        text = ",".join("%s %d %08x" % (n, m[1], m[2]) for n, m in sorted(self.members.items()))
        return "c:%s" % hashlib.sha256(text.encode()).hexdigest()[:32]

    def scalar(self, tensor):
        """The one number in a tensor, or None."""
        return _number(tensor, lambda key, n: self.src.read(self.members["data/" + key][0], n))

    def check_crcs(self, part=0, parts=1, of=1 << 62):
        """Reads members against their checksums: those that begin in one part of ``of`` bytes."""
        total = 0
        for name, (at, size, crc) in sorted(self.members.items(), key=lambda m: m[1]):
            if at * parts // of == part:
                if not self.crc_off and self.src.crc(at, size) != crc:
                    raise DamageError("C23", "member %s does not match its checksum" % name[-60:])
                total += size
        return total


def _zip64(extra, plain, at):
    pos = 0
    while pos + 4 <= len(extra):
        tag, n = struct.unpack_from("<HH", extra, pos)
        if tag == 1:
            values = [v[0] for v in struct.iter_unpack("<Q", extra[pos + 4 : pos + 4 + n // 8 * 8])]
            if plain == 0xFFFFFFFF:
                plain = values.pop(0)
                if len(values) > 1 or at == 0xFFFFFFFF:
                    values = values[-1:]
            return plain, values[0] if at == 0xFFFFFFFF else at
        pos += 4 + n
    raise DamageError("C06", "the zip directory is damaged")


def _number(tensor, read):
    try:
        storage = tensor.args[0].args
        kind = storage[1].name.rpartition(".")[2]
        offset = tensor.args[1]
        width = ITEM_BYTES[kind]
        raw = read(str(storage[2]), width * (offset + 1))[width * offset :]
        value = struct.unpack(ITEM_FORMAT[kind], raw)[0]
        return value if math.isfinite(value) else None
    except TROUBLE:
        return None


def open_torch(src, base, size):
    """The zip of one torch.save, its value; every storage that it names is there."""
    z = Zip(src, base, size)
    if "data.pkl" not in z.members:
        raise DamageError("C09", "no data.pkl inside")
    value = walk_whole(z.get("data.pkl"), "data.pkl")
    for key, (kind, count) in storages_of(value).items():
        member = z.members.get("data/" + key)
        if member is None:
            raise DamageError("C09", "storage %s is missing" % key[:40])
        if member[1] < storage_bytes(kind, count):
            raise DamageError("C09", "storage %s is too short" % key[:40])
    return z, value


# ---------------------------------------------------------------- other files
LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"


def open_legacy(src, size):
    """The value of a torch.save file of the old format, and a reader of its scalars."""
    data = src.exactly(0, min(size, PICKLE_MAX >> 3))
    pos, values = 0, []
    for _ in range(5):
        try:
            value, pos = walk(data, pos)
        except TROUBLE as error:
            raise DamageError(
                "C10", "old torch format, damaged (%s)" % type(error).__name__
            ) from None
        values.append(value)
    storages = persistent(values[3])
    offsets, keys = {}, values[4] if isinstance(values[4], list) else []
    for key in keys:
        kind, count = storages.get(str(key), ("", 0))
        head = src.read(pos, 8)
        if len(head) < 8 or struct.unpack("<q", head)[0] != count:
            raise DamageError("C10", "old torch format, cut or damaged at byte %d" % pos)
        offsets[str(key)] = pos + 8
        pos += 8 + (storage_bytes(kind, count) or 0)
    if pos != size or len(keys) < len(storages):
        raise DamageError("C10", "old torch format: %d bytes, its contents say %d" % (size, pos))
    return values[3], lambda tensor: _number(tensor, lambda key, n: src.read(offsets[key], n))


DTYPE_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "I16": 16, "U16": 16,
    "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64,
    "C64": 64, "F4": 4,
}  # fmt: skip


def open_safetensors(src, size):
    """Tensor names -> numbers of elements; the offsets fill the file exactly."""
    n = struct.unpack("<Q", src.exactly(0, 8))[0] if size >= 8 else 0
    if not 2 <= n <= min(100 << 20, size - 8):
        raise DamageError(
            "C11", "its header length is %d in a file of %d bytes: cut or damaged" % (n, size)
        )
    try:
        header = json.loads(src.exactly(8, n).decode("utf-8"))
        items = [(name, t) for name, t in header.items() if name != "__metadata__"]
        spans = sorted((t["data_offsets"][0], t["data_offsets"][1], name, t) for name, t in items)
    except TROUBLE:
        raise DamageError("C11", "its header is no JSON: damaged") from None
    end, counts = 0, {}
    for start, stop, name, tensor in spans:
        count = 1
        for d in tensor["shape"]:
            count *= d
        bits = DTYPE_BITS.get(tensor["dtype"])
        if start != end or stop < start or (bits and count * bits != (stop - start) * 8):
            raise DamageError("C11", "tensor %s does not fit its place" % name[:60])
        end, counts[name] = stop, count
    if 8 + n + end != size:
        raise DamageError(
            "C11", "%d bytes, its header says %d: cut or appended" % (size, 8 + n + end)
        )
    return counts


STATE_FILE = re.compile(r"\.(pt|pth|bin|ckpt|pkl|safetensors|distcp|tar)$")
JSON_FILE = re.compile(r"\.json$|^_METADATA$|^_CHECKPOINT_METADATA$")
NEEDED_FILE = re.compile(
    r"\.(pt|pth|bin|ckpt|pkl|safetensors|distcp|json)$|(^|\.)metadata$|^manifest\.ocdbt$|"
    r"^latest(_checkpointed_iteration\.txt)?$|^_METADATA$|^_CHECKPOINT_METADATA$"
)


class File(object):
    """One file of a checkpoint and what was learned from it."""

    def __init__(self, path, rel, st):
        self.path = path
        self.rel = rel
        self.name = rel.rpartition("/")[2]
        self.st = st
        self.size = st.st_size
        self.kind = "other"
        self.bad = []  # (code, level, words)
        self.id = ""
        self.value = None
        self.read_scalar = None
        self.counts = {}
        self.zero = frozenset()
        self.checked = ""  # what protects its content: crc, sha256, none

    def say(self, code, words, level="fail"):
        """Notes what is wrong with it."""
        self.bad.append((code, level, words))

    def probe(self):
        """Reads its structure; never raises."""
        try:
            if self.size == 0:
                if NEEDED_FILE.search(self.name):
                    raise DamageError("C01", "empty: its content never reached the disk")
                return
            self._hole()
            if STATE_FILE.search(self.name) or JSON_FILE.search(self.name):
                src = Bytes(self.path, self.size)
                try:
                    self._open(src)
                finally:
                    src.close()
        except DamageError as error:
            self.say(error.code, error.text, error.level)
        except OSError as error:
            self.unreadable(error)
        except TROUBLE as error:
            self.say("C09", "cannot be read as its kind (%s)" % type(error).__name__)

    def unreadable(self, error):
        """Notes why the file cannot be read."""
        if error.errno == errno.EIO:
            self.say("C30", "input/output error while reading: the storage is damaged")
        else:
            self.say("C30", "cannot be read: %s" % (error.strerror or error), "unknown")

    def _hole(self):
        if self.size > SMALL and self.st.st_blocks * 512 < self.size and Mounts.exact(self.path):
            hole = first_hole(self.path, self.size)
            if hole is not None:
                raise DamageError("C02", "a hole at byte %d: this part was never written" % hole)

    def _open(self, src):
        head = src.read(0, 16)
        if JSON_FILE.search(self.name):
            self._json(src)
        elif self.name.endswith(".safetensors"):
            self.kind, self.checked = "safetensors", "none"
            self.counts = open_safetensors(src, self.size)
        elif self.name.endswith(".distcp"):
            self.kind = "distcp"
            if head[:2] != b"PK" and not head.strip(b"\0"):
                raise DamageError("C06", "begins with zeros")
            return
        elif head.startswith(b"PK"):
            self.kind = "torch"
            z, self.value = open_torch(src, 0, self.size)
            self.id, self.read_scalar = z.identity(), None
            self.checked = "none" if z.crc_off else "crc"
            self.scan(z.scalar)
        elif head.startswith(LEGACY):
            self.kind, self.checked = "legacy", "none"
            self.value, scalar = open_legacy(src, self.size)
            self.scan(scalar)
        elif head[:1] == b"\x80":
            self.kind, self.checked = "pickle", "none"
            self.value = walk_whole(src.exactly(0, self.size), "it")
            self.scan(lambda tensor: None)
        else:
            zeros = not src.read(0, PAGE).strip(b"\0")
            raise DamageError(
                "C06", "begins with zeros" if zeros else "neither a zip nor a pickle: damaged"
            )
        self._sample(src)

    def _json(self, src):
        self.kind = "json"
        raw = src.exactly(0, self.size, 64 << 20)
        try:
            self.value = json.loads(raw.decode("utf-8"))
        except (ValueError, RecursionError):
            raise DamageError(
                "C01", "no whole JSON: cut or damaged" if raw.strip(b"\0") else "zeros only"
            ) from None

    def _sample(self, src):
        if self.size >= 16 * PAGE and self.kind in ("torch", "legacy", "safetensors"):
            count = 32 if self.checked == "crc" else 256
            self.zero, crc = zero_pages(src, self.size, min(count, self.size // PAGE))
            if not self.id and self.kind != "torch":
                self.id = "p:%d-%08x" % (self.size, crc)
        elif self.kind in ("safetensors", "legacy") and not self.id:
            self.id = "p:%d-%08x" % (self.size, zlib.crc32(src.read(0, self.size)))

    def scan(self, scalar):
        """Learns the facts of its value while the file is still open."""
        self.facts = Facts(self.value, scalar)

    facts = None
    items = ()


def first_hole(path, size):
    """Where the first hole of at least a page is; None without one."""
    fd = os.open(path, os.O_RDONLY)
    try:
        hole = os.lseek(fd, 0, os.SEEK_HOLE)
        return hole if hole < size else None
    except (OSError, AttributeError):
        return None
    finally:
        os.close(fd)


# ---------------------------------------------------------------- facts from values
PARTS = (
    ("optimizer", re.compile(r"^(optimizer|optim|opt)(_states?|_state_dict|s)?$|^chained_\d+$")),
    (
        "scheduler",
        re.compile(r"^(lr_?)?sched(uler)?s?(_state_dict|_states?)?$|^opt_param_scheduler$"),
    ),
    ("rng", re.compile(r"rng_?states?|^rng$|random_states?$|^numpy_random_seed$")),
    ("data", re.compile(r"data_?loader|^dl_state|^sampler|^consumed_(train_)?samples$")),
    ("scaler", re.compile(r"^(grad_?)?scaler")),
    (
        "model",
        re.compile(r"^(model\d*|module|state_dict|model_state(_dict)?|net|network|weights)$"),
    ),
)
FILE_PARTS = (
    (
        "optimizer",
        re.compile(
            r"^optimizer(_\d+)?\.(pt|bin)$|optim_states\.pt$|distrib_optim\.pt$|^optimizer|^optim_"
        ),
    ),
    ("scheduler", re.compile(r"^scheduler(_\d+)?\.(pt|bin)$")),
    ("rng", re.compile(r"^rng_state|^random_states_")),
    ("data", re.compile(r"^sampler|^dl_state_dict|dataloader")),
    ("scaler", re.compile(r"^scaler\.pt$")),
    ("model", re.compile(r"\.safetensors$|^pytorch_model.*\.bin$|^model(_\d+)?\.(bin|pt|pth)$")),
)
HARD = ("global_step", "global_steps", "iteration", "steps_run", "step")
SHAPE = (
    "tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_model_parallel_size",
    "context_parallel_size", "data_parallel_size", "world_size", "dp_world_size", "mp_world_size",
)  # fmt: skip


class Facts(object):
    """What one torch file says: counters, rates, parts, parallel shape, parameters."""

    def __init__(self, value, scalar):
        self.parts = set()
        self.hard = {}
        self.adam = self.sched = self.lr = self.loss = self.epoch = None
        self.shape = {}
        self.parameters = 0
        self.scalar = scalar
        if isinstance(value, dict):
            self._top(value)
            self._deeper(value)
        del self.scalar

    def _number(self, value):
        if isinstance(value, Inert):
            value = self.scalar(value)
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value if good and math.isfinite(value) else None

    def _top(self, value):
        for key, inside in value.items():
            if not isinstance(key, str):
                continue
            for part, pattern in PARTS:
                if pattern.search(key) and inside not in (None, {}, []):
                    self.parts.add(part)
                    if part == "model":
                        self.parameters += sum(elements(t) for t in tensors(inside))
            if key in HARD:
                number = self._number(inside)
                if number is not None:
                    self.hard[key] = int(number)
            elif key in ("epoch", "epochs_run"):
                self.epoch = self._number(inside)
            elif key in ("loss", "train_loss"):
                self.loss = self._number(inside)
            elif key in SHAPE:
                self.shape[key] = self._number(inside)
        args = value.get("args")
        if isinstance(args, Inert) and isinstance(args.state, dict):
            for key in SHAPE:
                if isinstance(args.state.get(key), int):
                    self.shape[key] = args.state[key]
        if not self.parts and any(
            isinstance(v, Inert) and "_rebuild_" in v.name and elements(v) > 1
            for v in value.values()
        ):
            self.parts.add("model")
            self.parameters = sum(elements(t) for t in tensors(value))

    def _deeper(self, value):
        todo, seen = [(value, 0)], 0
        while todo and seen < 3000:
            v, depth = todo.pop(0)
            seen += 1
            if isinstance(v, dict):
                self._dict(v)
                if depth < 4:
                    todo += [(x, depth + 1) for x in list(v.values())[:40]]
            elif isinstance(v, list) and depth < 4:
                todo += [(x, depth + 1) for x in v[:4]]

    def _dict(self, v):
        groups, state = v.get("param_groups"), v.get("state")
        if isinstance(groups, list) and groups and isinstance(groups[0], dict):
            if self.lr is None:
                self.lr = self._number(groups[0].get("lr"))
            self.parts.add("optimizer")
        for one in list(state.values())[:1] if isinstance(state, dict) else ():
            if isinstance(one, dict) and self.adam is None:
                self.adam = self._number(one.get("step"))
        if "last_epoch" in v:
            self.parts.add("scheduler")
            if self.sched is None:
                self.sched = self._number(v["last_epoch"])
            last = v.get("_last_lr")
            if isinstance(last, list) and last and self.lr is None:
                self.lr = self._number(last[0])


# ---------------------------------------------------------------- where the bytes live
class Mounts(object):
    """Which file system a path is on."""

    table = None
    EXACT = ("ext2", "ext3", "ext4", "xfs", "tmpfs", "overlay")
    _kinds = None

    @classmethod
    def read(cls):
        """Mount points, longest first: (mount point, type, source, options)."""
        if cls.table is None:
            cls.table = []
            try:
                with open("/proc/self/mountinfo", "rb") as lines:
                    for line in lines.read().decode("utf-8", "backslashreplace").splitlines():
                        left, _, right = line.partition(" - ")
                        left, right = left.split(), right.split()
                        point = re.sub(r"\\(\d{3})", lambda m: chr(int(m.group(1), 8)), left[4])
                        options = left[5] + "," + (right[2] if len(right) > 2 else "")
                        cls.table.append((point, right[0], right[1], options))
            except TROUBLE:
                pass
            cls.table.sort(key=lambda row: -len(row[0]))
        return cls.table

    @classmethod
    def of(cls, path):
        """The mount that a path is on, or unknown."""
        real = os.path.realpath(path)
        for row in sorted(cls.read(), key=lambda row: len(row[0]), reverse=True):
            if real == row[0] or real.startswith(row[0].rstrip("/") + "/"):
                return row
        return ("", "unknown", "", "")

    @classmethod
    def exact(cls, path):
        """Claims that block counts and holes mean what they say there."""
        folder = os.path.dirname(path)
        cls._kinds = {} if cls._kinds is None else cls._kinds
        if folder not in cls._kinds:
            cls._kinds[folder] = cls.of(folder)[1] in cls.EXACT
        return cls._kinds[folder]


def storage_of(path):
    """Facts about the file system under a path."""
    point, kind, source, options = Mounts.of(path)
    st, vfs = os.stat(path), os.statvfs(path)
    return {
        "mount": point, "fstype": kind, "source": source, "inode": st.st_ino, "device": st.st_dev,
        "free_bytes": vfs.f_bavail * vfs.f_frsize, "total_bytes": vfs.f_blocks * vfs.f_frsize,
        "free_inodes": vfs.f_favail,
        "read_only": bool(vfs.f_flag & 1) or "ro" in options.split(","),
    }  # fmt: skip


# ---------------------------------------------------------------- finding checkpoints
NAMED = (
    ("megatron", re.compile(r"^iter_(\d+)$")),
    ("deepspeed", re.compile(r"^global_step(\d+)$")),
    ("hf-trainer", re.compile(r"^checkpoint-(\d+)$")),
    ("accelerate", re.compile(r"^checkpoint_(\d+)$")),
    ("dcp", re.compile(r"^step-(\d+)$")),
)
STEP_IN_NAME = re.compile(
    r"(?:^|[^a-zA-Z])(?:checkpoint[-_]|global_step|iter_|step[-=_]|epoch[-=_]|ckpt[-_])(\d+)"
)
LAST_NUMBER = re.compile(r"(\d+)(?!.*\d)")
NUMBER = re.compile(r"((?:iter_|global_step|step[-=_]|checkpoint[-_]|epoch[-=_]))(\d+)")
LOCAL = re.compile(r"^iter_(\d+)_(\d+)_local(\.dirty)?\.pt$")
LEFT_OVER = re.compile(
    r"\.tmp$|^tmp-|\.dirty\.pt$|-unfinished$|\.orbax-checkpoint-tmp|^checkpoint-is-incomplete\.txt$|"
    r"\.(part|partial|incomplete)$"
)
SET_ASIDE = re.compile(
    r"^(checkpoint-\d+|global_step\d+|iter_\d+|step-\d+|epoch_\d+|step_\d+)[._ -].+$|"
    r"^tmp-checkpoint-\d+$"
)
# Steps of other frameworks: OLMo's step100, verl's global_step_100, ckpt-100.
STEP_FOLDER = re.compile(r"^(global_?)?(step|iter|ckpt|checkpoint)[-_]?\d+(-unsharded)?$")
# Snapshots of file servers, trash, and other programs' folders hold no checkpoint of this run.
NOT_OURS = re.compile(
    r"^(\.git|\.venv|__pycache__|\.snapshots?|\.zfs|\.Trash.*|lost\+found|\.ipynb_checkpoints|"
    r"\.cache)"
)
TRACKERS = {"latest_checkpointed_iteration.txt": "megatron", "latest": "deepspeed"}


class Entry(object):
    """One checkpoint: where, of which framework, its files, what was found."""

    def __init__(self, framework, path, files, step=None):
        self.framework = framework
        self.path = path
        self.parent, self.name = os.path.split(path)
        self.raw = files  # rel -> (path, stat)
        self.named_step = self.step = step
        self.files = {}
        self.findings = []
        self.parts = set()
        self.hard = []  # (number, where)
        self.facts = {}
        self.counters = {}
        self.ranks = None
        self.absent = []
        self.alias = False
        self.numbered = False
        self.previous = None

    def say(self, code, words, component="", level="fail", remedy=""):
        """Adds a finding."""
        self.findings.append(finding(code, words, component, level, remedy))

    def lacks(self, code, words, names, level="fail"):
        """Adds a finding about files that are not here, and nothing else."""
        self.say(code, words, sorted(names)[0], level)
        self.findings[-1]["absent"] = sorted(names)[:FILES_LISTED]
        self.absent += [] if level == "warn" else names

    def names(self):
        """Base names of its files."""
        return {rel.rpartition("/")[2] for rel in self.raw}

    def sound(self):
        """Claims that nothing found so far speaks against it."""
        return worst(self.findings) in ("pass", "warn")


def listing(path):
    """Regular files (name -> stat) and folders of a directory; no links to folders."""
    files, folders = {}, []
    for one in sorted(os.listdir(path)):
        full = os.path.join(path, one)
        try:
            st = os.lstat(full)
            if stat.S_ISLNK(st.st_mode):
                st = os.stat(full)
                if stat.S_ISDIR(st.st_mode):
                    continue
        except OSError:
            continue
        if stat.S_ISDIR(st.st_mode):
            folders.append(one)
        elif stat.S_ISREG(st.st_mode):
            files[one] = st
    return files, folders


def linked_folders(path):
    """Links in a directory that lead to folders."""
    names = [one for one in sorted(os.listdir(path)) if os.path.islink(os.path.join(path, one))]
    return [one for one in names if os.path.isdir(os.path.join(path, one))]


def gather(path, depth=0):
    """All regular files under a folder: relative name -> (path, stat)."""
    found = {}
    files, folders = listing(path)
    for name, st in files.items():
        found[name] = (os.path.join(path, name), st)
    for folder in folders if depth < DEPTH else ():
        if len(found) > FILES_MAX:
            break
        for rel, item in gather(os.path.join(path, folder), depth + 1).items():
            found[folder + "/" + rel] = item
    return found


def is_orbax(path, name, files, folders):
    """Claims that a folder is an Orbax step, committed or not."""
    if "_CHECKPOINT_METADATA" in files or "commit_success.txt" in files:
        return True
    items = [os.path.join(path, f) for f in folders[:8]] if name.isdigit() else []
    marks = ("manifest.ocdbt", "_METADATA")
    return ".orbax-checkpoint-tmp" in name or any(
        os.path.exists(os.path.join(item, mark)) for item in items for mark in marks
    )


def framework_of(path, files, folders):
    """The layout of a folder by its name and what lies in it; None when it is no checkpoint."""
    name = os.path.basename(path)
    if is_orbax(path, name, files, folders):
        return "orbax"
    if "weights" in folders and ("context" in folders or "step=" in name or name.endswith("-last")):
        return "nemo"
    if "step=" in name and "common.pt" in files and "metadata.json" in files:
        return "nemo"  # NeMo 1: no folder `weights` between
    for framework, pattern in NAMED:
        if pattern.search(name):
            return framework
    if any(n.endswith(("_optim_states.pt", "_model_states.pt")) for n in files):
        return "deepspeed"
    if "trainer_state.json" in files:
        return "hf-trainer"
    if any(n.startswith("random_states_") for n in files):
        return "accelerate"
    if any(n.endswith(".distcp") or n in (".metadata", ".metadata.tmp") for n in files):
        return "dcp"
    if "recipe_state.pt" in files:
        return "torchtune"
    if re.match(r"^(epoch|step)_\d+$", name) and any(n.endswith(".safetensors") for n in files):
        return "torchtune"
    if "optimizer.pt" in files or ("model.safetensors" in files and "optimizer.bin" in files):
        return "hf-trainer" if "optimizer.pt" in files else "accelerate"
    if SET_ASIDE.match(name) and (files or folders):
        return "torch"
    if STEP_FOLDER.match(name) and holds_state(path, files, folders):
        return "torch"
    return None


def holds_state(path, files, folders):
    """Claims that state files lie in a folder or one level below."""
    names = set(files)
    for folder in folders[:50]:
        try:
            names.update(listing(os.path.join(path, folder))[0])
        except OSError:
            continue
    return any(STATE_FILE.search(name) for name in names)


def step_of(name):
    """The step that a name tells, or None."""
    for pattern in (re.compile(r"step[-=_]?(\d+)"), STEP_IN_NAME):
        m = pattern.search(name)
        if m:
            return int(m.group(1))
    return None


class Finder(object):
    """Walks a path and collects entries, pointers, markers."""

    def __init__(self):
        self.entries = []
        self.pointers = []
        self.findings = []
        self.markers = {}
        self.local = {}
        self.links = []

    def at(self, path):
        """Looks at a path that was asked for."""
        st = os.stat(path)
        if stat.S_ISREG(st.st_mode):
            self._single(path, st)
        elif stat.S_ISDIR(st.st_mode):
            self._folder(path, 0)
        for link in self.links:
            self._link(link)
        self.links = []
        for (session, step), files in sorted(self.local.items()):
            entry = Entry("megatron-local", os.path.join(session, "iter_%07d" % step), files, step)
            entry.parent = session
            self.entries.append(entry)
        self.local = {}

    def _folder(self, path, depth):
        try:
            files, folders = listing(path)
        except OSError as error:
            words = "cannot be listed: %s" % (error.strerror or error)
            self.findings.append(
                finding("C30", words, path, "unknown", "look at the mount and its rights")
            )
            return
        name = os.path.basename(path)
        framework = framework_of(path, files, folders)
        if framework:
            entry = Entry(framework, path, gather(path), step_of(name))
            if framework == "orbax" and entry.step is None and name.split(".")[0].isdigit():
                entry.named_step = entry.step = int(name.split(".")[0])
            self.entries.append(entry)
            return
        for one in sorted(files):
            self._file(path, one, files[one])
        for folder in folders if depth < DEPTH else ():
            if not NOT_OURS.match(folder):
                self._folder(os.path.join(path, folder), depth + 1)
        self.links += [os.path.join(path, one) for one in linked_folders(path)]

    def _link(self, path):
        """A step that lies elsewhere and is linked here; links to what is here are other names."""
        real = os.path.realpath(path)
        if any(os.path.realpath(entry.path) == real for entry in self.entries):
            return
        try:
            files, folders = listing(real)
            framework = framework_of(path, files, folders) or framework_of(real, files, folders)
            if framework:
                step = step_of(os.path.basename(path))
                entry = Entry(framework, path, gather(real), step)
                if step is None:
                    entry.named_step = entry.step = step_of(os.path.basename(real))
                    entry.alias = True
                self.entries.append(entry)
        except OSError:
            return

    def _file(self, path, name, st):
        full = os.path.join(path, name)
        m = LOCAL.match(name)
        if m:
            rank = os.path.basename(path)
            session = os.path.dirname(path) if rank.isdigit() else path
            files = self.local.setdefault((session, int(m.group(1))), {})
            files[os.path.relpath(full, session)] = (full, st)
        elif name in TRACKERS:
            self.pointers.append(full)
        elif name.endswith("-unfinished"):
            self.markers[full[: -len("-unfinished")]] = full
        elif re.search(r"\.(pt|pth|ckpt|safetensors)$|\.(pt|pth)\.tar$", name):
            self._single(full, st)
        elif re.search(r"\.(pt|pth|ckpt)\.(tmp|part|partial|incomplete)$", name):
            words = "an unfinished save lies here"
            self.findings.append(
                finding("C03", words, full, "warn", "keep it as evidence, then remove it")
            )

    def _single(self, path, st):
        name = os.path.basename(path)
        framework = "lightning" if name.endswith(".ckpt") else "torch"
        if name.endswith(".safetensors"):
            framework = "safetensors"
        entry = Entry(framework, path, {name: (path, st)}, step_of(name))
        if entry.step is None and framework == "torch":
            m = LAST_NUMBER.search(name)
            entry.step = int(m.group(1)) if m and len(m.group(1)) < 16 else None
        entry.alias = entry.step is None  # last.ckpt: its name tells no step
        self.entries.append(entry)


# ---------------------------------------------------------------- DCP
def _state(value):
    state = value.state if isinstance(value, Inert) else None
    return state if isinstance(state, dict) else {}


class Dcp(object):
    """A ``.metadata``: which item lies where, which tensors there are."""

    def __init__(self, file):
        with open(file.path, "rb") as f:
            data = f.read(PICKLE_MAX)
        value = _state(walk_whole(data, ".metadata"))
        self.shards = {}  # relative path -> [(offset, length, name, plain)]
        self.tensors = value.get("state_dict_metadata")
        self.save_id = str(_state(value.get("storage_meta")).get("save_id") or "")
        storage = value.get("storage_data")
        if not isinstance(storage, dict) or not storage:
            raise DamageError("C13", "its .metadata names no data")
        for index, info in storage.items():
            name = str(_state(index).get("fqn"))
            info = _state(info)
            rel, offset, length = info["relative_path"], info["offset"], info["length"]
            if not isinstance(rel, str) or rel.startswith("/") or ".." in rel.split("/"):
                raise DamageError("C13", "its .metadata names a file outside: %r" % str(rel)[:60])
            if not (0 <= offset < 1 << 62 and 0 < length < 1 << 62):
                raise DamageError("C13", "its .metadata names an impossible place in %s" % rel[:60])
            plain = not info.get("transform_descriptors")
            self.shards.setdefault(rel, []).append((offset, length, name, plain))
        for items in self.shards.values():
            items.sort()

    def names(self):
        """Every item's name."""
        found = {item[2] for items in self.shards.values() for item in items}
        return found.union(self.tensors if isinstance(self.tensors, dict) else ())

    def parameters(self):
        """Numbers in all tensors of the model."""
        total = 0
        for name, meta in self.tensors.items() if isinstance(self.tensors, dict) else ():
            size = _state(meta).get("size")
            if dcp_part(str(name)) == "model" and isinstance(size, (tuple, list)):
                n = 1
                for d in size:
                    n *= d if isinstance(d, int) else 0
                total += n
        return total


def dcp_part(name):
    """The component that an item belongs to."""
    for word in name.split(".")[:2]:
        for part, pattern in PARTS:
            if pattern.search(word):
                return part
    return (
        "other"
        if re.match(
            r"^(train_state|common_state|iteration|step|args|app$|checkpoint_version)", name
        )
        else "model"
    )


def sampled(items, count):
    """First, last, and evenly between."""
    if len(items) <= count:
        return items
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]


def check_shard(file, items, every):
    """The items of one shard fill it, and (sampled) each is a sound zip."""
    end = items[-1][0] + items[-1][1]
    if end != file.size:
        raise DamageError("C13", "%d bytes, .metadata says %d" % (file.size, end))
    src = Bytes(file.path, file.size)
    try:
        crc_off = False
        for offset, length, name, plain in items if every else sampled(items, ITEMS_SAMPLED):
            if plain:
                try:
                    crc_off |= Zip(src, offset, length).crc_off
                except DamageError as error:
                    raise DamageError("C13", "item %s: %s" % (name[:60], error.text)) from None
        file.checked = "none" if crc_off else "crc"
        file.zero, crc = zero_pages(src, file.size, min(32, max(file.size // PAGE, 1)))
        file.id = "p:%d-%08x" % (file.size, crc)
    finally:
        src.close()


COUNTED = re.compile(r"(^|\.)(step|iteration|global_step|global_steps)$")


def dcp_values(entry, dcp, prefix):
    """Reads the few items that carry counters and rates."""
    left = {"hard": 3, "adam": 1, "scheduler": 1, "common": 1}
    for rel, items in sorted(dcp.shards.items()):
        for offset, length, name, plain in items:
            part = dcp_part(name)
            role = "adam" if part == "optimizer" and name.endswith(".step") else ""
            role = role or ("hard" if part == "other" and COUNTED.search(name) else "")
            role = role or (
                "scheduler" if part == "scheduler" else "common" if name == "common_state" else ""
            )
            file = entry.files.get(prefix + rel)
            if not role or not plain or not left[role] or length > SMALL * 16 or file is None:
                continue
            left[role] -= 1
            try:
                src = Bytes(file.path, file.size)
                try:
                    z, value = open_torch(src, offset, length)
                    take_value(entry, role, name, value, z.scalar)
                finally:
                    src.close()
            except (DamageError, *TROUBLE):
                continue  # damage was judged already; here only facts are wanted


def take_value(entry, role, name, value, scalar):
    """Puts one item's value where it belongs."""
    number = scalar(value) if isinstance(value, Inert) else value
    if role == "hard" and isinstance(number, (int, float)):
        entry.hard.append((int(number), name))
    elif role == "adam" and isinstance(number, (int, float)):
        entry.counters.setdefault("optimizer", int(number))
    elif isinstance(value, dict):
        absorb(entry, name, Facts(value, scalar))


def judge_dcp(entry, prefix=""):
    """Checks the DCP part of an entry, in a folder below it."""
    here = {rel[len(prefix) :]: f for rel, f in entry.files.items() if rel.startswith(prefix)}
    own = [f for rel, f in sorted(here.items()) if re.match(r"^(__\d+)?\.metadata$", rel)]
    tmp = here.get(".metadata.tmp")
    if not own and tmp is not None:
        shards_fit(entry, tmp, here, prefix)
    if not own:
        entry.say("C13", "no .metadata: the save never finished", prefix + ".metadata")
        entry.absent.append(prefix + ".metadata")
        return
    named = set()
    for meta in own:
        try:
            dcp = Dcp(meta)
        except DamageError as error:
            entry.say("C13" if error.code == "C09" else error.code, error.text, meta.rel)
            return
        except TROUBLE as error:
            entry.say("C13", "its .metadata is damaged (%s)" % type(error).__name__, meta.rel)
            return
        named.update(dcp.shards)
        fit_shards(entry, dcp, here, prefix)
        entry.parts.update(p for p in {dcp_part(n) for n in dcp.names()} if p != "other")
        if any(n.startswith("train_state") for n in dcp.names()) and entry.framework == "dcp":
            entry.framework = "torchtitan"
        entry.facts["parameters"] = entry.facts.get("parameters", 0) + dcp.parameters()
        entry.facts["save_id"] = dcp.save_id
        dcp_values(entry, dcp, prefix)
    extra = [rel for rel in here if rel.endswith(".distcp") and rel not in named]
    if extra:
        entry.say(
            "C13",
            "shards that .metadata does not name: %s" % some(extra),
            prefix + sorted(extra)[0],
        )


def fit_shards(entry, dcp, here, prefix):
    """Each shard that ``.metadata`` names is there and whole."""
    gone = [rel for rel in dcp.shards if rel not in here]
    if gone:
        words = "%d of %d shards are missing: %s" % (len(gone), len(dcp.shards), some(gone))
        entry.lacks("C13", words, [prefix + rel for rel in gone])
    for rel, items in sorted(dcp.shards.items()):
        file = here.get(rel)
        if file is None or file.bad:
            continue
        try:
            check_shard(file, items, Options.deep)
        except DamageError as error:
            entry.say(error.code, error.text, file.rel, error.level)
        except TROUBLE as error:
            entry.say("C13", "its items do not fit (%s)" % type(error).__name__, file.rel)
        file.items = items


def shards_fit(entry, tmp, here, prefix):
    """Says when a left ``.metadata.tmp`` would make the checkpoint whole."""
    before = len(entry.findings)
    try:
        fit_shards(entry, Dcp(tmp), here, prefix)
        whole = len(entry.findings) == before
    except (DamageError, *TROUBLE):
        whole = False
    if whole:
        at = os.path.join(entry.path, prefix)
        words = "only .metadata.tmp is there; all shards fit it"
        remedy = "mv %s.metadata.tmp %s.metadata makes it whole; or %s" % (
            os.path.join(at, ""),
            os.path.join(at, ""),
            FALL_BACK,
        )
        entry.say("C03", words, tmp.rel, "fail", remedy)


# ---------------------------------------------------------------- judging one checkpoint
class Options(object):
    """What the command line asked for, and how files are read."""

    deep = False
    children = False
    map_files = False
    quiet = 0.0


def absorb(entry, where, facts):
    """Adds what one file says to its checkpoint."""
    entry.parts.update(facts.parts)
    for key in [key for key in HARD if key in facts.hard][:1]:  # a file may count other things too
        if not (key == "step" and entry.framework == "accelerate"):
            entry.hard.append((facts.hard[key], "%s in %s" % (key, where)))
        else:
            entry.counters.setdefault("accelerate", facts.hard[key])
    for key, number in (("optimizer", facts.adam), ("scheduler", facts.sched)):
        if number is not None:
            entry.counters.setdefault(key, int(number))
    for key, number in (("lr", facts.lr), ("loss", facts.loss), ("epoch", facts.epoch)):
        if number is not None:
            entry.facts.setdefault(key, number)
    entry.facts.setdefault("shape", {}).update(facts.shape)
    if facts.parameters:
        entry.facts["parameters"] = entry.facts.get("parameters", 0) + facts.parameters


def trainer_state(entry, value):
    """Facts of an HF trainer_state.json."""
    if not isinstance(value, dict):
        return
    if isinstance(value.get("global_step"), int):
        entry.hard.append((value["global_step"], "global_step in trainer_state.json"))
    if isinstance(value.get("epoch"), (int, float)):
        entry.facts["epoch"] = value["epoch"]
    history = value.get("log_history")
    for row in history if isinstance(history, list) else ():
        for key, name in (("loss", "loss"), ("learning_rate", "lr"), ("grad_norm", "grad_norm")):
            if isinstance(row, dict) and isinstance(row.get(key), (int, float)):
                entry.facts[name] = row[key]


def part_of_file(name):
    """The component that a file's name tells, or nothing."""
    for part, pattern in FILE_PARTS:
        if pattern.search(name):
            return part
    return ""


def probe(entry):
    """Reads every file of an entry and judges it by its layout's rules."""
    for rel in sorted(entry.raw):
        path, st = entry.raw[rel]
        file = entry.files[rel] = File(path, rel, st)
        if Deadline.passed():
            entry.say("limit", "not inspected: the time limit was reached", level="unknown")
            return
        if LEFT_OVER.search(file.name) or LEFT_OVER.search(rel.partition("/")[0]):
            if not (file.name == ".metadata.tmp" and rel[:-4] not in entry.raw):
                entry.say("C03", "left over by an interrupted save", rel)
            elif file.size == 0:
                entry.say("C01", "empty: its content never reached the disk", rel)
            continue
        file.probe()
        for code, level, words in file.bad:
            entry.say(code, words, rel, level)
        part = part_of_file(file.name)
        if part and not (part == "model" and file.facts is not None):
            entry.parts.add(part)
        if file.facts is not None:
            if part in ("rng", "data", "scaler", "scheduler"):
                file.facts.parts, file.facts.parameters = {part}, 0
            absorb(entry, rel, file.facts)
        if file.counts:
            entry.facts["parameters"] = entry.facts.get("parameters", 0) + sum(file.counts.values())
        if file.name == "trainer_state.json":
            trainer_state(entry, file.value)
    layout(entry)
    counters(entry)
    sizes(entry)


def layout(entry):
    """The rules of the entry's own layout."""
    names, rels = entry.names(), set(entry.raw)
    if not rels:
        entry.say("C01", "an empty directory: nothing was saved")
        return
    if SET_ASIDE.match(entry.name) and entry.name not in rels:  # step_300.pt is a file's own name
        entry.say("C03", "set aside by its name, yet the trainer may still pick it up", entry.name)
    if ".orbax-checkpoint-tmp" in entry.name:
        entry.say("C03", "a temporary name: the save never finished", entry.name)
    for folder in sorted({os.path.dirname(rel) for rel in rels}):
        inside = [rel for rel in rels if os.path.dirname(rel) == folder]
        if any(
            re.search(r"(\.distcp|^\.metadata|/\.metadata|(^|/)__\d+\.metadata)(\.tmp)?$", rel)
            for rel in inside
        ):
            judge_dcp(entry, folder + "/" if folder else "")
    if entry.framework == "dcp" and not any(
        r.endswith((".distcp", "metadata", ".metadata.tmp")) for r in rels
    ):
        if not any(n.endswith((".safetensors", ".pt")) for n in names):
            entry.say("C13", "no .metadata and no shards: the save never finished")
    rules = {
        "hf-trainer": hf_rules, "megatron": megatron_rules, "deepspeed": deepspeed_rules,
        "megatron-local": local_rules, "orbax": orbax_rules, "nemo": nemo_rules,
        "torchtune": tune_rules,
    }  # fmt: skip
    rules.get(entry.framework, lambda entry, names: None)(entry, names)
    indexes(entry)
    for pattern in (r"^rng_state_(\d+)\.pth$", r"^random_states_(\d+)\.pkl$"):
        have = [int(m.group(1)) for m in (re.match(pattern, n) for n in names) if m]
        if have and not entry.ranks:
            rank_set(entry, pattern[1:].split("_(")[0], have, max(have) + 1)
    widths = [re.search(r"_world_size_(\d+)_rank_(\d+)\.pt$", n) for n in names]
    if any(widths) and not entry.ranks:
        have = {int(m.group(2)) for m in widths if m}
        rank_set(entry, "rank", have, max([int(m.group(1)) for m in widths if m][: 1 << 16]))
    if (
        entry.framework == "torch"
        and {"model", "optimizer"} <= entry.parts
        and entry.name.endswith(".pth")
    ):
        value = next(iter(entry.files.values())).value
        if isinstance(value, dict) and set(value) == {"model", "opt"}:
            entry.framework = "fastai"
    opaque = ("safetensors", "orbax")  # weights alone; one item that holds the whole state
    if "model" in entry.parts and "optimizer" not in entry.parts and entry.framework not in opaque:
        entry.say("C18", "no optimizer state in it", level="warn")


def rank_set(entry, kind, have, want):
    """Ranks are there from 0 on, as many as the checkpoint says."""
    entry.ranks = {"kind": kind, "have": ranges(have), "want": ranges(range(want))}
    gone = set(range(want)) - set(have)
    if gone:
        words = "%s %s of %d not here" % (kind, ranges(gone), want)
        entry.say("C17", words, kind, "unknown")


def hf_rules(entry, names):
    """HF Trainer: what it would skip silently."""
    rels = entry.raw
    optimizer = any(
        re.match(r"^optimizer(_\d+)?(\.pt|\.bin|/)|^global_step\d+/", rel) for rel in rels
    )
    plain = "optimizer.pt" in names
    if "trainer_state.json" not in names:
        entry.say("C15", "trainer_state.json is missing", "trainer_state.json")
        entry.absent.append("trainer_state.json")
    if plain != ("scheduler.pt" in names) and (plain or not optimizer):
        gone = "scheduler.pt" if plain else "optimizer.pt"
        entry.say("C15", "%s is missing beside its pair" % gone, gone)
        entry.absent.append(gone)
    elif not optimizer and any(n.startswith("rng_state") for n in names):
        entry.say("C15", "random states without an optimizer", "optimizer.pt")
    if not any(p == "model" for p in entry.parts) and not any(
        r.startswith("global_step") for r in rels
    ):
        entry.say("C12", "no model weights", "model.safetensors")
    if any(rel.startswith("global_step") for rel in rels):
        deepspeed_rules(entry, names)


def indexes(entry):
    """Every shard that an index or a name ``-0000i-of-0000n`` speaks of is there."""
    here = set(entry.raw)
    for rel, file in sorted(entry.files.items()):
        folder = rel[: len(rel) - len(file.name)]
        if rel.endswith(".index.json") and isinstance(file.value, dict):
            wanted = file.value.get("weight_map")
            wanted = wanted if isinstance(wanted, dict) else {}
            gone = {str(v) for v in wanted.values()} - {r[len(folder) :] for r in here}
            if gone:
                entry.say("C12", "the index names shards that are missing: %s" % some(gone), rel)
                entry.absent += [folder + g for g in gone]
            for tensor, shard in wanted.items():
                holder = entry.files.get(folder + str(shard))
                if holder is not None and holder.counts and tensor not in holder.counts:
                    entry.say("C12", "tensor %s is not in %s" % (str(tensor)[:60], shard), rel)
                    break
        m = re.match(r"^(.*-)(\d{5})-of-(\d{5})(\..*)$", rel)
        if m and int(m.group(2)) == 1 and int(m.group(3)) < 100000:
            n = int(m.group(3))
            parts = ["%s%05d-of-%05d%s" % (m.group(1), i, n, m.group(4)) for i in range(1, n + 1)]
            gone = [p for p in parts if p not in here]
            if gone and not any(f["code"] == "C12" for f in entry.findings):
                entry.say("C12", "shards are missing: %s" % some(gone), gone[0])
                entry.absent += gone


def megatron_rules(entry, names):
    """Megatron-LM, legacy and distributed."""
    rels = entry.raw
    folders = {m.group(1) for m in (re.match(r"^(mp_rank_[\d_]+)/", rel) for rel in rels) if m}
    if not folders:
        entry.framework = "megatron-dist"
        if any(n in names for n in (".metadata", ".metadata.tmp")) or any(
            n.endswith(".distcp") for n in names
        ):
            if "metadata.json" not in names:
                entry.say("C14", NO_MCORE, "metadata.json")
                entry.absent.append("metadata.json")
        elif any(rel.endswith("/.zarray") for rel in rels) and "metadata.json" in names:
            entry.parts.update({dcp_part(rel) for rel in rels if "/" in rel} - {"other"})
            entry.say("C23", "zarr arrays: their content is not looked at", level="pass")
        elif not any(f["code"] == "C13" for f in entry.findings):
            entry.say("C14", "neither mp_rank folders nor a distributed checkpoint", entry.name)
        return
    entry.framework = "megatron-legacy"
    for folder in sorted(folders):
        inside = [rel for rel in rels if rel.startswith(folder + "/")]
        if not any(rel.endswith("model_optim_rng.pt") for rel in inside):
            entry.say("C17", "%s has no model_optim_rng.pt" % folder, folder)
            entry.absent.append(folder + "/model_optim_rng.pt")
    shape = entry.facts.get("shape", {})
    dims = [shape.get(k) or 1 for k in SHAPE[:3]]
    if not shape.get(SHAPE[0]):
        return
    radix = [dims[0]] + [d for d in dims[1:] if d > 1]
    have = []
    for folder in folders:
        numbers = [int(n) for n in folder[8:].split("_") if n]
        at = 0
        for i in range(min(len(numbers), len(radix))):
            at = at * radix[i] + numbers[i]
        have.append(at)
    rank_set(entry, "mp_rank", have, dims[0] * dims[1] * dims[2])


def deepspeed_rules(entry, names):
    """DeepSpeed: one optimizer shard for each data-parallel rank and model-parallel rank."""
    have, mp = [], set()
    for name in names:
        m = re.match(r"^(?:bf16_|fp16_)?zero_pp_rank_(\d+)_mp_rank_(\d+).*_optim_states\.pt$", name)
        if m:
            have.append((int(m.group(1)), int(m.group(2))))
        m = re.match(r"^mp_rank_(\d+)_model_states\.pt$", name)
        if m:
            mp.add(int(m.group(1)))
    shape = entry.facts.get("shape", {})
    wide = int(shape.get("mp_world_size") or 0) or max([m for _, m in have] + list(mp) + [-1]) + 1
    long = int(shape.get("dp_world_size") or 0) or max([r for r, _ in have] + [-1]) + 1
    if have and wide * long < 1 << 22:
        rank_set(entry, "zero_pp_rank", [r * wide + m for r, m in have if m < wide], wide * long)
    elif mp:
        rank_set(entry, "mp_rank", list(mp), wide)


def local_rules(entry, names):
    """NVRx local checkpoints: every rank seen here has its own shard or a replica of it."""
    owners, holders = set(), set()
    for rel in entry.raw:
        m = LOCAL.match(rel.rpartition("/")[2])
        if m and not m.group(3):
            owners.add(int(m.group(2)))
        if rel.split("/")[0].isdigit():
            holders.add(int(rel.split("/")[0]))
    want = holders | owners
    entry.ranks = {"kind": "owner", "have": ranges(owners), "want": ranges(want)}
    if want - owners:
        entry.say("C17", "no shard of rank %s" % ranges(want - owners), "rank", "unknown")


def orbax_rules(entry, names):
    """Orbax: committed, and its manifests whole."""
    for rel, file in sorted(entry.files.items()):
        if file.name == "manifest.ocdbt" and file.size:
            with open(file.path, "rb") as f:
                head = f.read(12)
            if (
                head[:4] != b"\x0c\xdb\x3a\x2a"
                or struct.unpack("<Q", head[4:].ljust(8, b"\0"))[0] != file.size
            ):
                entry.say("C06", "its OCDBT manifest is damaged", rel)
        if file.name == "_CHECKPOINT_METADATA" and isinstance(file.value, dict):
            if (
                not file.value.get("commit_timestamp_nsecs")
                and "commit_success.txt" not in entry.raw
            ):
                entry.say("C03", "never committed", rel)
    folders = {rel.split("/")[0] for rel in entry.raw if "/" in rel}
    if "_CHECKPOINT_METADATA" not in entry.raw and "commit_success.txt" not in entry.raw:
        entry.say("C03", NO_COMMIT, entry.name)
    for folder in folders:
        words = {
            "params": "model",
            "model": "model",
            "state": "model",
            "opt_state": "optimizer",
            "default": "model",
        }
        entry.parts.update([words[folder]] if folder in words else [])


def nemo_rules(entry, names):
    """NeMo 2: the weights folder holds a distributed checkpoint."""
    if not any(rel.startswith("weights/") for rel in entry.raw):
        if "common.pt" not in entry.raw:
            entry.say("C13", "no weights", "weights")
    elif "weights/metadata.json" not in entry.raw:
        entry.say(
            "C14", "no weights/metadata.json: the save never finished", "weights/metadata.json"
        )


def tune_rules(entry, names):
    """torchtune: recipe_state.pt belongs to the weights of every epoch but the last."""
    if "recipe_state.pt" not in names and "model" in entry.parts:
        entry.parts.discard("optimizer")


EXACT_NAMES = (
    "hf-trainer",
    "megatron-legacy",
    "megatron-dist",
    "megatron-local",
    "deepspeed",
    "dcp",
    "torchtitan",
)


def counters(entry):
    """Every counter in the checkpoint tells the same step, and it is the name's."""
    hard = entry.hard
    slack = 1 if entry.framework in ("lightning", "nemo") else 0
    numbers = sorted({number for number, _ in hard})
    if len(numbers) > 1 and numbers[-1] - numbers[0] > slack:
        words = "; ".join("%d (%s)" % pair for pair in sorted(hard)[:1] + sorted(hard)[-1:])
        entry.say("C16", "its files are of different steps: %s" % words)
    if entry.framework in EXACT_NAMES or slack:
        if numbers and entry.named_step is not None and abs(numbers[0] - entry.named_step) > slack:
            words = "named %d, but inside it is step %d" % (entry.named_step, numbers[0])
            entry.say("C16", words, entry.name)
        if entry.step is None and numbers:
            entry.step = numbers[-1]
    else:
        inside = numbers[-1:] + [entry.counters.get(k) for k in ("optimizer", "accelerate")]
        inside = [n for n in inside if n]
        entry.numbered = not inside  # then the step is only the number in its name
        entry.step = inside[0] if inside else entry.step
    siblings = {}
    for rel, file in sorted(entry.files.items()):
        if file.facts is not None and file.facts.adam is not None:
            siblings.setdefault(re.sub(r"\d+", "#", rel), []).append((int(file.facts.adam), rel))
    for group in siblings.values():
        low, high = min(group), max(group)
        if low[0] != high[0]:
            words = "optimizer step %d here, %d in %s: a file of another save" % (
                low[0],
                high[0],
                high[1],
            )
            entry.say("C16", words, low[1])


def sizes(entry):
    """Size, times, bytes a parameter."""
    state = [f for f in entry.files.values() if STATE_FILE.search(f.name)] or list(
        entry.files.values()
    )
    times = [f.st.st_mtime for f in entry.files.values()]
    entry.facts["bytes"] = sum(f.size for f in entry.files.values())
    entry.facts["n_files"] = len(entry.files)
    if times:
        entry.facts["oldest"], entry.facts["newest"] = min(times), max(times)
    if len(state) > 1:
        stamps = [f.st.st_mtime for f in state]
        entry.facts["save_s"] = round(max(stamps) - min(stamps), 3)
    if entry.facts.get("parameters"):
        state_bytes = sum(f.size for f in state)
        entry.facts["bytes_per_parameter"] = round(state_bytes / entry.facts["parameters"], 2)


# ---------------------------------------------------------------- against the one before
def blanked(entry):
    """Files by name with step numbers blanked; one file stands for itself."""
    if len(entry.files) == 1 and entry.framework in ("torch", "lightning", "fastai", "safetensors"):
        return {"": next(iter(entry.files.values()))}
    return {NUMBER.sub(r"\1#", rel): f for rel, f in entry.files.items()}


GROWS = re.compile(
    r"\.(json|txt|yaml|md|model|py|log)$|dataloader|sampler|dl_state|^rng_state|^random_states|scheduler"
)


def compare(entry, before, after):
    """What differs from the previous sound checkpoint and should not."""
    now, then = blanked(entry), blanked(before)
    next_one = blanked(after) if after is not None else None
    gone = [
        n
        for n in then
        if n not in now and NEEDED_FILE.search(then[n].name) and not n.endswith(".distcp")
    ]
    gone = [n for n in gone if not LEFT_OVER.search(then[n].name) and n not in entry.absent]
    began = entry.facts.get("oldest", 0)
    if before.facts.get("oldest", 0) < began:  # what came there after this save began is no part
        gone = [n for n in gone if then[n].st.st_mtime < began]
    if (
        entry.ranks
        and before.ranks
        and entry.ranks["want"] != before.ranks["want"]
        and entry.framework == "deepspeed"
    ):
        gone = [n for n in gone if "zero_pp_rank" not in n]  # the world size changed, and says so
    if gone:
        lasting = next_one is not None and all(n not in next_one for n in gone)
        words = "the checkpoint before has %s, this one has not" % some(gone)
        entry.lacks("C19", words, gone, "warn" if lasting else "fail")
    # Only what both hold counts: somebody may have put a README or merged weights there later.
    dated = {n: f.st.st_mtime for n, f in now.items() if STATE_FILE.search(f.name)}
    elder = {n: then[n].st.st_mtime for n in dated if n in then}
    newest = max(list(elder.values()) or [0])
    stale = [n for n, at in dated.items() if at < newest or at <= elder.get(n, at - 1)]
    stale = [now[n] for n in stale if entry.step != before.step]
    if stale and len(stale) < len(now) and entry.facts.get("newest", 0) > newest:
        entry.say(
            "C20",
            "older than the checkpoint before: a file of another save",
            sorted(f.rel for f in stale)[0],
        )
    steps = entry.counters.get("optimizer"), before.counters.get("optimizer")
    if (
        steps[0] is not None
        and steps[0] == steps[1]
        and entry.named_step != before.named_step
        and entry.step != before.step
    ):
        entry.say(
            "C16",
            "its optimizer stands at step %d, as in the checkpoint before" % steps[0],
            "optimizer",
        )
    for name, file in sorted(now.items()):
        if name in then and not file.bad:
            one_file(entry, file, then[name])


def one_file(entry, file, old):
    """Size and zeroed pages of one file against the same file before."""
    if abs(file.size - old.size) > max(8192, 0.02 * old.size) and not GROWS.search(file.name):
        entry.say(
            "C21", "%d bytes, %d in the checkpoint before" % (file.size, old.size), file.rel, "warn"
        )
    fresh = file.zero - old.zero if file.size == old.size else ()
    if fresh and file.checked == "crc" and file.size <= 256 << 20:
        _, level, rule, words = checksum(file)
        if words:
            entry.say(rule, words, file.rel, level)
    elif fresh:
        level = "unknown" if file.checked == "crc" else "fail"
        remedy = "inspect with --deep" if level == "unknown" else ""
        entry.say(
            "C22",
            "pages are zero here and were not before: lost in the power cut?",
            file.rel,
            level,
            remedy,
        )


def adopt(entries):
    """Gives a torn checkpoint that is named by a running number the step its elders lead to."""
    groups = {}
    for entry in entries:
        groups.setdefault((entry.parent, re.sub(r"\d+", "#", entry.name)), []).append(entry)
    for group in groups.values():
        known = [(name_number(e), e.step, e.framework) for e in group if not e.numbered]
        known = sorted(k for k in known if None not in k)
        for entry in group:
            number = name_number(entry)
            if not entry.numbered or number is None or not known or worst(entry.findings) != "fail":
                continue
            entry.framework = known[-1][2]
            if all(n == step for n, step, _ in known):
                continue
            entry.step = led_to(known, number)
            entry.facts["step_guessed"] = True


def unstep(entries):
    """Takes the step from single files whose number is none, where checkpoints with steps are.

    tokens_2048.pt and base-7000.pth beside checkpoint-300 must not become the step to resume from.
    """
    firm = [e for e in entries if e.step is not None and not e.numbered and not single(e)]
    firm += [e for e in entries if single(e) and not e.numbered and "optimizer" in e.parts]
    kin = {(e.parent, re.sub(r"\d+", "#", e.name)) for e in firm}
    for entry in entries if firm else ():
        if not single(entry) or (entry.parent, re.sub(r"\d+", "#", entry.name)) in kin:
            continue
        if entry.numbered or (entry.sound() and not {"model", "optimizer"} & entry.parts):
            entry.step, entry.alias = None, True
            entry.findings = [f for f in entry.findings if f["code"] != "C18"]  # no checkpoint


def single(entry):
    """Claims that an entry is one file."""
    return entry.name in entry.raw


def by_custom(entries):
    """What no checkpoint of a series ever had is its layout's way, and no damage."""
    groups = {}
    for entry in entries:
        groups.setdefault((entry.framework, entry.parent), []).append(entry)
    for group in groups.values():
        for code, words in UNMARKED:
            marked = [[f for f in e.findings if (f["code"], f["finding"]) == (code, words)]
                      for e in group]  # fmt: skip
            if len(group) < 2 or not all(marked):
                continue
            for one in [one for found in marked for one in found]:
                one.update(finding=words + ", nor in those before", level="pass", remedy="")
            for entry in group:
                entry.absent = [name for name in entry.absent if name != "metadata.json"]


NO_MCORE = "no metadata.json: the save never finished"
NO_COMMIT = "neither _CHECKPOINT_METADATA nor commit_success.txt"
# torch_dcp and fsdp_dtensor of Megatron-LM write no metadata.json; old Orbax renamed, and no more.
UNMARKED = (("C14", NO_MCORE), ("C03", NO_COMMIT))


def name_number(entry):
    """The last number in a name."""
    m = LAST_NUMBER.search(entry.name)
    return int(m.group(1)) if m and len(m.group(1)) < 16 else None


def led_to(known, number):
    """The step of a running number when all others lie on one line, else None."""
    (n0, s0, _), (n1, s1, _) = known[0], known[-1]
    if n0 == n1 or (s1 - s0) % (n1 - n0):
        return None
    slope = (s1 - s0) // (n1 - n0)
    straight = slope > 0 and all(s0 + slope * (n - n0) == s for n, s, _ in known)
    return s0 + slope * (number - n0) if straight else None


def series(entries):
    """Compares each entry with the previous sound one of its series."""
    groups = {}
    for entry in entries:
        shape = entry.framework, entry.parent, entry.alias
        groups.setdefault(shape, []).append(entry)
    for group in groups.values():
        group.sort(key=lambda e: (e.step is not None, e.step or 0, e.facts.get("newest", 0)))
        structural = {id(e): e.sound() or only_ranks(e) for e in group}
        before = None
        for i, entry in enumerate(group):
            if before is not None:
                compare(entry, before, group[i + 1] if i + 1 < len(group) else None)
            if structural[id(entry)]:
                before = entry


def only_ranks(entry):
    """Claims that nothing but a partial set of ranks speaks against an entry."""
    return all(
        f["level"] in ("pass", "warn") or (f["code"] == "C17" and f["level"] == "unknown")
        for f in entry.findings
    )


def join_ranks(entries):
    """Partial rank sets in sibling folders (one a node) that together are whole need no finding."""
    groups = {}
    for entry in entries:
        if entry.ranks:
            at = os.path.dirname(entry.parent), entry.name, entry.ranks["kind"]
            groups.setdefault(at, []).append(entry)
    for group in groups.values():
        have, want = set(), set()
        for entry in group:
            have |= unfold(entry.ranks["have"])
            want |= unfold(entry.ranks["want"])
        if len(group) > 1 and want <= have:
            for entry in group:
                entry.findings = [
                    f for f in entry.findings if (f["code"], f["level"]) != ("C17", "unknown")
                ]


def unfold(text):
    """The set behind 0-3,7."""
    found = set()
    for part in text.split(","):
        a, _, b = part.partition("-")
        if a:
            found.update(range(int(a), int(b or a) + 1))
    return found


# ---------------------------------------------------------------- every byte
def checksum(file, part=0, parts=1):
    """Reads (one part of) a file against its checksums: bytes read, level, rule, words."""
    try:
        src = Bytes(file.path, file.size)
        try:
            if file.kind == "torch":
                return Zip(src, 0, file.size).check_crcs(part, parts, file.size), "", "", ""
            total = 0
            for offset, length, _name, plain in file.items:
                if plain and offset * parts // file.size == part:
                    total += Zip(src, offset, length).check_crcs()
            return total, "", "", ""
        finally:
            src.close()
    except DamageError as error:
        return 0, error.level, "C23" if error.code == "C08" else error.code, error.text
    except OSError as error:
        lost = File(file.path, file.rel, file.st)
        lost.unreadable(error)
        return 0, lost.bad[0][1], lost.bad[0][0], lost.bad[0][2]
    except TROUBLE as error:
        return 0, "fail", "C23", "cannot be read to its end (%s)" % type(error).__name__


class Reader(object):
    """Reads all jobs (file, part, parts) in children, since a bad block can kill who maps it."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.answers = {}  # job number -> (bytes, level, rule, words)

    def run(self):
        """The answers; jobs that the time limit cut off have none."""
        left = list(range(len(self.jobs)))
        while left and not Deadline.passed():
            n = min(os.cpu_count() or 1, 4, len(left)) if Options.children else 0
            if not n:
                for number in left:
                    if not Deadline.passed():
                        self.answers[number] = checksum(*self.jobs[number])
                break
            for child in [self._start(left[i::n]) for i in range(n)]:
                self._collect(*child)
            left = [number for number in left if number not in self.answers]
        return self.answers

    def _start(self, numbers):
        out, into = os.pipe()
        pid = os.fork()
        if pid:
            os.close(into)
            return pid, out
        try:
            os.close(out)
            Options.map_files = True
            for number in numbers:
                if Deadline.passed():
                    break
                os.write(into, json.dumps([number]).encode() + b"\n")
                os.write(into, json.dumps([number, checksum(*self.jobs[number])]).encode() + b"\n")
        finally:
            os._exit(0)

    def _collect(self, pid, out):
        with os.fdopen(out, "rb") as lines:
            rows = [json.loads(line.decode()) for line in lines if line.endswith(b"\n")]
        _, status = os.waitpid(pid, 0)
        begun = None
        for row in rows:
            begun = row[0] if len(row) == 1 else None
            if len(row) == 2:
                self.answers[row[0]] = tuple(row[1])
        if begun is not None:
            words = "reading it was ended by signal %d: a bad block, or it shrank" % (status & 127)
            self.answers[begun] = 0, "fail", "C30", words


def integrity(entry):
    """Files against the sha256 list of newer Megatron-Core, where there is one."""
    listed = {}
    for rel, file in sorted(entry.files.items()):
        if (
            file.name == "integrity.json"
            and isinstance(file.value, dict)
            and file.value.get("algorithm") == "sha256"
        ):
            folder = rel[: -len(file.name)]
            files = file.value.get("files")
            for name, digest in files.items() if isinstance(files, dict) else ():
                listed[folder + str(name)] = str(digest)
    for rel, digest in sorted(listed.items()):
        file = entry.files.get(rel)
        if file is None:
            entry.say("C23", "integrity.json names it, but it is missing", rel)
            continue
        sha = hashlib.sha256()
        with open(file.path, "rb") as f:
            for part in iter(lambda: f.read(1 << 20), b""):
                sha.update(part)
        if sha.hexdigest() != digest:
            entry.say("C23", "does not match integrity.json", rel)
        file.checked = "sha256"


def deep(entries):
    """Reads all of all entries, the newest first; what could not be checked is said."""
    jobs, owners = [], []
    for entry in sorted(entries, key=lambda e: -(e.step or 0)):
        for _, file in sorted(entry.files.items()):
            if file.checked == "crc" and not file.bad and file.size:
                parts = max(1, min(16, file.size // (128 << 20)))
                jobs += [(file, part, parts) for part in range(parts)]
                owners += [entry] * parts
    answers = Reader(jobs).run()
    for number, entry in enumerate(owners):
        file = jobs[number][0]
        n, level, rule, words = answers.get(number, (0, "unknown", "limit", "not read to its end"))
        entry.facts["checksummed_bytes"] = entry.facts.get("checksummed_bytes", 0) + n
        if words:
            entry.say(rule, words, file.rel, level)


def unprotected(entry):
    """Holds files against their sha256 list; what has no checksum at all is said."""
    integrity(entry)
    bare = [f.rel for f in entry.files.values() if f.checked == "none"]
    if bare:
        entry.say("C23", "no checksum in this format: %s" % some(bare), sorted(bare)[0], "pass")


# ---------------------------------------------------------------- pointers
def pointer_facts(path, entries):
    """What a pointer file says, judged against the entries beside it."""
    folder, name = os.path.split(path)
    mine = [e for e in entries if e.parent == folder and e.framework.startswith(TRACKERS[name])]
    sound = [e for e in mine if e.step is not None and (e.sound() or only_ranks(e))]
    best = max(sound, key=lambda e: e.step) if sound else None
    fact = {"path": path, "text": "", "step": None, "problem": "", "words": ""}
    try:
        with open(path, "rb") as f:
            raw = f.read(256)
    except OSError as error:
        fact["problem"], fact["words"] = (
            "unreadable",
            "cannot be read: %s" % (error.strerror or error),
        )
        return fact, best
    text = fact["text"] = raw.decode("utf-8", "backslashreplace").strip()[:80]
    m = re.match(r"^(?:global_step)?(\d{1,18})$", text)
    fact["step"] = int(m.group(1)) if m else None
    named = [e for e in mine if (e.step == fact["step"] if m else e.name == text)]
    if not raw.strip():
        fact["problem"], fact["words"] = "empty", "the pointer is empty"
    elif b"\0" in raw:
        fact["problem"], fact["words"] = "nul", "the pointer holds NUL bytes"
    elif text == "release" or not mine:
        return fact, best
    elif not m and not named:
        fact["problem"], fact["words"] = "garbage", "the pointer names nothing known: %r" % text
    elif not named:
        fact["problem"], fact["words"] = "absent", "the pointer names %s, which is not there" % text
    elif named[0] not in sound:
        fact["problem"], fact["words"] = "torn", "the pointer names %s, which is not sound" % text
    elif best is not None and best.step > (named[0].step or 0):
        fact["problem"], fact["words"] = (
            "behind",
            "the pointer names %s, but %d is sound" % (text, best.step),
        )
    return fact, best


def pointers(found, entries):
    """All pointer facts; problems also become warnings at the newest sound checkpoint."""
    facts = []
    for path in found:
        facts.append(pointer_facts(path, entries))
    seen = {os.path.dirname(p) for p in found}
    for entry in entries:
        kind = entry.framework.partition("-")[0]
        if (
            kind in TRACKERS.values()
            and entry.framework != "megatron-local"
            and entry.parent not in seen
        ):
            seen.add(entry.parent)
            if entry.ranks and 0 not in unfold(entry.ranks["have"]):
                continue  # node-local: rank 0's node keeps the pointer
            if os.path.basename(entry.parent).startswith("checkpoint-"):
                continue
            name = next(n for n, k in TRACKERS.items() if k == kind)
            path = os.path.join(entry.parent, name)
            words = "there is no %s although checkpoints exist" % name
            sound = [
                e for e in entries if e.parent == entry.parent and e.step is not None and e.sound()
            ]
            best = max(sound, key=lambda e: e.step) if sound else None
            facts.append(
                (
                    {"path": path, "text": "", "step": None, "problem": "missing", "words": words},
                    best,
                )
            )
    for fact, best in facts:
        if fact["problem"] and best is not None:
            value = str(best.step) if fact["path"].endswith(".txt") else best.name
            fact["repair"] = "printf %%s %s > %s" % (value, quoted(fact["path"]))
            code = "C05" if fact["problem"] == "missing" else "C04"
            best.say(code, fact["words"], fact["path"], "warn", fact["repair"])
    return [fact for fact, _ in facts]


def quoted(text):
    """A word for the shell."""
    return text if re.match(r"^[\w./=@%+:,-]+$", text) else "'%s'" % text.replace("'", "'\"'\"'")


# ---------------------------------------------------------------- all together
def settle(entries):
    """Waits where a torn checkpoint is so young that its save may still go on.

    The listing before and the one after (`still_quiet`) then lie ``--quiet`` seconds apart.
    """
    now, quiet = time.time(), Options.quiet
    young = [e for e in entries if not e.sound() and -1 < now - e.facts.get("newest", 0) < quiet]
    if young and not Deadline.passed():
        time.sleep(quiet)


def still_quiet(entry, writers):
    """Says so when somebody writes there: files changed or came, or a process holds them open."""
    words, rel = grown(entry), ""
    for name in list(entry.raw)[:2000]:
        path, st = entry.raw[name]
        try:
            now = os.stat(path)
            changed = (now.st_size, now.st_mtime_ns, now.st_ino) != (
                st.st_size,
                st.st_mtime_ns,
                st.st_ino,
            )
        except OSError:
            changed = True
        holder = writers.get(os.path.realpath(path)) if writers else None
        if holder and STATE_FILE.search(name):
            words, rel = "process %s has it open for writing: a job is still saving" % holder, name
        elif changed:
            words, rel = "changed while it was inspected: a job is still writing", name
        if words:
            break
    if words:
        for one in entry.findings:  # a save that still goes on looks torn, and is not
            if one["level"] == "fail":
                one.update(level="unknown", remedy=REMEDY["C29"])
        entry.say("C29", words, rel, "unknown")


def grown(entry):
    """Words for files that came since the first listing; nothing where that cannot be told."""
    if Options.quiet <= 0 or single(entry) or not os.path.isdir(entry.path):
        return ""
    try:
        came = set(gather(os.path.realpath(entry.path))) - set(entry.raw)
    except OSError:
        return ""
    return "%s came while it was inspected: a job is still writing" % some(came) if came else ""


def writers_of(entries):
    """Files that processes hold open for writing: path -> process; only when anything is in doubt.

    Of other users' processes root alone can tell, and of other nodes' nobody.
    """
    now = time.time()
    if all(e.sound() and now - e.facts.get("newest", 0) > YOUNG for e in entries):
        return {}
    folders = tuple({os.path.realpath(e.path) for e in entries})
    found = {}
    for pid in filter(str.isdigit, listed("/proc")):
        for fd in listed("/proc/%s/fd" % pid):
            try:
                target = os.readlink("/proc/%s/fd/%s" % (pid, fd))
                if not target.startswith(folders):
                    continue
                with open("/proc/%s/fdinfo/%s" % (pid, fd)) as lines:
                    flags = re.search(r"^flags:\s*([0-7]+)", lines.read(), re.MULTILINE)
            except (OSError, ValueError):
                continue
            if flags and int(flags.group(1), 8) & os.O_ACCMODE != os.O_RDONLY:
                found[target] = pid
    return found


def listed(path):
    """Names in a directory; none where it cannot be read."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def printed(entry):
    """An entry as it is printed."""
    rows, digest, content = [], hashlib.sha256(), hashlib.sha256()
    for rel, file in sorted(entry.files.items()):
        st = file.st
        digest.update(
            ("%s %d %d %d\n" % (rel, st.st_size, st.st_mtime_ns, st.st_ino)).encode(
                "utf-8", "replace"
            )
        )
        content.update(("%s %s\n" % (rel, file.id or st.st_size)).encode("utf-8", "replace"))
        row = {"name": rel, "size": st.st_size, "mtime_ns": st.st_mtime_ns, "inode": st.st_ino}
        if file.id:
            row["id"] = file.id
        rows.append(row)
    facts = {k: v for k, v in entry.facts.items() if v not in ("", {}, None)}
    if entry.counters:
        facts["counters"] = entry.counters
    entry.findings.sort(key=lambda f: -LEVELS.index(f["level"]))
    return {
        "step": entry.step, "level": worst(entry.findings), "path": entry.path,
        "framework": entry.framework, "components": sorted(entry.parts),
        "findings": entry.findings[:50],
        "facts": facts, "ranks": entry.ranks, "absent": sorted(set(entry.absent))[:FILES_LISTED],
        "alias": entry.alias, "files": rows[:FILES_LISTED],
        "files_left_out": max(0, len(rows) - FILES_LISTED),
        "seen": digest.hexdigest()[:32], "content": content.hexdigest()[:32],
    }  # fmt: skip


def newest_of(entries, count):
    """The newest ``count`` entries of each series."""
    groups, kept = {}, []
    for entry in entries:
        groups.setdefault((entry.framework, entry.parent), []).append(entry)
    for group in groups.values():
        group.sort(key=lambda e: (e.step if e.step is not None else 1 << 62, e.name))
        kept += group[-count:]
    return kept


def inspect(paths, newest):
    """The whole document."""
    finder, places, errors = Finder(), [], []
    for path in paths:
        path = os.path.abspath(os.path.expanduser(path))
        place = {"path": path, "exists": True, "storage": None}
        places.append(place)
        try:
            place["storage"] = storage_of(path)
            finder.at(path)
        except OSError as error:
            place["exists"] = error.errno not in (errno.ENOENT, errno.ENOTDIR)
            errors.append({"path": path, "error": error.strerror or str(error)})
    entries = newest_of(finder.entries, newest)
    left_out = len(finder.entries) - len(entries)
    for entry in sorted(entries, key=lambda e: -(e.step or 0)):
        guarded(probe, entry, errors)
        marker = finder.markers.get(entry.path)
        if marker is not None:
            remedy = (
                "if every check of it passes, rm %s; the framework deletes what it marks"
                % quoted(marker)
            )
            entry.say("C03", "marked as unfinished", marker, "fail", remedy)
    adopt(entries)
    unstep(entries)
    by_custom(entries)
    series(entries)
    join_ranks(entries)
    if Options.deep:
        deep(entries)
        for entry in entries:
            guarded(unprotected, entry, errors)
    facts = pointers(finder.pointers, entries)
    settle(entries)
    writers = writers_of(entries)
    for entry in entries:
        still_quiet(entry, writers)
    for place in places:
        space(place, entries, finder.findings)
    entries.sort(key=lambda e: (e.step is not None, e.step or 0, e.path))
    return {
        "checkpoints": [printed(e) for e in entries], "pointers": facts, "paths": places,
        "findings": finder.findings, "errors": errors, "left_out": left_out,
    }  # fmt: skip


def guarded(work, entry, errors):
    """Does work on an entry; what goes wrong becomes an UNKNOWN finding, not an end."""
    try:
        work(entry)
    except (*TROUBLE, DamageError) as error:
        words = "the inspection itself stumbled: %s: %s" % (type(error).__name__, str(error)[:120])
        entry.say("inspector", words, level="unknown", remedy="look at this checkpoint by hand")
        errors.append({"path": entry.path, "error": words})


def space(place, entries, findings):
    """Warns of a read-only or full file system under a path."""
    storage = place["storage"]
    if not storage:
        return
    if storage["read_only"]:
        findings.append(
            finding("C30", "mounted read-only: the job could not save", place["path"], "warn")
        )
    sizes = [
        e.facts.get("bytes", 0) for e in entries if e.path.startswith(place["path"]) and e.sound()
    ]
    if sizes and storage["free_bytes"] < max(sizes):
        words = "%d bytes free, the next checkpoint needs %d" % (storage["free_bytes"], max(sizes))
        findings.append(finding("C30", words, place["path"], "warn"))


def limit_memory():
    """A hostile file may at most use up this, and becomes a finding."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = 8 << 30
        if soft == resource.RLIM_INFINITY or soft > wanted:
            resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    except (ImportError, OSError, ValueError):
        pass


def main(argv):
    """Reads the arguments, prints one JSON document."""
    began, paths, newest = time.time(), [], 40
    words = list(argv)
    while words:
        word = words.pop(0)
        if word == "--deep":
            Options.deep = True
        elif word == "--newest":
            newest = max(2, int(words.pop(0)))
        elif word == "--quiet":
            Options.quiet = min(60.0, float(words.pop(0)))
        elif word == "--limit":
            Deadline.end = time.monotonic() + float(words.pop(0))
        elif word != "--previous":  # always done
            paths.append(word)
    limit_memory()
    Options.children = hasattr(os, "fork")
    document = inspect(paths, newest)
    document.update({
        "inspector": VERSION, "power": "full", "deep": Options.deep, "now": time.time(),
        "seconds": round(time.time() - began, 3), "host": socket.gethostname(),
        "python": sys.version.split()[0], "end": True,
    })  # fmt: skip
    sys.stdout.write(json.dumps(document, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
