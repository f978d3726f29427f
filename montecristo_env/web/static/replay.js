// The replay: games, shown step by step, with what an agent thought of every decision if the record tells.

import { badge, bar, Board, byId, element, entryLine, reveal, roundLine, scoreLine, signed } from "./board.js";
import { drawChart } from "./chart.js";

const { lines: svgLines, parts: svgParts, games } = JSON.parse(byId("replays").textContent);
const SECONDS = 1;
const IS_EMBEDDED = location.search === "?embedded"; // in a frame of another page: it moves by itself, again and again
const MOST_MISTAKES = 8;
const MOST_CHOICES = 5; // that are listed, besides what was done
const SMALLEST_MISTAKE = 0.05; // of the reward for a win
const SMALLEST_SHOWN = 0.005;

let replay;
let which;
let board;
let step;
let lines;
let timer;

function openReplay(index) {
  which = index;
  replay = games[index];
  byId("game").value = index;
  board = new Board(byId("board"), replay.places, replay.players);
  byId("slider").max = replay.steps.length - 1;
  lines = replay.moves.map((entry) => {
    const button = element("button", { className: entry.kind }, entryLine(entry, replay.players));
    button.addEventListener("click", () => goTo(entry.step));
    return element("li", {}, button);
  });
  byId("moves").replaceChildren(...lines);
  showMistakes();
}

function goTo(target) {
  step = Math.max(0, Math.min(replay.steps.length - 1, target));
  const shown = replay.steps[step];
  Object.keys(replay.places).forEach((name, place) => {
    board.draw(name, svgParts[shown.parts[place]].map((line) => svgLines[line]).join(""));
  });
  byId("title").textContent = shown.title;
  byId("scores").replaceChildren(...scoreLine(replay.players, shown.scores, shown.player));
  byId("round").textContent = roundLine(shown.round, replay);
  byId("slider").value = step;
  byId("count").textContent = `${step} / ${replay.steps.length - 1}`;
  history.replaceState(null, "", `#game=${which + 1}&step=${step}`);
  showMoves();
  showOpinion(shown);
  drawCharts();
  if (step < replay.steps.length - 1) return;
  pause();
  if (IS_EMBEDDED) setTimeout(play, 5000 * SECONDS);
}

/** The game and the step that the address names, as far as there are such. */
function addressed() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const number = (name, otherwise) => (/^\d+$/.test(wanted.get(name) ?? "") ? Number(wanted.get(name)) : otherwise);
  return { game: Math.min(games.length, Math.max(1, number("game", 1))) - 1, step: number("step", 0) };
}

function openAddressed() {
  const wanted = addressed();
  if (wanted.game === which && wanted.step === step) return;
  if (wanted.game !== which) openReplay(wanted.game);
  goTo(wanted.step);
}

function showMoves() {
  let last = null;
  replay.moves.forEach((entry, index) => {
    const now = entry.step === step;
    lines[index].classList.toggle("now", now);
    if (now) lines[index].firstChild.setAttribute("aria-current", "step");
    else lines[index].firstChild.removeAttribute("aria-current");
    if (entry.step <= step) last = lines[index];
  });
  if (last) reveal(byId("moves"), last);
  else byId("moves").scrollTop = 0;
}

// --- What the evaluator thinks

function evaluatorName() {
  return replay.evaluator ? `${replay.evaluator}'s view` : "The evaluator's view";
}

function showOpinion(shown) {
  const annotated = replay.steps.some((one) => one.opinion);
  byId("opinion").hidden = !annotated;
  for (const marked of byId("board").querySelectorAll(".hinted")) marked.classList.remove("hinted");
  if (!annotated) return;
  const opinion = shown.opinion;
  byId("evaluator").textContent = evaluatorName();
  byId("choices").replaceChildren(...(opinion ? choiceLines(opinion) : []));
  if (!opinion) byId("value").textContent = "Nothing to decide here.";
  else if (opinion.value === null) byId("value").textContent = `${replay.players[shown.player].name} decides.`;
  else byId("value").textContent = `${replay.players[shown.player].name} ${signed(opinion.value)} (+1 is a win)`;
  byId("consequences").textContent = opinion ? consequences(opinion) : "";
  const best = opinion?.choices[0].target;
  if (best) for (const place of byId("board").querySelectorAll(`[data-target="${best}"]`)) place.classList.add("hinted");
}

/** The likeliest choices and what was done; all others in one line. */
function choiceLines({ choices, moved }) {
  const listed = choices.filter(({ words }, place) => place < MOST_CHOICES || words === moved);
  const rest = choices.length - listed.length;
  const left = Math.max(0, 1 - listed.reduce((sum, { probability }) => sum + probability, 0));
  const others = rest ? [{ words: `${rest} other ${rest === 1 ? "choice" : "choices"}`, probability: left }] : [];
  return [...listed, ...others].map((choice) => choiceLine(choice, moved));
}

function choiceLine({ words, probability }, moved) {
  const chosen = words === moved;
  const told = element("span", { className: chosen ? "told moved" : "told" });
  told.append(element("span", { className: "words" }, chosen ? "✓ " : "", words), ...bar(probability));
  return element("li", {}, told);
}

/** The decisions that cost most, in the evaluator's eyes; none if it does not say what they cost. */
function mistakes() {
  return replay.steps
    .flatMap(({ opinion, player }, at) => (opinion ? [{ at, player, ...opinion }] : []))
    .filter(({ loss }) => loss >= SMALLEST_MISTAKE)
    .sort((one, other) => other.loss - one.loss)
    .slice(0, MOST_MISTAKES);
}

