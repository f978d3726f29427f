// What a table talks to. A back end plays the games; the pages only show them. This one is a server, reached by HTTP
// and a WebSocket. The other one, page_backend.js, plays in the page itself; where there is no server, it has the name of
// this file. Both have these methods and send these events:
//
//   games()                  promise of { tables, agents }: the open tables, and who can play and give hints; perhaps also
//                            `searching`, those agents that take a number of simulations, each with the least step of its slider
//   newGame({players, seed}) promise of the name of a new table
//   remove(id, tokens)       promise; deletes a table
//   open(listener)           starts to tell the listener what happens at this table:
//                              listener.table(view)         everything public, the legal actions with their words and
//                                                           places, and the reasons why other places are blocked
//                              listener.hint(answer), listener.error(text), listener.gone(text), listener.online(bool)
//   act(action, at)          makes a move; like the following, false if that cannot be said now
//   undo(), hint(agent), pace(seconds), sit(seat, name), leave(), rematch()
//   recordAddress(), replayAddress(agent), tableAddress(id), lobbyAddress()

const FIRST_WAIT = 250; // milliseconds between attempts to connect
const LONGEST_WAIT = 8000;

async function asked(path, options = {}) {
  const answer = await fetch(path, options);
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

export function tokensOf(identity) {
  return JSON.parse(localStorage.getItem(`montecristo-table-${identity}`) ?? "[]");
}

export class Backend {
  canLeave = true; // others may take the seat

  /** The table that the address names. */
  static identity() {
    return location.pathname.split("/")[2] ?? "";
  }

  /** @param {string} identity the name of the table, empty in the lobby */
  constructor(identity = "") {
    this.identity = identity;
    this.wait = FIRST_WAIT;
    this.log = [];
  }

  games() {
    return asked("/tables");
  }

  async newGame(settings) {
    return (await asked("/tables", { method: "POST", body: JSON.stringify(settings) })).id;
  }

  remove(identity, tokens) {
    return asked(`/tables/${identity}`, { method: "DELETE", body: JSON.stringify({ tokens }) });
  }

  open(listener) {
    this.listener = listener;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}/tables/${this.identity}/socket`);
    this.socket.addEventListener("open", () => {
      this.wait = FIRST_WAIT;
      this.log = [];
      listener.online(true);
      this.send({ do: "resume", tokens: tokensOf(this.identity) });
    });
    this.socket.addEventListener("message", (event) => this.hear(JSON.parse(event.data)));
    this.socket.addEventListener("close", () => {
      if (this.isGone) return;
      listener.online(false);
      setTimeout(() => this.open(listener), this.wait);
      this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
    });
  }

  hear(message) {
    if (message.type === "table") {
      this.log = this.log.slice(0, message.log_from).concat(message.log); // only what is new was sent
      this.listener.table({ ...message, log: this.log });
    } else if (message.type === "seat") this.keep([...tokensOf(this.identity), message.token]);
    else if (message.type === "hint") this.listener.hint(message);
    else if (message.type === "gone") {
      this.isGone = true;
      this.listener.gone(message.message);
    } else if (message.message.startsWith("this token")) this.keep([]); // the seat was left elsewhere
    else this.listener.error(message.message);
  }

  keep(tokens) {
    localStorage.setItem(`montecristo-table-${this.identity}`, JSON.stringify(tokens));
  }

  send(message) {
    if (this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  get holdsSeat() {
    return tokensOf(this.identity).length > 0;
  }

  act(action, at) {
    return this.send({ do: "move", action, at });
  }

  undo() {
    return this.send({ do: "undo" });
  }

  hint(agent) {
    return this.send({ do: "hint", agent });
  }

  pace(seconds) {
    return this.send({ do: "pace", seconds });
  }

  sit(seat, name) {
    return this.send({ do: "sit", seat, name });
  }

  leave() {
    this.keep([]);
    return this.send({ do: "leave" });
  }

  rematch() {
    return this.send({ do: "rematch" });
  }

  recordAddress() {
    return `/tables/${this.identity}/record`;
  }

  replayAddress(agent = "") {
    return `/tables/${this.identity}/replay${agent ? `?by=${encodeURIComponent(agent)}` : ""}`;
  }

  tableAddress(identity) {
    return `/tables/${identity}`;
  }

  lobbyAddress() {
    return "/";
  }
}
