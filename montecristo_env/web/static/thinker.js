// A worker in which agents think, so that the page stays alive meanwhile.

import { load } from "./montecristo.js";

const engine = load(new URL("montecristo.wasm", import.meta.url));
let network;

/** The network is fetched when it is needed. */
async function withNetwork(made) {
  network ??= fetch(new URL("alphazero.safetensors", import.meta.url)).then(async (answer) => {
    if (!answer.ok) throw new Error(`the network cannot be loaded: ${answer.status}`);
    made.loadNetwork(await answer.arrayBuffer());
  });
  await network;
}

onmessage = async ({ data: { number, what, agent, bytes } }) => {
  try {
    const made = await engine;
    if (agent.startsWith("alphazero")) await withNetwork(made);
    const game = made.gameAt(bytes);
    const player = made.agent(agent);
    postMessage({ number, found: what === "act" ? player.act(game) : player.evaluate(game) });
  } catch (error) {
    network = undefined;
    postMessage({ number, problem: error.message });
  }
};
