"""`redfish`: sushy against sushy-tools' emulator, and against servers that are none."""

import http.server
import threading

import pytest

from recovery.bmc.redfish import REDFISH
from recovery.model.bmc import BmcAddress, BmcAsk
from recovery.steps.power.order import read_power
from tests.bmc.simulators import EMULATOR, free_tcp_port, redfish
from tests.transports.servers import until

pytest.importorskip("sushy", reason="needs pip install 'recover[bmc]'")
emulated = pytest.mark.skipif(not EMULATOR.exists(), reason="needs pip install sushy-tools")
LIMIT_S = 60.0


def at(address, **options):
    return BmcAddress(
        node="n1", address=address, user="admin", password="lab-only-password", options=options
    )


def status(address, **options):
    return read_power(REDFISH.ask(at(address, **options), BmcAsk.STATUS, LIMIT_S))


@emulated
def test_orders_switch_the_system_and_its_state_lags(tmp_path):
    with redfish(tmp_path / "emulator") as address:
        assert status(address) == "on"

        said = REDFISH.ask(at(address), BmcAsk.OFF, LIMIT_S)

        assert said.ok
        assert until(lambda: status(address) == "off")
        assert status(address, system="n1") == "off"
        assert status(address, system="n2") == ""  # never another machine instead
        logs = REDFISH.ask(at(address), BmcAsk.SEL, LIMIT_S)
        assert not logs.ok
        assert "LogServices" in logs.error_text


class Nonsense(http.server.BaseHTTPRequestHandler):
    """Answers as its server says."""

    def do_GET(self):
        code, body = self.server.answer
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the name that http.server calls

    def log_message(self, *words):
        pass


@pytest.mark.parametrize(
    ("code", "body", "said"),
    [
        (200, b"<html>login</html>", ""),
        (200, b"{}", ""),
        (200, b'["a list"]', ""),
        (401, b'{"error": {}}', "password invalid"),
        (500, b"broken", ""),
    ],
)
def test_what_is_no_answer_is_no_state_and_nothing_is_ordered(code, body, said):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Nonsense) as server:
        server.answer = (code, body)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"

        answers = [REDFISH.ask(at(address), q, LIMIT_S) for q in (BmcAsk.STATUS, BmcAsk.OFF)]

        server.shutdown()
    assert [a.ok for a in answers] == [False, False]
    assert all(said in a.error_text and a.error_text for a in answers)
    assert all("lab-only-password" not in a.error_text for a in answers)


def test_a_bmc_that_is_away_is_said_so():
    said = REDFISH.ask(at(f"http://127.0.0.1:{free_tcp_port()}"), BmcAsk.STATUS, LIMIT_S)

    assert not said.ok
    assert "refused" in said.error_text
