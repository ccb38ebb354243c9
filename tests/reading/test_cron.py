"""Cron expressions, and the same moments for systemd."""

import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.errors import InputError
from recovery.reading.cron import as_calendar, read_cron


@pytest.mark.parametrize(
    ("text", "calendar"),
    [
        ("0 5 * * *", ("*-*-* 05:00:00",)),
        ("@daily", ("*-*-* 00:00:00",)),
        ("0 2 * * 0", ("Sun *-*-* 02:00:00",)),
        ("0 2 * * 7", ("Sun *-*-* 02:00:00",)),
        ("0 2 * * sun", ("Sun *-*-* 02:00:00",)),
        ("30 6 * * 1-5", ("Mon,Tue,Wed,Thu,Fri *-*-* 06:30:00",)),
        ("*/20 * * * *", ("*-*-* *:00,20,40:00",)),
        ("5/20 * * * *", ("*-*-* *:05,25,45:00",)),
        ("0 0 1 jan,jul *", ("*-01,07-01 00:00:00",)),
        ("0 4 1-7 * *", ("*-*-01,02,03,04,05,06,07 04:00:00",)),
        ("0 4 13 * 5", ("*-*-13 04:00:00", "Fri *-*-* 04:00:00")),
        ("0 4 */2 * 5", (f"Fri *-*-{','.join(f'{d:02d}' for d in range(1, 32, 2))} 04:00:00",)),
        ("  0  5  *  *  * ", ("*-*-* 05:00:00",)),
    ],
)
def test_the_moments_of_cron_for_systemd(text, calendar):
    assert as_calendar(read_cron(text)) == calendar


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "five fields, not 0"),
        ("0 5 * *", "five fields, not 4"),
        ("@reboot", "five fields, not 1"),
        ("60 5 * * *", "'60' is no minute (0 to 59)"),
        ("0 24 * * *", "'24' is no hour"),
        ("0 5 0 * *", "'0' is no day of the month"),
        ("0 5 * 13 *", "'13' is no month"),
        ("0 5 * * 8", "'8' is no day of the week"),
        ("0 5 * * fry", "'fry' is no day of the week"),
        ("0 9-5 * * *", "'9-5' never comes"),
        ("*/0 * * * *", "'*/0' never comes"),
        ("0 5, * * *", "'' is no hour"),
        ("*-5 * * * *", "'*-5' is no minute"),
    ],
)
def test_what_cron_would_not_take_is_refused_in_words(text, said):
    with pytest.raises(InputError) as caught:
        read_cron(text)

    assert said in caught.value.message
    assert caught.value.remedy


@given(st.text(alphabet="0123456789*/-, abcmonsun@", max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        time = read_cron(text)
    except InputError:
        return
    assert all((time.minutes, time.hours, time.days, time.months, time.weekdays))


EXPRESSIONS = ("0 5 * * *", "*/7 1-3 * * 1-5", "0 4 13 * 5", "0 0 29 2 *", "15,45 */6 1 */3 sat")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_reads_every_line_that_we_write():
    lines = [line for text in EXPRESSIONS for line in as_calendar(read_cron(text))]

    done = subprocess.run(
        ["systemd-analyze", "calendar", *lines], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert len(re.findall("Next elapse", done.stdout)) == len(lines)
