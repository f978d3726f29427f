// A table: shows what the back end says, and tells it what the person wants.

import { Backend } from "./backend.js";
import { badge, bar, Board, byId, depth, element, entryLine, reveal, roundLine, scoreLine, signed } from "./board.js";
import { Changes } from "./changes.js";
import { showEnd } from "./end.js";
import { describe, openRules, showLesson, startTeaching, startTips } from "./teach.js";

const PACE_NAMES = new Map([[null, "paused"], [2, "slow"], [0.7, "normal"], [0.2, "fast"], [0, "at once"]]);

const backend = new Backend(Backend.identity());
const changes = new Changes();
let board;
let table;
let hint = null;
let busy = false; // a move was sent and not answered yet
let kept = null; // a choice made while there was no connection
let wantsRematch = false;
let endSeen = -1; // the moment whose end the person has closed

// --- What the back end says

const listener = {
  online(connected) {
    document.body.dataset.online = connected;
    busy = false;
    if (connected) notify("");
    else notify("The connection is lost. Nothing else is: trying again …");
  },
  table(view) {
    if (hint && hint.at !== view.at) hint = null;
    if (table && table.legal.length && view.at !== table.at) changes.remember(board); // what the person decided on
    table = view;
    busy = false;
    show();
    sitDownIfAsked();
    sendKept();
    if (wantsRematch && table.next_table) location.href = `${backend.tableAddress(table.next_table)}#sit`;
  },
  hint(answer) {
    hint = answer.at === table.at ? answer : null;
    setDisabled(byId("hint"), false);
    show();
  },
  error(message) {
    busy = false;
    setDisabled(byId("hint"), false);
    notify(message);
  },
  gone(message) {
    document.body.dataset.online = false;
    notify(`${message}. `);
    byId("notice").append(element("a", { href: backend.lobbyAddress() }, "All tables"));
  },
};

function notify(message) {
  byId("notice").textContent = message;
  byId("notice").hidden = message === "";
}

/** The address ends in #sit when a table was opened for the person who looks at it. */
function sitDownIfAsked() {
  if (location.hash !== "#sit") return;
  history.replaceState(null, "", location.pathname + location.search);
  const free = table.players.findIndex((player) => player.human && !player.present);
  if (!backend.holdsSeat && free >= 0) sit(free);
}

function sit(seat) {
  backend.sit(seat, localStorage.getItem("montecristo-name") ?? "");
}

/** Makes the choice that was made without a connection, if the game still waits for it. */
function sendKept() {
  if (kept === null || !table.legal.length) return;
  const choice = table.legal.find(({ action }) => action === kept.choice.action);
  const fits = kept.at === table.at && choice;
  kept = null;
  if (fits) move(choice);
  else notify("The game has gone on without your choice: please choose again.");
}

// --- What is shown

function show() {
  const focus = rememberFocus();
  board ??= new Board(byId("board"), table.places, table.players);
  board.players = table.players;
  for (const [name, content] of Object.entries(table.parts)) board.draw(name, content);
  const mine = table.legal.length > 0;
  document.body.dataset.at = table.at;
  document.body.dataset.phase = table.phase;
  document.body.dataset.turn = mine ? "mine" : table.player < 0 ? "over" : "theirs";
  byId("title").replaceChildren(...(table.player >= 0 ? [badge(table.players[table.player])] : []), table.title);
  if (mine) byId("title").prepend(element("span", { className: "chip" }, "Your turn"));
  document.title = `${mine ? "Your turn: " : ""}${table.title}`;
  byId("scores").replaceChildren(...scoreLine(table.players, table.scores, table.player, table.you));
  byId("round").textContent = roundLine(table.round, table);
  setDisabled(byId("undo"), !table.can_undo);
  byId("undo").hidden = table.players.filter((player) => player.human).length !== 1;
  setDisabled(byId("hint"), table.player < 0);
  showHand();
  showSeats();
  showControls();
  showChoices();
  showLesson(table);
  showLog(); // when it has its height
  markTargets();
  if (mine || table.player < 0) changes.mark(board, table.you);
  if (table.player < 0 && table.at !== endSeen) showResult();
  else if (table.player >= 0) byId("end").close();
  if (table.problem) notify(table.problem);
  restoreFocus(focus);
}

/** Buttons that cannot be used keep the focus, so that it does not fall to the body. */
function setDisabled(button, off) {
  button.setAttribute("aria-disabled", off);
}

function isDisabled(button) {
  return button.getAttribute("aria-disabled") === "true";
}

