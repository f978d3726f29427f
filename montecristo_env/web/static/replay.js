
// The replay: replays of games, shown step by step.

const replays = JSON.parse(byId("replays").textContent);
const SECONDS = 1;
const DASHES = ["", "9 4", "3 3", "12 3 3 3"];

let replay, board, step, lines, timer;

function openReplay(index) {
  replay = replays[index];
  board = new Board(byId("board"), replay.places);
  byId("slider").max = replay.steps.length - 1;
  lines = replay.moves.map((entry) => {
    const button = element("button", { className: entry.kind }, entryLine(entry, replay.players));
    button.addEventListener("click", () => goTo(entry.step));
    return element("li", {}, button);
  });
  byId("moves").replaceChildren(...lines);
  goTo(0);
}

function goTo(target) {
  step = Math.max(0, Math.min(replay.steps.length - 1, target));
  const shown = replay.steps[step];
  Object.keys(replay.places).forEach((name, place) => {
    board.draw(name, replay.parts[shown.parts[place]].map((line) => replay.lines[line]).join(""));
  });
  byId("title").textContent = shown.title;
  byId("round").textContent = roundLine(shown.round, replay);
  byId("slider").value = step;
  byId("count").textContent = `${step} / ${replay.steps.length - 1}`;
  showMoves();
  showOpinion(shown);
  drawChart();
  if (step === replay.steps.length - 1) pause();
}

function showMoves() {
  let last = null;
  replay.moves.forEach((entry, index) => {
    const now = entry.step === step;
    lines[index].classList.toggle("now", now);
    lines[index].classList.toggle("later", entry.step > step);
    if (now) lines[index].firstChild.setAttribute("aria-current", "step");
    else lines[index].firstChild.removeAttribute("aria-current");
    if (entry.step <= step) last = lines[index];
  });
  if (last) reveal(byId("moves"), last);
  else byId("moves").scrollTop = 0;
}

function showOpinion(shown) {
  const annotated = replay.steps.some((one) => one.opinion);
  byId("opinion").hidden = !annotated;
  if (!annotated) return;
  const opinion = shown.opinion;
  byId("choices").replaceChildren(...(opinion ? bars(opinion.choices, opinion.moved) : []));
  byId("value").textContent = !opinion
    ? "Nothing to decide here."
    : `${replay.players[shown.player].name} ${opinion.value === null ? "decides" : expectation(opinion.value)}`;
}

function drawChart() {
  const chart = byId("chart");
  const width = chart.clientWidth;
  const height = chart.clientHeight;
  const most = Math.max(replay.target, ...replay.steps.map((one) => Math.max(...one.scores)));
  const x = (at) => 30 + ((width - 50) * at) / Math.max(1, replay.steps.length - 1);
  const y = (points) => height - 14 - ((height - 30) * points) / most;
  const drawn = svgElement("svg", { viewBox: `0 0 ${width} ${height}` });
  for (const points of [0, replay.target]) {
    drawn.append(svgElement("line", { x1: x(0), x2: width - 20, y1: y(points), y2: y(points), class: "level" }));
    drawn.append(svgElement("text", { x: 24, y: y(points) + 4 }, String(points)));
  }
  drawn.append(svgElement("line", { x1: x(step), x2: x(step), y1: 6, y2: height - 6, class: "now" }));
  replay.players.forEach((player, seat) => {
    const corners = replay.steps.flatMap((one, at) => [
      `${x(at)},${y(replay.steps[Math.max(0, at - 1)].scores[seat])}`,
      `${x(at)},${y(one.scores[seat])}`,
    ]);
    const line = { points: corners.join(" "), stroke: player.colour, "stroke-dasharray": DASHES[seat] };
    drawn.append(svgElement("polyline", { ...line, class: "edge", "stroke-dasharray": "" }));
    drawn.append(svgElement("polyline", line));
  });
  replay.players.forEach((player, seat) => {
    const place = `translate(${x(step)} ${y(replay.steps[step].scores[seat])}) scale(0.6)`;
    drawn.append(svgElement("g", { transform: place }, player.badge));
  });
  drawn.addEventListener("click", (event) => {
    const share = (event.clientX - chart.getBoundingClientRect().left - 30) / (width - 50);
    goTo(Math.round(share * (replay.steps.length - 1)));
  });
  chart.replaceChildren(drawn);
}

function play() {
  if (step === replay.steps.length - 1) goTo(0);
  const speed = Number(byId("speed").value);
  clearInterval(timer);
  timer = setInterval(() => goTo(step + 1), 1000 * SECONDS * speed);
  byId("auto").textContent = "⏸ Pause";
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
  const own = event.target;  // what has the focus keeps the keys that it uses itself
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
});
addEventListener("resize", drawChart);

replays.forEach((one, index) => {
  const names = one.players.map((player) => player.name).join(", ");
  const result = one.steps.at(-1).scores.join(" : ");
  byId("game").append(element("option", { value: index }, `${index + 1}. ${names} (${result})`));
});
byId("choose").hidden = replays.length === 1;
openReplay(0);
