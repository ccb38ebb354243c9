"""One value as NVIDIA's tools print it: a reading, no reading, or a failed reading."""

from __future__ import annotations

import re
from functools import lru_cache

# The words for "there is no value"; brackets and case vary by driver and query.
_ABSENT = frozenset(
    {
        "",
        "-",
        "n/a",
        "not supported",
        "not available",
        "not found",
        "insufficient permissions",
        "requested functionality has been deprecated",
        "unset",
        "unavailable",
    }
)
_FAILED = ("err!", "unknown error", "gpu is lost", "gpu requires reset", "reset required")
_NUMBER = re.compile(r"[-+]?\d[\d .,'\u00a0\u202f]*")
_BUS = re.compile(
    r"(?:0x)?([0-9a-f]{1,8}:)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?", re.IGNORECASE
)


def _word(text: str) -> str:
    return text.strip().strip("[]").strip().lower()


@lru_cache(maxsize=2048)  # a node prints the same few values hundreds of times
def is_failed(text: str) -> bool:
    """Claims that the driver tried to read the value and could not: a sign of a sick GPU."""
    return _word(text).startswith(_FAILED)


@lru_cache(maxsize=2048)
def is_absent(text: str) -> bool:
    """Claims that the driver says there is no such value here, which is no fault."""
    word = _word(text)
    if word in _ABSENT or word.startswith("n/a "):
        return True
    bracketed = text.strip().startswith("[") and text.strip().endswith("]")
    return bracketed and not is_failed(text)


@lru_cache(maxsize=2048)
def told(text: str) -> str | None:
    """The value without blanks around it; None where there is none, or reading it failed."""
    return None if is_absent(text) or is_failed(text) else text.strip()


def is_lost(text: str) -> bool:
    """Claims that the driver says that the GPU itself is gone or must be reset."""
    word = _word(text)
    return "lost" in word or "reset" in word


@lru_cache(maxsize=2048)
def decimal(text: str) -> float | None:
    """The number at the beginning, with a point or a comma before its decimals; None if none."""
    match = _NUMBER.match(text.strip())
    if match is None:
        return None
    digits = re.sub(r"[ '\u00a0\u202f]", "", match[0]).rstrip(".,")
    if "," in digits and "." not in digits:
        digits = digits.replace(",", ".") if digits.count(",") == 1 else digits.replace(",", "")
    digits = digits.replace(",", "")
    if digits.count(".") > 1:
        digits = digits.replace(".", "")
    try:
        return float(digits)
    except ValueError:
        return None


def whole(text: str) -> int | None:
    """The whole number at the beginning; separators between thousands do not count."""
    match = _NUMBER.match(text.strip())
    if match is None:
        return None
    groups = re.split(r"[ .,'\u00a0\u202f]", match[0].strip(" .,'\u00a0\u202f"))
    if len(groups) > 1 and all(len(group) == 3 for group in groups[1:]):
        return int("".join(groups))
    if len(groups) == 1 or not groups[0]:
        return int(match[0].strip(" .,'\u00a0\u202f")) if groups[0] else None
    return int(groups[0])


def bus_id(text: str) -> str:
    """A PCI address in nvidia-smi's own long form, ``00000000:0F:00.0``; other text as it is."""
    match = _BUS.fullmatch(text.strip())
    if match is None:
        return text.strip()
    domain = (match[1] or "0:").rstrip(":").zfill(8).upper()
    return f"{domain}:{match[2].upper()}:{match[3].upper()}.{match[4] or '0'}"
