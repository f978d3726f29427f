// Draws the board where no server does: the same SVG, to the letter, as `montecristo_env.render` makes in Python, from
// the same public state. A test compares the two in many positions; change them together.

import { code, KIND_LETTERS, LANE_NAMES, LANES, leftOver, owed, ZONE_EFFECTS, ZONE_NAMES, ZONES } from "./words.js";

const WIDTH = 1280;
const MARGIN = 16;
const GAP = 12;
const [PAPER, STONE, CELL, EDGE, GLOW, DONE] = ["#f5f2ec", "#d8d1c4", "#fbfaf7", "#d9d4ca", "#fff3c4", "#eae6dd"];
const [INK, MUTED, FAINT, WHITE, ON_COLOUR] = ["#22303c", "#5f6a74", "#c3c9ce", "#ffffff", "#22303d"];
export const SEAT_FILLS = ["#d55e00", "#0072b2", "#009e73", "#f0e442"];
const SEAT_TINTS = ["#fbe6d8", "#d8e9f4", "#d6f0e8", "#fbf8d0"];
const SEAT_SIGNS = ["#fffffe", "#fffffe", "#fffffe", ON_COLOUR];
const PALE_SIGNS = ["#d55e00", "#0072b2", "#009e73", "#a39500"];
const KIND_FILLS = ["#e69f00", "#b0306a", "#56b4e9", "#2a7a4b", "#e4ebf1"];
const KIND_SIGNS = [ON_COLOUR, "#fffffe", ON_COLOUR, "#fffffe", ON_COLOUR];
const WILD_FILL = "#4a5560";
const CASTLE = [MARGIN, 64, 832, 432];
const PLAYERS = [MARGIN, 508, WIDTH - 2 * MARGIN, 200];
const MIDDLE = [860, 64, 404, 432];
const MARKET_HEIGHT = 64;
const TABLE_HEIGHT = 116;
const BETWEEN = 8;
const SMALLEST = 14;
const LETTERS = "ABCDEF";
const ADVENTURERS = 9;
const MOST_CARDS = 8;
const LANE_ROOM = 7;
const TREASURE_PLACES = 4;

// --- Shapes

/** A short number, as Python rounds it: exact halves go to the even digit. */
function n(number) {
  const eighths = number * 8;
  const isTie = Number.isInteger(eighths) && eighths % 2 !== 0;
  const text = (isTie ? evenHundredth(number) : number).toFixed(2);
  return text.replace(/\.?0+$/, "");
}

function evenHundredth(number) {
  const below = Math.floor(number * 100);
  return (below % 2 === 0 ? below : below + 1) / 100;
}

function escape(text) {
  return text.replaceAll("&", "&amp;").replaceAll(">", "&gt;").replaceAll("<", "&lt;");
}

function paint(fill, stroke = "", thick = 0) {
  return ` fill="${fill || "none"}"${stroke ? ` stroke="${stroke}" stroke-width="${n(thick)}"` : ""}`;
}

function rect(x, y, width, height, fill = "", stroke = "", thick = 1, radius = 0) {
  const edge = stroke ? thick / 2 : 0;
  const corners = radius ? ` rx="${n(Math.max(0, radius - edge))}"` : "";
  const size = `width="${n(width - 2 * edge)}" height="${n(height - 2 * edge)}"`;
  return `<rect x="${n(x + edge)}" y="${n(y + edge)}" ${size}${corners}${paint(fill, stroke, thick)}/>`;
}

function circle(x, y, radius, fill = "", stroke = "", thick = 1) {
  return `<circle cx="${n(x)}" cy="${n(y)}" r="${n(radius - (stroke ? thick / 2 : 0))}"${paint(fill, stroke, thick)}/>`;
}

function polygon(points, fill) {
  return `<polygon points="${points.map(([x, y]) => `${n(x)},${n(y)}`).join(" ")}"${paint(fill)}/>`;
}

