"use strict";

// What the replay and the table share: the board, made of parts, and small signs of the players.

const SVG = "http://www.w3.org/2000/svg";

function element(tag, settings = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function svgElement(tag, attributes = {}, content = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.innerHTML = content;
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

// The round, and what the game is played by if that is not the default.
function roundLine(round, { target, rules }) {
  return `Round ${round} · ${target} points end the game${rules === "default" ? "" : ` · rules: ${rules}`}`;
}

function badge(player) {
  return svgElement("svg", { class: "badge", viewBox: "-13 -13 26 26", "aria-hidden": "true" }, player.badge);
}

/** The board: one SVG for each part, side by side as drawn on a wide screen, below each other on a narrow one. */
class Board {
  constructor(container, places) {
    const boxes = Object.values(places);
    const left = Math.min(...boxes.map(([x]) => x));
    const top = Math.min(...boxes.map(([, y]) => y));
    const width = Math.max(...boxes.map(([x, , w]) => x + w)) - left;
    const height = Math.max(...boxes.map(([, y, , h]) => y + h)) - top;
    container.replaceChildren();
    container.style.setProperty("--shape", `${width} / ${height}`);
    container.style.setProperty("--flat", width / height);
    this.container = container;
    this.parts = {};
    this.shown = {};
    for (const [name, [x, y, w, h]] of Object.entries(places)) {
      const kind = name.split("-")[0];
      const part = svgElement("svg", { class: `part ${kind}`, viewBox: `${x} ${y} ${w} ${h}` });
      part.dataset.part = name;
      const place = { x: (x - left) / width, y: (y - top) / height, w: w / width, h: h / height };
      for (const [side, share] of Object.entries(place)) part.style.setProperty(`--${side}`, `${100 * share}%`);
      this.parts[name] = part;
      container.append(part);
    }
  }

  draw(name, content) {
    if (this.shown[name] === content) return;
    this.shown[name] = content;
    this.parts[name].innerHTML = content;
  }
}

function entryLine(entry, players) {
  const line = element("span", { className: "words" });
  if (entry.player >= 0) line.append(badge(players[entry.player]), `${players[entry.player].name}: `);
  line.append(entry.words);
  return line;
}

/** Actions with bars that show how likely each is. */
function bars(choices, moved) {
  return choices.map(([words, probability]) => {
    const percent = Math.round(100 * probability);
    const bar = element("div", { className: "bar" });
    bar.style.setProperty("--share", `${100 * probability}%`);
    const chosen = words === moved;
    return element(
      "li",
      { className: chosen ? "moved" : "" },
      element("span", { className: "words" }, chosen ? "✓ " : "", words),
      element("span", { className: "percent" }, `${percent} %`),
      bar,
    );
  });
}

function expectation(value) {
  const sign = value < 0 ? "−" : "+";
  return `expects ${sign}${Math.abs(value).toFixed(2)} (+1 is a win)`;
}

/** Moves a list so that a line of it can be seen, without moving the page. */
function reveal(list, line) {
  const top = line.offsetTop - list.offsetTop;
  if (top < list.scrollTop || top + line.offsetHeight > list.scrollTop + list.clientHeight) {
    list.scrollTop = top - list.clientHeight / 2;
  }
}
