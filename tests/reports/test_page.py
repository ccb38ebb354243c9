"""The page in a real browser: reads well narrow and wide, works by keys, never freezes."""

import re

import pytest

from recovery.inventory import fold
from recovery.model.events import NodeFinished, RunStarted, StepFinished, StepStarted
from recovery.model.kind import Kept, NodeResult
from recovery.model.verdict import failed, passed, single, warned
from recovery.reports.html import HTML
from tests.browsing import browsing, has, needs_browser, overflows, tab
from tests.reports.stories import EVIL, Shelf, events_of, names

pytestmark = needs_browser
STEPS = [f"step-{i}" for i in range(8)]


def wide_run(n_nodes, shelf):
    """A run of 8 steps in which each node has a finding of its own and two pieces of evidence."""
    nodes = names(n_nodes)
    yield RunStarted(at=0, run="r", cluster="big", runbook="b", digest="d" * 64, nodes=nodes,
                     seed=1, version="0", owner="ada@head")  # fmt: skip
    for step in STEPS:
        yield StepStarted(at=1, step=step, verb="check", attempt=1, nodes=nodes, deadline_s=60)
        for i, node in enumerate(nodes):
            kept = tuple(
                Kept(f"{step} {part}", shelf.put(f"{node} {step} {part}\n".encode() * 200), 4000)
                for part in ("one", "two")
            )
            said = (
                passed("fine") if (i + len(step)) % 5 else warned(f"{i} C", remedy="look at fans")
            )
            if i % 400 == 7:
                said = failed(f"card {i} is gone", remedy="power-cycle it", code="gpu.lost")
            result = NodeResult(node=node, verdict=single(said), kept=kept, duration_s=0.1)
            yield NodeFinished(at=2, step=step, attempt=1, result=result)
        yield StepFinished(at=3, step=step, outcome="done")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("home")) as one:
        yield one


