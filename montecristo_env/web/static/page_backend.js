// The back end of a page without a server: the game is played here, agents think in a worker, and tables are kept in
// the storage of the browser. It has the methods of the other one (see backend.js), under whose name the site has it.

import { load } from "./montecristo.js";
import { HUMAN, PACES, Session } from "./session.js";

const KEY = "montecristo-page-table-";
const AGENTS = ["alphazero", "greedy", "mcts", "random"]; // the first one analyses games
const COLOURS = ["Red", "Blue", "Green", "Yellow"];
const SEARCHING = { alphazero: 0, mcts: 1 }; // with the fewest steps of the slider

let engine;
let worker;
const waiting = new Map();
let asked = 0;

function theEngine() {
  engine ??= load(new URL("montecristo.wasm", import.meta.url));
  return engine;
}

/** Asks an agent in the worker: "act" for an action, "evaluate" for what it thinks, of a move, too, if there is one. */
export function think(what, agent, bytes, move) {
  if (!worker) {
    worker = new Worker(new URL("thinker.js", import.meta.url), { type: "module" });
    worker.onmessage = ({ data: { number, found, problem } }) => {
      const { resolve, reject } = waiting.get(number);
      waiting.delete(number);
      if (problem === undefined) resolve(found);
      else reject(new Error(problem));
    };
    worker.onerror = () => {
      for (const { reject } of waiting.values()) reject(new Error("agents cannot think in this browser"));
      waiting.clear();
      worker = undefined;
    };
  }
  return new Promise((resolve, reject) => {
    waiting.set((asked += 1), { resolve, reject });
    worker.postMessage({ number: asked, what, agent, bytes, move });
  });
}

/** What was kept of a table; null if there is none, or it cannot be read. */
function saved(identity) {
  try {
    return JSON.parse(localStorage.getItem(KEY + identity));
  } catch {
    return null;
  }
}

/** The session of a table that was kept. */
export async function sessionOf(identity) {
  const found = saved(identity);
  return found && new Session(await theEngine(), found);
}

export function tokensOf() {
  return [];
}

export class Backend {
  canLeave = false; // everybody sits at this screen

  /** The table that the address names. */
  static identity() {
    return new URLSearchParams(location.search).get("table") ?? "";
  }

  constructor(identity = "") {
    this.identity = identity;
    if ("serviceWorker" in navigator) navigator.serviceWorker.register(new URL("offline.js", import.meta.url)).catch(() => {});
  }

  get holdsSeat() {
    return true;
  }

  async games() {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(KEY));
    const tables = keys.map((key) => {
      const id = key.slice(KEY.length);
      const { names = ["a damaged table"], scores = [], over = false, round = 0, at = 0 } = saved(id) ?? {};
      return { id, players: names, scores, over, round, changed_at: at / 1000, free: [] };
    });
    return { tables, agents: AGENTS, searching: SEARCHING };
  }

  async newGame({ players, seed }) {
    const made = await theEngine();
    const dealt = made.newGame({ players: players.length, ...(seed === null ? {} : { seed }) });
    const alone = players.filter((player) => player === HUMAN).length === 1;
    const name = localStorage.getItem("montecristo-name");
    const people = players.map((player, seat) => (player === HUMAN ? (alone && name) || COLOURS[seat] : ""));
    const session = new Session(made, { players, people, seed: Number(dealt.seed) });
    const identity = crypto.randomUUID().slice(0, 8);
    localStorage.setItem(KEY + identity, JSON.stringify(session.saved));
    return identity;
  }

  async remove(identity) {
    localStorage.removeItem(KEY + identity);
  }

  async open(listener) {
    this.listener = listener;
    try {
      this.session = await sessionOf(this.identity);
    } catch (error) {
      listener.gone(`The game cannot be played here: ${error.message}`);
      return;
    }
    if (!this.session) {
      listener.gone("There is no such table in this browser");
      return;
    }
    listener.online(true);
    this.#changed();
  }

  #changed() {
    try {
      localStorage.setItem(KEY + this.identity, JSON.stringify(this.session.saved));
    } catch (error) {
      this.listener.error(`The game goes on, but this browser cannot keep it: ${error.message}`);
    }
    this.listener.table({ ...this.session.view(), paces: PACES, agents: AGENTS });
    this.#wake();
  }

  /** Lets the bot on turn think, after a pause. */
  #wake() {
    clearTimeout(this.timer);
    if (!this.session.isBotDue || this.isThinking) return;
    this.timer = setTimeout(() => this.#playBot(), 1000 * this.session.pace);
  }

  async #playBot() {
    const { session } = this;
    const { game, turn } = session;
    const at = game.events.length;
    this.isThinking = true;
    let code = null;
    let problem = "";
    try {
      game.drawKey(); // the agent gets another random stream every time
      code = await think("act", session.players[turn], game.bytes);
    } catch (error) {
      problem = `${session.names[turn]} could not move: ${error.message}`;
    }
    this.isThinking = false;
    if (session.game !== game || game.events.length !== at || session.pace === null) this.#wake();
    else if (problem) {
      session.problem = problem;
      this.listener.table({ ...session.view(), paces: PACES, agents: AGENTS });
    } else {
      session.step(code);
      this.#changed();
    }
  }

  act(action, at) {
    const { session } = this;
    if (at !== session.game.events.length || !session.you.includes(session.turn)) return true; // it has gone on
    try {
      session.step(action);
    } catch (error) {
      this.listener.error(error.message);
      return true;
    }
    this.#changed();
    return true;
  }

  undo() {
    const kept = this.session.undone;
    if (kept < 0) return true;
    this.session.play(this.session.moves.slice(0, kept));
    this.#changed();
    return true;
  }

  hint(agent) {
    const { session } = this;
    const { game } = session;
    const at = game.events.length;
    think("evaluate", agent === "alphazero" ? "alphazero:64" : agent, game.bytes)
      .then((thought) => at === game.events.length && this.listener.hint(session.hint(agent, thought)))
      .catch((error) => this.listener.error(error.message));
    return true;
  }

  pace(seconds) {
    this.session.pace = seconds;
    this.#changed();
    return true;
  }

  sit() {
    return true;
  }

  leave() {
    return true;
  }

  rematch() {
    const { session } = this;
    if (!session.next || !saved(session.next)) {
      const { players, people } = session;
      const next = new Session(session.engine, { players, people, seed: Number(session.engine.newGame({}).seed) });
      session.next = crypto.randomUUID().slice(0, 8);
      localStorage.setItem(KEY + session.next, JSON.stringify(next.saved));
    }
    this.#changed();
    return true;
  }

  /** The record so far, as a file of this moment. */
  recordAddress() {
    if (this.record) URL.revokeObjectURL(this.record);
    this.record = URL.createObjectURL(new Blob([this.session.game.record()], { type: "application/json" }));
    return this.record;
  }

  replayAddress(agent = "") {
    return `replay.html?table=${this.identity}${agent ? `&by=${encodeURIComponent(agent)}` : ""}`;
  }

  tableAddress(identity) {
    return `table.html?table=${identity}`;
  }

  lobbyAddress() {
    return "index.html";
  }
}
