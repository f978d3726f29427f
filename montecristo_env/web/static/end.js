// The end of a game: who won, the ranking, and what each scoring round brought.

import { badge, byId, element } from "./board.js";

/** Players with most points first; those with as many as the one before share its rank. Winners come first (§9.2). */
export function ranking({ players, scores, winners }) {
  const order = players.map((player, seat) => seat);
  order.sort((a, b) => winners.includes(b) - winners.includes(a) || scores[b] - scores[a]);
  let rank = 0;
  return order.map((seat, place) => {
    const before = order[place - 1];
    const level = place > 0 && scores[before] === scores[seat] && winners.includes(before) === winners.includes(seat);
    if (!level) rank = place + 1;
    return { seat, rank };
  });
}

function cell(tag, content, settings = {}) {
  return element(tag, settings, content);
}

function pointsTable({ players, scores, scorings }, ranks) {
  const rows = [];
  const bonus = players.map(() => 0);
  for (const { bonus: isBonus, round, gains } of scorings) {
    if (isBonus) gains.forEach((points, seat) => (bonus[seat] += points));
    else rows.push([`Round ${round}`, gains]);
  }
  if (bonus.some(Boolean)) rows.push(["Bonus points", bonus]);
  rows.push(["Points", scores]);
  const heads = ranks.map(({ seat, rank }) =>
    element("th", { scope: "col" }, `${rank}. `, badge(players[seat]), players[seat].name),
  );
  const lines = rows.map(([title, points]) =>
    element("tr", {}, cell("th", title, { scope: "row" }), ...ranks.map(({ seat }) => cell("td", String(points[seat])))),
  );
  return element("table", {}, element("tr", {}, cell("th", "Scoring in", { scope: "col" }), ...heads), ...lines);
}

/** Fills the dialog; `actions` are pairs of a text and what a click does, or an address. */
export function showEnd(view, actions) {
  const buttons = actions.map(([text, does]) => {
    if (typeof does === "string") return element("a", { className: "button", href: does, target: "_blank" }, text);
    const button = element("button", { type: "button" }, text);
    button.addEventListener("click", does);
    return button;
  });
  byId("end-title").textContent = view.title;
  byId("end-points").replaceChildren(pointsTable(view, ranking(view)));
  byId("end-actions").replaceChildren(...buttons);
  if (!byId("end").open) byId("end").show();
}
