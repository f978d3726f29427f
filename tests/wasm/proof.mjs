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

function* positions() {
  const rows = readFileSync(join(folder, "rows.bin"));
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
