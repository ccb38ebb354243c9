"""`ipmi`: IPMI over the network by ``ipmitool``, which must be on the controller."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress

from recovery.model.bmc import BmcAddress, BmcAsk, BmcKind
from recovery.model.output import Ending, Output

WORDS: dict[BmcAsk, tuple[str, ...]] = {
    BmcAsk.STATUS: ("chassis", "power", "status"),
    BmcAsk.ON: ("chassis", "power", "on"),
    BmcAsk.OFF: ("chassis", "power", "off"),
    BmcAsk.SOFT: ("chassis", "power", "soft"),
    BmcAsk.SEL: ("sel", "elist"),
    BmcAsk.SENSORS: ("sdr", "list"),
}
# A dead BMC costs about 2 s with one try and one retry of a second, 20 s by ipmitool's defaults.
_PATIENCE = ("-N", "1", "-R", "1")


def argv_of(at: BmcAddress, question: BmcAsk) -> tuple[str, ...]:
    """The exact command; the password is in its environment, never in it.

    Source: ipmitool(1) 1.8.19. ``cipher`` is the cipher suite: 17 by default, 3 for old BMCs.
    """
    cipher = ("-C", str(at.options["cipher"])) if "cipher" in at.options else ()
    port = ("-p", str(at.options["port"])) if "port" in at.options else ()
    where = ("-I", "lanplus", "-H", at.address, *port, "-U", at.user)
    return ("ipmitool", *where, *cipher, *_PATIENCE, "-E", *WORDS[question])


def _ask(at: BmcAddress, question: BmcAsk, limit_s: float) -> Output:
    started = time.monotonic()
    environment = {**os.environ, "IPMI_PASSWORD": at.password, "LC_ALL": "C"}
    try:
        asked = subprocess.Popen(
            argv_of(at, question),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the run: an order half sent is worse than one
        )
    except FileNotFoundError:
        return Output(Ending.NEVER_STARTED, reason="ipmitool is not on this machine")
    except OSError as error:
        return Output(Ending.NEVER_STARTED, reason=f"ipmitool cannot be run: {error.strerror}")
    try:
        told, said = asked.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(asked.pid, signal.SIGKILL)
        told, said = asked.communicate()
        ending, status = Ending.TIMEOUT, None
    else:
        ending, status = Ending.FINISHED, asked.returncode
    return Output(
        ending,
        exit_status=status,
        stdout=told,
        stderr=said,
        duration_s=time.monotonic() - started,
    )


IPMI = BmcKind(name="ipmi", about="IPMI 2.0 over the network, by ipmitool", ask=_ask)
