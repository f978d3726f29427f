"""The table without a server, in a real browser: whole games, several people, no network, and no wait."""

from __future__ import annotations

import contextlib
import functools
import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from montecristo_env import GameRecord
from montecristo_env.errors import InvalidArgument
from montecristo_env.web.page import write_page
from test_browser import DESKTOP, PHONE, Browser, Page, browser, close, new_page, wait_for_turn  # noqa: F401
from test_wasm import COMPILED  # skips where there is no module

MOST_BYTES = 3_000_000
READY_SECONDS = 2.0 * 5  # on a machine that does nothing else it takes a fifth of that


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    write_page(folder, COMPILED)
    return folder


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """A server of files; the address of the folder."""
    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serving(folder) as address:
        yield address


def open_table(page: Page, address: str, *players: str, seed: int = 1, simulations: int = 1) -> None:
    """Opens a table in the lobby; bots move at once."""
    page.goto(address)
    page.wait_for_selector("#submit:enabled")
    for seat, player in enumerate(players):
        page.locator("#seats select").nth(seat).select_option(player)
    if page.locator("#simulations").is_visible():
        page.locator("#simulations").fill(str(simulations))
    page.fill("#seed", str(seed))
    page.click("#submit")
    page.wait_for_selector("body[data-at]")
    page.locator("#pace").select_option("0")
    if page.locator("#lesson-skip").is_visible():
        page.click("#lesson-skip")


def play_to_the_end(page: Page, most: int = 1000) -> int:
    """Chooses from the list, in turn; the number of decisions."""
    for decisions in range(most):
        if not wait_for_turn(page):
            return decisions
        at = page.get_attribute("body", "data-at")
        choices = page.locator("#choices button")
        choices.nth(decisions % choices.count()).click()
        page.wait_for_selector(f"body:not([data-at='{at}'])")
    raise AssertionError("the game does not end")


def test_the_page_is_small(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir()) < MOST_BYTES


def test_a_folder_without_the_module_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="make wasm"):
        write_page(tmp_path / "page", tmp_path)


@pytest.mark.parametrize(
    "players", [["human", "greedy"], ["human", "alphazero", "greedy"], ["mcts", "human", "random", "greedy"]]
)
def test_a_whole_game_against_bots(browser: Browser, address: str, tmp_path: Path, players: list[str]) -> None:  # noqa: F811
    page = new_page(browser)
    open_table(page, address, *players)
    assert play_to_the_end(page) > 10
    assert page.locator("#end").is_visible()
    with page.expect_download() as download:
        page.click("#end-actions button:has-text('Look')")
        page.click("#record")
    download.value.save_as(tmp_path / "record.json")
    record = GameRecord.load(tmp_path / "record.json")
    assert record.result is not None and record.num_players == len(players)
    close(page)


def test_several_people_share_a_screen(browser: Browser, address: str) -> None:  # noqa: F811
    page = new_page(browser)
    open_table(page, address, "human", "human", "greedy")
    seen = set()
    for _ in range(20):
        assert wait_for_turn(page)
        seen.add(page.locator("#scores .now .name").first.text_content())
        at = page.get_attribute("body", "data-at")
        page.locator("#choices button").first.click()
        page.wait_for_selector(f"body:not([data-at='{at}'])")
    assert len(seen) == 2
    close(page)


def test_hint_undo_reload_and_lobby(browser: Browser, address: str) -> None:  # noqa: F811
    page = new_page(browser)
    open_table(page, address, "human", "greedy")
    assert wait_for_turn(page)
    page.locator("#agent").select_option("alphazero")
    page.click("#hint")
    page.wait_for_selector("#choices .best")
    assert "alphazero would" in (page.locator("#adviser").text_content() or "")
    before = page.get_attribute("body", "data-at")
    page.locator("#choices button").first.click()
    page.wait_for_selector(f"body:not([data-at='{before}'])")
    assert wait_for_turn(page)
    page.click("#undo")
    page.wait_for_selector(f"body[data-at='{before}']")
    page.reload()
    page.wait_for_selector(f"body[data-at='{before}']")
    page.click("header >> text=All tables")
    page.wait_for_selector("#tables a")
    page.on("dialog", lambda dialog: dialog.accept())
    page.click("#tables button")
    page.wait_for_selector("#tables >> text=None yet.")
    close(page)


