"""JSON Schema of an inventory, for editors."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string", "minLength": 1}
_LABEL = {"type": ["string", "integer"]}
_NAMED = {"type": ["string", "object"]}
_PORT = {"type": ["integer", "string"], "minimum": 1, "maximum": 65535}

_VARIABLES: dict[str, tuple[str, dict[str, Any]]] = {
    "ansible_host": ("address or name to connect to; the node's name by default", _TEXT),
    "ansible_port": ("SSH port; what the SSH client configuration says by default", _PORT),
    "ansible_user": ("login name", _TEXT),
    "ansible_ssh_private_key_file": ("private key", _TEXT),
    "ansible_group_priority": ("wins over groups of the same depth with less", {"type": "integer"}),
    "profile": ("hardware profile, a file of inventories/profiles", _TEXT),
    "leaf": ("leaf switch of the compute network", _LABEL),
    "rack": ("rack", _LABEL),
    "transport": ("how commands get there: ssh, local, srun, replay", _TEXT),
    "bastion": ("host to jump through, user@host:port", _TEXT),
    "bmc": ("address of the BMC, or a mapping with address and more", _NAMED),
    "scheduler": ("slurm or kubernetes, or a mapping with kind and more", _NAMED),
    "feed": ("power feed", _LABEL),
    "limits": ("most nodes that a run may disrupt", {"type": "object"}),
    "min_nodes": ("fewest nodes that the job can run on", {"type": "integer", "minimum": 1}),
    "prepare": ("local command that makes the nodes reachable", {"type": ["string", "array"]}),
    "notify": ("apprise addresses of people to tell, or env:NAME", {"type": ["string", "array"]}),
    "metrics_textfile": ("a .prom file or a folder, for node_exporter", _TEXT),
    "metrics_pushgateway": ("http address of a Prometheus push gateway", _TEXT),
    "shared_addresses": ("true: several nodes may have one address and port", {"type": "boolean"}),
    "lease": ("false: nodes of one machine, whose /run they share", {"type": "boolean"}),
    "busbw": ("bus bandwidths in place of the profile's", {"type": "array"}),
}


def inventory_schema() -> dict[str, Any]:
    """JSON Schema (draft 7) of a YAML inventory; variables that are not ours are allowed."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "inventory",
        "description": "Groups of nodes, as Ansible's YAML inventories",
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"$ref": "#/definitions/group"},
        "definitions": {
            "group": _group(),
            "variables": {
                "type": ["object", "null"],
                "properties": {
                    name: {"description": about, **shape}
                    for name, (about, shape) in _VARIABLES.items()
                },
            },
        },
    }


def _group() -> dict[str, Any]:
    return {
        "type": ["object", "null"],
        "additionalProperties": False,
        "properties": {
            "hosts": {
                "description": "nodes or ranges (node[001:128]), each with variables of its own",
                "type": ["object", "string", "null"],
                "additionalProperties": {"$ref": "#/definitions/variables"},
            },
            "children": {
                "description": "groups inside this one",
                "type": ["object", "string", "null"],
                "additionalProperties": {"$ref": "#/definitions/group"},
            },
            "vars": {"$ref": "#/definitions/variables"},
        },
    }
