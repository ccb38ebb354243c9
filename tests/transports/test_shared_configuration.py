"""Connections of many threads share one configuration; none may empty it under another."""

from __future__ import annotations

import fabric
import paramiko

from recovery.transports.ssh.connect import PlainConnection


def test_a_new_connection_does_not_touch_the_configuration_that_others_read() -> None:
    config = fabric.Config(ssh_config=paramiko.SSHConfig(), lazy=True)
    before = config._config

    PlainConnection("127.0.0.1", "me", 22, config=config, connect_kwargs={})

    assert config._config is before
    assert config.authentication.strategy_class is None
