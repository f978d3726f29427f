// What the tests in test_wasm.py ask of the compiled module: node proof.mjs FOLDER COMMAND, with files in FOLDER.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [, , compiled, scripts, folder, command] = process.argv;
const script = (name) => import(pathToFileURL(join(scripts, name)));
const { load, ...face } = await script("montecristo.js");
const engine = await load(readFileSync(join(compiled, "montecristo.wasm")));
const network = engine.loadNetwork(readFileSync(join(compiled, "alphazero.safetensors")));
const work = () => JSON.parse(readFileSync(join(folder, "work.json")));
const answer = (found) => writeFileSync(join(folder, "found.json"), JSON.stringify(found));

/** The row without what is only room to work. */
function withoutScratch(game) {
  const [, at, [size]] = engine.description.state.fields.scratch;
  const bytes = game.bytes.slice();
  return bytes.fill(0, at, at + size);
}

function* positions(name = "rows") {
  const rows = readFileSync(join(folder, `${name}.bin`));
  for (let at = 0; at < rows.length; at += engine.rowBytes) yield engine.gameAt(new Uint8Array(rows.subarray(at, at + engine.rowBytes)));
}

const COMMANDS = {
  /** Plays games by a fixed rule; a digest of everything seen on the way and of the end. */
  games() {
    answer(
      work().map(({ players, seed, ruleset }) => {
        const game = engine.newGame({ players, seed, ruleset });
        const digest = createHash("sha256");
        for (let step = 0; !game.isOver; step++) {
          digest.update(game.observe()).update(game.actionMask());
          const legal = game.legalActions();
          game.step(legal[(7 * step + seed) % legal.length]);
        }
        return digest.update(withoutScratch(game)).digest("hex");
      }),
    );
  },

  logits() {
    const found = [...positions()].map((game) => network.evaluate(game));
    writeFileSync(join(folder, "logits.bin"), Buffer.concat(found.map(({ logits }) => Buffer.from(logits.buffer))));
    writeFileSync(join(folder, "shares.bin"), Buffer.concat(found.flatMap(({ utilities, wins }) => [Buffer.from(utilities.buffer), Buffer.from(wins.buffer)])));
    const player = engine.agent("alphazero");
    answer([...positions()].map((game) => player.act(game)));
  },

  choices() {
    const player = engine.agent(work().agent);
    answer([...positions()].map((game) => player.act(game)));
  },

  /** What each move of a game cost and brought. */
  async analysis() {
    const { analyse } = await script("analysis.js");
    const judge = engine.agent("alphazero");
    const [moves, after] = [work(), [...positions("after")]];
    answer(
      [...positions()].map((game, i) => {
        const preferred = judge.act(game);
        return { ...analyse(network, game, moves[i], preferred, after[i]), draws: game.draws(moves[i]), preferredDraws: game.draws(preferred) };
      }),
    );
  },

  speed() {
    const rows = [...positions()];
    const time = (size, action) => {
      const start = performance.now();
      for (let i = 0; i < size; i++) action(rows[i % rows.length]);
      return (performance.now() - start) / size;
    };
    time(200, (game) => network.evaluate(game));
    answer({ evaluation: time(1000, (game) => network.evaluate(game)), search: time(10, (game) => engine.agent("alphazero:100").act(game)) });
  },

  record() {
    const { players, seed, agent } = work();
    const game = engine.newGame({ players, seed });
    while (!game.isOver) game.step(engine.agent(agent).act(game));
    writeFileSync(join(folder, "record.json"), game.record());
  },

  /** What the table shows at every decision. */
  async views() {
    const { Session } = await script("session.js");
    answer(
      work().map(({ players, seed }) => {
        const session = new Session(engine, { players, seed });
        const views = [];
        for (let step = 0; !session.game.isOver; step++) {
          views.push(session.view());
          const legal = session.game.legalActions();
          session.step(session.game.notation(legal[(7 * step + seed) % legal.length]));
        }
        return [...views, session.view()];
      }),
    );
  },

  /** Calls everything with garbage: how often something was refused, and what was wrong with how it was. */
  async garbage() {
    const circle = {};
    circle.self = circle;
    const holes = (...values) => Object.assign(new Array(5), values);
    const odd = [
      ...[undefined, null, true, 0, -1, 1, 4, 1.5, NaN, Infinity, 2 ** 53, 5n, -5n, 2n ** 64n, "", "x", "constructor", "__proto__"],
      ...["mcts:", "mcts:0", "mcts:1e2", "alphazero:-1", "keep order", Symbol("x"), () => 1, [], holes(), holes(3, 2), [[1]], {}, circle],
      ...[{ players: "2" }, { names: new Array(2) }, { ruleset: { market: holes(3, 2, 2, 1) } }, { ruleset: { target: () => 1 } }],
      ...[new Uint8Array(3), new Uint8Array(engine.rowBytes).fill(255), new ArrayBuffer(8), new Date(NaN), Object.create(null)],
    ];
    const over = engine.newGame({ seed: 1 });
    while (!over.isOver) over.step(over.legalActions()[0]);
    const game = engine.newGame({ seed: 3 });
    const state = () => [game, over].map((one) => [one.record(), createHash("sha256").update(one.bytes).digest("hex")]).join();
    const before = state() + network.evaluate(game).logits;
    const wrong = new Set();
    let refused = 0;
    const check = (what, error) => {
      refused += 1;
      if (!(error instanceof face.MonteCristoError)) wrong.add(`${what} throws ${error.name}: ${error.message}`);
    };
    const attempt = (what, call) => {
      try {
        call();
      } catch (error) {
        check(what, error);
      }
    };
    const settings = Object.keys(engine.description.ruleset);
    for (const one of odd) {
      await load(one).catch((error) => check("load", error));
      for (const name of ["newGame", "gameAt", "code", "loadNetwork", "agent"]) attempt(name, () => engine[name](one));
      for (const name of ["players", "seed", "ruleset", "names"]) attempt(name, () => engine.newGame({ [name]: one }));
      for (const name of settings) attempt(name, () => engine.newGame({ ruleset: { [name]: one } }));
      for (const name of ["notation", "observe", "countBags", "draws", "redrawn", "field", "record"]) {
        for (const some of [game, over]) attempt(name, () => some[name](one));
      }
      for (const other of odd) attempt("countBags", () => game.countBags(one, other));
      for (const [name, some] of [["step", game.copy()], ["step", over], ["evaluate", network]]) attempt(name, () => some[name](one));
      for (const name of ["random", "greedy", "mcts:5", "alphazero", "alphazero:5"]) {
        const agent = engine.agent(name);
        for (const some of [one, over]) for (const verb of ["act", "evaluate"]) attempt(`${name}.${verb}`, () => agent[verb](some));
      }
    }
    if (state() + network.evaluate(game).logits !== before) wrong.add("something has changed");
    answer({ refused, wrong: [...wrong], tried: odd.length });
  },

  /** What the module has, class by class, as its declaration should name it. */
  members() {
    const game = engine.newGame({ seed: 3 });
    const samples = { Engine: engine, Game: game, Network: network, Agent: engine.agent("greedy") };
    const found = Object.entries(samples).map(([name, one]) => {
      const names = new Set(Object.keys(one));
      for (let type = Object.getPrototypeOf(one); type !== Object.prototype; type = Object.getPrototypeOf(type)) {
        for (const member of Object.getOwnPropertyNames(type)) names.add(member);
      }
      return [name, [...names].filter((member) => member !== "constructor")];
    });
    answer({ exports: Object.keys(face).concat("load"), members: Object.fromEntries(found), state: Object.keys(game.publicState()), ruleset: Object.keys(game.ruleset) });
  },

  /** What each mistake throws, and whether the game is as before. */
  mistakes() {
    const attempts = {
      "no players": () => engine.newGame({ players: 5 }),
      "half a seed": () => engine.newGame({ seed: 0.5 }),
      "negative seed": () => engine.newGame({ seed: -1n }),
      "unknown setting": () => engine.newGame({ ruleset: { speed: 1 } }),
      "unknown variant": () => engine.newGame({ ruleset: { refill: "never" } }),
      "rising market": () => engine.newGame({ ruleset: { market: [1, 2, 2, 2, 3] } }),
      "small deck": () => engine.newGame({ ruleset: { deck: [[2, 2, 2], [2, 2, 2], [2, 2, 2], [2, 2, 2], [2, 2, 1]] } }),
      "two names": () => engine.newGame({ players: 3, names: ["a", "b"] }),
      "illegal action": (game) => game.step("return supply"),
      "unknown action": (game) => game.step("fly"),
      "half an action": (game) => game.step(1.5),
      "code too high": (game) => game.step(engine.actions.length),
      "no action": (game) => game.step(),
      "far seat": (game) => game.observe(2),
      "unknown agent": () => engine.agent("deep-blue"),
      "agent with too much": () => engine.agent("greedy:5"),
      "half a simulation": () => engine.agent("mcts:1.5"),
      "short row": () => engine.gameAt(new Uint8Array(3)),
      "no network": () => engine.loadNetwork(new Uint8Array([1, 2, 3])),
    };
    const found = {};
    for (const [name, attempt] of Object.entries(attempts)) {
      const game = engine.newGame({ seed: 3 });
      const before = [game.record(), createHash("sha256").update(game.bytes).digest("hex")];
      try {
        attempt(game);
        found[name] = ["nothing", "", true];
      } catch (error) {
        const after = [game.record(), createHash("sha256").update(game.bytes).digest("hex")];
        found[name] = [error.name, error.message, error instanceof face.MonteCristoError && String(before) === String(after)];
      }
    }
    answer(found);
  },
};

await COMMANDS[command]();
