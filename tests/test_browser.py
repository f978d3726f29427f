"""The pages in a real browser: a whole game, reloads, two people, replays from disk, a phone's width."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from montecristo_env import GameBatch, GameRecord, Ruleset
from montecristo_env.replay import write_replay

CHROMIUM = shutil.which("chromium")
try:
    import uvicorn
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import Browser, Page, expect, sync_playwright

    from montecristo_env.play import configure, listen
    from montecristo_env.web.sessions import SessionStore
except ImportError as missing:
    pytest.skip(f"{missing}: pip install '.[dev]'", allow_module_level=True)
if CHROMIUM is None:
    pytest.skip("there is no browser: apt-get install chromium", allow_module_level=True)

ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
DESKTOP = {"width": 1280, "height": 720}
PHONE = {"width": 390, "height": 844}
SHORT = Ruleset(target=10)  # a game of one or two scoring rounds
PATIENCE = 120_000  # milliseconds: machines can be busy


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None, "there is no browser: apt-get install chromium"
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Served:
    """A server in a thread, which can be stopped and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self.start()

    def start(self) -> None:
        self.store = SessionStore(self.folder, ["greedy", "random"], SHORT)
        self.store.load()
        self._server = uvicorn.Server(configure(self.store))
        listening = listen("127.0.0.1", self.port)
        self.port = listening.getsockname()[1]
        self._thread = threading.Thread(target=self._server.run, args=([listening],), daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENCE / 1000)
        assert not self._thread.is_alive()

    def open_table(self, *players: str, seed: int = 1, pace: float | None = 0.0) -> str:
        """A new table; returns the address of its page."""
        identity = self.store.open_table(players, seed)
        self.store.tables[identity].pace = pace
        return f"http://127.0.0.1:{self.port}/tables/{identity}"

    def table(self, page: Page) -> Any:
        return self.store.tables[page.url.split("/")[4].partition("#")[0]]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "tables")
    yield served
    served.stop()


def new_page(browser: Browser, size: dict[str, int] = DESKTOP) -> Page:
    """A page of a person of their own; whatever goes wrong in it fails the test."""
    page = browser.new_context(viewport=size, accept_downloads=True).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE)
    page.problems = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.problems.append(str(error)))  # type: ignore[attr-defined]
    page.on("request", lambda request: note_foreign(page, request.url))
    return page


