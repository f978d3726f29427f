// What the replay and the table share: small helpers, the board, made of parts, and the signs of the players.

const SVG = "http://www.w3.org/2000/svg";
const KINDS = { G: "Gold", R: "Ruby", S: "Sapphire", E: "Emerald", D: "Diamond" };

export function element(tag, settings = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function svgElement(tag, attributes = {}, content = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.innerHTML = content;
  return made;
}

export function byId(id) {
  return document.getElementById(id);
}

// The round, and what the game is played by if that is not the default.
export function roundLine(round, { target, rules }) {
  return `Round ${round} · ${target} points end the game${rules === "default" ? "" : ` · rules: ${rules}`}`;
}

export function badge(player) {
  return svgElement("svg", { class: "badge", viewBox: "-13 -13 26 26", "aria-hidden": "true" }, player.badge);
}

/** The players with their points; who decides is marked. */
export function scoreLine(players, scores, current, you = []) {
  return players.map((player, seat) => {
    const name = element("span", { className: "name" }, you.includes(seat) ? `${player.name} (you)` : player.name);
    const points = element("b", {}, String(scores[seat]));
    return element("li", { className: seat === current ? "now" : "" }, badge(player), name, " ", points);
  });
}

/** "Ruby 2" for "R2", "wild bag" for "W". */
export function pieceName(code) {
  return code === "W" ? "wild bag" : `${KINDS[code[0]]}${code[1] ? ` ${code[1]}` : ""}`;
}

/** What lies in a part of the board, in words, for those who cannot see it. */
function spoken(part, players) {
  const named = [...part.querySelectorAll("[data-piece]")].map(({ dataset: { piece } }) => piece.split("-"));
  const all = (sort, name) => named.filter(([kind]) => kind === sort).map(([, value]) => name(value));
  const seat = (value) => players[Number(value)].name;
  const list = (items) => items.join(", ") || "none";
  const [kind, which] = part.dataset.part.split("-");
  if (kind === "dungeon") {
    return `Dungeon ${which}. Treasures: ${list(all("token", pieceName))}. Queue: ${list(all("adventurer", seat))}.`;
  }
  if (kind === "zone") return `Bonus zone ${part.querySelector("text").textContent}: ${list(all("adventurer", seat))}.`;
  if (kind === "market") return `Market, best first: ${list(all("marker", pieceName))}.`;
  if (kind === "player") return `${seat(which)}. Cards: ${list(all("card", pieceName))}.`;
  return [...part.querySelectorAll("text")].map((text) => text.textContent).join(" ");
}

/** The board: one SVG for each part, side by side as drawn on a wide screen, in rows on a narrow one. */
export class Board {
  constructor(container, places, players) {
    const boxes = Object.values(places);
    const left = Math.min(...boxes.map(([x]) => x));
    const top = Math.min(...boxes.map(([, y]) => y));
    const width = Math.max(...boxes.map(([x, , w]) => x + w)) - left;
    const height = Math.max(...boxes.map(([, y, , h]) => y + h)) - top;
    container.replaceChildren();
    container.style.setProperty("--shape", `${width} / ${height}`);
    container.style.setProperty("--flat", width / height);
    container.dataset.players = players.length;
    this.players = players;
    this.parts = {};
    this.shown = {};
    this.container = container;
    for (const [name, [x, y, w, h]] of Object.entries(places)) {
      const kind = name.split("-")[0];
      const part = svgElement("svg", { class: `part ${kind}`, viewBox: `${x} ${y} ${w} ${h}` });
      part.dataset.part = name;
      if (kind === "castle") part.setAttribute("aria-hidden", "true");
      else part.setAttribute("role", "group");
      const place = { x: (x - left) / width, y: (y - top) / height, w: w / width, h: h / height };
      for (const [side, share] of Object.entries(place)) part.style.setProperty(`--${side}`, `${100 * share}%`);
      this.parts[name] = part;
      container.append(part);
    }
  }

  draw(name, content) {
    if (this.shown[name] === content) return;
    this.shown[name] = content;
    const part = this.parts[name];
    part.innerHTML = content;
    for (const text of part.querySelectorAll("text")) text.setAttribute("aria-hidden", "true"); // said by the label
    if (name === "slide") this.labelLanes(part);
    else if (name !== "castle") part.setAttribute("aria-label", spoken(part, this.players));
  }

  labelLanes(slide) {
    slide.setAttribute("aria-label", "Action slide");
    for (const lane of slide.querySelectorAll("[data-target^=lane-]")) {
      const marbles = [...lane.querySelectorAll("[data-piece]")].map(
        ({ dataset }) => this.players[Number(dataset.piece.split("-")[1])].name,
      );
      lane.setAttribute("role", "group");
      const said = `${lane.querySelector("text").textContent} lane, from the bottom: ${marbles.join(", ") || "empty"}`;
      lane.setAttribute("aria-label", said);
      lane.dataset.said = said;
    }
  }
}

export function entryLine(entry, players) {
  const line = element("span", { className: "words" });
  if (entry.player >= 0) line.append(badge(players[entry.player]), `${players[entry.player].name}: `);
  line.append(entry.words);
  return line;
}

/** A bar that shows how likely a choice is, and the figure. */
export function bar(probability) {
  const made = element("span", { className: "bar" });
  made.style.setProperty("--share", `${100 * probability}%`);
  return [element("span", { className: "percent" }, `${Math.round(100 * probability)} %`), made];
}

export function signed(value) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
}

/** How far down in a list a line of it stands. */
export function depth(list, line) {
  return line.getBoundingClientRect().top - list.getBoundingClientRect().top + list.scrollTop;
}

/** Moves a list so that a line of it can be seen, without moving the page. */
export function reveal(list, line) {
  const top = depth(list, line);
  if (top < list.scrollTop || top + line.offsetHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = top - list.clientHeight / 2;
  }
}
