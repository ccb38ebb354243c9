"""One marked line in a real crontab; nothing else in it changes."""

import os
import shutil
import subprocess

import pytest

from recovery.errors import InputError
from recovery.schedules.cron import CRON
from tests.app.schedulers import on_path
from tests.schedules.samples import a_schedule

# `crontab` as a script over one file: what is tested here is what we do with its answers.
FAKE = """#!/bin/sh
case "$1" in
-l) [ -f {file} ] || {{ echo "no crontab for me" >&2; exit 1; }}; cat {file};;
-) cat > {file};;
esac
"""


@pytest.fixture
def crontab(tmp_path, monkeypatch):
    file = tmp_path / "crontab.txt"
    tool = tmp_path / "tools" / "crontab"
    tool.parent.mkdir()
    tool.write_text(FAKE.format(file=file))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", on_path(tool.parent))
    return file


def cron():
    return CRON.open({})


def test_the_line_has_time_jitter_limit_lock_and_environment():
    line = cron().text(a_schedule(lock="/run/l.lock")).splitlines()[1]

    assert line.startswith('0 5 * * * cd /tmp && sleep "$(shuf -i 0-900 -n 1)" && ')
    assert (
        "RECOVER_STATE='/var/lib/a b' flock --nonblock --conflict-exit-code=4 /run/l.lock " in line
    )
    assert "timeout --kill-after=120 1800 /bin/echo preflight" in line


def test_a_percent_sign_does_not_end_the_command():
    line = cron().text(a_schedule()).splitlines()[1]

    assert "ready=95\\% $HOME" in line


def test_other_lines_stay_as_they_are(crontab):
    own = "# mine\nMAILTO=ops\n\n*/5 * * * * true % x\n"
    crontab.write_text(own)

    cron().add(a_schedule())
    assert crontab.read_text().startswith(own)
    cron().remove("night")

    assert crontab.read_text() == own


def test_what_was_added_is_listed_as_it_was_and_replaced_by_its_name(crontab):
    cron().add(a_schedule())
    cron().add(a_schedule(name="other"))
    cron().add(a_schedule(cron="@daily"))

    listed = cron().listed()
    assert {s.name: s.cron for s in listed} == {"night": "@daily", "other": "0 5 * * *"}
    assert a_schedule(name="other") in listed
    assert len(crontab.read_text().splitlines()) == 4


def test_a_mark_whose_line_is_gone_takes_no_other_line_with_it(crontab):
    cron().add(a_schedule())
    mark = crontab.read_text().splitlines()[0]
    crontab.write_text(f"{mark}\n0 0 * * * somebody-elses\n")

    cron().remove("night")

    assert crontab.read_text() == "0 0 * * * somebody-elses\n"


def test_a_crontab_that_cannot_be_read_is_never_written_over(crontab):
    tool = crontab.parent / "tools" / "crontab"
    tool.write_text(f'#!/bin/sh\n[ "$1" = - ] && touch {crontab}\necho "not allowed" >&2; exit 1\n')

    with pytest.raises(InputError, match="crontab -l: not allowed"):
        cron().add(a_schedule())

    assert not crontab.exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cron": "", "calendar": "daily"}, "cron knows no calendar expressions"),
        ({"cron": "0 25 * * *"}, "'25' is no hour"),
        ({"environment": {"PATH": "/x:" * 400}}, "too long for cron"),
    ],
)
def test_what_cron_cannot_do_is_refused_before_anything_is_written(crontab, changes, said):
    with pytest.raises(InputError, match=said) as caught:
        cron().add(a_schedule(**changes))

    assert caught.value.remedy
    assert not crontab.exists()


def test_cron_has_no_unit_files():
    with pytest.raises(InputError, match="no unit files"):
        CRON.open({"units": "/tmp"})


def test_the_line_does_what_was_meant_in_the_bare_environment_of_cron(tmp_path):
    schedule = a_schedule(
        argv=("/bin/sh", "-c", 'echo "$0|$RECOVER_STATE|$PWD"', "95% of it"),
        jitter_s=0,
        lock=str(tmp_path / "lock"),
    )
    line = cron().text(schedule).splitlines()[1].split(" ", 5)[5]

    # cron gives /bin/sh the command with every \\% as %, and hardly any environment.
    bare = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}
    done = subprocess.run(
        ["/bin/sh", "-c", line.replace("\\%", "%")],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "95% of it|/var/lib/a b|/tmp\n"


@pytest.mark.root
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("crontab") is None or shutil.which("unshare") is None,
    reason="needs root, cron and unshare",
)
def test_a_real_crontab_takes_it_and_gives_it_back(tmp_path):
    script = tmp_path / "session.sh"
    text = tmp_path / "lines"
    text.write_text(cron().text(a_schedule()))
    # A mount namespace of its own: the crontabs of this machine are not touched.
    script.write_text(
        "set -e\nmount -t tmpfs none /var/spool/cron\nmkdir -m 1730 /var/spool/cron/crontabs\n"
        f"crontab -n {text}\ncrontab - < {text}\ncrontab -l\n"
    )

    done = subprocess.run(
        ["unshare", "--mount", "sh", str(script)], capture_output=True, text=True, check=False
    )
    if "permitted" in done.stderr:
        pytest.skip("no mount namespaces here")

    assert done.returncode == 0, done.stderr
    assert text.read_text() in done.stdout