/** How to find again what has the focus, when it is drawn anew. */
function rememberFocus() {
  const { id, dataset, tagName } = document.activeElement;
  if (tagName === "BODY") return null;
  if (id) return `#${id}`;
  if (dataset.action) return `[data-action="${dataset.action}"]`;
  return dataset.target ? `.legal[data-target="${dataset.target}"]` : "nothing";
}

function restoreFocus(selector) {
  if (selector === null || document.activeElement !== document.body) return;
  const before = [...document.querySelectorAll(selector)].find((one) => one.getClientRects().length);
  (before ?? byId("choices").querySelector("button") ?? byId("title")).focus({ preventScroll: true });
}

function showHand() {
  const seat = table.you.includes(table.player) ? table.player : table.you[0];
  byId("hand").toggleAttribute("hidden", seat === undefined);
  byId("hand").innerHTML = seat === undefined ? "" : table.hands[seat];
}

function showSeats() {
  const buttons = table.players.flatMap((player, seat) => {
    if (!player.human || player.present) return [];
    const button = element("button", { type: "button", className: "sit", id: `sit-${seat}` }, badge(player));
    button.append(`Sit down as ${player.name}`);
    button.addEventListener("click", () => sit(seat));
    return [button];
  });
  if (table.you.length && backend.canLeave) {
    const title = "Free your seat for somebody else";
    const leave = element("button", { type: "button", id: "leave", title }, "Leave");
    leave.addEventListener("click", () => backend.leave());
    const names = table.you.map((seat) => badge(table.players[seat]));
    buttons.push(element("span", { className: "you" }, "You are ", ...names), leave);
  }
  byId("seats").replaceChildren(...buttons);
}

function showControls() {
  const select = byId("pace");
  if (select.options.length === 0) {
    const options = table.paces.map((pace) => element("option", { value: JSON.stringify(pace) }, PACE_NAMES.get(pace)));
    select.append(...options);
    byId("agent").append(...table.agents.map((name) => element("option", { value: name }, name)));
  }
  byId("record").href = backend.recordAddress();
  byId("record").download = `montecristo-${backend.identity}.json`;
  byId("replay").href = backend.replayAddress();
  select.value = JSON.stringify(table.pace);
  select.disabled = !table.can_pace;
  select.title = table.can_pace ? "How fast bots move" : "Only those who sit at the table set its pace";
}

/** The legal choices, or for a watcher those that the hint is about; with bars if there is a hint. */
function showChoices() {
  const waiting = table.player < 0 ? "The game is over" : `${table.players[table.player].name} decides`;
  byId("asked").textContent = table.legal.length ? "Your choices" : waiting;
  const value = hint && hint.value !== null ? `, and expects ${signed(hint.value)} (+1 is a win)` : "";
  byId("adviser").textContent = hint ? `${hint.agent} would ${hint.choices[0].words}${value}` : "";
  const likely = new Map(hint?.choices.map(({ action, probability }) => [action, probability]));
  const choices = table.legal.length ? table.legal : hint?.choices ?? [];
  const lines = choices.map((choice, index) => {
    const line = table.legal.length
      ? answer(choice, index < 9 ? `${index + 1}` : "")
      : element("span", { className: "told" }, element("span", { className: "words" }, choice.words));
    if (hint) line.append(...bar(likely.get(choice.action) ?? 0));
    line.classList.toggle("best", choice.action === hint?.choices[0].action);
    return element("li", {}, line);
  });
  byId("choices").replaceChildren(...lines);
  if (hint) reveal(byId("choices"), lines.find((line) => line.querySelector(".best")));
  byId("answers").replaceChildren(...table.legal.filter((choice) => !choice.target).map((choice) => answer(choice)));
}

function answer(choice, key = "") {
  const words = element("span", { className: "words" }, choice.words);
  const button = element("button", { type: "button", className: "choice" }, words);
  if (key) words.prepend(element("kbd", {}, key));
  button.dataset.action = choice.action;
  button.addEventListener("click", () => move(choice));
  return button;
}

function move(choice) {
  if (busy) return;
  busy = true; // until the answer, which may come at once
  notify("");
  if (!backend.act(choice.action, table.at)) {
    busy = false;
    kept = { choice, at: table.at };
    notify(`There is no connection. Your choice, “${choice.words}”, is kept and will be made when it is back.`);
  }
}

