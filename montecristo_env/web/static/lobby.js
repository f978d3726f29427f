// The list of tables, and a form for a new one.

import { Backend, tokensOf } from "./backend.js";
import { byId, element } from "./board.js";

const COLOURS = ["Red", "Blue", "Green", "Yellow"];
const FEWEST = 2;
const backend = new Backend();
let searchers = {};

function notify(message) {
  byId("notice").textContent = message;
  byId("notice").hidden = message === "";
}

function line(table) {
  const names = table.players.join(", ");
  const score = table.scores.join(" : ");
  const state = table.over ? `over, ${score}` : `round ${table.round}, ${score}`;
  const free = table.free.length && !table.over ? ", a seat is free" : "";
  const date = new Date(1000 * table.changed_at);
  const when = element("time", { dateTime: date.toISOString() });
  when.textContent = date.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const remove = element("button", { type: "button", "aria-label": `Delete the table of ${names}` }, "Delete");
  remove.addEventListener("click", () => confirm(`Delete the game of ${names}?`) && erase(table.id));
  return element(
    "li",
    {},
    element("a", { href: backend.tableAddress(table.id) }, names),
    element("span", {}, ` (${state}${free}) `),
    when,
    remove,
  );
}

async function erase(identity) {
  try {
    await backend.remove(identity, tokensOf(identity));
    notify("");
  } catch (error) {
    notify(error.message);
  }
  await load();
  byId("tables").querySelector("button, a")?.focus();
}

/** Agents that search are offered where tables are without a server; they make so many simulations for a move. */
function showSimulations() {
  const chosen = [...byId("seats").querySelectorAll("select")].map((select) => select.value).filter((name) => name in searchers);
  byId("thinking").hidden = chosen.length === 0;
  byId("simulations").min = Math.max(0, ...chosen.map((name) => searchers[name]));
  byId("simulations-count").textContent = simulations() || "none: it plays at first sight";
}

function simulations() {
  return [0, 8, 16, 32, 64, 128, 256, 512, 1024][byId("simulations").value];
}

function seat(agents, index) {
  const names = [...(index < FEWEST ? [] : [""]), "human", ...agents];
  const select = element("select", {}, ...names.map((name) => element("option", { value: name }, name || "nobody")));
  select.value = ["human", agents.includes("greedy") ? "greedy" : agents[0], "", ""][index];
  return element("label", {}, `${COLOURS[index]} `, select);
}

async function load() {
  const { tables, agents, searching } = await backend.games();
  if (!byId("seats").children.length) byId("seats").append(...COLOURS.map((_, index) => seat(agents, index)));
  searchers = searching ?? {};
  showSimulations();
  byId("submit").disabled = false; // now it is known who can play
  tables.sort((one, other) => other.changed_at - one.changed_at);
  byId("tables").replaceChildren(...tables.map(line));
  if (tables.length === 0) byId("tables").append(element("li", {}, "None yet."));
}

byId("name").value ||= localStorage.getItem("montecristo-name") ?? ""; // not over what was typed already
byId("form").addEventListener("input", showSimulations);
byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const players = [...byId("seats").querySelectorAll("select")].map(({ value }) => value).filter(Boolean);
  const seated = players.map((name) => (name in searchers && simulations() ? `${name}:${simulations()}` : name));
  const seed = byId("seed").value.trim();
  localStorage.setItem("montecristo-name", byId("name").value.trim());
  try {
    const identity = await backend.newGame({ players: seated, seed: seed === "" ? null : Number(seed) });
    location.href = backend.tableAddress(identity) + (players.includes("human") ? "#sit" : "");
  } catch (error) {
    notify(error.message);
  }
});

load();