function showMistakes() {
  const known = replay.steps.some(({ opinion }) => typeof opinion?.loss === "number");
  byId("analysis").hidden = !known;
  if (!known) return;
  byId("balances").replaceChildren(...replay.balances.map((sentence) => element("li", {}, sentence)));
  byId("mistakes-title").textContent = `Biggest mistakes in ${replay.evaluator ?? "the evaluator"}'s eyes`;
  const items = mistakes().map(({ at, player, moved, loss }) => {
    const button = element("button", {}, badge(replay.players[player]), `Step ${at}: ${moved}, ${signed(-loss)}`);
    button.addEventListener("click", () => goTo(at));
    return element("li", {}, button);
  });
  byId("mistakes").replaceChildren(...(items.length ? items : [element("li", {}, "None.")]));
}

/** What the move cost and what the draws after it brought, if the evaluator says so. */
function consequences({ loss, luck }) {
  const parts = [];
  if (typeof loss === "number" && loss >= SMALLEST_SHOWN) parts.push(`The move loses ${loss.toFixed(2)}.`);
  const lucky = (luck ?? []).flatMap((one, seat) =>
    Math.abs(one) >= SMALLEST_SHOWN ? [`${replay.players[seat].name} ${signed(one)}`] : [],
  );
  if (lucky.length) parts.push(`The draw: ${lucky.join(", ")}.`);
  return parts.join(" ");
}

// --- Charts

function drawCharts() {
  const last = replay.steps.length - 1;
  const seats = replay.players.map((player, seat) => seat);
  const most = Math.max(replay.target, ...replay.steps.map((one) => Math.max(...one.scores)));
  const stairs = seats.map((seat) =>
    replay.steps.flatMap((one, at) => [
      [at, replay.steps[Math.max(0, at - 1)].scores[seat]],
      [at, one.scores[seat]],
    ]),
  );
  const values = seats.map((seat) =>
    replay.steps.flatMap(({ player, opinion }, at) =>
      player === seat && typeof opinion?.value === "number" ? [[at, opinion.value]] : [],
    ),
  );
  const found = values.flat().map(([, value]) => value);
  byId("values").hidden = found.length === 0; // first, since both share the room
  const points = { levels: [0, replay.target], low: 0, high: most, lines: stairs };
  drawChart(byId("chart"), replay.players, last, step, points, goTo);
  if (found.length === 0) return;
  byId("values").setAttribute("aria-label", `${evaluatorName()} of each player's chances over time, −1 to +1`);
  const content = { levels: [-1, 0, 1], low: Math.min(-1, ...found), high: Math.max(1, ...found), lines: values };
  drawChart(byId("values"), replay.players, last, step, content, goTo);
}

// --- Playing

function play() {
  if (step === replay.steps.length - 1) goTo(0);
  const speed = Number(byId("speed").value);
  clearInterval(timer);
  timer = setInterval(() => goTo(step + 1), 1000 * SECONDS * speed);
  byId("auto").textContent = "‖ Pause";
  byId("auto").setAttribute("aria-label", "Pause");
}

function pause() {
  clearInterval(timer);
  timer = undefined;
  byId("auto").textContent = "▶ Play";
  byId("auto").setAttribute("aria-label", "Play");
}

function changeSpeed(by) {
  const speed = byId("speed");
  speed.selectedIndex = Math.max(0, Math.min(speed.options.length - 1, speed.selectedIndex + by));
  if (timer !== undefined) play();
}

const KEYS = {
  ArrowLeft: () => goTo(step - 1),
  ArrowRight: () => goTo(step + 1),
  Home: () => goTo(0),
  End: () => goTo(replay.steps.length - 1),
  " ": () => (timer === undefined ? play() : pause()),
  "+": () => changeSpeed(1),
  "-": () => changeSpeed(-1),
};

document.addEventListener("keydown", (event) => {
  const own = event.target; // what has the focus keeps the keys that it uses itself
  if (own.matches("select") || (own.matches("input") && event.key !== " ")) return;
  if (own.matches("button") && event.key === " ") return;
  if (event.ctrlKey || event.altKey || event.metaKey || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

byId("first").addEventListener("click", KEYS.Home);
byId("back").addEventListener("click", KEYS.ArrowLeft);
byId("next").addEventListener("click", KEYS.ArrowRight);
byId("last").addEventListener("click", KEYS.End);
byId("auto").addEventListener("click", KEYS[" "]);
byId("slider").addEventListener("input", (event) => goTo(Number(event.target.value)));
byId("speed").addEventListener("change", () => changeSpeed(0));
byId("game").addEventListener("change", (event) => {
  pause();
  openReplay(Number(event.target.value));
  goTo(0);
});
addEventListener("resize", drawCharts);
addEventListener("hashchange", openAddressed);

games.forEach((one, index) => {
  const names = one.players.map((player) => player.name).join(", ");
  const result = one.steps.at(-1).scores.join(" : ");
  byId("game").append(element("option", { value: index }, `${index + 1}. ${names} (${result})`));
});
byId("choose").hidden = games.length === 1;
openAddressed();
if (IS_EMBEDDED && !matchMedia("(prefers-reduced-motion: reduce)").matches) play();
