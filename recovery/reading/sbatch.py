"""A Slurm batch script and sbatch options -> how many nodes a job wants, and where.

Read are the ``#SBATCH`` lines before the first command, as sbatch does; options given on the
command line come over them. Long options may be shortened as getopt allows.

Source: sbatch(1) of Slurm 24.05; src/sbatch/opt.c for where the options of a script end.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from recovery.errors import InputError

_MAGIC = "#SBATCH"
# The long options that we read, and those that share a beginning with one of them.
_LONG = (
    *("nodes", "nodelist", "nodefile", "partition", "parsable", "exclude", "exclusive"),
    *("ntasks", "ntasks-per-node", "ntasks-per-gpu", "ntasks-per-core", "ntasks-per-socket"),
    *("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"),
)
_SHORT = {"N": "nodes", "w": "nodelist", "p": "partition", "x": "exclude", "n": "ntasks"}
_SHORT |= {"G": "gpus", "F": "nodefile"}
_SHORT_FLAGS = "hHIkOQsuvVWb"  # short options without a value: `-Hp gpu` is -H and -p
_FLAGS = ("parsable", "exclusive")
_FACTORS = {"": 1, "k": 1024, "m": 1024 * 1024}
_RANGE = re.compile(r"(\d+)([km]?)(?:-(\d+)([km]?))?(?::\d+)?", re.IGNORECASE)
_COUNT = re.compile(r"(?:[A-Za-z][\w.-]*:)?(\d+)")  # `8`, or GPUs of a type: `h100:8`


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What a job asks for. ``nodelist`` and ``exclude`` are hostlists as they were written."""

    least_nodes: int = 1
    most_nodes: int = 1
    partitions: tuple[str, ...] = ()
    nodelist: str = ""
    exclude: str = ""


def read_job(script: str, source: str, options: Iterable[str] = ()) -> JobRequest:
    """What sbatch would ask for with this script and these options.

    Raises:
        InputError: no batch script, a value that cannot be read, a job of several components.
    """
    if not script.startswith("#!"):
        raise InputError(
            f"{source}: not a batch script: it does not begin with #!",
            remedy="name the file that you give to sbatch",
        )
    found: dict[str, str] = {}
    for place, line in _directives(script, source):
        if re.match(r"\s+(hetjob|packjob)\b", line):
            raise InputError(
                f"{place}: a job of several components",
                remedy="say how many nodes it needs in all: --nodes N",
            )
        found.update(_options(_words(line, place), place))
    found.update(_options(options, "sbatch options"))
    return _request(found, source)


def _directives(script: str, source: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(script.splitlines(), 1):
        if line.startswith(_MAGIC):
            yield f"{source}:{number}", line.removeprefix(_MAGIC)
        elif line.strip() and not line.lstrip().startswith("#"):
            return


def _words(line: str, place: str) -> list[str]:
    """The words up to a comment; what stands in the comment need not be well quoted."""
    reader = shlex.shlex(line, posix=True)
    reader.whitespace_split, reader.commenters = True, ""
    words: list[str] = []
    try:
        for word in reader:
            if word.startswith("#"):
                break
            words.append(word)
    except ValueError as error:
        raise InputError(
            f"{place}: cannot be read: {str(error).lower()}", remedy="close the quotation"
        ) from error
    return words


def _options(words: Iterable[str], place: str) -> dict[str, str]:
    """Values by long name, for the options that we know."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = _long(word) if word.startswith("--") else _short(word)
        if not name or name in _FLAGS:
            continue
        if not equals and not value:
            if not rest:
                raise InputError(f"{place}: {word} has no value", remedy="give it one")
            value = rest.pop(0)
        found[name] = value
    return found


def _long(word: str) -> tuple[str, str, str]:
    given, equals, value = word[2:].partition("=")
    near = [n for n in _LONG if n.startswith(given)] if given else []
    name = given if given in _LONG else near[0] if len(near) == 1 else ""
    return name, equals, value


def _short(word: str) -> tuple[str, str, str]:
    if not word.startswith("-") or word == "-":
        return "", "", ""
    letters = word[1:].lstrip(_SHORT_FLAGS)
    return _SHORT.get(letters[:1], ""), "", letters[1:]


def _request(found: Mapping[str, str], source: str) -> JobRequest:
    if "nodefile" in found or "/" in found.get("nodelist", "") + found.get("exclude", ""):
        raise InputError(
            f"{source}: its nodes are named in a file of their own",
            remedy="write the nodes as a list: --nodelist=node[001-016]",
        )
    least, most = _nodes(found, source)
    names = found.get("partition", "").split(",")
    return JobRequest(
        least_nodes=least,
        most_nodes=most,
        partitions=tuple(name for name in names if name),
        nodelist=found.get("nodelist", ""),
        exclude=found.get("exclude", ""),
    )


def _nodes(found: Mapping[str, str], source: str) -> tuple[int, int]:
    if "nodes" in found:
        return _size(found["nodes"], source)
    for all_of, of_one in (("ntasks", "ntasks-per-node"), ("gpus", "gpus-per-node")):
        if all_of in found and of_one in found:
            each = _count(found[of_one], of_one, source)
            count = math.ceil(_count(found[all_of], all_of, source) / each)
            return count, count
    return 1, 1


def _size(text: str, source: str) -> tuple[int, int]:
    """`4`, `4-8`, `1k`, and lists of sizes: `4,8,16` or `4-16:4`."""
    sizes: list[int] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise _unreadable(text, "nodes", source)
        sizes.append(int(match[1]) * _FACTORS[match[2].lower()])
        sizes.append(int(match[3]) * _FACTORS[match[4].lower()] if match[3] else sizes[-1])
    if min(sizes) < 1 or sizes != sorted(sizes):
        raise _unreadable(text, "nodes", source)
    return min(sizes), max(sizes)


def _count(text: str, name: str, source: str) -> int:
    match = _COUNT.fullmatch(text)
    if match is None or int(match[1]) < 1:
        raise _unreadable(text, name, source)
    return int(match[1])


def _unreadable(text: str, name: str, source: str) -> InputError:
    return InputError(
        f"{source}: --{name} cannot be {text[:60]!r}",
        remedy="write a number, or say how many nodes it needs: --nodes N",
    )
