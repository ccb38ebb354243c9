"""``nvidia-smi -q -x``: the same facts as ``-q`` in tags. No entity and no DTD is ever followed.

Source: nvsmi_device_v9.dtd to v13; ``minor_number`` is not the index, so GPUs go by bus id.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from recovery.errors import ParseError
from recovery.reading import cell
from recovery.reading.smi_names import of_xml
from recovery.reading.smi_words import Form, Gpu, Process, Snapshot

_DOCTYPE = re.compile(r"<!DOCTYPE\s+nvidia_smi_log\s+SYSTEM\s+\"[^\"<>\[\]]*\"\s*>")
_START = re.compile(r"<nvidia_smi_log\b")
_REMEDY = "run nvidia-smi -q -x on the node by hand and look at the end of its output"


def looks_like_xml(text: str) -> bool:
    """Claims that the text is nvidia-smi's XML, or the beginning of one."""
    return bool(_START.search(text[:4000]) or _DOCTYPE.search(text[:4000]))


def read_xml(text: str) -> Snapshot:
    """One snapshot; GPUs are labelled by their bus id.

    Raises:
        ParseError: not well formed (cut short), a DTD inside the text, or no GPU.
    """
    root = _root(text)
    gpus = tuple(_gpu(element) for element in root.findall("gpu"))
    attached = cell.whole(root.findtext("attached_gpus") or "")
    if not gpus and attached != 0:
        raise ParseError("the XML names no GPU", remedy=_REMEDY)
    cut = ""
    if attached is not None and attached != len(gpus):
        cut = f"the text promises {attached} GPUs and describes {len(gpus)}"
    return Snapshot(
        form=Form.XML,
        gpus=gpus,
        attached=attached,
        driver=_known(root.findtext("kmd_version") or root.findtext("driver_version")),
        cuda=_known(root.findtext("cuda_umd_version") or root.findtext("cuda_version")),
        processes=_processes(root),
        cut=cut,
    )


def _root(text: str) -> ElementTree.Element:
    body = _DOCTYPE.sub("", text, count=1)
    if "<!DOCTYPE" in body or "<!ENTITY" in body:
        raise ParseError("the XML carries a DTD of its own, which is not read", remedy=_REMEDY)
    start, end = _START.search(body), body.rfind("</nvidia_smi_log>")
    if start is None or end < 0:
        raise ParseError("the XML is cut short: its last tag is missing", remedy=_REMEDY)
    try:
        whole = body[start.start() : end + len("</nvidia_smi_log>")]
        return ElementTree.fromstring(whole)  # noqa: S314 - a DTD was refused above
    except (ElementTree.ParseError, ValueError) as error:
        raise ParseError(f"the XML is not well formed: {error}", remedy=_REMEDY) from error


def _known(text: str | None) -> str | None:
    word = re.sub(r"\s*\[Deprecated.*$", "", text or "").strip()
    return None if cell.is_absent(word) else word


def _gpu(element: ElementTree.Element) -> Gpu:
    values: dict[str, str] = {}
    printed: dict[str, str] = {}
    pending: list[tuple[tuple[str, ...], ElementTree.Element]] = [
        ((child.tag,), child) for child in element
    ]
    while pending:
        path, node = pending.pop()
        pending.extend(((*path, child.tag), child) for child in node)
        name = of_xml(path) if len(node) == 0 else None
        if name and name not in values:
            values[name] = (node.text or "").strip()
            printed[name] = "/".join(path)
    bus = cell.bus_id(element.get("id", ""))
    values["pci.bus_id"] = bus
    return Gpu(bus, values, printed, mig_devices=len(element.findall("mig_devices/mig_device")))


def _processes(root: ElementTree.Element) -> tuple[Process, ...] | None:
    if root.find("gpu/processes") is None:
        return None
    return tuple(
        Process(
            cell.bus_id(gpu.get("id", "")),
            cell.whole(info.findtext("pid") or ""),
            (info.findtext("process_name") or "").strip(),
            cell.whole(info.findtext("used_memory") or ""),
        )
        for gpu in root.findall("gpu")
        for info in gpu.findall("processes/process_info")
    )