function line(x1, y1, x2, y2, stroke, thick = 1) {
  return `<line x1="${n(x1)}" y1="${n(y1)}" x2="${n(x2)}" y2="${n(y2)}"${paint("", stroke, thick)}/>`;
}

function group(items, target = "", piece = "") {
  const names = `${target ? ` data-target="${target}"` : ""}${piece ? ` data-piece="${piece}"` : ""}`;
  return `<g${names}>${items.join("")}</g>`;
}

// --- Text

const CAPITALS = 0.73;
const ANCHORS = { start: 0, middle: 0.5, end: 1 };
const WIDTHS = [
  ...[278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278],
  ...[556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611],
  ...[975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778],
  ...[667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556],
  ...[333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611],
  ...[611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584],
];
const OTHERS = { "…": 1000, "·": 278 };

function letterWidth(letter) {
  const at = letter.codePointAt(0) - 32;
  if (at >= 0 && at < WIDTHS.length) return WIDTHS[at];
  const base = [...letter.normalize("NFD")][0];
  if (base !== letter) return letterWidth(base);
  return OTHERS[letter] ?? [0, 720, 1000][columns(letter)];
}

/** How many columns of a terminal a text takes, about. */
export function columns(text) {
  const wide = /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
  const width = (letter) => (/[\p{Mn}\p{Me}\p{Cf}]/u.test(letter) ? 0 : wide.test(letter) ? 2 : 1);
  return [...text].reduce((sum, letter) => sum + width(letter), 0);
}

function textWidth(text, size) {
  return ([...text].reduce((sum, letter) => sum + letterWidth(letter), 0) * size) / 1000;
}

function text(x, y, words, size, fill, anchor = "start") {
  const width = textWidth(words, size);
  const left = x - width * ANCHORS[anchor];
  const length = `textLength="${n(left + width - left)}" lengthAdjust="spacingAndGlyphs"`;
  const place = `x="${n(x)}" y="${n(y + (CAPITALS / 2) * size)}" font-size="${n(size)}"`;
  const anchored = anchor === "start" ? "" : ` text-anchor="${anchor}"`;
  return `<text ${place} fill="${fill}"${anchored} ${length} xml:space="preserve">${escape(words)}</text>`;
}

/** A text made so small that it fits; if it would be smaller than that, it is cut. */
function fit(x, y, words, size, fill, width, smallest, anchor = "start") {
  const fitting = Math.min(size, Math.max(smallest, width / Math.max(textWidth(words, 1), 1e-9)));
  let letters = [...words];
  while (textWidth(letters.join(""), fitting) > width + 1e-6 && letters.length) {
    letters = letters.length > 1 ? [...letters.slice(0, -2).join("").trimEnd(), "…"] : [];
  }
  return text(x, y, letters.join(""), fitting, fill, anchor);
}

// --- Pieces

function regular(x, y, radius, corners, turn = 0) {
  return Array.from({ length: corners }, (_, corner) => {
    const angle = 2 * Math.PI * (corner / corners + turn);
    return [x + radius * Math.sin(angle), y - radius * Math.cos(angle)];
  });
}

function seatSign(seat, x, y, size, fill) {
  if (seat === 0) return circle(x, y, size * 0.46, fill);
  if (seat === 1) return rect(x - size * 0.4, y - size * 0.4, size * 0.8, size * 0.8, fill);
  if (seat === 2) return polygon(regular(x, y + size * 0.1, size * 0.58, 3), fill);
  return polygon(regular(x, y, size * 0.56, 4), fill);
}

function marble(seat, x, y, radius, target = "", piece = "") {
  return group([circle(x, y, radius, SEAT_FILLS[seat], INK), seatSign(seat, x, y, radius, SEAT_SIGNS[seat])], target, piece);
}

/** The sign of a player, in a square of SVG around 0. */
export function badge(seat) {
  return marble(seat, 0, 0, 12);
}