def test_a_rematch_and_an_analysis(browser: Browser, address: str) -> None:  # noqa: F811
    page = new_page(browser)
    open_table(page, address, "human", "greedy", seed=5)
    play_to_the_end(page)
    analysis = page.locator("#end-actions a").get_attribute("href")
    table = page.url
    page.click("#end-actions button:has-text('Rematch')")
    page.wait_for_url(lambda url: url.split("#")[0] != table.split("#")[0])
    page.wait_for_selector("body[data-turn=mine]")
    assert "by=alphazero" in str(analysis)
    page.goto(address + str(analysis))
    page.wait_for_selector("#moves button")
    assert page.locator("#opinion").is_visible()
    assert page.locator("#balances li").count() == 2 and page.locator("#mistakes li").count() > 0
    page.click("#next")
    assert "step=1" in page.url
    close(page)


def test_it_plays_without_a_network_after_the_first_visit(browser: Browser, address: str) -> None:  # noqa: F811
    page = new_page(browser)
    page.goto(address)
    page.wait_for_function("navigator.serviceWorker.ready.then(() => true)")
    page.wait_for_function("navigator.serviceWorker.controller !== null")
    page.context.set_offline(True)
    open_table(page, address, "human", "alphazero", simulations=2)
    for _ in range(5):
        assert wait_for_turn(page)
        at = page.get_attribute("body", "data-at")
        page.locator("#choices button").first.click()
        page.wait_for_selector(f"body:not([data-at='{at}'])")
    close(page)


def test_the_first_move_can_be_made_soon(browser: Browser, address: str) -> None:  # noqa: F811
    page = new_page(browser)
    open_table(page, address, "human", "greedy")
    wait_for_turn(page)
    begin = time.perf_counter()
    page.reload()
    page.wait_for_selector("body[data-turn=mine]")
    print(f"ready after {time.perf_counter() - begin:.2f} s")
    assert time.perf_counter() - begin < READY_SECONDS
    close(page)


def test_a_table_that_is_not_there_says_so(browser: Browser, address: str) -> None:  # noqa: F811
    page = new_page(browser, PHONE)
    page.goto(f"{address}table.html?table=none")
    page.wait_for_selector("#notice:has-text('no such table')")
    page.click("#notice a")
    page.wait_for_selector("#submit:enabled")
    close(page)


def test_the_lobby_survives_what_it_cannot_read_and_offers_what_agents_can_do(browser: Browser, address: str) -> None:  # noqa: F811
    page = new_page(browser)
    page.goto(address)
    page.wait_for_selector("#submit:enabled")
    page.evaluate("localStorage.setItem('montecristo-page-table-x', '{')")
    page.reload()
    page.wait_for_selector("#tables >> text=a damaged table")
    page.locator("#seats select").nth(1).select_option("mcts")
    page.locator("#simulations").fill("0")
    assert page.inner_text("#simulations-count") == "8"
    page.locator("#seats select").nth(1).select_option("alphazero")
    page.locator("#simulations").fill("0")
    assert page.inner_text("#simulations-count").startswith("none")
    page.fill("#seed", "9007199254740993")
    page.click("#submit")
    page.wait_for_selector("#notice:has-text('seed must be')")
    close(page)


def test_an_agent_that_cannot_move_is_told(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    write_page(tmp_path, COMPILED)
    (tmp_path / "alphazero.safetensors").unlink()
    with serving(tmp_path) as address:
        page = new_page(browser, DESKTOP)
        open_table(page, address, "alphazero", "alphazero")  # whoever begins
        page.wait_for_selector("#notice:has-text('could not move')", timeout=30_000)
        close(page)
