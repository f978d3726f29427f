"use strict";

// The list of tables, and a form for a new one.

const COLOURS = ["Red", "Blue", "Green", "Yellow"];
const FEWEST = 2;

function line(table) {
  const score = table.scores.join(" : ");
  const state = table.over ? `over, ${score}` : `round ${table.round}, ${score}`;
  const free = table.free.length && !table.over ? ", a seat is free" : "";
  return element("li", {}, element("a", { href: `/tables/${table.id}` }, table.players.join(", ")), ` (${state}${free})`);
}

function seat(agents, index) {
  const names = [...(index < FEWEST ? [] : [""]), "human", ...agents];
  const select = element("select", {}, ...names.map((name) => element("option", { value: name }, name || "nobody")));
  select.value = ["human", agents.includes("greedy") ? "greedy" : agents[0], "", ""][index];
  return element("label", {}, `${COLOURS[index]} `, select);
}

async function load() {
  const { tables, agents } = await (await fetch("/tables")).json();
  byId("seats").replaceChildren(...COLOURS.map((_, index) => seat(agents, index)));
  byId("tables").replaceChildren(...tables.reverse().map(line));
  if (tables.length === 0) byId("tables").append(element("li", {}, "None yet."));
}

byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const players = [...byId("seats").querySelectorAll("select")].map((select) => select.value).filter(Boolean);
  const answer = await fetch("/tables", { method: "POST", body: JSON.stringify({ players }) });
  const made = await answer.json();
  if (answer.ok) location.href = `/tables/${made.id}${players.includes("human") ? "#sit" : ""}`;
  else {
    byId("notice").textContent = made.error;
    byId("notice").hidden = false;
  }
});

load();