const PAWN_SHAPE = 0.8;

function pawn(seat, x, y, height, present = true) {
  const fill = present ? SEAT_FILLS[seat] : SEAT_TINTS[seat];
  const sign = present ? SEAT_SIGNS[seat] : PALE_SIGNS[seat];
  const half = height / 2;
  const items = [rect(x - PAWN_SHAPE * half, y - half, 2 * PAWN_SHAPE * half, height)];
  for (const [colour, inset] of [[present ? INK : FAINT, 0], [fill, height * 0.045]]) {
    const wide = PAWN_SHAPE * half - inset;
    const narrow = 0.42 * half - inset;
    const top = y - 0.3 * half + inset;
    const bottom = y + half - inset;
    items.push(circle(x, y - 0.52 * half, 0.48 * half - inset, colour));
    const right = [[x + narrow, top], [x + wide * 0.86, top + 0.3 * half], [x + wide, bottom]];
    items.push(polygon([[x - narrow, top], ...right, [x - wide, bottom], [x - wide * 0.86, top + 0.3 * half]], colour));
  }
  return group([...items, seatSign(seat, x, y + half * 0.42, half * 0.74, sign)], "", `adventurer-${seat}`);
}

function gem(kind, x, y, radius) {
  const [corners, turn] = [[24, 0], [6, 0], [5, 0], [8, 1 / 16], [4, 0]][kind];
  const size = radius * [1, 1, 1.04, 1.02, 1][kind];
  return [
    polygon(regular(x, y, size, corners, turn), INK),
    polygon(regular(x, y, size - 1.2, corners, turn), KIND_FILLS[kind]),
    text(x, y, KIND_LETTERS[kind], radius * 1.22, KIND_SIGNS[kind], "middle"),
  ];
}

function token(piece, [x, y, width, height], target, lit = false) {
  const [kind, value] = piece;
  const middle = y + height / 2;
  const items =
    width < 44
      ? [rect(x, y, width, height, KIND_FILLS[kind], INK, 1, 5), text(x + width / 2, middle, code(piece), 14, KIND_SIGNS[kind], "middle")]
      : [
          rect(x, y, width, height, WHITE, INK, lit ? 3 : 1, Math.min(8, height * 0.25)),
          ...gem(kind, x + width * 0.36, middle, Math.min(height * 0.42, width * 0.3)),
          text(x + width * 0.8, middle, `${value}`, height * 0.5, INK, "middle"),
        ];
  return group(items, target, `token-${code(piece)}`);
}

function card(piece, [x, y, width, height], target, adventurers = null) {
  const middle = x + width / 2;
  const band = height * (adventurers === null ? 0.44 : 0.34);
  const rows = (height - band) / (adventurers === null ? 1 : 2);
  const ink = piece ? INK : "#fffffe";
  const mark = piece
    ? gem(piece[0], middle, y + band * 0.56, Math.min(band * 0.46, width * 0.4))
    : [
        rect(x + 1, y + 1, width - 2, height - 2, WILD_FILL, "", 1, 4),
        text(middle, y + band * 0.54, "W", band * 0.62, "#fffffe", "middle"),
      ];
  const size = Math.min(rows * 0.62, width * 0.46);
  const items = [rect(x, y, width, height, WHITE, INK, 1, 5), ...mark];
  items.push(...counted(piece ? piece[1] : 1, middle, y + band + rows * 0.46, size, ink, bag));
  if (adventurers !== null) items.push(...counted(adventurers, middle, y + band + rows * 1.42, size, ink, figure));
  return group(items, target, piece ? `card-${code(piece)}` : "card-W");
}

function counted(count, x, y, size, ink, sign) {
  return [text(x - size * 0.42, y, `${count}`, size, ink, "middle"), ...sign(x + size * 0.38, y, size * 0.86, ink)];
}

