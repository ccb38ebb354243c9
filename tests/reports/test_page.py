"""The page in a real browser: no console errors, nothing that overflows, filter works."""

import os
import re
import shutil
import subprocess

import pytest

from recovery.inventory import fold
from recovery.reports.html import HTML
from tests.reports.stories import Shelf, events_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-quic",
)  # fmt: skip
PROBE = """<script>
const errors = [];
addEventListener("error", e => errors.push(e.message));
addEventListener("load", () => {
  const page = document.documentElement;
  const box = document.getElementById("filter");
  box.value = "node001"; box.dispatchEvent(new Event("input"));
  const shown = [...document.querySelectorAll("#evidence details")].filter(d => !d.hidden).length;
  const overflow = page.scrollWidth > page.clientWidth;
  page.dataset.probe = JSON.stringify({errors, overflow, shown});
});
</script>"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


def opened(tmp_path, page, *, width):
    file = tmp_path / "page.html"
    file.write_text(page.replace("<head>", f"<head>{PROBE}"))
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900",
         "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    return re.search(r'data-probe="([^"]*)"', done.stdout)[1].replace("&quot;", '"')


@pytest.mark.parametrize("n_nodes", [8, 512])
@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_has_no_errors_and_fits_its_window(tmp_path, n_nodes, width):
    shelf = Shelf()
    page = HTML.render(tuple(events_of(n_nodes, shelf)), shelf, fold)

    probe = opened(tmp_path, page, width=width)

    assert probe == '{"errors":[],"overflow":false,"shown":1}'


def test_the_page_asks_nothing_of_the_network():
    shelf = Shelf()
    page = HTML.render(tuple(events_of(8, shelf)), shelf, fold)

    assert re.findall(r'(?:src|href)="(?:https?:)?//', page) == []
    assert "@import" not in page
