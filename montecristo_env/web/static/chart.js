// Lines over the steps of a replay: points, and what the evaluator expects for each player.

import { svgElement } from "./board.js";

const DASHES = ["", "9 4", "3 3", "12 3 3 3"];
const LEFT = 34;
const RIGHT = 20;

/**
 * Draws one chart.
 *
 * @param {HTMLElement} chart where
 * @param {object[]} players with name, colour and badge
 * @param {number} last the last step
 * @param {number} step the one that is shown
 * @param {object} content `levels` (numbers with a line of their own), `low`, `high`, and by seat the `lines`: lists of
 *   [step, value] in order
 * @param {(step: number) => void} goTo what a click does
 */
export function drawChart(chart, players, last, step, { levels, low, high, lines }, goTo) {
  const width = chart.clientWidth;
  const height = chart.clientHeight;
  const x = (at) => LEFT + ((width - LEFT - RIGHT) * at) / Math.max(1, last);
  const y = (value) => height - 14 - ((height - 28) * (value - low)) / Math.max(1e-9, high - low);
  const drawn = svgElement("svg", { viewBox: `0 0 ${width} ${height}` });
  for (const level of levels) {
    drawn.append(svgElement("line", { x1: LEFT, x2: width - RIGHT, y1: y(level), y2: y(level), class: "level" }));
    drawn.append(svgElement("text", { x: LEFT - 6, y: y(level) + 4 }, String(level).replace("-", "−")));
  }
  drawn.append(svgElement("line", { x1: x(step), x2: x(step), y1: 6, y2: height - 6, class: "now" }));
  lines.forEach((points, seat) => {
    const corners = points.map(([at, value]) => `${x(at)},${y(value)}`).join(" ");
    const line = { points: corners, stroke: players[seat].colour };
    drawn.append(svgElement("polyline", { ...line, class: "edge" }));
    drawn.append(svgElement("polyline", { ...line, "stroke-dasharray": DASHES[seat] }));
  });
  lines.forEach((points, seat) => {
    const now = points.filter(([at]) => at <= step).at(-1) ?? points[0];
    if (!now) return;
    drawn.append(svgElement("g", { transform: `translate(${x(step)} ${y(now[1])}) scale(0.6)` }, players[seat].badge));
  });
  drawn.addEventListener("click", (event) => {
    const share = (event.clientX - chart.getBoundingClientRect().left - LEFT) / (width - LEFT - RIGHT);
    goTo(Math.round(share * last));
  });
  chart.replaceChildren(drawn);
}