function bag(x, y, size, fill) {
  const half = [[0.24, -0.5], [0.1, -0.27], [0.34, 0], [0.42, 0.22], [0.34, 0.42], [0.2, 0.5]];
  const left = [...half].reverse().map(([px, py]) => [x - px * size, y + py * size]);
  return [polygon([...half.map(([px, py]) => [x + px * size, y + py * size]), ...left], fill)];
}

function figure(x, y, size, fill) {
  const body = [[0.2, 0], [0.38, 0.2], [0.42, 0.5], [-0.42, 0.5], [-0.38, 0.2], [-0.2, 0]];
  return [circle(x, y - 0.28 * size, 0.24 * size, fill), polygon(body.map(([px, py]) => [x + px * size, y + py * size]), fill)];
}

// --- Parts of the board

/** Where the parts are: left, top, width and height of each. */
export function places(players) {
  const { slide, market, table, panels } = moving(players);
  const found = { castle: CASTLE };
  [...LETTERS].forEach((letter, dungeon) => (found[`dungeon-${letter}`] = dungeonPlace(dungeon)));
  ZONES.forEach((name, zone) => (found[`zone-${name}`] = zonePlace(zone)));
  Object.assign(found, { slide, market, table });
  panels.forEach((place, seat) => (found[`player-${seat}`] = place));
  return found;
}

function moving(players) {
  const count = Math.max(3, players);
  const width = (PLAYERS[2] - (count - 1) * GAP) / count;
  const bottom = Array.from({ length: count }, (_, i) => [PLAYERS[0] + i * (width + GAP), PLAYERS[1], width, PLAYERS[3]]);
  const [x, y, wide, high] = MIDDLE;
  const spare = count > players;
  const table = spare ? bottom[players] : [x, y + high - TABLE_HEIGHT, wide, TABLE_HEIGHT];
  const tall = spare ? high : high - TABLE_HEIGHT - BETWEEN;
  const slide = [x, y, wide, tall - MARKET_HEIGHT - BETWEEN];
  return { slide, market: [x, y + tall - MARKET_HEIGHT, wide, MARKET_HEIGHT], table, panels: bottom.slice(0, players) };
}

function dungeonPlace(dungeon) {
  return [CASTLE[0] + 12 + (dungeon % 3) * 273, CASTLE[1] + 18 + Math.floor(dungeon / 3) * 166, 262, 158];
}

function zonePlace(zone) {
  return [CASTLE[0] + 12 + zone * 204.5, CASTLE[1] + 350, 194.5, 74];
}

/** The SVG of every part of the board. */
export function boardParts(state, names, values, adventurers) {
  const { slide, market, table, panels } = moving(names.length);
  const parts = { castle: walls() };
  [...LETTERS].forEach((letter, dungeon) => (parts[`dungeon-${letter}`] = drawDungeon(state, dungeon)));
  ZONES.forEach((name, zone) => (parts[`zone-${name}`] = drawZone(state, zone)));
  parts.slide = drawSlide(state, slide);
  parts.market = drawMarket(state, values, market);
  parts.table = drawTable(state, adventurers, table);
  names.forEach((name, seat) => (parts[`player-${seat}`] = playerPanel(state, seat, name, panels[seat])));
  return parts;
}

function walls() {
  const notch = CASTLE[2] / 25;
  const notches = Array.from({ length: 12 }, (_, i) => rect(CASTLE[0] + (2 * i + 1) * notch, CASTLE[1], notch, 9, PAPER));
  return group([rect(...CASTLE, STONE), ...notches]);
}

const TICK = [[-7, 0], [-5, -2], [-2, 1], [5, -6], [7, -4], [-2, 5]];

