"""YAML, INI and saved listings become the same inventory, by Ansible's rules."""

import json
import subprocess
from pathlib import Path
from shutil import which

import pytest

from recovery.inventory import read_ansible_list, read_inventory, select

CLUSTER_A = Path(__file__).parents[2] / "inventories" / "cluster-a.yaml"

YAML = """\
all:
  vars: {min_nodes: 2, who: all}
  children:
    gpu:
      vars: {profile: h100-sxm8, who: gpu}
      children:
        leaf1:
          hosts:
            node[001:002]: {rack: r1}
          vars: {leaf: leaf1, who: leaf1}
        leaf2:
          hosts: {node003: {who: node, ansible_port: 2200}}
          vars: {leaf: 2}
    head:
      hosts:
        login:
          ansible_host: 10.0.0.1
          ansible_user: ops
          bmc: "{{ inventory_hostname }}-bmc"
    empty:
"""

INI = """\
# the same in INI
[all:vars]
min_nodes=2
who=all

[gpu:children]
leaf1
leaf2

[gpu:vars]
profile=h100-sxm8
who=gpu

[leaf1]
node[001:002] rack=r1

[leaf1:vars]
leaf = leaf1
who = "leaf1"

[leaf2]
node003 who=node ansible_port=2200   # a comment

[leaf2:vars]
leaf=2

[head]
login ansible_host=10.0.0.1 ansible_user=ops bmc="{{ inventory_hostname }}-bmc"

[empty]
"""


@pytest.fixture(params=[(YAML, "c.yaml"), (INI, "hosts"), (INI, "c.ini")], ids=lambda p: p[1])
def inventory(request):
    return read_inventory(*request.param)


def test_nodes_come_in_file_order(inventory):
    assert tuple(inventory.nodes) == ("node001", "node002", "node003", "login")


def test_groups_hold_the_nodes_of_their_children(inventory):
    assert inventory.groups["gpu"] == ("node001", "node002", "node003")
    assert inventory.groups["leaf2"] == ("node003",)
    assert inventory.groups["all"] == tuple(inventory.nodes)
    assert inventory.groups["empty"] == ()


def test_a_node_knows_its_groups_weakest_first(inventory):
    assert inventory.nodes["node001"].groups == ("gpu", "leaf1")


def test_the_nearest_group_wins_and_the_node_itself_over_all(inventory):
    who = {name: node.variables["who"] for name, node in inventory.nodes.items()}

    assert who == {"node001": "leaf1", "node002": "leaf1", "node003": "node", "login": "all"}


def test_variables_become_fields(inventory):
    node, login = inventory.nodes["node003"], inventory.nodes["login"]

    assert (node.profile, node.leaf, node.port, node.rack) == ("h100-sxm8", "2", 2200, None)
    assert (login.address, login.user, login.profile) == ("10.0.0.1", "ops", None)
    assert login.transport == "ssh"


def test_a_template_stays_text(inventory):
    assert inventory.nodes["login"].variables["bmc"] == "{{ inventory_hostname }}-bmc"


def test_variables_of_all_are_those_of_the_run(inventory):
    assert inventory.variables == {"min_nodes": 2, "who": "all"}
    assert inventory.warnings == ()


def test_the_name_is_the_files_or_the_one_given():
    assert read_inventory(YAML, "/x/cluster-a.yaml").name == "cluster-a"
    assert read_inventory(YAML, "hosts").name == "hosts"
    assert read_inventory(YAML, "c.yaml", name="prod").name == "prod"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1\nn2:2200\n", ["n1", "n2"]),
        ("; old\n\nn[1:2] a=1\n", ["n1", "n2"]),
        ("---\ngpu:\n  hosts: n1\n", ["n1"]),
        ("# c\ngpu: {hosts: {n1: }}\n", ["n1"]),
        ('{"gpu": {"hosts": {"n1": {}}}}', ["n1"]),
        ("\ufeff[gpu]\nn1\n", ["n1"]),
        ('"gpu":\n  hosts: {n1: }\n', ["n1"]),
    ],
)
def test_the_first_line_decides_where_the_name_does_not(text, names):
    assert list(read_inventory(text, "hosts").nodes) == names


