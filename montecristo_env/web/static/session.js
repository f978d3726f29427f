// A game in the page, with its log: what a `Session` is on the server.

import { badge, boardParts, handStrip, places, SEAT_FILLS } from "./draw.js";
import { describe, displayNames, LANES, moveLog, reasons, sentence, target } from "./words.js";

export const HUMAN = "human";
export const PACES = [null, 2, 0.7, 0.2, 0]; // seconds that a bot waits before it moves; null pauses all bots

/** Each player as the pages show them. */
export function describePlayers(names) {
  return names.map((name, seat) => ({ name, colour: SEAT_FILLS[seat], badge: badge(seat) }));
}

/** What stands above the board, for somebody who holds these seats. */
export function summary(state, names, you = []) {
  return { title: sentence(state, names, you), round: state.round, scores: state.scores, player: state.current_player };
}

/** The settings of a rule set that are not the default, as text. */
export function rulesetText(ruleset, defaults) {
  const changed = Object.entries(ruleset).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(defaults[name]));
  return changed.map(([name, value]) => `${name}=${JSON.stringify(value).replaceAll('"', "")}`).join(",") || "default";
}

export class Session {
  /**
   * @param {import("./montecristo.js").Engine} engine
   * @param {object} saved players, people, seed, moves and pace, as `saved` gives them
   */
  constructor(engine, { players, people = [], seed, moves = [], pace = 0.7, next = "" }) {
    Object.assign(this, { engine, players, people, seed, pace, next, problem: "" });
    this.play(moves);
  }

  get saved() {
    const { players, people, seed, moves, pace, next } = this;
    return { players, people, seed, moves, pace, next, at: Date.now(), ...this.brief };
  }

  /** What the list of tables shows. */
  get brief() {
    const { scores, isOver } = this.game;
    return { names: this.names, scores, over: isOver, round: this.game.field("round_number") };
  }

  /** Starts over and makes these moves. */
  play(moves) {
    this.names = displayNames(this.players.map((player, seat) => (player === HUMAN && this.people[seat]) || player));
    this.game = this.engine.newGame({ players: this.players.length, seed: this.seed, names: this.names });
    this.moves = [];
    this.log = this.#told().flat();
    this.scorings = [];
    for (const move of moves) this.step(move);
  }

  #told() {
    return moveLog(this.game.moments, this.game.events, this.names, this.game.ruleset);
  }

  /** Makes a legal action of whoever is on turn, and tells in the log what it did. */
  step(move) {
    const player = this.game.currentPlayer;
    this.game.step(move);
    this.moves.push(this.game.notation(move));
    this.log.push(...this.#told().slice(1).flat().map((entry) => ({ ...entry })));
    this.lastBy ??= [];
    this.lastBy[player] = this.moves.length;
    this.game.moments.slice(1).forEach(({ state }, i) => {
      const { state: before } = this.game.moments[i];
      const gains = state.scores.map((points, seat) => points - before.scores[seat]);
      if (gains.some(Boolean)) this.scorings.push({ bonus: before.phase === "place", round: before.round, gains });
    });
    this.problem = "";
  }

  get turn() {
    return this.game.currentPlayer;
  }

  get isBotDue() {
    return this.turn >= 0 && this.players[this.turn] !== HUMAN && this.pace !== null;
  }

  /** The seats of people: all of them look at this screen. */
  get you() {
    return this.players.flatMap((player, seat) => (player === HUMAN ? [seat] : []));
  }

  /** How many moves are left when the last one of the person is taken back; -1 if it cannot be. */
  get undone() {
    if (this.you.length !== 1) return -1;
    const own = this.game.events.filter((event) => event.move && !event.forced);
    return own.findLastIndex(({ player }) => player === this.you[0]);
  }

  words(notation, state) {
    return describe(notation, state, this.names, this.game.ruleset.market, this.game.ruleset.card_adventurers);
  }

  /** All that the table shows. */
  view() {
    const { game, names, you } = this;
    const state = game.publicState();
    const mine = you.includes(this.turn);
    const { market, card_adventurers: adventurers } = game.ruleset;
    const last = this.log.findLastIndex(({ kind, player }) => kind === "move" && you.includes(player));
    const choices = () =>
      game.legalActions().map((one) => {
        const action = game.notation(one);
        return { action, words: this.words(action, state), target: target(action, state) };
      });
    return {
      at: game.events.length,
      players: describePlayers(names).map((player, seat) => ({ ...player, human: this.players[seat] === HUMAN, present: true })),
      you,
      ...summary(state, names, you),
      target: game.ruleset.target,
      rules: rulesetText(game.ruleset, this.engine.description.ruleset),
      places: places(names.length),
      parts: boardParts(state, names, market, adventurers),
      log: [...this.log],
      since: last + 1,
      legal: mine ? choices() : [],
      blocked: mine ? reasons(game) : {},
      used: state.phase === "return_marble" ? `marble-${LANES[state.cylinder]}-0` : "",
      phase: state.phase,
      hands: Object.fromEntries(you.map((seat) => [seat, handStrip(state, seat)])),
      winners: state.winners,
      scorings: [...this.scorings],
      next_table: this.next,
      can_undo: this.undone >= 0,
      can_pace: true,
      pace: this.pace,
      problem: this.problem,
    };
  }

  /** What an agent thinks of the decision at hand, as the table shows it. */
  hint(agent, { probabilities, value }) {
    const state = this.game.publicState();
    const choices = [...probabilities]
      .sort(([, one], [, other]) => other - one)
      .map(([code, probability]) => ({ action: this.game.notation(code), words: this.words(this.game.notation(code), state), probability }));
    return { at: this.game.events.length, agent, choices, target: target(choices[0].action, state), value };
  }
}
