// Says in words what is asked, what can be chosen and why something cannot, and what has happened: where no server does.
// The same words as in Python (`render.words`, `render.targets`, `web.reasons`, `web.move_log`); a test compares them.

import { columns } from "./draw.js";

export const KIND_LETTERS = "GRSED";
export const KIND_NAMES = ["Gold", "Ruby", "Sapphire", "Emerald", "Diamond"];
export const LANES = ["supply", "adventurers", "chest", "rearrange"];
export const LANE_NAMES = ["Supply", "Adventurers", "Chest", "Rearrange"];
export const ZONES = ["wild", "disembark", "points", "reinforcement"];
export const ZONE_NAMES = ["Wild bag", "Disembark", "Bonus points", "Reinforcement"];
export const ZONE_EFFECTS = ["a bag of any kind", "3 from Marseille", "2 points at once", "2 more to dungeons"];
const LETTERS = "ABCDEF";
const COLOURS = ["Red", "Blue", "Green", "Yellow"];
const LONGEST_NAME = 16;
const LANE_ROOM = 7;
const LANE_COLOUR_ROOM = 3;

/** A card or a token in short: "R2". */
export function code([kind, size]) {
  return `${KIND_LETTERS[kind]}${size}`;
}

/** "Ruby 2" for "R2". */
function longName(short) {
  return `${KIND_NAMES[KIND_LETTERS.indexOf(short[0])]} ${short[1]}`;
}

function kindOf(short) {
  return KIND_LETTERS.indexOf(short[0]);
}

/** The bags still to be paid for the token that is being taken (§8.3). */
export function owed(state) {
  const [kind, value] = state.taking;
  return Math.max(0, value - state.left_over_bags[state.current_player][kind]);
}

/** Whoever has left-over bags (§8.4), with their kinds and numbers; those that pay for a token now do not count. */
export function leftOver(state) {
  const isOwed = (seat, kind) => state.taking !== null && seat === state.current_player && state.taking[0] === kind;
  return state.left_over_bags
    .map((counts, seat) => [seat, counts.map((count, kind) => [kind, count]).filter(([kind, count]) => count && !isOwed(seat, kind))])
    .filter(([, kinds]) => kinds.length);
}

/** Whose decision it is, and what is asked; who has won, once the game is over. */
export function sentence(state, names, you = []) {
  if (state.phase === "over") return outcome(state, names, you);
  const mine = you.length === 1 && you.includes(state.current_player);
  const [who, s] = mine ? ["You", ""] : [names[state.current_player], "s"];
  const dungeon = LETTERS.at(state.gather_dungeon);
  switch (state.phase) {
    case "deal":
      return state.recipient === state.active_player ? `${who} choose${s} a card to keep` : `${who} give${s} ${names[state.recipient]} a card`;
    case "discard":
      return `${who} ${mine ? "have" : "has"} too many cards and discard${s} one`;
    case "place": {
      const left = state.placements_left;
      if (state.zone_used) return `${who} may place ${upTo(left, "adventurer")} in ${left === 1 ? "a dungeon" : "dungeons"}`;
      const where = left === 1 ? " in a dungeon or a bonus zone" : ", at most one in a bonus zone";
      return `${who} may place ${upTo(left, "adventurer")}${where}`;
    }
    case "reinforce":
      return `${who} may send ${upTo(state.reinforcements_left, "reinforcement")} to dungeons`;
    case "put_token":
      return `${who} put${s} ${longName(code(state.drawn_tokens[0]))} into a dungeon`;
    case "take":
      return `${who} may take a token from dungeon ${dungeon}`;
    case "pay": {
      const bags = owed(state);
      const price = `${bags} ${KIND_NAMES[state.taking[0]].toLowerCase()} ${bags === 1 ? "bag" : "bags"} owed`;
      return `${who} pay${s} for ${longName(code(state.taking))} from dungeon ${dungeon}: ${price}`;
    }
    case "rearrange":
      return `${who} may move an own marble down or a market marker up`;
    default:
      return `${who} put${s} the used marble on top of another lane`;
  }
}

function upTo(number, noun) {
  return number === 1 ? `1 ${noun}` : `up to ${number} ${noun}s`;
}

