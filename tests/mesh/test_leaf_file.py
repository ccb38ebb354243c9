"""Leaves from a topology file, in three forms; anything else is our mistake."""

import pytest

from recovery.errors import InputError
from recovery.inventory.hostlist import expand
from recovery.mesh.leaf_file import read_leaves

SLURM = """
SwitchName=leaf1 Nodes=node[01-02]
SwitchName=leaf2 Nodes=node[03-04] LinkSpeed=1
SwitchName=spine Switches=leaf[1-2]
"""
# In the form of ibnetdiscover 2.1 (infiniband-diags), names invented.
IBNETDISCOVER = """
vendid=0x2c9
Switch	40 "S-b8599f0300fc6de4"		# "MF0;leaf1:MQM8700/U1" enhanced port 0 lid 4
[1]	"H-b8599f0300d0a1c2"[1](b8599f0300d0a1c2) 		# "node01 mlx5_0" lid 9 4xHDR
[2]	"H-b8599f0300d0a1c3"[1](b8599f0300d0a1c3) 		# "node02 mlx5_0" lid 10 4xHDR
"""


def read(text):
    return read_leaves(text, "leaves.txt", expand)


def test_slurm_topology_names_the_switch_of_each_node():
    assert read(SLURM) == {"node01": "leaf1", "node02": "leaf1", "node03": "leaf2",
                           "node04": "leaf2"}  # fmt: skip


def test_ibnetdiscover_names_the_switch_of_each_node():
    assert read(IBNETDISCOVER) == {"node01": "leaf1", "node02": "leaf1"}


def test_two_columns_take_hostlists_and_any_separator():
    assert read("# mine\nnode[01-02] leaf1\nnode03,leaf2\n") == {
        "node01": "leaf1", "node02": "leaf1", "node03": "leaf2"}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no leaf of any node is in it"),
        ("node01 leaf1 extra\n", "line 1 is not `NODE LEAF`"),
        ("node01 leaf1\nnode01 leaf2\n", "node 'node01' is on 'leaf1' and on 'leaf2'"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_name(text, words):
    with pytest.raises(InputError, match=words) as refused:
        read(text)

    assert refused.value.message.startswith("leaves.txt: ")
    assert refused.value.remedy