def test_a_port_behind_the_name_is_the_port():
    inventory = read_inventory(
        "all:\n  hosts:\n    n1:2201:\n    n2:2202: {ansible_port: 9}\n", "c.yaml"
    )

    assert [node.port for node in inventory.nodes.values()] == [2201, 9]
    assert inventory.nodes["n1"].variables["ansible_port"] == 2201


def test_a_port_written_as_text_is_a_number():
    inventory = read_inventory('all: {hosts: {n1: {ansible_port: "2201"}}}', "c.yaml")

    assert inventory.nodes["n1"].port == 2201


def test_ini_values_are_python_literals_where_they_can_be():
    line = (
        "n1 a=1 b=True c=[1,2] d=1.5 e='{\"k\": 1}' f=None g=0777 h=1,2 i=10.1.2.3 j='x y' k=b'x'"
    )

    variables = read_inventory(f"[g]\n{line}\n", "hosts").nodes["n1"].variables

    assert variables == {
        "a": 1, "b": True, "c": [1, 2], "d": 1.5, "e": {"k": 1}, "f": None, "g": "0777",
        "h": [1, 2], "i": "10.1.2.3", "j": "x y", "k": "bx",
    }  # fmt: skip


def test_hosts_under_all_only_are_ungrouped():
    inventory = read_inventory("all: {hosts: {n1: }, children: {g: {hosts: {n2: }}}}", "c.yaml")

    assert inventory.groups["ungrouped"] == ("n1",)
    assert inventory.nodes["n1"].groups == ()


def test_priority_decides_between_groups_of_one_depth():
    text = """\
a: {hosts: {n1: }, vars: {v: a, ansible_group_priority: 10}}
b: {hosts: {n1: }, vars: {v: b}}
"""

    inventory = read_inventory(text, "c.yaml")

    assert inventory.nodes["n1"].variables == {"v": "a"}


def test_groups_that_disagree_about_a_node_are_a_warning():
    text = """\
a: {hosts: {'n[1:9]': }, vars: {leaf: l1}}
b: {hosts: {n1: }, vars: {leaf: l2}}
"""

    inventory = read_inventory(text, "c.yaml")

    assert inventory.nodes["n1"].leaf == "l2"
    assert inventory.warnings == (
        "c.yaml:2:27: 'leaf' is 'l2' by group 'b' and 'l1' by group 'a' (c.yaml:1:33) for the same"
        " nodes; 'b' wins, as in Ansible",
    )


def test_a_node_listed_twice_in_a_group_is_one_node_and_a_warning():
    text = "gpu:\n  hosts:\n    n[1:4]:\n    n[3:6]: {a: 1}\n"

    inventory = read_inventory(text, "c.yaml")

    assert list(inventory.nodes) == ["n1", "n2", "n3", "n4", "n5", "n6"]
    assert inventory.nodes["n3"].variables == {"a": 1}
    assert inventory.warnings == (
        "c.yaml:4:5: n[3-4] listed twice in group 'gpu' (first at c.yaml:3:5); each is one node",
    )


def test_the_same_line_twice_in_ini_is_one_node_and_a_warning():
    inventory = read_inventory("[gpu]\nn1\nn1\n", "hosts")

    assert list(inventory.nodes) == ["n1"]
    assert inventory.warnings == (
        "hosts:3:1: n1 listed twice in group 'gpu' (first at hosts:2:1); each is one node",
    )


def test_a_node_in_several_groups_is_no_warning():
    inventory = read_inventory("a: {hosts: {n1: {x: 1}}}\nb: {hosts: {n1: {x: 1, z: 2}}}", "c.yaml")

    assert inventory.nodes["n1"].variables == {"x": 1, "z": 2}
    assert inventory.warnings == ()


def test_a_group_called_like_a_node_is_a_warning():
    inventory = read_inventory("n1: {hosts: {n1: }}", "c.yaml")

    assert inventory.warnings == (
        "c.yaml:1:1: 'n1' is a group and a node; write @n1 for the group",
    )