function drawDungeon(state, dungeon) {
  const letter = LETTERS[dungeon];
  const here = state.gather_dungeon === dungeon;
  const [x, y, width, height] = dungeonPlace(dungeon);
  const done = state.chest_dungeons.includes(dungeon);
  const fill = here ? GLOW : done ? DONE : CELL;
  const items = [
    rect(x, y, width, height, fill, here ? INK : EDGE, here ? 2 : 1, 10),
    text(x + 21, y + (done ? 21 : 28), letter, 24, INK, "middle"),
  ];
  if (done) items.push(polygon(TICK.map(([px, py]) => [x + 21 + px, y + 41 + py]), INK));
  const { tokens, queue } = state.dungeons[dungeon];
  const codes = tokens.map(code);
  for (let i = 0; i < TREASURE_PLACES; i++) {
    const spot = [x + 39 + i * 54, y + 9, 50, 38];
    if (i < tokens.length) {
      const lit = here && state.taking !== null && codes[i] === code(state.taking) && codes.indexOf(codes[i]) === i;
      items.push(token(tokens[i], spot, `token-${letter}-${codes[i]}`, lit));
    } else items.push(rect(...spot, "", FAINT, 1, 8));
  }
  items.push(line(x + 10, y + 56, x + width - 10, y + 56, EDGE));
  items.push(...drawQueue(queue, [x + 10, y + 62, width - 20, height - 68]));
  return group(items, `dungeon-${letter}`);
}

function pitchOf(tall) {
  return tall * PAWN_SHAPE + 2;
}

function drawQueue(queue, [x, y, width, height]) {
  if (!queue.length) return [];
  const start = x + 16;
  let tall = 36;
  while (Math.trunc((width - 16) / pitchOf(tall)) * Math.trunc(height / (tall + 2)) < queue.length) tall -= 0.5;
  const perRow = Math.trunc((width - 16) / pitchOf(tall));
  const middle = y + 1 + tall / 2;
  const pawns = queue.map((seat, i) =>
    pawn(seat, start + ((i % perRow) + 0.5) * pitchOf(tall), middle + Math.floor(i / perRow) * (tall + 2), tall),
  );
  return [polygon([[x, middle - 6], [x + 10, middle], [x, middle + 6]], MUTED), ...pawns];
}

function drawZone(state, zone) {
  const [x, y, width, height] = zonePlace(zone);
  const items = [
    rect(x, y, width, height, CELL, EDGE, 1, 10),
    text(x + 12, y + 16, ZONE_NAMES[zone], 16, INK),
    text(x + 12, y + 34, ZONE_EFFECTS[zone], SMALLEST, MUTED),
  ];
  state.scores.forEach((_, seat) => {
    const middle = x + 24 + seat * 30;
    items.push(state.zones[zone].includes(seat) ? pawn(seat, middle, y + 57, 25) : circle(middle, y + 57, 9, SEAT_TINTS[seat], FAINT));
  });
  return group(items, `zone-${ZONES[zone]}`);
}

function panel(place) {
  return rect(...place, WHITE, EDGE, 1, 10);
}

function drawSlide(state, place) {
  const width = (place[2] - 2 * 8 - 3 * 4) / 4;
  const lanes = LANES.map((_, lane) => drawLane(state, lane, [place[0] + 8 + lane * (width + 4), place[1] + 8, width, place[3] - 16]));
  return group([panel(place), ...lanes]);
}

function drawLane(state, lane, [x, y, width, height]) {
  const here = state.cylinder === lane;
  const floor = y + height - 22;
  const middle = x + width / 2;
  const pitch = (floor - y - 26) / LANE_ROOM;
  const items = [
    rect(x, y, width, height, here ? GLOW : CELL, here ? INK : EDGE, here ? 2 : 1, 8),
    text(middle, y + 15, LANE_NAMES[lane], 15, INK, "middle"),
  ];
  if (here) {
    items.push(rect(x + 16, floor + 3, width - 32, 14, MUTED, INK, 1, 7), rect(x + 22, floor + 7, width - 44, 3, FAINT, "", 1, 1.5));
  } else items.push(line(x + 18, floor + 10, x + width - 18, floor + 10, EDGE, 2));
  const marbles = state.lanes[lane];
  for (let position = 0; position < LANE_ROOM; position++) {
    const centre = floor - pitch * (position + 0.5);
    const seat = marbles[position];
    if (position < marbles.length) {
      items.push(marble(seat, middle, centre, Math.min(16, pitch / 2 - 0.5), `marble-${LANES[lane]}-${position}`, `marble-${seat}`));
    } else items.push(circle(middle, centre, 3, EDGE));
  }
  return group(items, `lane-${LANES[lane]}`);
}

