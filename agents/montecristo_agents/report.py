"""What an arena run has shown: numbers, tables for people, files and pictures."""

import csv
import io
import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from montecristo_agents import ratings
from montecristo_agents.extras import Console, Figure, RichTable, Text, box
from montecristo_agents.luck import SIGNALS, WIN, cross_fit, fit_ahead
from montecristo_agents.matches import Match, Results, Table
from montecristo_agents.ratings import CONFIDENCE, Estimate, Skill, mean_by_deal, rate_by_deal
from montecristo_env.core.constants import MIN_PLAYERS
from montecristo_env.ruleset import Ruleset
from montecristo_env.util.files import atomic_write

Values: TypeAlias = NDArray[np.float64]

FILES = ("report.json", "agents.csv", "pairs.csv", "ratings.png", "pairs.png")
_TEXT_WIDTH = 120
_CONFIDENCE = f"{100 * CONFIDENCE:.0f} %"


@dataclass(frozen=True)
class AgentLine:
    """How one agent did, alone at tables of each other agent that it met; all of these count the same."""

    agent: str
    win_rate: Estimate
    score_margin: Estimate  # own points minus the mean of the others'
    mean_rank: Estimate
    elo: Estimate
    openskill: Skill
    decisions_per_game: float
    seconds_per_decision: float  # of the clock on the wall, many games at once
    adjusted_win_rate: Estimate | None = None  # without the luck of draws, see `luck`; None if it was not measured
    adjusted_score_margin: Estimate | None = None
    luck: Estimate | None = None  # in shares of the win per game; its true mean is 0
    loss: Estimate | None = None  # what its decisions cost it in a game, likewise
    lottery: Estimate | None = None  # its part in the maximal lottery, see `ratings`; None unless all have met


@dataclass(frozen=True)
class PairLine:
    """How one agent did, alone against another in all other seats."""

    agent: str
    opponent: str
    games: int
    win_rate: Estimate
    score_margin: Estimate
    mean_rank: Estimate
    adjusted_win_rate: Estimate | None = None
    adjusted_score_margin: Estimate | None = None
    variance_left: float | None = None  # of the adjusted win rate by deal, as a share of that of the raw one
    luck: Estimate | None = None  # in shares of the win per game; its true mean is 0
    loss: Estimate | None = None  # what the decisions of the agent cost it in a game, likewise