function exactly(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function outcome(state, names, you) {
  const mine = you.length === 1 ? state.winners.filter((seat) => you.includes(seat)).slice(0, 1) : [];
  const winners = [...mine.map(() => "You"), ...state.winners.filter((seat) => !mine.includes(seat)).map((seat) => names[seat])];
  if (!winners.length) return "The game is over";
  const points = `${state.scores[state.winners[0]]} points`;
  if (winners.length === 1) return `${winners[0]} ${mine.length ? "win" : "wins"} with ${points}`;
  return `${winners.slice(0, -1).join(", ")} and ${winners.at(-1)} share the win with ${points}`;
}

function cardWords(short) {
  if (short === "W") return "a wild bag";
  return `${short}: ${exactly(Number(short[1]), "bag")} of ${KIND_NAMES[kindOf(short)].toLowerCase()}`;
}

/** An action, in the notation of records, in words. */
export function describe(notation, state, names, values, adventurers) {
  const [verb, what, third, , last] = notation.split(" ");
  switch (notation.startsWith("stop") || verb === "keep" ? notation : verb) {
    case "deal": {
      const whom = state.recipient === state.current_player ? "keep" : `give ${names[state.recipient]}`;
      return `${whom} ${cardWords(what)}, ${exactly(adventurers[Number(what[1]) - 1], "adventurer")}`;
    }
    case "discard":
      return `discard ${cardWords(what)}`;
    case "enter":
      return `enter dungeon ${what}`;
    case "visit":
      return `visit ${ZONE_NAMES[ZONES.indexOf(what)]}: ${ZONE_EFFECTS[ZONES.indexOf(what)]}`;
    case "stop placing":
      return "place no more adventurers";
    case "reinforce":
      return `send a reinforcement to dungeon ${what}`;
    case "stop reinforcing":
      return "send no more reinforcements";
    case "put":
      return `put ${longName(code(state.drawn_tokens[0]))} into dungeon ${what}`;
    case "take":
      return `take ${longName(what)}, worth ${exactly(Number(what[1]) * values[state.market.indexOf(kindOf(what))], "point")}`;
    case "stop taking":
      return "take nothing more here";
    case "pay":
      return `pay with ${cardWords(what)}`;
    case "marble":
      return `${LANE_NAMES[LANES.indexOf(what)]}: marble from place ${Number(third) + 1} down to ${Number(third) - Number(last) + 1}`;
    case "market": {
      const by = Number(notation.at(-1));
      const space = state.market.indexOf(kindOf(what));
      return `market: ${KIND_NAMES[kindOf(what)]} up ${exactly(by, "space")}, value ${values[space]} to ${values[space - by]}`;
    }
    case "keep order":
      return "rearrange nothing";
    default:
      return `put the used marble on top of ${LANE_NAMES[LANES.indexOf(what)]}`;
  }
}

/** Where on the board an action is clicked; empty for those that decline to do something. */
export function target(notation, state) {
  const [verb, what, third] = notation.split(" ");
  switch (verb) {
    case "deal":
      return `offer-${what}`;
    case "discard":
    case "pay":
      return `hand-${state.current_player}-${what}`;
    case "enter":
    case "reinforce":
    case "put":
      return `dungeon-${what}`;
    case "visit":
      return `zone-${what}`;
    case "take":
      return `token-${LETTERS[state.gather_dungeon]}-${what}`;
    case "marble":
      return `marble-${what}-${third}`;
    case "market":
      return `market-${what}`;
    case "return":
      return `lane-${what}`;
    default:
      return "";
  }
}

/** For the decision at hand: places that look as if they could be chosen, and why they cannot be. */
export function reasons(game) {
  const state = game.publicState();
  const legal = new Set(game.legalActions().map((one) => target(game.notation(one), state)));
  return Object.fromEntries(Object.entries(candidates(game, state)).filter(([place]) => !legal.has(place)));
}

function candidates(game, state) {
  const seat = state.current_player;
  const zones = (reason) => Object.fromEntries(ZONES.map((zone) => [`zone-${zone}`, reason]));
  switch (state.phase) {
    case "place":
      return zones(state.zone_used ? "you have visited a bonus zone in this action already" : "one of your adventurers is there already");
    case "reinforce":
      return zones("reinforcements go to dungeons only");
    case "put_token":
      return Object.fromEntries([...LETTERS].map((letter) => [`dungeon-${letter}`, "this chest has put a token here already"]));
    case "take": {
      const here = state.gather_dungeon;
      const price = ([kind, value]) => {
        const need = `needs ${value} ${KIND_NAMES[kind].toLowerCase()} ${value === 1 ? "bag" : "bags"}`;
        return `${need}; you have ${game.countBags(seat, kind)}`;
      };
      return Object.fromEntries(state.dungeons[here].tokens.map((token) => [`token-${LETTERS[here]}-${code(token)}`, price(token)]));
    }
    case "pay": {
      const reason = `only ${KIND_NAMES[state.taking[0]].toLowerCase()} and wild bags can pay`;
      return Object.fromEntries(state.hands[seat].map((card) => [`hand-${seat}-${code(card)}`, reason]));
    }
    case "rearrange": {
      const bottom = "this marble is at the bottom of its lane already";
      const marbles = state.lanes.flatMap((lane, number) =>
        lane.map((owner, at) => [`marble-${LANES[number]}-${at}`, owner === seat ? bottom : "only your own marbles can be moved"]),
      );
      const top = [`market-${KIND_LETTERS[state.market[0]]}`, "this marker is on the best space already"];
      return Object.fromEntries([...marbles, top]);
    }
    case "return_marble":
      return Object.fromEntries(LANES.map((name, lane) => [`lane-${name}`, laneReason(state, lane)]));
    default:
      return {};
  }
}

function laneReason(state, lane) {
  if (lane === state.cylinder) return "the marble comes from this lane";
  if (state.lanes[lane].length >= LANE_ROOM) return `there are ${LANE_ROOM} marbles in this lane already`;
  return `there are ${LANE_COLOUR_ROOM} marbles of this colour in this lane already`;
}

// --- What has happened

/** What led to each of some moments that follow each other: the lines of the log, by moment. */
export function moveLog(moments, events, names, ruleset) {
  return moments.map(({ event, state }, i) => {
    const before = i ? moments[i - 1].state : null;
    const end = i + 1 < moments.length ? moments[i + 1].event : events.length;
    const entries = before ? [moveEntry(events[event], before, names, ruleset)] : [];
    entries.push(...events.slice(event + 1, end).map((one) => chanceEntry(one, names)));
    return before ? [...entries, ...scoreEntries(before.scores, state.scores, names)] : entries;
  });
}

function moveEntry(event, state, names, { market, card_adventurers: adventurers }) {
  const words = describe(event.move, state, names, market, adventurers);
  return { kind: event.forced ? "forced" : "move", player: event.player, words };
}

function chanceEntry(event, names) {
  const list = (pieces) => pieces.map(longName).join(", ");
  let words = "the discarded tokens go back into the bag";
  if (event.draw) words = `cards on offer: ${list(event.draw)}`;
  else if (event.tokens) words = `drawn from the bag: ${list(event.tokens)}`;
  else if (event.wild !== undefined) words = `${names[event.wild]} gets a card face down: a wild bag`;
  else if (event.shuffle) words = "the discarded cards are shuffled: a new pile";
  return { kind: "chance", player: -1, words };
}

function scoreEntries(before, after, names) {
  const gains = names.flatMap((name, seat) => (after[seat] > before[seat] ? [`${name} +${after[seat] - before[seat]}`] : []));
  return gains.length ? [{ kind: "score", player: -1, words: `points: ${gains.join(", ")}` }] : [];
}

/** The names of players, short enough for the board; those who share one get their colours in front. */
export function displayNames(players) {
  const names = checkNames(players);
  const isShared = (name) => names.filter((other) => other === name).length > 1;
  return checkNames(names.map((name, seat) => (isShared(name) ? `${COLOURS[seat]} ${name}` : name)));
}

function checkNames(names) {
  return names.map((name, seat) => {
    const clean = name.split(/\s+/).filter(Boolean).join(" ").replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "").trim();
    return cut(clean) || COLOURS[seat];
  });
}

function cut(name) {
  let letters = [...name];
  if (letters.length <= LONGEST_NAME && columns(name) <= LONGEST_NAME) return name;
  while (letters.length >= LONGEST_NAME || columns(letters.join("")) >= LONGEST_NAME) letters = letters.slice(0, -1);
  return `${letters.join("").trimEnd()}…`;
}