def written(folder, events):
    shelf = Shelf()
    file = folder / "page.html"
    file.write_text(HTML.render(tuple(events(shelf)), shelf, fold), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    return written(folder, lambda shelf: events_of(8, shelf, EVIL))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    return written(folder, lambda shelf: wide_run(2000, shelf))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_has_no_errors_fits_its_window_and_asks_for_nothing(browser, small, width, scheme):
    with tab(browser, width=width, color_scheme=scheme) as page:
        page.goto(small)
        run_overflows = overflows(page)
        page.goto(f"{small}#node/node002")
        page.locator("#node-kept summary").first.click()

        assert page.errors == []
        assert page.asked == [small]
        assert not run_overflows
        assert not overflows(page)


def test_words_from_outside_run_nowhere_in_the_page(browser, small):
    with tab(browser) as page:
        page.on("dialog", lambda dialog: page.errors.append(dialog.message))
        page.goto(f"{small}#node/node002")

        assert "<script>alert(1)</script>" in page.locator("#node-steps").inner_text()
        said = page.locator("#node").inner_text()
        assert "recover bundle 20261201-000000-c-ab12 node002" in said
        assert "when it is mended: recover return c node002" in said
        assert page.errors == []


def test_a_script_that_came_in_would_not_be_run(browser, small):
    with tab(browser) as page:
        page.goto(small)
        page.evaluate("document.body.append(Object.assign(document.createElement('script'),"
                      " {textContent: 'document.title = \"bad\"'}))")  # fmt: skip

        assert page.title() == "power-loss on c"


def shown(page, rows):
    return page.locator(f"#{rows} tr").count()


def test_search_and_levels_and_steps_narrow_what_is_shown(browser, small):
    with tab(browser) as page:
        page.goto(small)
        assert shown(page, "node-rows") == 8
        page.get_by_label("pass", exact=True).uncheck()
        assert shown(page, "node-rows") == 3
        page.get_by_label("search nodes, findings and remedies").fill("its bmc")
        has(page.locator("#node-rows tr"), 1)

        assert "node003" in page.locator("#node-rows").inner_text()
        assert shown(page, "finding-rows") == 1
        page.locator("#step").select_option("mesh-1")
        assert shown(page, "node-rows") == 0


def test_a_node_inside_a_folded_name_is_found(browser, tmp_path):
    def all_alike(shelf):
        nodes = names(40)
        yield RunStarted(at=0, run="r", cluster="c", runbook="b", digest="d", nodes=nodes, seed=1,
                         version="0", owner="o")  # fmt: skip
        yield StepStarted(at=0, step="s", verb="check", attempt=1, nodes=nodes, deadline_s=9)
        for node in nodes:
            verdict = single(failed("too hot", remedy="cool it"))
            yield NodeFinished(
                at=1, step="s", attempt=1, result=NodeResult(node=node, verdict=verdict)
            )

    with tab(browser) as page:
        page.goto(written(tmp_path, all_alike))
        page.get_by_role("searchbox").fill("node017")
        has(page.locator("#node-rows tr"), 1)

        assert page.locator("#finding-rows").inner_text().count("node[001-040]") == 1


def test_the_keys_alone_find_a_node_and_its_evidence(browser, small):
    with tab(browser) as page:
        page.goto(small)
        page.keyboard.press("/")
        page.keyboard.type("node003")
        has(page.locator("#node-rows tr"), 1)
        page.locator("#node-rows a").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#node:not([hidden])")
        page.locator("#node-kept summary").first.focus()
        page.keyboard.press("Enter")

        assert "NV18" in page.locator("#node-kept pre").first.inner_text()
        page.keyboard.press("p")
        has(page.locator("#node-name").filter(has_text="node002"), 1)
        page.keyboard.press("Escape")
        page.wait_for_selector("#run:not([hidden])")


def test_a_chosen_colour_stands_over_the_systems(browser, small):
    with tab(browser, color_scheme="dark") as page:
        page.goto(small)
        background = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(background) == "rgb(15, 18, 22)"
        page.get_by_role("button", name="light / dark").click()

        assert page.evaluate(background) == "rgb(255, 255, 255)"


def test_printed_it_is_light_without_controls_and_with_the_evidence_open(browser, small):
    with tab(browser, color_scheme="dark") as page:
        page.goto(f"{small}#node/node001")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print", color_scheme="dark")

        assert (
            page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        )
        assert page.get_by_role("button", name="back to the run").is_hidden()
        assert page.locator("#node-kept pre").first.is_visible()


# Measured on 2 shared cores: see the README of the reports; the limit is for a loaded machine.
FROZEN_MS = 15_000
TIMED = """text => new Promise(done => {
  const started = performance.now();
  const box = document.getElementById("search");
  box.value = text;
  box.dispatchEvent(new Event("input"));
  setTimeout(() => requestAnimationFrame(() => done(performance.now() - started)), 100);
})"""


def test_two_thousand_nodes_are_drawn_and_searched_without_freezing(browser, large):
    with tab(browser) as page:
        page.goto(large)
        drawn_ms = page.evaluate("performance.getEntriesByType('navigation')[0].domComplete")
        searched_ms = [
            page.evaluate(TIMED, text) for text in ("", "node17", "fans", "card 1607 is gone")
        ]

        assert page.locator("#n-nodes").inner_text() == "1 nodes"
        assert "node1608" in page.locator("#node-rows").inner_text()
        assert drawn_ms < FROZEN_MS, drawn_ms
        assert max(searched_ms) < FROZEN_MS, searched_ms


def test_of_many_nodes_the_first_are_shown_and_more_when_asked(browser, large):
    with tab(browser) as page:
        page.goto(large)

        assert page.locator("#n-nodes").inner_text() == "100 of 2000 nodes shown"
        page.get_by_role("button", name="show 500 more").last.click()
        assert shown(page, "node-rows") == 600
        assert page.locator("#node-rows tr").first.inner_text().startswith("fail")


def test_printed_all_findings_are_there(browser, large):
    with tab(browser) as page:
        page.goto(large)
        before = page.locator("#n-findings").inner_text()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")

        assert before.startswith("100 of ")
        assert page.locator("#n-findings").inner_text().startswith("2100 of ")


def test_evidence_of_the_worst_nodes_stands_in_the_page_and_the_rest_is_linked(browser, large):
    with tab(browser) as page:
        page.goto(f"{large}#node/node008")
        page.locator("#node-kept summary").first.click()
        page.locator("#node-kept pre", has_text="node008 step-0 one").first.wait_for()
        page.goto(f"{large}#node/node1999")
        page.locator("#node-kept summary").first.click()

        # What a details holds is filled in when the browser tells that it was opened: wait for it.
        page.locator("#node-kept details", has_text="not in this page").first.wait_for()
        href = page.locator("#node-kept a").first.get_attribute("href")
        assert re.fullmatch(r"\.\./evidence/[0-9a-f]{2}/[0-9a-f]{64}", href)