function drawMarket(state, values, place) {
  const [x, y, , height] = place;
  const spaces = state.market.map((kind, space) => {
    const left = x + 68 + space * 66;
    const items = [
      rect(left, y + 8, 62, height - 16, CELL, EDGE, 1, 8),
      text(left + 16, y + height / 2, `${values[space]}`, 20, INK, "middle"),
      ...gem(kind, left + 42, y + height / 2, 16),
    ];
    return group(items, `market-${KIND_LETTERS[kind]}`, `marker-${KIND_LETTERS[kind]}`);
  });
  return group([panel(place), text(x + 10, y + height / 2, "Market", 15, INK), ...spaces]);
}

function drawTable(state, adventurers, place) {
  const [x, y, width, height] = place;
  const high = (height - 20 - 6) / 2;
  const heaps = [
    ["Cards", [["pile", state.pile_size], ["discards", state.card_discard.length]]],
    ["Tokens", [["bag", state.bag.length], ["discards", state.token_discard.length]]],
  ].map(([title, counts], row) => {
    const top = y + 10 + row * (high + 6);
    const middle = top + high / 2;
    const items = [rect(x + 10, top, 184, high, CELL, EDGE, 1, 8), text(x + 18, middle, title, SMALLEST, INK)];
    counts.forEach(([label, count], column) => {
      items.push(text(x + 94 + column * 66, middle - 9, `${count}`, 18, INK, "middle"));
      items.push(text(x + 94 + column * 66, middle + 10, label, SMALLEST, MUTED, "middle"));
    });
    return group(items);
  });
  return group([panel(place), ...heaps, ...inPlay(state, adventurers, [x + 206, y + 10, width - 216, height - 20])]);
}

function inPlay(state, adventurers, [x, y, width, height]) {
  if (state.offer.length) {
    const cards = state.offer.map((piece, i) =>
      card(piece, [x + i * 47, y + 20, 43, Math.min(height - 20, 96)], `offer-${code(piece)}`, adventurers[piece[1] - 1]),
    );
    return [text(x, y + 9, "On offer", SMALLEST, INK), ...cards];
  }
  if (state.drawn_tokens.length) {
    const drawn = state.drawn_tokens.map((piece, i) =>
      token(piece, i === 0 ? [x, y + 32, 64, 50] : [x + 12 + i * 60, y + 37, 54, 40], `drawn-${code(piece)}`),
    );
    return [text(x, y + 9, "Drawn, next first", SMALLEST, INK), ...drawn];
  }
  if (state.gather_dungeon >= 0) return gathering(state, [x, y, width]);
  return [text(x + width / 2, y + height / 2, "Nothing drawn", SMALLEST, MUTED, "middle")];
}

function gathering(state, [x, y, width]) {
  const items = [text(x, y + 9, `Turns left in ${LETTERS[state.gather_dungeon]}`, SMALLEST, INK)];
  state.gather_order.forEach((seat, i) => items.push(marble(seat, x + 118 + i * 19, y + 10, 9)));
  if (state.taking !== null) {
    const value = state.taking[1];
    items.push(text(x, y + 33, `Paid ${value - owed(state)} of ${value} for ${code(state.taking)}`, SMALLEST, INK));
  }
  const owners = leftOver(state);
  if (owners.length) {
    items.push(text(x, y + 54, "Left-over bags", SMALLEST, INK));
    const room = owners.length === 1 ? width : width / 2;
    owners.forEach(([seat, bags], i) => {
      const left = x + (i % 2) * room;
      const middle = y + 72 + Math.floor(i / 2) * 17;
      items.push(marble(seat, left + 6, middle, 6), fit(left + 16, middle, bags.map(code).join(" "), SMALLEST, INK, room - 20, 9));
    });
  }
  return items;
}

