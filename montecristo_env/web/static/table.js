"use strict";

// A table: shows what the server says, and tells it what the person wants.

const identity = location.pathname.split("/")[2];
const stored = `montecristo-table-${identity}`; // the tokens of the seats that this browser holds
const PACE_NAMES = new Map([[null, "paused"], [2, "slow"], [0.7, "normal"], [0.2, "fast"], [0, "at once"]]);
const LONGEST_WAIT = 8000; // milliseconds between attempts to connect

let socket, board, table;
let log = [];
let hint = null;
let wait = 250;
let busy = false; // a move was sent and not answered yet

function tokens() {
  return JSON.parse(localStorage.getItem(stored) ?? "[]");
}

function keep(list) {
  localStorage.setItem(stored, JSON.stringify(list));
}

// --- The connection

function connect() {
  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/tables/${identity}/socket`);
  socket.addEventListener("open", () => {
    wait = 250;
    log = [];
    busy = false;
    notify("");
    send({ do: "resume", tokens: tokens() });
  });
  socket.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    ANSWERS[message.type](message);
  });
  socket.addEventListener("close", () => {
    notify("The connection is lost. Nothing else is: trying again …");
    setTimeout(connect, wait);
    wait = Math.min(2 * wait, LONGEST_WAIT);
  });
}

function send(message) {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

const ANSWERS = {
  table(view) {
    log = log.slice(0, view.log_from).concat(view.log);
    if (hint && hint.at !== view.at) hint = null;
    table = view;
    busy = false;
    show();
    sitDownIfAsked();
  },
  seat({ token }) {
    keep([...tokens(), token]);
  },
  hint(answer) {
    hint = answer.at === table.at ? answer : null;
    byId("hint").disabled = false;
    showHint();
    scrollLog();
    markTargets();
  },
  error({ message }) {
    busy = false;
    byId("hint").disabled = false;
    if (message.startsWith("this token")) keep([]); // the seat was left elsewhere
    else notify(message);
  },
};

function notify(message) {
  byId("notice").textContent = message;
  byId("notice").hidden = message === "";
}

/** The address ends in #sit when a table was opened for the person who looks at it. */
function sitDownIfAsked() {
  if (location.hash !== "#sit") return;
  history.replaceState(null, "", location.pathname);
  const free = table.players.findIndex((player) => player.human && !player.present);
  if (tokens().length === 0 && free >= 0) send({ do: "sit", seat: free });
}

// --- What is shown

function show() {
  const within = document.activeElement.closest(".board, .choices, .answers");
  board ??= new Board(byId("board"), table.places);
  for (const [name, content] of Object.entries(table.parts)) board.draw(name, content);
  const mine = table.legal.length > 0;
  document.body.dataset.at = table.at;
  document.body.dataset.turn = mine ? "mine" : table.player < 0 ? "over" : "theirs";
  byId("title").replaceChildren(...(table.player >= 0 ? [badge(table.players[table.player])] : []), table.title);
  if (mine) byId("title").prepend(element("span", { className: "chip" }, "Your turn"));
  document.title = `${mine ? "Your turn: " : ""}${table.title}`;
  byId("round").textContent = roundLine(table.round, table);
  byId("undo").disabled = !table.can_undo;
  byId("undo").hidden = table.players.filter((player) => player.human).length !== 1;
  byId("hint").disabled = table.player < 0;
  showSeats();
  showPaces();
  showChoices();
  showLog();
  showHint();
  scrollLog();
  markTargets();
  if (table.problem) notify(table.problem);
  if (within && !document.contains(document.activeElement.closest(".board, .choices, .answers"))) {
    byId("choices").querySelector("button")?.focus();
  }
}

function showSeats() {
  const buttons = table.players.flatMap((player, seat) => {
    if (!player.human || player.present) return [];
    const button = element("button", { className: "sit" }, badge(player), `Sit down as ${player.name}`);
    button.addEventListener("click", () => send({ do: "sit", seat }));
    return [button];
  });
  if (table.you.length) {
    const leave = element("button", { id: "leave", title: "Free your seat for somebody else" }, "Leave");
    leave.addEventListener("click", () => {
      keep([]);
      send({ do: "leave" });
    });
    const names = table.you.map((seat) => badge(table.players[seat]));
    buttons.push(element("span", { className: "you" }, "You are ", ...names), leave);
  }
  byId("seats").replaceChildren(...buttons);
}

function showPaces() {
  const select = byId("pace");
  select.replaceChildren(
    ...table.paces.map((pace) => element("option", { value: JSON.stringify(pace) }, PACE_NAMES.get(pace))),
  );
  select.value = JSON.stringify(table.pace);
  const agent = byId("agent");
  if (agent.options.length === 0) agent.append(...table.agents.map((name) => element("option", { value: name }, name)));
  for (const [id, page] of [["record", "record"], ["replay", "replay"]]) byId(id).href = `/tables/${identity}/${page}`;
}

function showChoices() {
  const waiting = table.player < 0 ? "The game is over" : `${table.players[table.player].name} decides`;
  byId("asked").textContent = table.legal.length ? "Your choices" : waiting;
  byId("choices").replaceChildren(
    ...table.legal.map((choice, index) => element("li", {}, answer(choice, index < 9 ? `${index + 1}` : ""))),
  );
  byId("answers").replaceChildren(...table.legal.filter((choice) => !choice.target).map((choice) => answer(choice)));
}

function answer(choice, key = "") {
  const button = element("button", { className: "choice" }, choice.words);
  if (key) button.prepend(element("kbd", {}, key));
  button.dataset.action = choice.action;
  button.addEventListener("click", () => move(choice));
  return button;
}

function move(choice) {
  if (busy) return;
  busy = true;
  notify("");
  send({ do: "move", action: choice.action, at: table.at });
}

function showLog() {
  const lines = log.map((entry, index) => {
    const line = element("li", { className: index >= table.since && table.you.length ? "now" : "" });
    line.append(element("p", { className: entry.kind }, entryLine(entry, table.players)));
    return line;
  });
  byId("log").replaceChildren(...lines);
  const fresh = table.you.length ? log.length - table.since : 0;
  byId("news").textContent = fresh ? `${fresh} new ${fresh === 1 ? "line" : "lines"} in the log ↓` : "";
}

/** What is new stands at the top of the log, or all of it can be seen. */
function scrollLog() {
  const lines = byId("log").children;
  const first = table.you.length ? lines[table.since] : undefined;
  byId("log").scrollTop = first ? first.offsetTop - byId("log").offsetTop - 4 : byId("log").scrollHeight;
}

function showHint() {
  byId("opinion").hidden = hint === null;
  if (hint === null) return;
  byId("adviser").textContent = `${hint.agent} would`;
  byId("value").textContent = hint.value === null ? "" : `and ${expectation(hint.value)}`;
  byId("bars").replaceChildren(...bars(hint.choices.filter(([, probability]) => probability >= 0.005), hint.choices[0][0]));
}

// --- The board as a way to answer

/** Marks the places that stand for legal actions and makes buttons of them. */
function markTargets() {
  for (const marked of byId("board").querySelectorAll(".legal, .hinted")) {
    marked.classList.remove("legal", "hinted");
    for (const name of ["tabindex", "role", "aria-label"]) marked.removeAttribute(name);
  }
  const targets = Map.groupBy(table.legal.filter((choice) => choice.target), (choice) => choice.target);
  for (const [target, choices] of targets) {
    for (const place of places(target)) {
      place.classList.add("legal");
      place.setAttribute("tabindex", "0");
      place.setAttribute("role", "button");
      place.setAttribute("aria-label", choices.map((choice) => choice.words).join(", or "));
    }
  }
  if (hint?.target) for (const place of places(hint.target)) place.classList.add("hinted");
}

function places(target) {
  return byId("board").querySelectorAll(`[data-target="${target}"]`);
}

function choose(place) {
  const choices = table.legal.filter((choice) => choice.target === place.dataset.target);
  if (choices.length === 1) move(choices[0]);
  else {
    byId("answers").replaceChildren(...choices.map((choice) => answer(choice)));
    byId("answers").firstChild.focus();
    byId("answers").scrollIntoView({ block: "nearest" });
  }
}

byId("board").addEventListener("click", (event) => {
  const place = event.target.closest(".legal");
  if (place) choose(place);
});

byId("board").addEventListener("keydown", (event) => {
  if (!["Enter", " "].includes(event.key) || !event.target.matches(".legal")) return;
  event.preventDefault();
  choose(event.target);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("select") || !table) return;
  if (event.key >= "1" && event.key <= "9") byId("choices").querySelectorAll("button")[Number(event.key) - 1]?.click();
  else if (event.key === "u" && !byId("undo").hidden) byId("undo").click();
  else if (event.key === "h") byId("hint").click();
  else if (event.key === "Escape") showChoices();
});

byId("undo").addEventListener("click", () => send({ do: "undo" }));
byId("hint").addEventListener("click", () => {
  byId("hint").disabled = true;
  send({ do: "hint", agent: byId("agent").value });
});
byId("pace").addEventListener("change", (event) => send({ do: "pace", seconds: JSON.parse(event.target.value) }));

connect();
