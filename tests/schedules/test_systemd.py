"""Units that systemd itself finds nothing to say about."""

import shutil
import subprocess

import pytest

from recovery.errors import InputError
from recovery.schedules.systemd import SYSTEMD, Systemd
from tests.app.schedulers import asked, on_path, put_tool
from tests.schedules.samples import a_schedule

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="no systemd-analyze"
)


@pytest.fixture
def units(tmp_path):
    return SYSTEMD.open({"units": str(tmp_path / "units")})


def test_a_schedule_is_a_service_with_limits_and_a_timer_with_jitter(units):
    text = units.text(a_schedule())

    for line in (
        "Type=oneshot",
        "TimeoutStartSec=1800",
        "KillMode=mixed",
        "SuccessExitStatus=4",
        "OnCalendar=*-*-* 05:00:00",
        "RandomizedDelaySec=900",
        "Persistent=true",
        'Environment="RECOVER_STATE=/var/lib/a b"',
    ):
        assert line in text.splitlines()
    assert '"ready=95%% $$HOME \\"x\\""' in text


def test_what_was_added_is_listed_as_it_was_and_can_be_removed(units):
    schedule = a_schedule()

    units.add(schedule)
    assert units.listed() == (schedule,)
    units.remove("night")

    assert units.listed() == ()
    assert list(units.folder.iterdir()) == []


def test_one_of_the_same_name_is_replaced_and_others_stay(units):
    units.add(a_schedule())
    units.add(a_schedule(name="other"))
    units.add(a_schedule(cron="0 6 * * *"))

    assert {s.name: s.cron for s in units.listed()} == {"night": "0 6 * * *", "other": "0 5 * * *"}


@needs_systemd
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"cron": "0 4 13 * 5"},
        {"cron": "", "calendar": "Mon..Fri 05:00"},
        {"about": "50% of it"},
        {"folder": "/tmp/a b%c"},
    ],
)
def test_systemd_verifies_the_units(units, changes, tmp_path):
    units.add(a_schedule(**changes))

    paths = [str(path) for path in units.folder.iterdir()]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *paths],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
def test_systemd_would_run_exactly_the_words_that_were_meant(units):
    units.add(a_schedule())

    # What systemd unquotes from ExecStart is what `echo` would be given.
    service = (units.folder / "recover-night.service").read_text()
    line = next(x for x in service.splitlines() if x.startswith("ExecStart="))
    assert line == (
        'ExecStart="/bin/echo" "preflight" "in ven/tory.yaml" "-e" "ready=95%% $$HOME \\"x\\""'
    )


@needs_systemd
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cron": "", "calendar": "Mon..Fry 05:00"}, "--calendar: systemd says"),
        ({"argv": ("/nowhere/recover",)}, "systemd refuses the units"),
    ],
)
def test_what_systemd_refuses_is_not_installed(units, changes, said):
    with pytest.raises(InputError, match=said) as caught:
        units.add(a_schedule(**changes))

    assert caught.value.remedy
    assert units.listed() == ()


def test_the_timer_is_started_and_stopped_by_systemctl(tmp_path, monkeypatch):
    put_tool(tmp_path / "tools", "systemctl")
    put_tool(tmp_path / "tools", "systemd-analyze")
    monkeypatch.setenv("PATH", on_path(tmp_path / "tools"))
    systemd = Systemd(tmp_path / "units", starts=True, is_user=True)

    systemd.add(a_schedule())
    systemd.remove("night")

    said = [line for line in asked(tmp_path / "tools") if line.startswith("systemctl")]
    assert said == [
        "systemctl --user daemon-reload",
        "systemctl --user enable --now recover-night.timer",
        "systemctl --user disable --now recover-night.timer",
        "systemctl --user daemon-reload",
    ]


def test_a_systemd_that_refuses_is_said(tmp_path, monkeypatch):
    put_tool(tmp_path / "tools", "systemctl", status=1)
    put_tool(tmp_path / "tools", "systemd-analyze")
    monkeypatch.setenv("PATH", on_path(tmp_path / "tools"))

    with pytest.raises(InputError, match="systemctl daemon-reload: refused"):
        Systemd(tmp_path / "units", starts=True, is_user=False).add(a_schedule())


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match="cannot be written"):
        SYSTEMD.open({"units": str(tmp_path / "file" / "x")}).add(a_schedule())