// --- Players

const PAD = 12;
const LABELS = 86;

function playerPanel(state, seat, name, [x, y, width, height]) {
  const lit = seat === state.current_player || state.winners.includes(seat);
  const tag = state.current_player < 0 ? (state.winners.includes(seat) ? "winner" : "") : seat === state.active_player ? "active player" : "";
  const items = [
    rect(x, y, width, height, WHITE, lit ? INK : EDGE, lit ? 3 : 1, 10),
    rect(x + 3, y + 3, width - 6, 40, SEAT_TINTS[seat], "", 1, 8),
    marble(seat, x + 27, y + 23, 14),
    fit(x + width - PAD, y + 24, `${state.scores[seat]}`, 28, INK, 84, 12, "end"),
    fit(x + 50, y + (tag ? 16 : 24), name, 17, INK, width - 50 - 100, SMALLEST),
  ];
  if (tag) items.push(text(x + 50, y + 35, tag, SMALLEST, MUTED));
  const room = width - 2 * PAD;
  items.push(...adventurersOf("Supply", state.supply[seat], seat, x + PAD, y + 59, room));
  items.push(...adventurersOf("Marseille", state.marseille[seat], seat, x + PAD, y + 86, room));
  items.push(...hand(state, seat, [x + PAD, y + 102, room, 62]));
  items.push(...gathered(state.gathered[seat], seat, [x + PAD, y + 168, width - 2 * PAD, 24]));
  return group(items, `player-${seat}`);
}

/** The hand and the supply of one player, small enough to stay in view on a phone. */
export function handStrip(state, seat) {
  return group([
    rect(0, 0, 372, 64, WHITE, EDGE, 1, 8),
    pawn(seat, 20, 20, 28),
    text(20, 48, `${state.supply[seat]}`, 20, INK, "middle"),
    ...hand(state, seat, [44, 4, 322, 56]),
  ]);
}

function adventurersOf(label, count, seat, x, y, width) {
  const pitch = Math.min(24, (width - LABELS) / ADVENTURERS);
  const pawns = Array.from({ length: count }, (_, i) => pawn(seat, x + LABELS + (i + 0.5) * pitch, y, 24, label === "Supply"));
  return [text(x, y, `${label} ${count}`, SMALLEST, MUTED), ...pawns];
}

function hand(state, seat, [x, y, width, height]) {
  const gap = 4;
  const wide = Math.min(0.75 * height, (width - (MOST_CARDS - 1) * gap) / MOST_CARDS);
  const cards = [...state.hands[seat], ...new Array(state.wilds[seat]).fill(null)];
  if (!cards.length) return [text(x, y + height / 2, "No cards", SMALLEST, MUTED)];
  return cards.map((piece, i) => card(piece, [x + i * (wide + gap), y, wide, height], `hand-${seat}-${piece ? code(piece) : "W"}`));
}

function gathered(tokens, seat, [x, y, width, height]) {
  if (!tokens.length) return [];
  const labels = 48;
  const gap = 2;
  const wide = Math.min(40, (width - labels - (ADVENTURERS - 1) * gap) / ADVENTURERS);
  const taken = tokens.map((piece, i) => token(piece, [x + labels + i * (wide + gap), y, wide, height], `gathered-${seat}-${code(piece)}`));
  return [text(x, y + height / 2, "Taken", SMALLEST, MUTED), ...taken];
}
