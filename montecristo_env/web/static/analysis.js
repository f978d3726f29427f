// What a decision cost and what the draw after it brought, in the eyes of a network: as montecristo_env/analysis.py says it.

const REDRAWS = 16;

/** The share of the win that every seat may expect, or has got if the game is over. */
function estimate(network, game) {
  const seats = Array.from({ length: game.players }, (_, seat) => seat);
  if (game.isOver) return seats.map((seat) => (game.winners.includes(seat) ? 1 / game.winners.length : 0));
  const { wins } = network.evaluate(game); // the decider's first
  return seats.map((seat) => wins[(seat - game.currentPlayer + game.players) % game.players]);
}

/** The mean estimate after an action, over redraws of what nobody knows if it draws something. */
function valueOf(network, game, action, keys) {
  const tried = (game.draws(action) ? keys : keys.slice(0, 1)).map((key) => estimate(network, game.redrawn(key).step(action)));
  return tried[0].map((_, seat) => tried.reduce((sum, shares) => sum + shares[seat], 0) / tried.length);
}

/**
 * The loss of a decision and the luck of every seat, in the reward "win".
 *
 * @param {import("./montecristo.js").Network} network
 * @param {import("./montecristo.js").Game} before where it was made
 * @param {number} chosen the code of the action that was made
 * @param {number} preferred the code of what the network would have done
 * @param {import("./montecristo.js").Game} after what came: where the next player must choose, or the game is over
 */
export function analyse(network, before, chosen, preferred, after) {
  const stream = before.copy();
  const keys = Array.from({ length: REDRAWS }, () => stream.drawKey()); // both actions have the same ones
  const unit = before.players / (before.players - 1);
  const values = valueOf(network, before, chosen, keys);
  const better = chosen === preferred ? values : valueOf(network, before, preferred, keys);
  const came = before.draws(chosen) ? estimate(network, after) : values;
  const decider = before.currentPlayer;
  return {
    loss: unit * Math.max(0, better[decider] - values[decider]),
    luck: came.map((share, seat) => unit * (share - values[seat])),
  };
}

/** Who lost how much by play, and won or lost how much by luck, in all. */
export function balances(names, decisions) {
  return names.map((name, seat) => {
    const loss = decisions.reduce((sum, one) => sum + (one.player === seat ? one.loss : 0), 0);
    const luck = decisions.reduce((sum, one) => sum + one.luck[seat], 0);
    return `${name} lost ${loss.toFixed(2)} by play and ${luck >= 0 ? "won" : "lost"} ${Math.abs(luck).toFixed(2)} by luck`;
  });
}
