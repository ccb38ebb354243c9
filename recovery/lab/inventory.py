"""Writes the inventory of a lab, in the shape of ``inventories/lab.yaml``."""

from __future__ import annotations

from collections.abc import Sequence

from recovery.lab.layout import BASE_PORT, Layout, default_dir
from recovery.lab.scenarios import master_port_of
from recovery.lab.state import NodeState

_HEAD = """\
# The simulated cluster of `recover lab up`: {n_nodes} nodes, real SSH servers on loopback.
all:
  vars:
    ansible_user: root
    ansible_ssh_private_key_file: {key}
    host_keys: file
    known_hosts: {known_hosts}
{prepare}    profile: h100-sxm8
    job_name: lab-training
    launch_command: lab-train --resume "$RESUME_STEP"
    checkpoints: ckpt
    train_log: log/train.log
    log_dir: log
    master_port: {master_port}
    min_nodes: {min_nodes}
    lease: false            # simulated nodes share one machine's /run
    host_checks: false      # a simulated node has no services, clock or disks of its own
  children:
    gpu:
      children:
"""


def write_inventory(layout: Layout, states: Sequence[NodeState]) -> None:
    """Writes ``inventory.yaml`` into the lab's folder, with its ports and paths."""
    layout.inventory.write_text(
        text_of(
            [(s.name, s.port, s.leaf) for s in states],
            key=str(layout.key),
            known_hosts=str(layout.known_hosts),
        )
    )


def shipped() -> str:
    """``inventories/lab.yaml``: the lab in its default folder, on its default ports.

    ``prepare`` starts it when it does not answer.
    """
    home = "~/" + str(default_dir().relative_to(default_dir().parents[2]))
    nodes = [(f"node{i + 1:02d}", BASE_PORT + i, f"leaf{i // 4 + 1}") for i in range(8)]
    return text_of(
        nodes,
        key=f"{home}/id_ed25519",
        known_hosts=f"{home}/known_hosts",
        prepare="recover lab up --scenario power-loss",
    )


def text_of(
    nodes: Sequence[tuple[str, int, str]], *, key: str, known_hosts: str, prepare: str = ""
) -> str:
    """The inventory of these (name, port, leaf)."""
    text = _HEAD.format(
        n_nodes=len(nodes),
        key=key,
        known_hosts=known_hosts,
        prepare=f"    prepare: {prepare}\n" if prepare else "",
        master_port=master_port_of(nodes[0][1]),
        min_nodes=max(1, len(nodes) * 3 // 4),
    )
    for leaf in dict.fromkeys(leaf for _, _, leaf in nodes):
        text += f"        {leaf}:\n          vars: {{leaf: {leaf}}}\n          hosts:\n"
        text += "".join(
            f"            {name}: {{ansible_host: 127.0.0.1, ansible_port: {port}}}\n"
            for name, port, on in nodes
            if on == leaf
        )
    return text
