// A worker in which agents think, so that the page stays alive meanwhile.

import { analyse } from "./analysis.js";
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

/** What an agent thinks of a position; the network also says what the move that was made there cost and brought. */
function evaluate(made, player, game, move) {
  const thought = player.evaluate(game);
  if (!move || !player.name.startsWith("alphazero")) return thought;
  const [preferred] = [...thought.probabilities].reduce((best, one) => (one[1] > best[1] ? one : best));
  return { ...thought, ...analyse(made.network, game, made.code(move.action), preferred, made.gameAt(move.after)) };
}

onmessage = async ({ data: { number, what, agent, bytes, move } }) => {
  try {
    const made = await engine;
    if (agent.startsWith("alphazero")) await withNetwork(made);
    const game = made.gameAt(bytes);
    const player = made.agent(agent);
    postMessage({ number, found: what === "act" ? player.act(game) : evaluate(made, player, game, move) });
  } catch (error) {
    network = undefined;
    postMessage({ number, problem: error.message });
  }
};
