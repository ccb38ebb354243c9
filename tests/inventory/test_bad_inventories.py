"""Every kind of bad inventory gets its message, its place and its remedy."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.errors import DocumentError, InputError, InventoryError
from recovery.inventory import read_ansible_list, read_inventory


def hosts(*lines):
    return "gpu:\n  hosts:\n" + "".join(f"    {line}\n" for line in lines)


YAML = [
    ("", "c.yaml:1:1: an inventory is groups by name, this is empty", "begin with `all:`"),
    ("- n1\n", "c.yaml:1:1: an inventory is groups by name, this is ['n1']", "begin with `all:`"),
    ("all:\n", "c.yaml:1:1: no node in it", "under `hosts:`"),
    ("gpu: {vars: {a: 1}}", "c.yaml:1:1: no node in it", "under `hosts:`"),
    ("gpu: n1\n", "c.yaml:1:1: a group must be names, not 'n1'", "names as keys"),
    ("gpu:\n  host:\n    n1:\n",
     "c.yaml:2:3: group 'gpu' cannot have 'host' (did you mean \"hosts\"?)", "a group has"),
    ("gpu:\n  n1:\n", "c.yaml:2:3: group 'gpu' cannot have 'n1'", "put the rest under one"),
    ("gpu:\n  hosts:\n    - n1\n", "c.yaml:2:3: `hosts` must be names, not ['n1']",
     "write `node1:` instead of `- node1`"),
    ("gpu: {children: [a]}", "c.yaml:1:7: `children` must be names, not ['a']", "as keys"),
    ("gpu: {hosts: {n1: 5}}", "c.yaml:1:15: host 'n1' must be names, not 5", "names as keys"),
    ("gpu: {vars: [a]}", "c.yaml:1:7: `vars` must be names, not ['a']", "as keys"),
    ("gpu: {vars: {1: a}, hosts: n1}", "c.yaml:1:14: 1 cannot be a variable's name", "a letter"),
    (hosts("n1: {2: a}"), "c.yaml:3:10: 2 cannot be a variable's name", "a letter"),
    (hosts("n[128:001]:"), "c.yaml:3:5: range 128-001 in 'n[128:001]' is reversed", "001-128"),
    (hosts("n[128-001]:"), "c.yaml:3:5: range 128-001 in 'n[128-001]' is reversed", "001-128"),
    (hosts("n[]:"), "c.yaml:3:5: empty range in 'n[]'", "write node[001-128]"),
    (hosts("n[1:010]:"), "c.yaml:3:5: uneven padding 1-010 in 'n[1:010]'", "001-010"),
    (hosts("n[001-128:"), "c.yaml:3:5: bracket not closed in 'n[001-128'", "node[001-128]"),
    (hosts("node 1:"), "c.yaml:3:5: 'node 1' cannot be a node's name", "letters, digits"),
    (hosts("n[0:9999999]:"), "c.yaml:3:5: 'n[0:9999999]' means 10,000,000 nodes", "at most"),
    ("a: {children: {b: }}\nb: {children: {c: }}\nc: {children: {a: }, hosts: {n1: }}\n",
     "holds itself: ", "out of the children of"),
    ("a: {children: {a: }, hosts: {n1: }}", "c.yaml:1:16: group 'a' holds itself: a > a",
     "take 'a' out of the children of 'a'"),
    ("all: {children: {a: {children: {all: }, hosts: n1}}}", "holds itself: all > a > all",
     "take 'a' out"),
    ("a: {hosts: {n1: {x: 1}}}\nb: {hosts: {n1: {x: 2}}}\n",
     "c.yaml:2:18: node 'n1' gets 'x' = 2 here and 1 at c.yaml:1:18", "delete one of the two"),
    (hosts("n[1:9]: {leaf: a}", "n5: {leaf: b}"),
     "c.yaml:4:10: node 'n5' gets 'leaf' = 'b' here and 'a' at c.yaml:3:14", "delete one"),
    ("all: {children: {a: {hosts: n1, vars: {x: 1}}}}\na: {vars: {x: 2}}\n",
     "c.yaml:2:12: group 'a' gives 'x' two values: 2 here and 1 at c.yaml:1:40", "delete one"),
    (hosts("n1: {ansible_host: a}", "n2: {ansible_host: a}"),
     "c.yaml:4:10: nodes 'n1' and 'n2' are both a:22 (the first at c.yaml:3:10)",
     "shared_addresses: true"),
    (hosts("n1: {ansible_host: n2}", "n2:"), "c.yaml:4:5: nodes 'n1' and 'n2' are both n2:22",
     "correct one address"),
    (hosts("n1: {ansible_port: ssh}"), "c.yaml:3:10: ansible_port cannot be 'ssh'", "1 to 65535"),
    (hosts("n1: {ansible_port: 0}"), "c.yaml:3:10: ansible_port cannot be 0", "1 to 65535"),
    (hosts("n1: {ansible_port: 65536}"), "ansible_port cannot be 65536", "1 to 65535"),
    (hosts("n1: {ansible_port: true}"), "ansible_port cannot be True", "1 to 65535"),
    (hosts("n1:99999:"), "c.yaml:3:5: ansible_port cannot be 99999", "1 to 65535"),
    (hosts('n1: {ansible_host: "{{ ip }}"}'), "c.yaml:3:10: ansible_host cannot be '{{ ip }}'",
     "without templates"),
    (hosts('n1: {ansible_host: ""}'), "ansible_host cannot be ''", "write the address"),
    (hosts('n1: {ansible_host: "-oX=y"}'), "ansible_host cannot be '-oX=y'", "write the address"),
    (hosts("n1: {ansible_user: [a]}"), "ansible_user cannot be ['a']", "login name"),
    ("gpu: {hosts: n1, vars: {profile: {a: 1}}}", "c.yaml:1:25: profile cannot be {'a': 1}",
     "inventories/profiles"),
    (hosts("n1: {leaf: true}"), "c.yaml:3:10: leaf cannot be True", "leaf switch"),
    (hosts("n1: {rack: 1.5}"), "c.yaml:3:10: rack cannot be 1.5", "rack"),
    (hosts("n1: {transport: 'a b'}"), "c.yaml:3:10: transport cannot be 'a b'", "write ssh"),
    ("gpu: {hosts: n1, vars: {ansible_group_priority: high}}",
     "c.yaml:1:25: ansible_group_priority must be a whole number, not 'high'", "write a number"),
    ("plugin: aws_ec2\nregions: [eu]\n",
     "c.yaml:1:1: a file for Ansible's inventory plugin 'aws_ec2'", "recover[ansible]"),
    ("#!/usr/bin/python3\nprint()\n", "c.yaml:1:1: a program that prints an inventory",
     "ansible-inventory -i c.yaml --list --export"),
]  # fmt: skip

INI = [
    ("[gpu\nn1\n", "hosts:1:1: bracket not closed in '[gpu'", "node[001-128]"),
    ("[gpu a]\nn1\n", "hosts:1:1: '[gpu a]' is not a section", "[group:vars]"),
    ("[gpu:var]\na=1\n", "hosts:1:1: [gpu:var] is not a section (did you mean \"vars\"?)", "write"),
    ("[gpu]\n  n1 x\n", "hosts:2:6: 'x' is not a variable of 'n1'", "write name=value"),
    ("[gpu]\nn1 =x\n", "hosts:2:4: '=x' is not a variable of 'n1'", "write name=value"),
    ("[gpu]\nn1 a='x\n", "hosts:2:1: No closing quotation", "close the quote"),
    ("[gpu]\nn1\n[gpu:vars]\nprofile\n", "hosts:4:1: 'profile' is not a variable of group 'gpu'",
     "write name=value"),
    ("[gpu]\nn1\n[gpu:children]\na b\n", "hosts:4:1: 'a b' is not the name of a group", "one"),
    ("[gpu]\nn1\n[gpx:vars]\na=1\n",
     "hosts:3:1: [gpx:vars] names group 'gpx', which is not declared (did you mean \"gpu\"?)",
     "add a section [gpx]"),
    ("[gpu:children]\nleaf1\n[leaf2]\nn1\n",
     "hosts:2:1: [gpu:children] names group 'leaf1', which is not declared", "add a section"),
    ("[gpu]\nn[9:1]\n", "hosts:2:1: range 9-1 in 'n[9:1]' is reversed", "write 1-9"),
    ("[a]\nn1 x=1 y=2\n[b]\nn1 x=1 y=3\n",
     "hosts:4:8: node 'n1' gets 'y' = 3 here and 2 at hosts:2:8", "delete one"),
    ("[a]\nn1 x=1\nn1 x=2\n", "hosts:3:4: node 'n1' gets 'x' = 2 here and 1 at hosts:2:4", "one"),
    ("[a:children]\nb\n[b:children]\na\n[b]\nn1\n", "holds itself", "out of the children"),
    ("[a]\n", "hosts:1:1: no node in it", "list nodes"),
    ("[a]\nn1 ansible_port=x\n", "hosts:2:4: ansible_port cannot be 'x'", "1 to 65535"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "source", "message", "remedy"),
    [(t, "c.yaml", m, r) for t, m, r in YAML] + [(t, "hosts", m, r) for t, m, r in INI],
)
def test_a_bad_inventory_is_refused_with_place_and_remedy(text, source, message, remedy):
    with pytest.raises(InventoryError) as error:
        read_inventory(text, source)

    assert message in error.value.message
    assert error.value.message.startswith(f"{source}:")
    assert remedy in error.value.remedy
    assert error.value.exit_code == 2


def test_yaml_that_cannot_be_read_is_refused_with_its_place():
    with pytest.raises(DocumentError) as error:
        read_inventory("gpu:\n  hosts: {n1\n", "c.yaml")

    assert error.value.message.startswith("c.yaml:3:1: not YAML")


def test_one_group_under_hosts_twice_is_a_duplicate_key():
    with pytest.raises(InputError) as error:
        read_inventory(hosts("n1:", "n1:"), "c.yaml")

    assert error.value.message == "c.yaml:4:5: key 'n1' stands twice"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p:1:1: not JSON"),
        ("{\n oops", "p:2:2: not JSON"),
        ("[]", "p:1:1: '_meta' is not as `ansible-inventory --list` prints it"),
        ("{}", "'_meta' is not as"),
        (json.dumps({"_meta": {"hostvars": []}}), "'_meta' is not as"),
        (json.dumps({"_meta": {"hostvars": {"n1": 1}}}), "'n1' is not as"),
        (json.dumps({"_meta": {}, "gpu": ["n1"]}), "'gpu' is not as"),
        (json.dumps({"_meta": {}, "gpu": {"hosts": "n1"}}), "'hosts' is not as"),
        (json.dumps({"_meta": {}, "gpu": {"children": [1]}}), "'children' is not as"),
        (json.dumps({"_meta": {}, "gpu": {"vars": []}}), "'gpu.vars' is not as"),
    ],
)
def test_what_is_no_listing_is_refused(text, message):
    with pytest.raises(InventoryError) as error:
        read_ansible_list(text, "p")

    assert message in error.value.message
    assert "ansible-inventory --list --export" in error.value.remedy


def test_a_listing_of_no_nodes_is_refused():
    with pytest.raises(InventoryError) as error:
        read_ansible_list('{"_meta": {"hostvars": {}}, "all": {"children": ["ungrouped"]}}', "p")

    assert error.value.message == "p:1:1: no node in it"


PIECES = st.sampled_from(
    ["all", "gpu", "n1", "n[1:3]", "n[3-1]", "hosts", "vars", "children", ":", ": ", "\n", "\n  ",
     "\n    ", "{", "}", "[", "]", "=", " ", "#", "'", '"', "\\", "{{ x }}", "ansible_port",
     "9" * 40, "ansible_host", "null", "- ", ", ", "&a ", "*a", "!!int ", "\x00", "\t", "[gpu]",
     "[gpu:vars]"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join), st.sampled_from(["c.yaml", "c.ini", "hosts"]))
def test_any_text_is_read_or_refused_as_our_input(text, source):
    with suppress(InputError):
        read_inventory(text, source)
