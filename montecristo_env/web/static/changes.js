// What has changed on the board since the person last decided: pieces that are new get an outline, and so do parts that
// have only lost something.

/** Every piece of a part with its element. Where places matter, in lanes and the market, the place is in the key. */
function pieces(part) {
  const counts = {};
  const found = new Map();
  for (const one of part.querySelectorAll("[data-piece]")) {
    const { piece, target = "" } = one.dataset;
    const name = /^(marble|market)-/.test(target) ? `${target} ${piece} ${position(one)}` : piece;
    counts[name] = (counts[name] ?? 0) + 1;
    found.set(`${name} ${counts[name]}`, one);
  }
  return found;
}

function position(one) {
  return [...one.parentNode.children].indexOf(one);
}

export class Changes {
  constructor() {
    this.before = null;
  }

  /** The board as it is now is what the person knows. */
  remember(board) {
    this.before = {};
    for (const [name, part] of Object.entries(board.parts)) this.before[name] = new Set(pieces(part).keys());
  }

  mark(board, you) {
    for (const marked of board.container.querySelectorAll(".changed")) marked.classList.remove("changed");
    if (this.before === null) return;
    for (const [name, part] of Object.entries(board.parts)) {
      if (name === "table") continue; // it shows what is drawn now
      const now = pieces(part);
      const fresh = [...now].filter(([key]) => !this.before[name].has(key));
      for (const [, one] of fresh) one.classList.add("changed");
      const lost = [...this.before[name]].some((key) => !now.has(key));
      const own = you.some((seat) => name === `player-${seat}`);
      if (lost && fresh.length === 0 && !own) part.querySelector("g")?.classList.add("changed");
    }
  }
}
