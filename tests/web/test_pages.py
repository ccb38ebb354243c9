"""The pages in a real browser: live, strict, readable narrow and wide."""

import pytest

from tests.browsing import browsing, has, needs_browser, overflows, tab
from tests.reports.stories import EVIL, Shelf, events_of
from tests.stored_runs import store
from tests.web.runs import running
from tests.web.serving import served

pytestmark = needs_browser
pytest.importorskip("starlette", reason="needs recover[serve]")
pytest.importorskip("uvicorn", reason="needs recover[serve]")
RUN, LIVE = "20261201-000000-c-ab12", "20261201-000001-live-cd34"
TOKEN = "0123456789abcdef-token"


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    folder = tmp_path_factory.mktemp("state")
    store(folder, RUN, lambda evidence: events_of(8, evidence, EVIL))
    return folder


@pytest.fixture(scope="module")
def server(state):
    with served(state) as one:
        yield one


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("home")) as one:
        yield one


@pytest.mark.parametrize("width", [1280, 420])
def test_from_the_list_to_the_raw_evidence_without_an_error(browser, server, width):
    with tab(browser, width=width, color_scheme="dark") as page:
        page.on("dialog", lambda dialog: page.errors.append(dialog.message))
        page.goto(server.url)
        wide = [overflows(page)]
        page.get_by_role("link", name=RUN).click()
        page.get_by_text("the run has ended; this is its last state").wait_for()
        wide.append(overflows(page))
        assert "<script>alert(1)</script>" in page.locator("#findings").inner_text()
        page.get_by_role("link", name="the whole report").click()
        page.locator("#node-rows a").first.click()
        page.locator("#node-kept summary").first.click()
        page.get_by_role("link", name="the whole file").first.click()
        page.wait_for_url("**/evidence/**")

        assert "NV18" in page.locator("pre").inner_text()
        assert page.errors == []
        assert wide == [False, False]
        assert all(asked.startswith(server.url) for asked in page.asked)


def test_a_run_is_seen_as_it_goes_on(browser, server, state):
    events = list(events_of(8, Shelf(), EVIL))
    with running(state, LIVE) as journal, tab(browser) as page:
        for event in events[:4]:
            journal.append(event)
        page.goto(f"{server.url}runs/{LIVE}/")
        has(page.locator("#steps tr"), 1)
        before = page.locator("#steps").inner_text()
        for event in events[4:]:
            journal.append(event)
        has(page.locator("#steps tr"), 3)
        page.get_by_text("the run has ended; this is its last state").wait_for()

        assert "2 of 8" in before
        assert "waiting for" in before
        assert page.locator("#state").inner_text() == "done"
        assert page.title() == "done: power-loss on c, 8 nodes"
        assert page.errors == []


def test_a_browser_with_the_token_follows_too(browser, state):
    with (
        served(state, "--token-env", "PAGE_TOKEN", PAGE_TOKEN=TOKEN) as guarded,
        tab(browser, http_credentials={"username": "me", "password": TOKEN}) as page,
    ):
        page.goto(f"{guarded.url}runs/{RUN}/")
        page.get_by_text("the run has ended; this is its last state").wait_for()

        assert page.locator("#state").inner_text() == "done"


def test_when_the_server_goes_the_page_says_so(browser, state):
    events = list(events_of(8, Shelf()))
    with (
        running(state, "20261201-000009-x") as journal,
        served(state) as short,
        tab(browser) as page,
    ):
        for event in events[:4]:
            journal.append(event)
        page.goto(f"{short.url}runs/20261201-000009-x/")
        has(page.locator("#steps tr"), 1)
        short.stop()

        page.get_by_text("the connection is lost; trying again").wait_for()
