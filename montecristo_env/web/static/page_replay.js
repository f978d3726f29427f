// The replay of a table of this browser: works out what the page shows, then shows it.

import { balances } from "./analysis.js";
import { Backend, sessionOf, think } from "./backend.js";
import { byId } from "./board.js";
import { boardParts, places } from "./draw.js";
import { describePlayers, rulesetText, summary } from "./session.js";
import { moveLog, target } from "./words.js";

const EVALUATORS = { alphazero: "alphazero", greedy: "greedy", mcts: "mcts:100", random: "random" };

/** The data of a replay page, as `ReplayPage.data` gives them, and one part of the board is one line. */
async function replayData(session, evaluator) {
  const { names, engine } = session;
  const game = engine.newGame({ players: names.length, seed: session.seed, names });
  const parts = new Map();
  const moments = [...game.moments];
  const thoughts = new Map(); // by the index of the event that comes next
  for (const [done, move] of session.moves.entries()) {
    const [next, player, before] = [game.events.length, game.currentPlayer, game.bytes];
    game.step(move);
    if (evaluator) {
      byId("title").textContent = `${evaluator} looks at decision ${done + 1} of ${session.moves.length} …`;
      thoughts.set(next, { player, ...(await think("evaluate", evaluator, before, { action: move, after: game.bytes })) });
    }
    moments.push(...game.moments.slice(1));
  }
  const { market, card_adventurers: adventurers } = game.ruleset;
  const steps = moments.map(({ event, state }, i) => {
    const indices = Object.values(boardParts(state, names, market, adventurers)).map((svg) => {
      if (!parts.has(svg)) parts.set(svg, parts.size);
      return parts.get(svg);
    });
    const next = moments[i + 1]?.event;
    const thought = next === undefined ? undefined : thoughts.get(next);
    const opinion = thought && opinionOf(thought, game.events[next].move, state, session);
    return { parts: indices, ...summary(state, names), ...(opinion ? { opinion } : {}), event };
  });
  const log = moveLog(moments, game.events, names, game.ruleset);
  const moves = log.flatMap((entries, step) => entries.map((entry) => ({ step, ...entry })));
  const replay = { players: describePlayers(names), target: game.ruleset.target, rules: rulesetText(game.ruleset, engine.description.ruleset) };
  Object.assign(replay, { evaluator: evaluator || null, places: places(names.length), steps, moves });
  const analysed = [...thoughts.values()].filter(({ luck }) => luck);
  replay.balances = analysed.length ? balances(names, analysed) : [];
  return { lines: [...parts.keys()], parts: [...parts.values()].map((line) => [line]), games: [replay] };
}

function opinionOf({ probabilities, value, loss, luck }, move, state, session) {
  const choices = [...probabilities]
    .sort(([, one], [, other]) => other - one)
    .map(([code, probability]) => {
      const action = session.game.notation(code);
      return { words: session.words(action, state), probability, target: target(action, state) };
    });
  return { choices, moved: session.words(move, state), value, loss, luck };
}

const session = await sessionOf(Backend.identity()).catch(() => null);
if (!session) byId("title").textContent = "There is no such table in this browser.";
else {
  const by = EVALUATORS[new URLSearchParams(location.search).get("by")] ?? "";
  byId("replays").textContent = JSON.stringify(await replayData(session, by));
  await import("./replay.js");
}