def test_a_lab_may_share_one_address_by_its_ports():
    text = """\
all:
  vars: {ansible_host: lo}
  hosts: {n1: {ansible_port: 1001}, n2: {ansible_port: 1002}}
"""

    assert len(read_inventory(text, "c.yaml").nodes) == 2


def test_shared_addresses_are_fine_where_the_inventory_says_so():
    text = "all: {hosts: {'n[1:2]': {ansible_host: lo}}, vars: {shared_addresses: true}}"

    assert len(read_inventory(text, "c.yaml").nodes) == 2


def test_one_address_behind_two_bastions_is_two_machines():
    text = "all: {hosts: {n1: {ansible_host: a, bastion: b1}, n2: {ansible_host: a, bastion: b2}}}"

    assert len(read_inventory(text, "c.yaml").nodes) == 2


LISTING = {
    "_meta": {"hostvars": {"n1": {"leaf": "l1"}, "n3": {}}},
    "all": {"children": ["ungrouped", "gpu"]},
    "gpu": {"hosts": ["n1", "n2"], "vars": {"profile": "h100-sxm8"}},
}


def test_a_listing_is_read_with_its_group_variables():
    listing = {**LISTING, "all": {**LISTING["all"], "vars": {"min_nodes": 1}}}

    inventory = read_ansible_list(json.dumps(listing), "plugin.yaml")

    assert list(inventory.nodes) == ["n1", "n2", "n3"]
    assert inventory.nodes["n1"].leaf == "l1"
    assert inventory.nodes["n2"].profile == "h100-sxm8"
    assert inventory.variables == {"min_nodes": 1}
    assert inventory.groups["ungrouped"] == ("n3",)


def test_a_listing_without_group_variables_says_so():
    listing = {**LISTING, "gpu": {"hosts": ["n1"]}}

    (warning,) = read_ansible_list(json.dumps(listing), "p").warnings

    assert "list with --export" in warning


def test_a_saved_listing_is_an_inventory_too():
    assert list(read_inventory(json.dumps(LISTING), "c.json").nodes) == ["n1", "n2", "n3"]


def test_ten_thousand_hosts_are_read_from_one_range():
    inventory = read_inventory("gpu: {hosts: {'node[00001:10000]': {a: 1}}}", "c.yaml")

    assert len(inventory.nodes) == 10_000
    assert inventory.groups["gpu"][-1] == "node10000"


def test_the_shipped_example_has_128_gpu_nodes_behind_four_leaves():
    inventory = read_inventory(CLUSTER_A.read_text(), "cluster-a.yaml")

    gpu = select(inventory, "@gpu & node[001-128]")

    assert len(gpu) == 128
    assert {inventory.nodes[name].leaf for name in gpu} == {"leaf01", "leaf02", "leaf03", "leaf04"}
    assert {inventory.nodes[name].profile for name in gpu} == {"h100-sxm8"}
    assert len(select(inventory, "@gpu & !@spare")) == 120
    assert inventory.variables["scheduler"] == "slurm"
    assert inventory.warnings == ()


ANSIBLE = which("ansible-inventory")


@pytest.mark.skipif(ANSIBLE is None, reason="ansible-inventory is not installed (recover[ansible])")
@pytest.mark.parametrize(
    ("text", "file"), [(CLUSTER_A.read_text(), "a.yaml"), (YAML, "b.yaml"), (INI, "c.ini")]
)
def test_ansible_reads_the_same_nodes_and_variables(text, file, tmp_path):
    path = tmp_path / file
    path.write_text(text)
    ours = read_inventory(text, str(path))

    listed = [
        subprocess.run([ANSIBLE, "-i", path, *options], capture_output=True, text=True, check=True)
        for options in (["--list"], ["--list", "--export"])
    ]

    hostvars = json.loads(listed[0].stdout)["_meta"]["hostvars"]
    assert hostvars == {name: dict(node.variables) for name, node in ours.nodes.items()}
    exported = read_ansible_list(listed[1].stdout, file)
    assert {n: dict(node.variables) for n, node in exported.nodes.items()} == hostvars
    assert exported.variables == ours.variables