function showLog() {
  const fresh = table.you.length ? table.log.length - table.since : 0;
  const lines = table.log.map((entry, index) => {
    const line = element("li", { className: table.log.length - index <= fresh ? "now" : "" });
    line.append(element("p", { className: entry.kind }, entryLine(entry, table.players)));
    return line;
  });
  const log = byId("log");
  log.replaceChildren(...lines);
  byId("news").hidden = fresh === 0;
  byId("news").textContent = fresh ? `${fresh} new ${fresh === 1 ? "line" : "lines"} in the log ↓` : "";
  const first = fresh ? lines[table.since] : undefined; // what is new stands at the top, or all of it can be seen
  log.scrollTop = first ? depth(log, first) - 4 : log.scrollHeight;
}

function showResult() {
  const again = () => {
    wantsRematch = true;
    if (!backend.rematch()) notify("There is no connection: ask again when it is back.");
  };
  const close = () => {
    endSeen = table.at;
    byId("end").close();
    byId("title").focus();
  };
  const mayAsk = table.can_pace || table.next_table;
  showEnd(table, [
    ...(mayAsk ? [[table.next_table ? "Go to the rematch" : "Rematch", again]] : []),
    ["Analyse", backend.replayAddress(byId("agent").value)],
    ["Look at the board", close],
  ]);
}

// --- The board as a way to answer

/** Marks the places that stand for legal actions and makes buttons of them; others say why they are blocked. */
function markTargets() {
  for (const marked of document.querySelectorAll(".drawn .legal, .drawn .hinted, .drawn .blocked, .drawn .used")) {
    marked.classList.remove("legal", "hinted", "blocked", "used");
    for (const name of ["tabindex", "role", "aria-label"]) marked.removeAttribute(name);
    if (marked.dataset.said) {
      marked.setAttribute("role", "group");
      marked.setAttribute("aria-label", marked.dataset.said);
    }
  }
  const words = {};
  for (const choice of table.legal) if (choice.target) (words[choice.target] ??= []).push(choice.words);
  for (const [target, all] of Object.entries(words)) {
    for (const place of places(target)) {
      place.classList.add("legal");
      place.setAttribute("tabindex", "0");
      place.setAttribute("role", "button");
      place.setAttribute("aria-label", all.join(", or "));
    }
  }
  for (const target of Object.keys(table.blocked)) for (const place of places(target)) place.classList.add("blocked");
  if (table.used) for (const place of places(table.used)) place.classList.add("used");
  if (hint?.target) for (const place of places(hint.target)) place.classList.add("hinted");
}

function places(target) {
  return document.querySelectorAll(`.drawn [data-target="${target}"]`);
}

function choose(place) {
  const choices = table.legal.filter((choice) => choice.target === place.dataset.target);
  if (choices.length === 1) move(choices[0]);
  else {
    byId("answers").replaceChildren(...choices.map((choice) => answer(choice)));
    byId("answers").firstChild.focus();
  }
}

/** What a tooltip says of a place: what it is, and why it cannot be chosen. */
function tell(place) {
  if (!table) return "";
  const blocked = place.closest(".blocked");
  const used = place.closest(".used") ? "The used marble: put it on top of another lane." : "";
  const reason = blocked ? `Not now: ${table.blocked[blocked.dataset.target]}.` : "";
  return [reason, used, describe(place, table.players)].filter(Boolean).join(" ");
}

for (const container of [byId("board"), byId("hand")]) {
  container.addEventListener("click", (event) => {
    const place = event.target.closest(".legal");
    if (place) choose(place);
  });
  container.addEventListener("keydown", (event) => {
    if (!["Enter", " "].includes(event.key) || !event.target.matches(".legal")) return;
    event.preventDefault();
    choose(event.target);
  });
  startTips(container, tell);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("select") || !table) return;
  if (byId("rules").open) return;
  if (event.key >= "1" && event.key <= "9") byId("choices").querySelectorAll("button")[Number(event.key) - 1]?.click();
  else if (event.key === "u" && !byId("undo").hidden) byId("undo").click();
  else if (event.key === "h") byId("hint").click();
  else if (event.key === "?") openRules();
  else if (event.key === "Escape") show();
});

byId("undo").addEventListener("click", () => isDisabled(byId("undo")) || backend.undo());
byId("hint").addEventListener("click", () => {
  if (isDisabled(byId("hint"))) return;
  if (backend.hint(byId("agent").value)) setDisabled(byId("hint"), true);
  else notify("There is no connection: ask again when it is back.");
});
byId("pace").addEventListener("change", (event) => backend.pace(JSON.parse(event.target.value)));
startTeaching(() => table && show());
backend.open(listener);