@dataclass(frozen=True, repr=False)
class Report:
    """The outcome of an arena run.

    Attributes:
        settings: what was to be played.
        deals: how many were played at all tables; intervals are over deals.
        games: how many those were.
        null_rate: the win rate among equals.
        anchor: the agent whose Elo is 0.
        rated_games: how many games openskill has seen.
        agents: best first.
        pairs: every agent against every other that it met.
        coefficients: how much luck counts at each table, the mean over deals; None if it was not measured.
        test: what a sequential test has shown, see `SequentialTest.describe`; None if there was none.
        usage: what agents that ask language models have used in this process, and their illegal answers.
    """

    settings: dict[str, Any]
    deals: int
    games: int
    null_rate: float
    anchor: str
    rated_games: int
    agents: list[AgentLine]
    pairs: list[PairLine]
    coefficients: list[dict[str, Any]] | None = None
    test: dict[str, Any] | None = None
    usage: Sequence[str] = ()

    @property
    def rules(self) -> str:
        """The settings of the game that differ from the default, as a text."""
        return str(Ruleset.from_dict(self.settings["ruleset"]))

    def agent(self, name: str) -> AgentLine:
        """The line of one agent."""
        return next(line for line in self.agents if line.agent == name)

    def pair(self, name: str, opponent: str) -> PairLine | None:
        """The line of one agent against another, None if they did not meet."""
        return next((line for line in self.pairs if (line.agent, line.opponent) == (name, opponent)), None)

    # --- for people

    def print(self, console: Console) -> None:
        """Prints the tables."""
        for table in _tables(self):
            console.print(table.rich())
        for line in self._notes():
            console.print(line, style="dim", highlight=False)

    def __str__(self) -> str:
        text = io.StringIO()
        self.print(Console(file=text, width=_TEXT_WIDTH))
        return text.getvalue()

    def __repr__(self) -> str:
        best = ", ".join(f"{line.agent} {percent(line.win_rate.value)} %" for line in self.agents)
        return f"<Report: {self.settings['players']} players, {self.deals} deals; win rates: {best}>"

    def _repr_markdown_(self) -> str:
        """What a notebook shows."""
        notes = "\n".join(f"- {note}" for note in self._notes())
        return "\n\n".join([f"**{_title(self)}**", *self.markdown_tables(), notes])

    def markdown_tables(self) -> list[str]:
        """How the agents stand, and how each did against each other, in Markdown; each but the first with a title."""
        standing, *others = _tables(self)
        return [standing.markdown(), *(part for table in others for part in (f"{table.title}:", table.markdown()))]

    def _notes(self) -> list[str]:
        return [*self.explanations(), *self.caveats(), *self.usage]

    def explanations(self) -> list[str]:
        """What a reader must know to understand the numbers."""
        games = "all games" if self.rated_games == self.games else f"{self.rated_games:,} games"
        return [
            "Each agent sits alone at a table of one other agent, in every seat, on the same deals. "
            f"Intervals: {_CONFIDENCE}, by deal.",
            "Margin: own points minus the mean of the others'. Decisions: per game and player. Time: per decision, of "
            "many games at once (for a uniformly random agent with the rules).",
            f"Elo: Bradley-Terry, {self.anchor} = 0. OpenSkill: Plackett-Luce on {games}, mu ± sigma.",
            "Lottery: how often to send each agent so that none beats that choice on average (maximal lottery): always "
            "an agent that beats all others, and by turns agents that beat each other in a circle.",
            *_explain_adjustment(self),
        ]

    def caveats(self) -> list[str]:
        """What the numbers cannot tell."""
        lines = _explain_test(self)
        if self.test is None and self.deals < self.settings["deals"]:
            lines.append(
                f"Stopped after {self.deals} of {self.settings['deals']} deals: intervals hold for a number of deals "
                "that was fixed before. To stop when enough is known, use --until."
            )
        for line in self.agents:
            beaten = [pair.opponent for pair in self.pairs if pair.agent == line.agent and pair.win_rate.value == 1]
            if beaten:
                lines.append(f"{line.agent} won every game against {', '.join(beaten)}: Elo only bounds the distance.")
        return lines + [f"{' beats '.join(cycle)}: no order of strength says that." for cycle in self.cycles()]

    def cycles(self) -> list[tuple[str, str, str, str]]:
        """Three agents of which each surely beats the next, with the first named again at the end."""
        names = [line.agent for line in self.agents]

        def beats(one: str, other: str) -> bool:
            ours, theirs = self.pair(one, other), self.pair(other, one)
            return bool(ours and theirs and ours.win_rate.low > self.null_rate > theirs.win_rate.high)

        threes = itertools.combinations(names, 3)
        both_ways = ((a, *rest) for a, b, c in threes for rest in ((b, c), (c, b)))
        return [(a, b, c, a) for a, b, c in both_ways if beats(a, b) and beats(b, c) and beats(c, a)]

    # --- for programs

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: None where there is no value."""
        plain: dict[str, Any] = _without_nan(asdict(self))
        return plain

    def save(self, folder: Path) -> None:
        """Writes all FILES; each appears whole or not at all."""
        contents: list[bytes] = [
            (json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n").encode(),
            _csv(self.agents),
            _csv(self.pairs),
            png(draw_ratings(self)),
            png(draw_pairs(self)),
        ]
        for name, content in zip(FILES, contents, strict=True):
            atomic_write(folder / name, content)


# --- from results to lines


class _Deals:
    """The deals that were played at every table; values are (deals, tables, seat of the lone player, seat).

    Luck has its signals as one more axis.
    """

    def __init__(self, match: Match, results: Results) -> None:
        self.tables = match.tables
        self.agents = range(len(match.agents))
        self.number = len(results) // len(self.tables)
        n = match.players
        self._shape = (self.number, len(self.tables), n, n)
        winners, scores = self._by_deal(results.winners), self._by_deal(results.scores)
        self.shares = winners / winners.sum(axis=-1, keepdims=True)
        self.margins = scores - (scores.sum(axis=-1, keepdims=True) - scores) / (n - 1)
        self.ranks = self._by_deal(results.ranks)
        self.decisions = self._by_deal(results.decisions)
        self.luck, self.losses = self._by_deal(results.luck), self._by_deal(results.losses)
        self.seats = np.broadcast_to(match.seats(np.arange(len(self.tables))), self._shape)

    def _by_deal(self, values: NDArray[Any]) -> Values:
        played = values[: self.number * len(self.tables)]
        return played.reshape(*self._shape, *values.shape[3:]).astype(np.float64)

    def met(self, agent: int) -> list[int]:
        """Whom an agent met, all others unless there was a focus."""
        return [other for other in self.agents if {*Table(agent, other)} in map(set, self.tables) and other != agent]

    def lone(self, values: Values) -> Values:
        """Those of the lone players, (deals, tables, their seats)."""
        own: Values = values.diagonal(axis1=2, axis2=3)
        return own

    def coefficients(self, values: Values, ahead: bool = False) -> Values:
        """How much luck counts for the values of the lone player, (deals, tables, signals).

        They are fitted to other deals, or to earlier ones.
        """
        results = self.lone(values).mean(axis=-1)
        luck = np.moveaxis(self.luck.diagonal(axis1=2, axis2=3), -1, 2).mean(axis=2)  # (deals, tables, signals)
        fit = fit_ahead if ahead else cross_fit
        return np.stack([fit(results[:, table], luck[:, table]) for table in range(len(self.tables))], axis=1)

    def without_luck(self, values: Values, coefficients: Values) -> Values:
        """The values less what luck counts."""
        found: Values = values - np.einsum("dtijs,dts->dtij", self.luck, coefficients)
        return found

    def against(self, values: Values, agent: int, other: int) -> Values:
        """The mean of one agent alone against the other, over all seats, one value per deal."""
        table = Table(agent, other)
        if table not in self.tables:  # two players: it is the other's table, seen from the opposite side
            table, values = Table(other, agent), values[..., ::-1]
        means: Values = self.lone(values)[:, self.tables.index(table)].mean(axis=1)
        return means

    def against_all(self, values: Values, agent: int) -> Values:
        """The mean over all that the agent met."""
        means: Values = np.mean([self.against(values, agent, other) for other in self.met(agent)], axis=0)
        return means


def make_report(
    settings: dict[str, Any],
    names: Sequence[str],
    match: Match,
    results: Results,
    test: dict[str, Any] | None = None,
    usage: Sequence[str] = (),
) -> Report:
    """The report of all deals that were played at every table; there must be one.

    Args:
        settings: what the report shall say was to be played.
        names: one for each agent, all different.
        match: who played.
        results: of its first rounds.
        test: the outcome of a sequential test, see `SequentialTest.describe`.
        usage: what agents say of what they have used.
    """
    deals, n = _Deals(match, results), match.players
    adjust = _Adjustment(deals) if match.signals else None
    anchor = list(names).index("random") if "random" in names else 0
    elos = ratings.elo(deals.lone(deals.shares).sum(axis=-1), match.tables, n, anchor)
    games = deals.number * len(match.tables) * n
    skills = ratings.openskill(deals.seats.reshape(games, n), deals.ranks.reshape(games, n), len(names))
    lotteries = _lotteries(deals)
    seconds = results.seconds / _decisions_of_agents(match, results)
    agents = [
        AgentLine(
            agent=names[agent],
            elo=elos[agent],
            openskill=skills[agent],
            decisions_per_game=float(deals.against_all(deals.decisions, agent).mean()),
            seconds_per_decision=float(seconds[agent]),
            lottery=lotteries[agent],
            **_results(deals, adjust, partial(deals.against_all, agent=agent)),
        )
        for agent in deals.agents
    ]
    pairs = [
        PairLine(
            agent=names[agent],
            opponent=names[other],
            games=deals.number * n,
            variance_left=adjust.variance_left(agent, other) if adjust else None,
            **_results(deals, adjust, partial(deals.against, agent=agent, other=other)),
        )
        for agent in deals.agents
        for other in deals.met(agent)
    ]
    return Report(
        settings=settings,
        deals=deals.number,
        games=games,
        null_rate=1 / n,
        anchor=names[anchor],
        rated_games=min(games, ratings.RATED_GAMES),
        agents=sorted(agents, key=lambda line: -line.elo.value),
        pairs=pairs,
        coefficients=adjust.describe(names) if adjust else None,
        test=test,
        usage=usage,
    )


def _lotteries(deals: _Deals) -> list[Estimate] | list[None]:
    """The part of each agent in the maximal lottery; nothing where some have not met."""
    agents = deals.agents
    if any(len(deals.met(agent)) < len(agents) - 1 for agent in agents):
        return [None for _ in agents]
    results = np.full((deals.number, len(agents), len(agents)), 0.5)
    for agent in agents:
        for other in deals.met(agent):
            ours, theirs = deals.against(deals.shares, agent, other), deals.against(deals.shares, other, agent)
            results[:, agent, other] = (1 + ours - theirs) / 2
    return ratings.lottery(results)


def deal_results(match: Match, results: Results, pair: tuple[int, int], adjusted: bool = False) -> Values:
    """The results of all deals between two agents, from the view of the first: see `sequential.expected_result`.

    They are from 0 to 1. Adjusted for luck, as earlier deals have shown that it counts, they may lie beyond.
    """
    deals = _Deals(match, results)
    shares = deals.shares
    if adjusted:
        shares = deals.without_luck(shares, deals.coefficients(shares, ahead=True))
    agent, other = pair
    return (1 + deals.against(shares, agent, other) - deals.against(shares, other, agent)) / 2


def _results(deals: _Deals, adjust: "_Adjustment | None", by_deal: Callable[[Values], Values]) -> dict[str, Any]:
    """The entries that lines of agents and of pairs share; `by_deal` makes of values one for each deal."""
    found = {
        "win_rate": rate_by_deal(by_deal(deals.shares)),
        "score_margin": mean_by_deal(by_deal(deals.margins)),
        "mean_rank": mean_by_deal(by_deal(deals.ranks)),
    }
    if adjust is None:
        return found
    return found | {
        "adjusted_win_rate": rate_by_deal(by_deal(adjust.shares)),
        "adjusted_score_margin": mean_by_deal(by_deal(adjust.margins)),
        "luck": mean_by_deal(by_deal(deals.luck[..., WIN])),
        "loss": mean_by_deal(by_deal(deals.losses)),
    }


class _Adjustment:
    """Results without the luck of draws, with the coefficients that other deals have shown."""

    def __init__(self, deals: _Deals) -> None:
        self._deals = deals
        self._of_wins, self._of_margins = deals.coefficients(deals.shares), deals.coefficients(deals.margins)
        self.shares = deals.without_luck(deals.shares, self._of_wins)
        self.margins = deals.without_luck(deals.margins, self._of_margins)

    def variance_left(self, agent: int, other: int) -> float:
        """Of the win rate by deal of two agents, as a share of that of the raw one."""
        raw, adjusted = (self._deals.against(shares, agent, other) for shares in (self._deals.shares, self.shares))
        return float(adjusted.var() / raw.var()) if raw.var() > 0 else math.nan

    def describe(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """The coefficients of each table, for programs."""
        return [
            {
                "agent": names[table.lone],
                "opponent": names[table.rest],
                "win_rate": dict(zip(SIGNALS, wins.tolist(), strict=True)),
                "score_margin": dict(zip(SIGNALS, margins.tolist(), strict=True)),
            }
            for table, wins, margins in zip(
                self._deals.tables, self._of_wins.mean(axis=0), self._of_margins.mean(axis=0), strict=True
            )
        ]


def _decisions_of_agents(match: Match, results: Results) -> Values:
    """Decisions of each agent in all its seats, those of a deal that is not finished too."""
    tables = len(match.tables)
    totals = np.stack([results.decisions[table::tables].sum(axis=0, dtype=np.float64) for table in range(tables)])
    seats = match.seats(np.arange(tables))
    return np.bincount(seats.ravel(), weights=totals.ravel(), minlength=len(match.agents)).astype(np.float64)


# --- tables


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table in Markdown, its first column or columns to the left, all others to the right."""
    lines = [head, ["---"] * left + ["---:"] * (len(head) - left), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


class _Cell(NamedTuple):
    """A figure, and how sure it is."""

    figure: str
    interval: str = ""
    colour: str = ""

    def markdown(self) -> str:
        """On one line."""
        interval = self.interval if self.interval[:1] in ("", "±") else f"({self.interval})"
        return f"{self.figure} {interval}".rstrip()

    def rich(self) -> Text:
        """On two lines; as `Text`, whose colons are no emoji."""
        return Text.assemble((self.figure, self.colour), (f"\n{self.interval}".rstrip(), "dim"))


class _Table(NamedTuple):
    """A table for terminals and for Markdown; its heads may be broken, to save width."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[_Cell]]

    def markdown(self) -> str:
        """Without the title."""
        head = [name.replace("-\n", "").replace("\n", " ").strip() for name in self.head]
        return markdown(head, [[cell.markdown() for cell in row] for row in self.rows])

    def rich(self) -> RichTable:
        """For the terminal."""
        table = RichTable(title=self.title, box=box.SIMPLE_HEAD, collapse_padding=True)
        table.add_column(Text(self.head[0]), style="bold", overflow="fold")
        for name in self.head[1:]:
            table.add_column(Text(name), justify="right", no_wrap="\n" in name, overflow="fold")
        for row in self.rows:
            table.add_row(*(cell.rich() for cell in row))
        return table


def _tables(report: Report) -> list[_Table]:
    """How the agents stand, how each did against each other and, if luck was measured, the same without it."""
    tables = [_agents_table(report), _pairs_table(report)]
    return tables if report.coefficients is None else [*tables, _adjusted_table(report), _skill_table(report)]


def _title(report: Report) -> str:
    return f"{_played(report)}, {report.games:,} games; equals win {percent(report.null_rate)} %"


def _agents_table(report: Report) -> _Table:
    rows = [
        [
            _Cell(line.agent),
            _rate_cell(report, line.win_rate),
            _mean_cell(line.score_margin, "+.1f"),
            _mean_cell(line.mean_rank, ".2f"),
            _estimate_cell(line.elo, points),
            _Cell(f"{line.openskill.mu:.1f}", f"± {line.openskill.sigma:.1f}"),
            _estimate_cell(line.lottery, lambda part: f"{100 * part:.0f}"),
            _Cell(f"{line.decisions_per_game:.0f}"),
            _Cell(duration(line.seconds_per_decision)),
        ]
        for line in report.agents
    ]
    names = ("win\nrate %", "\nmargin", "\nrank", "\nElo", "Open-\nSkill", "lot-\ntery %", "deci-\nsions", "\ntime")
    return _Table(_title(report), ("\nagent", *names), rows)


def _pairs_table(report: Report) -> _Table:
    names = [line.agent for line in report.agents]
    met = [[report.pair(name, other) for other in names] for name in names]
    rows = [
        [_Cell(name), *(_rate_cell(report, None if pair is None else pair.win_rate) for pair in pairs)]
        for name, pairs in zip(names, met, strict=True)
    ]
    return _Table("Win rate % of the row, alone against the column", ("", *names), rows)


def _adjusted_table(report: Report) -> _Table:
    """Every pair, once if there are two players."""
    names = [line.agent for line in report.agents]
    rows = []
    for pair in report.pairs:
        mirrored = report.settings["players"] == MIN_PLAYERS and names.index(pair.agent) > names.index(pair.opponent)
        if mirrored:
            continue
        left = pair.variance_left
        rows.append(
            [
                _Cell(f"{pair.agent} – {pair.opponent}"),
                _estimate_cell(pair.win_rate, percent),
                _estimate_cell(pair.adjusted_win_rate, percent),
                _Cell("?" if left is None or math.isnan(left) else f"× {left:.2f}"),
                _mean_cell(pair.score_margin, "+.1f"),
                _mean_cell(pair.adjusted_score_margin, "+.1f"),
                _mean_cell(pair.luck, "+.1f", 100),
            ]
        )
    head = ("", "win\nrate %", "\nadjusted", "variance\nleft", "\nmargin", "\nadjusted", "\nluck %")
    return _Table("Raw, and without the luck of draws", head, rows)


def _skill_table(report: Report) -> _Table:
    rows = [
        [_Cell(line.agent), _mean_cell(line.luck, "+.1f", 100), _mean_cell(line.loss, "+.1f", 100)]
        for line in report.agents
    ]
    head = ("agent", "luck", "lost by play")
    return _Table("Luck of draws and losses by play, in % of a win per game", head, rows)


def _estimate_cell(estimate: Estimate | None, form: Callable[[float], str], colour: str = "") -> _Cell:
    return _Cell("–") if estimate is None else _Cell(form(estimate.value), _interval(estimate, form), colour)


def _mean_cell(estimate: Estimate | None, form: str, scale: int = 1) -> _Cell:
    """A mean, whose interval reaches as far down as up."""
    if estimate is None:
        return _Cell("–")
    reach = f"± {scale * (estimate.high - estimate.value):{form.lstrip('+')}}"
    return _Cell(f"{scale * estimate.value:{form}}", "?" if math.isnan(estimate.low) else reach)


def _rate_cell(report: Report, rate: Estimate | None) -> _Cell:
    """A win rate, green or red where it is surely better or worse than that of equals."""
    if rate is None:
        return _Cell("–")
    colour = "green" if rate.low > report.null_rate else "red" if rate.high < report.null_rate else "yellow"
    return _estimate_cell(rate, percent, colour)


def _explain_adjustment(report: Report) -> list[str]:
    adjust = report.settings.get("adjust")
    if report.coefficients is None or adjust is None:
        return []
    return [
        f"Adjusted: less what draws did to the players, as the network {(adjust['sha256'] or 'without a file')[:12]} "
        f"values it, against {adjust['redraws']} redraws each; how much that counts is fitted to other "
        "deals. Its mean is the same as that of the raw figure. Luck: mean per game, truly 0. Lost by play: how much "
        "more the network's own choices were worth, as it values them; 0 for an agent that plays like it.",
    ]


def _explain_test(report: Report) -> list[str]:
    if (test := report.test) is None:
        return []
    low, high = test["elo"]
    ended = "undecided" if test["decision"] == "open" else test["decision"]
    return [
        f"{test['claim']}: {ended} after {test['deals']:,} deals (log-likelihood ratio {test['ratio']:+.2f}, bounds ± "
        f"{test['accepted_above']:.2f}, error rates {100 * test['alpha']:g} %). Difference by a confidence sequence, "
        f"which holds whenever one stops: {low:+.0f}…{high:+.0f} Elo. All other intervals are for a fixed number "
        "of deals."
    ]


def _interval(estimate: Estimate, form: Callable[[float], str]) -> str:
    return "?" if math.isnan(estimate.low) else f"{form(estimate.low)}…{form(estimate.high)}"


def percent(share: float) -> str:
    """The text of a win rate."""
    return f"{100 * share:.1f}"


def points(elo: float) -> str:
    """The text of an Elo rating."""
    return f"{elo:+.0f}" if round(elo) else "0"


def duration(seconds: float) -> str:
    """The text of a time, in the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


# --- files


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _csv(lines: Sequence[AgentLine | PairLine]) -> bytes:
    """One row per line; an estimate takes three columns: `x`, `x_low` and `x_high`."""
    rows = [_flat(asdict(line)) for line in lines]
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _flat(line: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in _without_nan(line).items():
        parts = value if isinstance(value, dict) else {"value": value}
        flat |= {name if part == "value" else f"{name}_{part}": item for part, item in parts.items()}
    return flat


# --- pictures

_INK, _FAINT, _BETTER, _WORSE = "#22303c", "#9aa5ad", "#1b7f79", "#b5482f"
_ROW_INCHES, _CELL_INCHES, _LEAST_WIDTH = 0.42, 1.05, 5.5
_NAME_HALF = 12


def draw_ratings(report: Report) -> Figure:
    """Elo and win rates with their intervals, best on top."""
    lines = report.agents
    figure = Figure(figsize=(9, 1.7 + _ROW_INCHES * len(lines)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.08})
    height = np.arange(len(lines))[::-1]
    _dots(left, [line.elo for line in lines], height, 0.0, points)
    left.set_xlabel(f"Elo ({report.anchor} = 0)")
    rates = [Estimate(*(100 * x for x in asdict(line.win_rate).values())) for line in lines]
    _dots(right, rates, height, 100 * report.null_rate, "{:.1f}".format)
    right.set_xlim(-5, 105)
    right.set_xlabel(f"win rate in % (equals: {percent(report.null_rate)})")
    left.set_yticks(height, [_short(line.agent) for line in lines], color=_INK)
    left.set_ylim(-0.7, len(lines) - 0.3)
    figure.suptitle(_caption(report), color=_INK, fontsize=11)
    return figure


def _dots(
    axes: Any, estimates: list[Estimate], height: NDArray[np.int64], null: float, form: Callable[[float], str]
) -> None:
    axes.axvline(null, color=_FAINT, linewidth=1, linestyle="--", zorder=0)
    for estimate, y in zip(estimates, height, strict=True):
        colour = _BETTER if estimate.low > null else _WORSE if estimate.high < null else _INK
        axes.plot([estimate.low, estimate.high], [y, y], color=colour, linewidth=3, alpha=0.45, solid_capstyle="butt")
        axes.plot(estimate.value, y, "o", color=colour, markersize=6)
        axes.annotate(
            form(estimate.value), (estimate.value, y), (0, 7), textcoords="offset points", ha="center", va="bottom",
            fontsize=8, color=colour, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    axes.margins(x=0.12)
    axes.locator_params(axis="x", nbins=6)
    axes.xaxis.label.set_color(_INK)
    axes.grid(axis="x", color=_FAINT, alpha=0.25)
    axes.tick_params(length=0, colors=_INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def draw_pairs(report: Report) -> Figure:
    """The win rate of every agent alone against every other, as a chequered map; equals are white."""
    names = [line.agent for line in report.agents]
    rates = np.full((len(names), len(names)), np.nan)
    size = _CELL_INCHES * len(names)
    figure = Figure(figsize=(max(size + 2.6, _LEAST_WIDTH), size + 1.4), layout="constrained")
    axes = figure.subplots()
    for row, name in enumerate(names):
        for column, other in enumerate(names):
            if (pair := report.pair(name, other)) is None:
                continue
            rate = pair.win_rate
            rates[row, column] = _side_of_null(rate.value, report.null_rate)
            ink = "white" if abs(rates[row, column]) > 0.65 else _INK
            axes.text(column, row - 0.08, percent(rate.value), ha="center", va="center", color=ink, fontsize=12)
            axes.text(
                column, row + 0.22, f"{percent(rate.low)} – {percent(rate.high)}", ha="center", va="center",
                color=ink, fontsize=7.5,
            )  # fmt: skip
    axes.imshow(rates, cmap="BrBG", vmin=-1.2, vmax=1.2)
    borders = np.arange(len(names) + 1) - 0.5
    axes.hlines(borders, borders[0], borders[-1], color="white", linewidth=3)
    axes.vlines(borders, borders[0], borders[-1], color="white", linewidth=3)
    labels = [_short(name) for name in names]
    axes.set_xticks(range(len(names)), labels, color=_INK, rotation=25, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), labels, color=_INK)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_xlabel(f"win rate of the row in %,\nalone against the column\n(equals: {percent(report.null_rate)})")
    axes.xaxis.label.set_color(_INK)
    figure.suptitle(_caption(report), color=_INK, fontsize=11)
    return figure


def _short(name: str) -> str:
    """A name that fits into a picture: of a long one, the beginning and the end."""
    return name if len(name) <= 2 * _NAME_HALF else f"{name[:_NAME_HALF]}…{name[-_NAME_HALF:]}"


def _side_of_null(rate: float, null: float) -> float:
    """From -1 for who never wins over 0 for equals to 1 for who always wins."""
    return (rate - null) / (null if rate < null else 1 - null)


def _caption(report: Report) -> str:
    return f"{_played(report)}, {_CONFIDENCE} intervals by deal"


def _played(report: Report) -> str:
    return f"{report.settings['players']} players, rules: {report.rules}, {report.deals:,} deals"


def png(figure: Figure) -> bytes:
    """The picture as the content of a file."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    return picture.getvalue()