def note_foreign(page: Page, url: str) -> None:
    if not url.startswith(("file://", "http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
        page.problems.append(f"asked for {url}")  # type: ignore[attr-defined]


def close(page: Page) -> None:
    problems = page.problems  # type: ignore[attr-defined]
    page.context.close()
    assert problems == []


def sit_down(page: Page, address: str) -> None:
    page.goto(f"{address}#sit")
    page.wait_for_selector("#leave")


def wait_for_turn(page: Page) -> bool:
    """Until it is this person's turn, or the game is over."""
    page.wait_for_selector("body[data-turn=mine], body[data-turn=over]")
    return page.get_attribute("body", "data-turn") == "mine"


def wait_for_change(page: Page, at: str | None) -> None:
    page.wait_for_selector(f"body:not([data-at='{at}'])")


def click_on_the_board(page: Page, which: int) -> None:
    """Decides by a click on a marked place, or on the button beside the board that declines."""
    at = page.get_attribute("body", "data-at")
    places = page.locator(".board .legal, #answers .choice")
    place = places.nth(which % places.count())
    several = ", or " in (place.get_attribute("aria-label") or "")
    place.click()
    if several:  # a marble or a marker that can be moved by one or by two
        page.locator("#answers .choice").nth(which % 2).click()
    wait_for_change(page, at)


def is_as_wide_as_its_window(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


# --- The table -------------------------------------------------------------------------------------------------------


def test_a_whole_game_against_bots_is_clicked_through(browser: Browser, served: Served, tmp_path: Path) -> None:
    page = new_page(browser)
    sit_down(page, served.open_table("human", "greedy", "random", seed=2))
    decisions = 0
    while wait_for_turn(page):
        click_on_the_board(page, decisions)
        decisions += 1
    table = served.table(page)
    assert decisions == len([player for player, _ in table.moves if player == 0]) > 5
    expect(page.locator("#asked")).to_have_text("The game is over")
    expect(page.locator("#title")).to_contain_text("win")
    check_the_end(page, table)
    with page.expect_download() as download:
        page.click("#record")
    download.value.save_as(tmp_path / "record.json")
    saved = GameRecord.load(tmp_path / "record.json")
    assert saved.result == table.record.result and saved.seed is None
    with page.expect_popup() as popup:
        page.click("#replay")
    popup.value.wait_for_selector("#moves li")
    expect(popup.value.locator("#count")).to_have_text(f"0 / {len(list(saved.replay())) - 1}")
    close(page)


def check_the_end(page: Page, table: Any) -> None:
    """The ranking adds up, the title speaks to the person, and the board can be seen again."""
    rows = [row.inner_text().split("\t") for row in page.locator("#end tr").all()]
    points = [[int(cell) for cell in row[1:]] for row in rows[1:]]
    assert rows[-1][0] == "Points" and points[-1] == sorted(table.record.result["scores"], reverse=True)
    assert [sum(column) for column in zip(*points[:-1], strict=True)] == points[-1]
    assert ("You" in page.inner_text("#end-title")) == (0 in table.record.result["winners"])
    page.get_by_role("button", name="Look at the board").click()
    expect(page.locator("#end")).to_be_hidden()
    expect(page.locator("#title")).to_be_focused()


def test_a_rematch_is_a_new_deal_for_the_same_players(browser: Browser, served: Served) -> None:
    address = served.open_table("human", "greedy")
    page = new_page(browser)
    sit_down(page, address)
    table = served.table(page)
    assert wait_for_turn(page)
    finish(table)
    page.reload()
    page.get_by_role("button", name="Rematch").click()
    page.wait_for_url(lambda url: url.split("#")[0] != address)
    page.wait_for_selector("#leave")
    assert served.table(page).players == ["human", "greedy"]
    close(page)


def finish(table: Any) -> None:
    """Plays a game to its end, for everybody."""
    while table.turn >= 0:
        table.step(int(table.games.sample_actions()[0]))


def test_keys_alone_are_enough(browser: Browser, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served.store, "ruleset", Ruleset())  # long enough, whatever is chosen
    page = new_page(browser)
    sit_down(page, served.open_table("human", "greedy"))
    table = served.table(page)
    assert wait_for_turn(page)
    page.click("#lesson-skip")
    page.keyboard.press("h")
    expect(page.locator("#adviser")).to_contain_text("greedy would")
    expect(page.locator("#choices .best")).to_contain_text("100 %")
    assert page.locator("#choices .bar").count() == page.locator("#choices button").count() > 1
    at = page.get_attribute("body", "data-at")
    page.keyboard.press("2")
    wait_for_change(page, at)
    assert wait_for_turn(page)
    for _ in range(3):  # by Tab to the first marked place, then Enter
        while not page.locator(".board .legal").count():
            at = page.get_attribute("body", "data-at")
            page.keyboard.press("1")
            wait_for_change(page, at)
            assert wait_for_turn(page)
        page.locator("a[href='/']").focus()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.matches('.board .legal')")
        at = page.get_attribute("body", "data-at")
        several = ", or " in page.evaluate("document.activeElement.getAttribute('aria-label')")
        page.keyboard.press("Enter")
        if several:  # known beforehand: once the answer is on its way, the next question may already be there
            expect(page.locator("#answers .choice").first).to_be_focused()
            page.keyboard.press("Enter")
        wait_for_change(page, at)
        assert wait_for_turn(page)
    moves = table.moves
    at = page.get_attribute("body", "data-at")
    page.keyboard.press("u")
    wait_for_change(page, at)
    assert len(table.moves) < len(moves) and moves[len(table.moves)][0] == 0
    reached = set()
    page.locator("body").click(position={"x": 2, "y": 2})
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"leave", "agent", "hint", "pace", "record", "replay", "log"} <= reached
    close(page)


def test_a_reload_and_a_restart_of_the_server_lose_nothing(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    sit_down(page, served.open_table("human", "greedy"))
    for which in range(6):
        assert wait_for_turn(page)
        click_on_the_board(page, which)
    assert wait_for_turn(page)
    seen = page.get_attribute("body", "data-at"), page.inner_text("#log"), page.inner_text("#choices")
    page.reload()
    assert wait_for_turn(page)
    assert (page.get_attribute("body", "data-at"), page.inner_text("#log"), page.inner_text("#choices")) == seen
    moves = served.table(page).moves
    served.stop()
    expect(page.locator("#notice")).to_contain_text("trying again")
    served.start()
    expect(page.locator("#notice")).to_be_hidden(timeout=PATIENCE)
    page.wait_for_selector("#leave")
    assert served.table(page).moves == moves
    assert wait_for_turn(page)
    click_on_the_board(page, 1)
    assert len(served.table(page).moves) > len(moves)
    close(page)


def test_two_people_play_in_two_browsers_and_a_third_watches(browser: Browser, served: Served) -> None:
    address = served.open_table("human", "human")
    people = [new_page(browser) for _ in range(2)]
    for page in people:
        sit_down(page, address)
    watcher = new_page(browser)
    watcher.goto(address)
    table = served.table(watcher)
    for which in range(12):
        active, other = (people[table.turn], people[1 - table.turn])
        assert wait_for_turn(active)
        expect(other.locator("body")).to_have_attribute("data-turn", "theirs")
        assert other.locator(".legal, .choice").count() == 0
        click_on_the_board(active, which)
        at = active.get_attribute("body", "data-at")
        for page in (other, watcher):
            expect(page.locator("body")).to_have_attribute("data-at", at or "")
    assert len(table.moves) == 12
    assert people[0].locator("#undo").is_hidden()
    assert watcher.locator(".legal, .choice, .sit").count() == 0
    for page in (*people, watcher):
        close(page)


def test_a_table_is_opened_in_the_lobby_and_bots_are_watched(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    page.goto(f"http://127.0.0.1:{served.port}/")
    page.get_by_label("Red").select_option("random")
    page.get_by_label("Green").select_option("greedy")
    page.get_by_role("button", name="Open the table").click()
    page.wait_for_selector("body[data-turn=theirs]")
    page.select_option("#pace", "0")
    page.wait_for_selector("body[data-turn=over]")
    page.get_by_role("link", name="All tables").click()
    expect(page.locator("#tables li")).to_contain_text("random, Blue greedy, Green greedy")
    close(page)


SIZES = [(1280, 720), (1920, 1080), (820, 1180), (390, 844), (844, 390), (360, 740), (1024, 768)]
TEXT_SIZES = """() => {
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const range = document.createRange();
    range.selectNode(texts.currentNode);
    const { width, height } = range.getBoundingClientRect();
    if (!width || !height || !texts.currentNode.textContent.trim()) continue;
    const parent = texts.currentNode.parentElement;
    const scale = parent.closest("svg") ? parent.getScreenCTM().a : 1;
    found.push([scale * parseFloat(getComputedStyle(parent).fontSize), texts.currentNode.textContent.trim()]);
  }
  return found;
}"""


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_no_text_is_below_eleven_pixels_and_hand_and_points_stay_in_view(
    browser: Browser, served: Served, width: int, height: int
) -> None:
    for players in (["human", "greedy"], ["human", "greedy", "random", "greedy"]):
        page = new_page(browser, {"width": width, "height": height})
        sit_down(page, served.open_table(*players, seed=3))
        for which in range(14):
            assert wait_for_turn(page)
            texts = page.evaluate(TEXT_SIZES)
            assert len(texts) > 40
            assert [text for text in texts if text[0] < 11] == []
            assert is_as_wide_as_its_window(page)
            for place in (0, 10_000):
                page.evaluate("y => scrollTo(0, y)", place)
                assert is_in_view(page, "[data-target^=hand-0]") and is_in_view(page, "#scores b, .player text")
            page.evaluate("scrollTo(0, 0)")
            at = page.get_attribute("body", "data-at")
            choices = page.locator("#choices button")
            choices.nth(which % choices.count()).evaluate("button => button.click()")
            wait_for_change(page, at)
        close(page)


def is_in_view(page: Page, selector: str) -> bool:
    """Whether one of these can be seen without scrolling; a person without cards has none."""
    return bool(
        page.evaluate(
            """selector => {
              const boxes = [...document.querySelectorAll(selector)].map((one) => one.getBoundingClientRect());
              return !boxes.length || boxes.some((box) => box.width && box.top >= 0 && box.bottom <= innerHeight);
            }""",
            selector,
        )
    )


@pytest.mark.parametrize(("scheme", "size"), [("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE)])
def test_axe_finds_nothing_serious(
    browser: Browser, served: Served, replay: str, scheme: str, size: dict[str, int]
) -> None:
    page = new_page(browser, size)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    sit_down(page, served.open_table("human", "greedy", "random", "greedy"))
    for which in range(5):
        assert wait_for_turn(page)
        check_by_axe(page)
        click_on_the_board(page, which)
    assert wait_for_turn(page)
    page.keyboard.press("h")
    page.wait_for_selector("#choices .bar")
    check_by_axe(page)
    page.click("#help")
    check_by_axe(page)
    page.keyboard.press("Escape")
    finish(served.table(page))
    page.reload()
    page.wait_for_selector("#end table")
    check_by_axe(page)
    for address in (f"http://127.0.0.1:{served.port}/", f"http://127.0.0.1:{served.port}/tables/none", replay):
        page.goto(address)
        page.wait_for_selector("#tables li, main h2, #moves li")
        check_by_axe(page)
    close(page)


def check_by_axe(page: Page) -> None:
    page.evaluate("document.getAnimations().forEach((animation) => animation.finish())")
    found = Axe().run(page).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert serious == [], [(one["id"], [node["html"] for node in one["nodes"]]) for one in serious]


def test_queues_and_marbles_are_told_to_those_who_cannot_see(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    page.goto(served.open_table("human", "greedy", pace=None))
    page.wait_for_selector("#board .lane, #board [data-target=lane-supply]")
    state = served.table(page).games.public_state()
    names = ["human", "greedy"]
    lane = ", ".join(names[seat] for seat in state["lanes"][0])
    expect(page.get_by_role("group", name=f"Supply lane, from the bottom: {lane}")).to_have_count(1)
    queue = ", ".join(names[seat] for seat in state["dungeons"][0]["queue"]) or "none"
    expect(page.get_by_role("group", name=f"Queue: {queue}.").first).to_be_visible()
    close(page)


def test_a_choice_without_a_connection_is_kept_and_made_later(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    sit_down(page, served.open_table("human", "human", pace=None))
    served.table(page).sit(1)
    if served.table(page).turn != 0:
        finish_turn_of_the_other(served.table(page))
    page.reload()
    assert wait_for_turn(page)
    moves = len(served.table(page).moves)
    served.store.save(page.url.split("/")[4].partition("#")[0], served.table(page))()
    served.stop()
    expect(page.locator("#notice")).to_contain_text("trying again")
    assert float(page.locator("#board").evaluate("b => getComputedStyle(b).opacity")) < 0.6
    page.locator("#choices button").first.click()
    expect(page.locator("#notice")).to_contain_text("is kept and will be made when it is back")
    served.start()
    page.wait_for_selector("body[data-online=true]")
    expect(page.locator("#notice")).to_be_hidden()
    wait_until(lambda: len(served.table(page).moves) == moves + 1)
    close(page)


def finish_turn_of_the_other(table: Any) -> None:
    while table.turn != 0:
        table.step(int(table.games.sample_actions()[0]))


def wait_until(happened: Any) -> None:
    deadline = time.monotonic() + PATIENCE / 1000
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_cannot_be_chosen_says_why_and_pieces_say_what_they_are(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    sit_down(page, served.open_table("human", "greedy", "greedy", seed=4))
    reasons = set()
    while wait_for_turn(page) and len(reasons) < 3:
        for blocked in page.locator(".board .blocked").all()[:2]:
            blocked.hover(force=True)
            expect(page.locator("#tip")).to_contain_text("Not now: ")
            reasons.add(page.inner_text("#tip").split(".")[0])
        at = page.get_attribute("body", "data-at")
        page.keyboard.press("1")
        wait_for_change(page, at)
    assert len(reasons) >= 3, reasons
    for piece, text in (("token-", "market value"), ("adventurer-", "Adventurer of"), ("marker-", "in the market")):
        page.locator(f".board [data-piece^={piece}]").first.hover(force=True)
        expect(page.locator("#tip")).to_contain_text(text)
    close(page)


def test_lessons_come_one_by_one_and_can_be_skipped(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    sit_down(page, served.open_table("human", "greedy"))
    assert wait_for_turn(page)
    expect(page.locator("#lesson")).to_contain_text("1 of 5. The slide")
    page.click("#lesson-done")
    expect(page.locator("#lesson-title")).not_to_contain_text("The slide")
    page.click("#help")
    expect(page.locator("#rules")).to_contain_text("Scoring")
    box = page.locator("#rules").bounding_box()
    assert box is not None and box["height"] <= DESKTOP["height"], "one screen"
    page.click("#rules-lessons")
    expect(page.locator("#lesson")).to_contain_text("1 of 5. The slide")
    page.click("#lesson-skip")
    expect(page.locator("#lesson")).to_be_hidden()
    page.reload()
    assert wait_for_turn(page)
    expect(page.locator("#lesson")).to_be_hidden()
    close(page)


@pytest.mark.parametrize("size", [PHONE, {"width": 844, "height": 390}])
def test_the_rules_begin_with_their_beginning(browser: Browser, served: Served, size: dict[str, int]) -> None:
    page = new_page(browser, size)
    sit_down(page, served.open_table("human", "greedy"))
    for _ in range(2):
        page.click("#help")
        expect(page.locator("#rules-title")).to_be_in_viewport()
        expect(page.locator("#rules-title")).to_be_focused()
        page.locator("#rules-close").scroll_into_view_if_needed()
        page.click("#rules-close")
    close(page)


def test_what_others_changed_is_outlined_and_the_used_marble_is_marked(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    page.emulate_media(reduced_motion="reduce")
    sit_down(page, served.open_table("human", "greedy", seed=3))
    outlined = marked = 0
    for _ in range(14):
        assert wait_for_turn(page)
        outlined += page.locator(".board .changed").count() > 0
        for new in page.locator("#log .now").all()[:1]:
            top, log = new.bounding_box(), page.locator("#log").bounding_box()
            assert top is not None and log is not None and 0 <= top["y"] - log["y"] < log["height"] - top["height"]
        marked += page.locator(".board .used").count()
        assert page.locator(".board .used").count() == (page.get_attribute("body", "data-phase") == "return_marble")
        assert page.evaluate("document.getAnimations().length") == 0
        at = page.get_attribute("body", "data-at")
        page.keyboard.press("1")
        wait_for_change(page, at)
    assert outlined > 5 and marked > 0
    close(page)


def test_the_focus_never_falls_to_the_body(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    sit_down(page, served.open_table("human", "greedy", seed=3))
    assert wait_for_turn(page)
    page.locator("#choices button").first.focus()
    for selector in ("#choices button", "#hint", "#choices button", "#undo", ".board .legal", "#answers button"):
        assert wait_for_turn(page)
        if page.locator(selector).count() == 0:
            continue
        at = page.get_attribute("body", "data-at")
        page.locator(selector).first.focus()
        page.keyboard.press("Enter")
        if selector == "#hint":
            page.wait_for_selector("#choices .bar")
        elif page.locator("#answers button:focus").count() == 0:
            wait_for_change(page, at)
        assert page.evaluate("document.activeElement.tagName") != "BODY", selector
    close(page)


def test_an_unknown_table_is_a_page_and_tables_can_be_deleted(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    answer = page.goto(f"http://127.0.0.1:{served.port}/tables/nothing")
    assert answer is not None and answer.status == 404
    page.get_by_role("link", name="See all tables").click()
    page.get_by_label("Your name").fill("Ann")
    page.get_by_label("Seed").fill("7")
    page.get_by_role("button", name="Open the table").click()
    page.wait_for_selector("#leave")
    table = served.table(page)
    assert table.seed == 7 and table.names[0] == "Ann"
    page.get_by_role("link", name="All tables").click()
    expect(page.locator("#tables li")).to_contain_text("Ann, greedy")
    assert page.locator("#tables time").get_attribute("datetime")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#tables li")).to_have_text("None yet.")
    assert served.store.tables == {} and list(served.folder.iterdir()) == []
    close(page)


def test_a_phone_shows_everything_in_its_width(browser: Browser, served: Served) -> None:
    page = new_page(browser, PHONE)
    sit_down(page, served.open_table("human", "greedy", "random", "greedy"))
    for which in range(8):
        assert wait_for_turn(page)
        assert is_as_wide_as_its_window(page)
        click_on_the_board(page, which)
    dungeon = page.locator("[data-part=dungeon-A]").bounding_box()
    assert dungeon is not None and dungeon["width"] > 170
    close(page)


def test_the_table_fits_on_a_small_screen(browser: Browser, served: Served) -> None:
    page = new_page(browser)
    sit_down(page, served.open_table("human", "greedy", "random", "greedy"))
    assert wait_for_turn(page)
    assert page.evaluate("document.documentElement.scrollHeight") <= DESKTOP["height"]
    assert is_as_wide_as_its_window(page)
    boxes = [page.locator(part).bounding_box() for part in (".board", "#tray", ".play .controls", "#log")]
    for box in boxes:
        assert box is not None and box["y"] + box["height"] <= DESKTOP["height"]
    close(page)


# --- The replay ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with two games, the first of which was annotated; its address."""
    records = []
    for n in (3, 2):
        games = GameBatch(1, n, seed=n, ruleset=SHORT)
        records.append(GameRecord.record(games))
        games.play_random(10_000)
    records[0].annotate("greedy")
    path = tmp_path_factory.mktemp("replay") / "games.html"
    write_replay(records, path)
    return path.as_uri()


def test_a_replay_is_opened_from_disk_and_stepped_to_the_end(browser: Browser, replay: str) -> None:
    page = new_page(browser)
    page.goto(replay)
    last = int(page.inner_text("#count").split("/")[1])
    seen = set()
    for step in range(last):
        assert page.inner_text("#count") == f"{step} / {last}"
        seen.add(page.inner_html("#board"))
        page.keyboard.press("ArrowRight")
    expect(page.locator("#count")).to_have_text(f"{last} / {last}")
    expect(page.locator("#title")).to_contain_text("win")
    assert len(seen) > 0.9 * last
    assert page.locator("#moves .now").count() > 0
    assert page.locator("#moves .forced").count() > 0 and page.locator("#moves .chance").count() > 0
    for key, count in (("ArrowLeft", last - 1), ("Home", 0), ("End", last)):
        page.keyboard.press(key)
        expect(page.locator("#count")).to_have_text(f"{count} / {last}")
    close(page)


def test_a_replay_plays_by_itself_at_the_chosen_speed(browser: Browser, replay: str) -> None:
    page = new_page(browser)
    page.clock.install()  # so that it passes as much time as this test says
    page.goto(replay)
    page.clock.pause_at(time.time() + 3600)
    last = int(page.inner_text("#count").split("/")[1])
    page.select_option("#speed", "0.05")
    page.keyboard.press("Escape")
    page.locator("body").click(position={"x": 2, "y": 2})
    page.keyboard.press(" ")
    expect(page.locator("#auto")).to_have_text("‖ Pause")
    page.clock.run_for(320)
    page.click("#auto")
    expect(page.locator("#auto")).to_have_text("▶ Play")
    expect(page.locator("#count")).to_have_text(f"6 / {last}")
    page.clock.run_for(200)
    expect(page.locator("#count")).to_have_text(f"6 / {last}")
    close(page)


def test_bars_slider_list_and_chart_of_a_replay(browser: Browser, replay: str) -> None:
    page = new_page(browser)
    page.goto(replay)
    page.locator("#slider").fill("40")
    assert page.inner_text("#count").startswith("40 /")
    while not page.locator("#choices li").count():
        page.click("#next")
    widths = [
        page.locator("#choices .bar").nth(i).evaluate("b => getComputedStyle(b, '::after').width") for i in (0, 1)
    ]
    assert float(widths[0][:-2]) > 100 > float(widths[1][:-2])
    page.locator("#moves button").nth(10).click()
    for step in (10, 60, 20):
        page.locator("#slider").fill(str(step))
        expect(page.locator("#moves [aria-current=step]").first).to_be_in_viewport()
    chart = page.locator("#chart").bounding_box()
    assert chart is not None and page.locator("#chart polyline").count() == 6
    page.mouse.click(chart["x"] + chart["width"] - 22, chart["y"] + 20)
    assert len(set(page.inner_text("#count").split(" / "))) == 1
    assert page.locator("#values").is_hidden(), "greedy gives no values"
    page.select_option("#game", "1")
    assert page.locator(".part.player").count() == 2
    assert page.locator("#opinion").is_hidden()
    assert page.url.endswith("#game=2&step=0")
    close(page)


def test_a_replay_names_its_evaluator_lists_mistakes_and_opens_at_a_step(browser: Browser, tmp_path: Path) -> None:
    games = GameBatch(1, 2, seed=2, ruleset=SHORT)
    record = GameRecord.record(games)
    games.play_random(10_000)
    record.annotate("greedy")
    decided = [event for event in record.events if "probabilities" in event]
    for event in decided:
        event["value"] = 0.5 if event["player"] else -0.11
        event["loss"] = round(1 - event["probabilities"][event["move"]], 4) / 2
        event["luck"] = [0.25, -0.25]
    write_replay(record, tmp_path / "game.html")
    page = new_page(browser)
    page.goto(f"{(tmp_path / 'game.html').as_uri()}#game=1&step=30")
    expect(page.locator("#count")).to_contain_text("30 /")
    expect(page.locator("#evaluator")).to_have_text("greedy's view")
    while not page.locator("#choices li").count():
        page.click("#next")
    expect(page.locator("#value")).to_contain_text("(+1 is a win)")
    assert page.inner_text("#value").split(" ")[:2] in (["red", "−0.11"], ["blue", "+0.50"])
    assert page.locator("#values polyline").count() == 4
    losses = [event["loss"] for event in decided]
    wrong = sum(loss >= 0.05 for loss in losses)
    assert f"−{max(losses):.2f}" in page.locator("#mistakes button").first.inner_text()
    expect(page.locator("#consequences")).to_contain_text("The draw: red +0.25, blue −0.25.")
    assert [sentence[:9] for sentence in page.locator("#balances li").all_inner_texts()] == ["red lost ", "blue lost"]
    assert page.locator("#mistakes button").count() == min(8, wrong) > 0
    page.locator("#mistakes button").first.click()
    assert page.locator("#choices .moved").inner_text() != page.locator("#choices .told").first.inner_text()
    hinted = 0
    for mistake in page.locator("#mistakes button").all():
        mistake.click()
        hinted += page.locator(".board .hinted").count() > 0
    assert hinted > 0  # not every choice has a place on the board
    page.evaluate("location.hash = '#game=1&step=3'")
    expect(page.locator("#count")).to_contain_text("3 /")
    close(page)


def test_charts_share_their_steps_and_everything_is_in_view(browser: Browser, tmp_path: Path) -> None:
    games = GameBatch(1, 4, seed=2, ruleset=SHORT)
    record = GameRecord.record(games)
    games.play_random(10_000)
    for event in record.events:
        if "move" in event and not event.get("forced"):
            event |= {"probabilities": {event["move"]: 1.0}, "value": 0.1, "loss": 0.2, "luck": [0.0] * 4}
    write_replay(record, tmp_path / "game.html")
    for size in (DESKTOP, {"width": 1920, "height": 1080}):
        page = new_page(browser, size)
        page.goto((tmp_path / "game.html").as_uri())
        for chart in ("#chart", "#values"):
            drawn = page.locator(f"{chart} svg").get_attribute("viewBox")
            assert drawn == page.locator(chart).evaluate("c => `0 0 ${c.clientWidth} ${c.clientHeight}`"), chart
        for part in (".board", ".controls", "#chart", "#values", "#choices", "#mistakes-title", "#moves"):
            box = page.locator(part).bounding_box()
            assert box is not None and box["height"] > 10 and box["y"] + box["height"] <= size["height"], part
        close(page)


def test_a_replay_on_a_phone(browser: Browser, replay: str) -> None:
    page = new_page(browser, PHONE)
    page.goto(replay)
    for _ in range(20):
        page.click("#next")
        assert is_as_wide_as_its_window(page)
    expect(page.locator("#count")).to_contain_text("20 /")
    close(page)
