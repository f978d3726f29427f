// What helps a person who plays for the first time: the rules on one screen, five short lessons that come when they are
// needed, and a tooltip for every piece. Which moves are legal, and why others are not, the back end says.

import { byId, element, pieceName } from "./board.js";

const LESSONS_KEY = "montecristo-lessons"; // those that the person has seen

const RULES = [
  ["Aim", "Bring treasures from the castle to the market. The game ends with the scoring round in which somebody has 40 points; most points win, then most adventurers in dungeons."],
  ["The slide", "A round goes through four lanes: Supply, Adventurers, Chest, Rearrange. The cylinder marks the lane. The owner of its bottom marble carries out the action, then puts that marble on top of another lane: so you decide which action you get next, and when. A lane holds 7 marbles, 3 of one colour."],
  ["Supply", "As many cards as players are turned up. The active player keeps one and gives one to each of the others. A card brings adventurers from Marseille into your supply, and stays in your hand with its bags. Hand limit: 7 cards."],
  ["Adventurers", "The active player may place up to 3 adventurers from their supply, all others one each: at the end of a dungeon's queue, or one of them in a bonus zone."],
  ["Bonus zones", "Wild bag: a card face down, one bag of any kind. Disembark: 3 adventurers from Marseille. Bonus points: 2 points. Reinforcement: 2 more adventurers into dungeons. One of each colour per zone, until the next scoring."],
  ["Chest", "Three treasures are drawn and put into three different dungeons. If a dungeon then holds four, everything is scored."],
  ["Scoring", "Dungeon by dungeon, A to F. Who has most adventurers in it chooses first; a tie goes to who stands further in front. For each treasure you take, pay as many bags of its kind as its value, and your foremost adventurer there goes home. Cards are spent whole. In the end every treasure scores its value times the market value of its kind."],
  ["Rearrange", "Move one of your marbles down in its lane, or one market marker towards the better spaces, by 1 or 2."],
  ["At this table", "Click what has a dashed edge, or choose from the list. Keys: 1 to 9 choose, H asks for a hint, U takes back, Esc forgets a half-made choice, ? opens this page. What changed since your last decision has a thick outline."],
];

const LESSONS = [
  ["slide", () => true, "The slide", "decides who acts: the owner of the bottom marble in the marked lane. Lanes go from left to right, Supply to Rearrange, round after round."],
  ["supply", ({ phase }) => ["deal", "discard"].includes(phase), "Supply:", "keep a card and give the others away. Its bags pay for treasures of its kind; its adventurers join your supply."],
  ["queue", ({ phase }) => ["place", "reinforce"].includes(phase), "Queues:", "send adventurers to dungeons. Who has most there chooses first, and each treasure costs one adventurer."],
  ["chest", ({ phase }) => phase === "put_token", "The chest:", "put treasures where you are strong. The fourth one in a dungeon starts the scoring."],
  ["scoring", ({ phase }) => ["take", "pay"].includes(phase), "Scoring:", "take treasures that you can pay. Value times market value are your points, so look at the market first."],
];

const PIECES = {
  adventurer: (which, players) => `Adventurer of ${players[which].name}`,
  marble: (which, players) => `Marble of ${players[which].name}: at the bottom of the marked lane it makes them the active player`,
  token: (which) => `${pieceName(which)}: costs ${which[1]} ${which[1] === "1" ? "bag" : "bags"} of its kind, scores ${which[1]} × its market value`,
  card: (which) => which === "W" ? "Wild bag: one bag of any kind, used once" : `Card with ${which[1]} ${which[1] === "1" ? "bag" : "bags"} of ${pieceName(which[0]).toLowerCase()}`,
  marker: (which) => `${pieceName(which)} in the market: what one point of its value is worth`,
};

const PLACES = {
  dungeon: "Four treasures here start the scoring. The queue's front is at the arrow; most adventurers choose first.",
  zone: "A bonus zone: its effect comes at once. One adventurer of each colour, until the next scoring.",
  lane: "A lane of the slide: its bottom marble decides who acts when the cylinder is here.",
  player: "What lies in front of a player. Supply can be placed; Marseille waits for a card or Disembark.",
};

export function describe(place, players) {
  const { piece = "", target = "" } = place.dataset;
  const [sort, which] = piece.split("-");
  if (sort in PIECES) return PIECES[sort](which, players);
  return PLACES[target.split("-")[0]] ?? "";
}

// --- The rules

export function openRules() {
  if (!byId("rules-text").children.length) {
    byId("rules-text").append(
      ...RULES.map(([title, text]) => element("section", {}, element("h3", {}, title), element("p", {}, text))),
    );
  }
  byId("rules").showModal();
  byId("rules").scrollTop = 0;
}

// --- The lessons

function seen() {
  return JSON.parse(localStorage.getItem(LESSONS_KEY) ?? "[]");
}

function note(names) {
  localStorage.setItem(LESSONS_KEY, JSON.stringify(names));
}

export function showLesson(view) {
  const known = seen();
  const next = view.legal.length ? LESSONS.find(([name, fits]) => !known.includes(name) && fits(view)) : undefined;
  byId("lesson").hidden = !next;
  if (!next) return;
  const [name, , title, text] = next;
  byId("lesson").dataset.lesson = name;
  byId("lesson-title").textContent = `${LESSONS.indexOf(next) + 1} of 5. ${title}`;
  byId("lesson-text").textContent = text;
}

/** Lets the buttons of lessons and rules work; `show` is called when another lesson may be due. */
export function startTeaching(show) {
  byId("help").addEventListener("click", openRules);
  byId("rules-close").addEventListener("click", () => byId("rules").close());
  byId("rules-lessons").addEventListener("click", () => {
    note([]);
    byId("rules").close();
    show();
  });
  byId("lesson-done").addEventListener("click", () => {
    note([...seen(), byId("lesson").dataset.lesson]);
    show();
  });
  byId("lesson-skip").addEventListener("click", () => {
    note(LESSONS.map(([name]) => name));
    show();
  });
}

// --- Tooltips

/** Shows what a piece is, and why it cannot be chosen, beside the pointer or the focus. */
export function startTips(container, tell) {
  const tip = byId("tip");
  const show = (event) => {
    const place = event.target.closest?.("[data-piece], [data-target]");
    const text = place && container.contains(place) ? tell(place) : "";
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const box = place.getBoundingClientRect();
    const left = Math.min(Math.max(4, box.left), innerWidth - tip.offsetWidth - 4);
    const below = box.bottom + 6;
    const top = below + tip.offsetHeight < innerHeight ? below : Math.max(4, box.top - tip.offsetHeight - 6);
    tip.style.left = `${left}px`;
    tip.style.top = `${top}px`;
  };
  const hide = () => (tip.hidden = true);
  for (const event of ["pointerover", "focusin", "click"]) container.addEventListener(event, show);
  for (const event of ["pointerleave", "focusout"]) container.addEventListener(event, hide);
  addEventListener("scroll", hide, { passive: true });
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
}
