"""Host patterns mean what Ansible and hostlists say, or are refused with a remedy."""

import pytest

from recovery.inventory.ranges import PatternError, expand_pattern, split_port


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("node1", ("node1",)),
        ("node[001:003]", ("node001", "node002", "node003")),
        ("node[001:006:2]", ("node001", "node003", "node005")),
        ("node[8:11]", ("node8", "node9", "node10", "node11")),
        ("node[:2]", ("node0", "node1", "node2")),
        ("db-[a:c]", ("db-a", "db-b", "db-c")),
        ("node[001-003]", ("node001", "node002", "node003")),
        ("node[1,3,8-10]", ("node1", "node3", "node8", "node9", "node10")),
        ("node[1-5/2]", ("node1", "node3", "node5")),
        ("node[1, 3]", ("node1", "node3")),
        ("node[3,3]", ("node3",)),
        ("r[1:2]n[a:b].x", ("r1na.x", "r1nb.x", "r2na.x", "r2nb.x")),
        ("fe80::1%eth0", ("fe80::1%eth0",)),
    ],
)
def test_a_pattern_means_names_in_the_order_written(pattern, names):
    assert expand_pattern(pattern) == names


@pytest.mark.parametrize(
    ("pattern", "message", "remedy"),
    [
        ("node[10-9]", "range 10-9 in 'node[10-9]' is reversed", "write 9-10"),
        ("node[010:009]", "range 010-009 in 'node[010:009]' is reversed", "write 009-010"),
        ("node[c:a]", "range c-a in '[c:a]' is reversed", "write a-c"),
        ("node[]", "empty range in 'node[]'", "write node[001-128]"),
        ("node[1,,3]", "'' in 'node[1,,3]' is not a range", "write [001-128]"),
        ("node[1-]", "'1-' in 'node[1-]' is not a range", "write [001-128]"),
        ("node[1-3-5]", "'1-3-5' in 'node[1-3-5]' is not a range", "write [001-128]"),
        ("node[1-010]", "uneven padding 1-010 in 'node[1-010]'", "3 digits: 001-010"),
        ("node[01:100]", "uneven padding 01-100 in 'node[01:100]'", "3 digits: 001-100"),
        ("node[1:3:0]", "step 0 in 'node[1:3:0]'", "leave the step out"),
        ("node[a:3]", "'a:3' in 'node[a:3]' goes from a letter to a number", "[1:9] or [a:f]"),
        ("node[001-128", "bracket not closed in 'node[001-128'", "write node[001-128]"),
        ("node001]", "bracket not closed in 'node001]'", "write node[001-128]"),
        ("node[[1-2]]", "bracket not closed in 'node[[1-2]]'", "write node[001-128]"),
        ("node 1", "'node 1' cannot be a node's name", "letters, digits"),
        ("-oProxyCommand=x", "'-oProxyCommand=x' cannot be a node's name", "digit first"),
        ("node1:123456", "'node1:123456' cannot be a node's name", "letters, digits"),
        ("a;reboot", "'a;reboot' cannot be a node's name", "letters, digits"),
        ("", "'' cannot be a node's name", "letters, digits"),
        ("n[0-9999999]", "'n[0-9999999]' means 10,000,000 nodes", "at most 1,000,000"),
        ("n[0-9999][0-9999]", "means 100,000,000 nodes", "at most 1,000,000"),
    ],
)
def test_a_bad_pattern_is_refused_with_the_remedy(pattern, message, remedy):
    with pytest.raises(PatternError) as error:
        expand_pattern(pattern)

    assert message in error.value.message
    assert remedy in error.value.remedy


def test_a_port_at_the_end_is_taken_off():
    assert split_port("node1:2222") == ("node1", 2222)
    assert split_port("node[001:003]:2222") == ("node[001:003]", 2222)


def test_colons_of_ranges_and_of_ipv6_are_no_port():
    assert split_port("node[001:003]") == ("node[001:003]", None)
    assert split_port("fe80::1") == ("fe80::1", None)
