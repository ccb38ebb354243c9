"""A dynamic inventory is asked through the real `ansible-inventory`."""

import pytest

from recovery.app.preparing import read_inventory
from recovery.errors import InventoryError

pytest.importorskip("ansible", reason="ansible-core is not installed (the extra `ansible`)")

SCRIPT = """#!/bin/sh
echo '{"gpu": {"hosts": ["n1", "n2"], "vars": {"profile": "h100-sxm8"}},
       "all": {"vars": {"min_nodes": 2}}, "_meta": {"hostvars": {"n1": {"ansible_port": 2201}}}}'
"""


def script(tmp_path, text, name="cloud.yaml"):
    file = tmp_path / name
    file.write_text(text)
    file.chmod(0o755)
    return str(file)


def test_a_script_gives_nodes_groups_and_variables(tmp_path):
    found = read_inventory(script(tmp_path, SCRIPT))

    assert list(found.nodes) == ["n1", "n2"]
    assert found.groups["gpu"] == ("n1", "n2")
    assert found.nodes["n1"].port == 2201
    assert found.nodes["n2"].profile == "h100-sxm8"
    assert found.variables["min_nodes"] == 2


def test_a_script_that_fails_is_no_inventory(tmp_path):
    with pytest.raises(InventoryError) as caught:
        read_inventory(script(tmp_path, "#!/bin/sh\nexit 3\n"))

    assert caught.value.remedy
