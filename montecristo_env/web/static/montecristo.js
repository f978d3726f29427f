// The game in a page: the rules, the players and the network, compiled from the same kernels as the Python package.
//
//   const engine = await load("montecristo.wasm");
//   const game = engine.newGame({ players: 2, seed: 7 });
//   const agent = engine.agent("greedy");
//   while (!game.isOver) game.step(agent.act(game));
//
// Same seed and same actions, same game as in Python, byte for byte: the seed is that of
// `GameBatch(1, 2, seed=[7])` and of records. What is wrong throws an error with a name and changes nothing.

export class MonteCristoError extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}
/** An argument that cannot be. */
export class InvalidArgument extends MonteCristoError {}
/** An action that is not legal now. */
export class IllegalAction extends MonteCristoError {}
/** A rule set that cannot be played. */
export class UnplayableRuleset extends MonteCristoError {}
/** A network file that is damaged, or made for something else. */
export class InvalidModel extends MonteCristoError {}

const OVER = "over";
const MOST_CONSIDERED = 16; // moves at the root of a search
const MOST_SIMULATIONS = 10_000;
const KINDS = "GRSED";
const WORD = 8; // bytes
const ARRAYS = { i1: Int8Array, b1: Uint8Array, i2: Int16Array, i4: Int32Array, i8: BigInt64Array, u8: BigUint64Array, f8: Float64Array };

/**
 * Loads the compiled module.
 *
 * @param {string | URL | ArrayBuffer | Uint8Array} source its address or its content
 */
export async function load(source) {
  const module = await compiled(source);
  const [section] = WebAssembly.Module.customSections(module, "montecristo");
  if (!section) throw new InvalidArgument("this is not the module of montecristo-env: it has no section of that name");
  let memory;
  const bytes = () => new Uint8Array(memory.buffer);
  const env = {
    exp: Math.exp,
    log: Math.log,
    memcpy: (to, from, size) => (bytes().copyWithin(to, from, from + size), to),
    memmove: (to, from, size) => (bytes().copyWithin(to, from, from + size), to),
    memset: (to, value, size) => (bytes().fill(value, to, to + size), to),
  };
  const { exports } = await WebAssembly.instantiate(module, { env });
  memory = exports.memory;
  return new Engine(exports, JSON.parse(new TextDecoder().decode(section)));
}

async function compiled(source) {
  try {
    if (typeof source !== "string" && !(source instanceof URL)) return await WebAssembly.compile(source);
    const answer = await fetch(source);
    if (!answer.ok) throw new Error(`the answer is ${answer.status}`);
    return await WebAssembly.compile(await answer.arrayBuffer());
  } catch (error) {
    throw new InvalidArgument(`${shown(source)} cannot be loaded as the module: ${error.message}`);
  }
}

/** A value in a message, short, whatever it is. */
function shown(value) {
  let text;
  try {
    text = typeof value === "bigint" ? `${value}n` : (JSON.stringify(value) ?? String(value));
  } catch {
    text = `a value of the type ${typeof value}`;
  }
  return text.length > 200 ? `${text.slice(0, 200)} …` : text;
}

/** Settings in an object, or none. */
function checkSettings(settings) {
  if (typeof settings !== "object" || settings === null) throw new InvalidArgument(`settings are an object, not ${shown(settings)}`);
  return settings;
}

function checkGame(game) {
  if (!(game instanceof Game)) throw new InvalidArgument(`a game of newGame or gameAt is needed, not ${shown(game)}`);
  if (game.isOver) throw new IllegalAction("the game is over: there is nothing to decide");
  return game;
}

/** A field of a row: a number, or an array if it has a shape. */
function readField(bytes, { fields }, name) {
  const [type, at, shape] = fields[name];
  const kind = ARRAYS[type];
  const size = shape.reduce((product, length) => product * length, 1);
  const found = new kind(bytes.slice(at, at + size * kind.BYTES_PER_ELEMENT).buffer);
  return shape.length ? found : found[0];
}

function writeField(bytes, { fields }, name, values) {
  const [type, at] = fields[name];
  bytes.set(new Uint8Array(ARRAYS[type].from([values].flat(2)).buffer), at);
}

function wholeNumber(name, value, lowest, highest, error = InvalidArgument) {
  if (!Number.isInteger(value) || value < lowest || value > highest) {
    throw new error(`${name} must be a whole number from ${lowest} to ${highest}, but is ${shown(value)}`);
  }
  return value;
}

/** The compiled module. Make one for each thread. */
export class Engine {
  #top; // the memory below is in use

  constructor(exports, description) {
    this.wasm = exports;
    this.description = description;
    this.actions = description.actions;
    this.codes = new Map(this.actions.map((notation, code) => [notation, code]));
    this.rowBytes = description.state.bytes;
    this.#top = exports.__heap_base.value;
    const at = {
      row: this.keep(this.rowBytes),
      counts: this.keep(description.observation),
      mask: this.keep(this.actions.length),
      zero: this.keep(WORD),
      word: this.keep(WORD),
      found: this.keep(WORD),
      block: this.keep(64 * WORD),
    };
    Object.assign(this, at);
    this.memory.fill(0, at.row, at.block);
    this.state = [at.row, 1];
  }

  /** The memory of the module; it is another one after it has grown. */
  get memory() {
    return new Uint8Array(this.wasm.memory.buffer);
  }

  /** Room in the memory; inside of `withRow` it is free again afterwards. */
  keep(bytes) {
    const at = Math.ceil(this.#top / 64) * 64;
    this.#top = at + bytes;
    const lacking = this.#top - this.wasm.memory.buffer.byteLength;
    if (lacking > 0) this.wasm.memory.grow(Math.ceil(lacking / 65536));
    return at;
  }

  /** Does something with a row in the module's memory, and frees what it needed meanwhile. */
  withRow(bytes, action) {
    const top = this.#top;
    try {
      this.memory.set(bytes, this.row);
      return action(this.row);
    } finally {
      this.#top = top;
    }
  }

  /** Writes the arguments of an entry point: numbers, floats as `{ float }`, and arrays as [address, ...sizes]. */
  arrange(block, args) {
    const words = args.flat();
    const view = new DataView(this.wasm.memory.buffer, block);
    words.forEach((word, i) => {
      if (typeof word === "object") view.setFloat64(i * WORD, word.float, true);
      else view.setBigInt64(i * WORD, BigInt.asIntN(64, BigInt(word)), true);
    });
  }

  /** Calls an entry point of the Python package: its module and its name, and its arguments (see `arrange`). */
  call(name, ...args) {
    this.arrange(this.block, args);
    return Number(this.wasm[name](this.block));
  }

  /** The same, arranged once and called many times. */
  bind(name, ...args) {
    const block = this.keep(args.flat().length * WORD);
    this.arrange(block, args);
    return () => this.wasm[name](block);
  }

  writeWord(at, value) {
    new DataView(this.wasm.memory.buffer).setBigInt64(at, BigInt.asIntN(64, BigInt(value)), true);
  }

  readWord(at) {
    return new DataView(this.wasm.memory.buffer).getBigInt64(at, true);
  }

  /**
   * Deals a new game.
   *
   * @param {object} settings
   * @param {number} settings.players 2 to 4
   * @param {number | bigint} [settings.seed] of the deal; a random one if there is none
   * @param {object} [settings.ruleset] the settings that differ from the default
   * @param {string[]} [settings.names] of the players, for the record; colours if there are none
   */
  newGame(settings = {}) {
    const { players = 2, seed = randomSeed(), ruleset = {}, names } = checkSettings(settings);
    wholeNumber("players", players, 2, 4);
    if (typeof seed === "number" ? !Number.isSafeInteger(seed) || seed < 0 : typeof seed !== "bigint" || seed < 0n || seed >> 64n) {
      throw new InvalidArgument(`seed must be a whole number from 0, a bigint if above 2^53, but is ${shown(seed)}`);
    }
    const given = names ?? this.description.colours.slice(0, players);
    const called = Array.isArray(given) ? [...given] : []; // what an array leaves out is undefined in its copy
    if (called.length !== players || !called.every((name) => typeof name === "string")) {
      throw new InvalidArgument(`names must be ${players} texts, but are ${shown(names)}`);
    }
    return Game.deal(this, players, BigInt(seed), checkRuleset(ruleset, this.description), called);
  }

  /** A game of one's own in the position of a row; it has no record. */
  gameAt(bytes) {
    if (!(bytes instanceof Uint8Array) || bytes.length !== this.rowBytes) {
      throw new InvalidArgument(`a row is a Uint8Array of ${this.rowBytes} bytes`);
    }
    const failed = this.withRow(bytes, () => {
      this.call("invariants_find_violations", this.state, [this.zero, 1], [this.found, 1], 0, 1);
      return this.readWord(this.found);
    });
    if (failed) throw new InvalidArgument("this row is no position of a game");
    return Game.at(this, bytes);
  }

  /** The code of an action, which may be given as a code or in the notation of records. */
  code(action) {
    const code = typeof action === "string" ? this.codes.get(action.trim().toLowerCase()) ?? this.#spelled(action) : action;
    if (!Number.isInteger(code) || code < 0 || code >= this.actions.length) {
      const last = this.actions.length - 1;
      throw new InvalidArgument(`${shown(action)} is no action: give a code from 0 to ${last}, or a notation like "${this.actions[0]}"`);
    }
    return code;
  }

  #spelled(action) {
    const words = action.toLowerCase().split(/\s+/).join(" ").trim();
    return this.actions.findIndex((notation) => notation.toLowerCase() === words);
  }

  /** Takes a network (see `Network`); agents called alphazero play by it. */
  loadNetwork(content) {
    this.network = new Network(this, content);
    return this.network;
  }

  /** A player by its name: "random", "greedy", "mcts:800", "alphazero", "alphazero:200". */
  agent(name) {
    const [kind, settings, ...rest] = typeof name === "string" ? name.split(":") : [""];
    if (!Object.hasOwn(AGENTS, kind) || rest.length || (settings !== undefined && ["random", "greedy"].includes(kind))) {
      throw new InvalidArgument(`no agent is called ${shown(name)}: there are random, greedy, mcts:N and alphazero:N with N simulations`);
    }
    const number = /^\d+$/.test(settings) ? Number(settings) : settings;
    const simulations = settings === undefined ? undefined : wholeNumber("simulations", number, 1, MOST_SIMULATIONS);
    if (kind === "alphazero" && !this.network) throw new InvalidArgument("alphazero needs its network: call loadNetwork first");
    return new AGENTS[kind](this, simulations, name);
  }
}

function randomSeed() {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return (high >>> 11) * 2 ** 32 + low; // 53 bits
}

// --- Rule sets

function checkRuleset(given, { ruleset: defaults, variants, most }) {
  const known = Object.keys(defaults);
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new UnplayableRuleset(`a rule set is an object with some of ${known.join(", ")}, not ${shown(given)}`);
  }
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) throw new UnplayableRuleset(`no setting is called ${name}: there are ${known.join(", ")}`);
  }
  const found = { ...defaults, ...given };
  const list = (name, values, length, lowest, highest) => {
    if (!Array.isArray(values) || values.length !== length) {
      throw new UnplayableRuleset(`${name} must be ${length} whole numbers, but is ${shown(values)}`);
    }
    return [...values].map((value, i) => wholeNumber(`${name}[${i}]`, value, lowest, highest, UnplayableRuleset));
  };
  for (const [name, total] of [["deck", most.cards], ["tokens", most.tokens]]) {
    if (!Array.isArray(found[name]) || found[name].length !== 5) throw new UnplayableRuleset(`${name} must be 5 rows of 3 counts`);
    found[name] = [...found[name]].map((row, kind) => list(`${name}[${kind}]`, row, 3, 0, total));
    const sum = found[name].flat().reduce((a, b) => a + b, 0);
    if (sum !== total) throw new UnplayableRuleset(`${name} must be ${total} in all, but is ${sum}`);
  }
  found.card_adventurers = list("card_adventurers", found.card_adventurers, 3, 0, most.adventurers);
  found.market = list("market", found.market, 5, 1, most.market);
  if (found.market.some((value, i) => i && value > found.market[i - 1])) {
    throw new UnplayableRuleset(`market must not increase from best to worst, but is ${shown(found.market)}`);
  }
  for (const name of ["target", "round_limit"]) wholeNumber(name, found[name], 1, most[name], UnplayableRuleset);
  for (const [name, values] of Object.entries(variants)) {
    if (!values.includes(found[name])) throw new UnplayableRuleset(`${name} must be ${values.join(" or ")}, but is ${shown(found[name])}`);
  }
  return found;
}

const FLAGS = {
  discard_after_deal: ["discard", "after_deal"],
  refill_when_short: ["refill", "short"],
  reshuffle_when_empty: ["reshuffle", "empty"],
  left_over_bags_last_a_round: ["left_over_bags", "round"],
  chest_ends_game: ["game_end", "chest"],
};

// --- A game

/** One game, with its record. */
export class Game {
  #engine;

  static deal(engine, players, seed, ruleset, names) {
    const game = new Game(engine);
    game.ruleset = ruleset;
    game.seed = seed;
    game.names = names;
    game.bytes = new Uint8Array(engine.rowBytes);
    const { state } = engine.description;
    const settings = { num_players: players, deck: ruleset.deck, tokens: ruleset.tokens, card_adventurers: ruleset.card_adventurers };
    Object.assign(settings, { market_values: ruleset.market, target: ruleset.target, round_limit: ruleset.round_limit });
    for (const [flag, [name, value]] of Object.entries(FLAGS)) settings[flag] = ruleset[name] === value ? 1 : 0;
    for (const [name, value] of Object.entries(settings)) writeField(game.bytes, state, name, value);
    game.bytes = engine.withRow(game.bytes, (row) => {
      engine.call("batch_lay_out", engine.state, 0, seed);
      return engine.memory.slice(row, row + engine.rowBytes);
    });
    game.setup = game.#describeSetup();
    game.#proceed(-1, -1);
    game.#playForced();
    return game;
  }

  static at(engine, bytes) {
    const game = new Game(engine);
    game.bytes = Uint8Array.from(bytes);
    return game;
  }

  constructor(engine) {
    this.#engine = engine;
    this.events = [];
    this.moments = []; // the last decision before the last step, and every move of it
  }

  /** A field of the state row, by its name in the Python package. */
  field(name) {
    const { fields } = this.#engine.description.state;
    if (typeof name !== "string" || !Object.hasOwn(fields, name)) throw new InvalidArgument(`a row has no field ${shown(name)}: there are ${Object.keys(fields).join(", ")}`);
    return readField(this.bytes, this.#engine.description.state, name);
  }

  get players() {
    return this.field("num_players");
  }

  /** Who must decide; -1 when the game is over. */
  get currentPlayer() {
    return this.field("current_player");
  }

  get isOver() {
    return this.phase === OVER;
  }

  /** What is to be decided: "deal", "place", …; "over" at the end. */
  get phase() {
    return this.#engine.description.decisions[this.field("decision")];
  }

  get scores() {
    return [...this.field("score")].slice(0, this.players);
  }

  /** The seats that have won, once the game is over. */
  get winners() {
    return [...this.field("winners")].flatMap((won, seat) => (won ? [seat] : []));
  }

  /** The codes of the legal actions. */
  legalActions() {
    const legal = this.field("legal");
    const first = this.#engine.description.first[this.field("decision")];
    const codes = [];
    for (let choice = 0; legal >> BigInt(choice); choice++) if ((legal >> BigInt(choice)) & 1n) codes.push(first + choice);
    return codes;
  }

  /** The notation of an action, as records have it. */
  notation(code) {
    return this.#engine.actions[this.#engine.code(code)];
  }

  /** What a player sees, as counts; by default who decides. */
  observe(player = -1) {
    return this.#seen(player).observation;
  }

  /** 1 for every legal action. */
  actionMask() {
    return this.#seen(-1).mask;
  }

  #seen(player) {
    if (player !== -1) wholeNumber("player", player, 0, this.players - 1);
    const engine = this.#engine;
    return engine.withRow(this.bytes, () => {
      engine.writeWord(engine.word, player);
      const { observation: size } = engine.description;
      const [counts, mask] = [[engine.counts, 1, size], [engine.mask, 1, engine.actions.length]];
      engine.call("batch_write_observations", engine.state, [engine.zero, 1], [engine.word, 1], counts, [0, 0, size], mask, 0, 1);
      const cut = (at, size) => new Int8Array(engine.memory.slice(at, at + size).buffer);
      return { observation: cut(engine.counts, size), mask: cut(engine.mask, engine.actions.length) };
    });
  }

  /** All that a player could pay for a token of a kind. */
  countBags(player, kind) {
    wholeNumber("player", player, 0, this.players - 1);
    wholeNumber("kind", kind, 0, KINDS.length - 1);
    const engine = this.#engine;
    return engine.withRow(this.bytes, () => engine.call("batch_count_bags", engine.state, 0, player, kind));
  }

  /** Makes an action, given as a code or in the notation of records, and the forced moves that follow. */
  step(action) {
    const code = this.#legalCode(action);
    this.moments = this.moments.slice(-1);
    const decisions = this.field("decisions") + 1; // forced ones are not counted
    this.#move(code);
    this.#playForced();
    writeField(this.bytes, this.#engine.description.state, "decisions", decisions);
    return this;
  }

  #legalCode(action) {
    const code = this.#engine.code(action);
    const legal = checkGame(this).legalActions();
    if (legal.includes(code)) return code;
    const allowed = legal.map((one) => this.#engine.actions[one]).join(", ");
    throw new IllegalAction(`"${this.#engine.actions[code]}" is not legal now: allowed are ${allowed}`);
  }

  #move(code) {
    const event = { player: this.currentPlayer, move: this.#engine.actions[code] };
    if (this.legalActions().length === 1) event.forced = true;
    this.events.push(event);
    this.#proceed(code - this.#engine.description.first[this.field("decision")], this.events.length - 1);
  }

  #playForced() {
    for (let legal = this.legalActions(); legal.length === 1; legal = this.legalActions()) this.#move(legal[0]);
  }

  #proceed(choice, event) {
    const engine = this.#engine;
    const before = new Game(engine);
    before.bytes = this.bytes;
    this.bytes = engine.withRow(this.bytes, (row) => {
      engine.call("batch_proceed", engine.state, 0, choice);
      return engine.memory.slice(row, row + engine.rowBytes);
    });
    this.moments.push(new Moment(engine, event, this.bytes));
    this.events.push(...chanceEvents(before, this));
  }

  /** A game of one's own in the same position. */
  copy() {
    const game = new Game(this.#engine);
    Object.assign(game, this);
    game.events = [...this.events];
    game.moments = [...this.moments];
    return game;
  }

  /** A game of one's own whose hidden parts are redrawn, consistent with what all players know; a key gives all chance. */
  redrawn(key) {
    if (typeof key !== "bigint" || key < 0n || key >> 64n) throw new InvalidArgument(`a key is a bigint of 64 bits, not ${shown(key)}`);
    const engine = this.#engine;
    return engine.withRow(this.bytes, (row) => {
      engine.writeWord(engine.word, key);
      engine.call("batch_resample_games", engine.state, [engine.zero, 1], [engine.word, 1], 0, 1);
      return Game.at(engine, engine.memory.slice(row, row + engine.rowBytes));
    });
  }

  /** Whether an action would turn up something hidden before the next choice. */
  draws(action) {
    const code = this.#legalCode(action);
    const engine = this.#engine;
    return engine.withRow(this.bytes, () => {
      engine.writeWord(engine.word, code);
      const [spare, out] = [engine.keep(engine.rowBytes), [engine.found, 1]];
      engine.call("batch_write_draws", engine.state, [engine.zero, 1], [engine.word, 1], [spare, 1], out, 0, 1);
      return engine.memory[engine.found] !== 0;
    });
  }

  /** Random bits for a player, from the game's own stream, which moves on: same seed, same play. */
  drawKey() {
    const engine = this.#engine;
    return engine.withRow(this.bytes, (row) => {
      engine.call("batch_draw_keys", engine.state, [engine.zero, 1], [engine.found, 1], 0, 1);
      const key = BigInt.asUintN(64, engine.readWord(engine.found));
      this.bytes = engine.memory.slice(row, row + engine.rowBytes);
      return key;
    });
  }

  /** Everything public, named as in Python's `GameBatch.public_state`. */
  publicState() {
    const n = this.players;
    const read = (name) => this.field(name);
    const rows = (name, width) => Array.from({ length: read(name).length / width }, (_, i) => [...read(name).slice(i * width, (i + 1) * width)]);
    const seats = (name) => [...read(name)].slice(0, n);
    const marked = (values) => values.flatMap((value, i) => (value ? [i] : []));
    const tokens = rows("dungeon_tokens", 15);
    const places = rows("places", 6 * (read("places").length / 24));
    return {
      round: read("round_number"),
      cylinder: read("cylinder"),
      phase: this.phase,
      active_player: read("active_player"),
      current_player: read("current_player"),
      lanes: rows("lanes", 7).map((lane) => lane.filter(Boolean).map((seat) => seat - 1)),
      market: [...read("market")],
      dungeons: tokens.map((counts, dungeon) => ({ tokens: pieces(counts), queue: queue(places, dungeon) })),
      zones: [0, 1, 2, 3].map((zone) => marked(rows("zones", 4).slice(0, n).map((zones) => zones[zone]))),
      supply: seats("supply"),
      marseille: seats("marseille"),
      hands: rows("hands", 15).slice(0, n).map(pieces),
      wilds: seats("wilds"),
      scores: seats("score"),
      offer: pieces([...read("offer")]),
      recipient: read("recipient"),
      drawn_tokens: [...read("drawn_tokens")].filter((number) => number !== -1).map(piece),
      taking: read("taking") === -1 ? null : piece(read("taking")),
      left_over_bags: rows("left_over_bags", 5).slice(0, n),
      placements_left: read("placements_left"),
      zone_used: Boolean(read("zone_used")),
      reinforcements_left: read("reinforcements_left"),
      chest_dungeons: marked([...read("chest_dungeons")]),
      gather_dungeon: read("gather_dungeon"),
      gather_order: [...read("gather_order")].filter((seat) => seat !== -1),
      gathered: rows("gathered", 15).slice(0, n).map(pieces),
      pile_size: read("pile_size"),
      card_discard: pieces([...read("card_discard")]),
      bag: pieces([...read("bag")]),
      token_discard: pieces([...read("token_discard")]),
      winners: this.winners,
    };
  }

  // --- the record

  #describeSetup() {
    const state = this.publicState();
    return {
      lanes: state.lanes,
      market: state.market.map((kind) => KINDS[kind]).join(""),
      dungeons: state.dungeons.map(({ tokens }) => short(tokens[0])),
    };
  }

  /** The game so far, as Python's `GameRecord.from_json` reads it; without the seed if that is to stay unknown. */
  record(settings = {}) {
    const { seed = true } = checkSettings(settings);
    if (!this.setup) throw new InvalidArgument("a game that was made from a row has no record");
    const document = {
      format: "montecristo-record",
      version: 2,
      num_players: this.players,
      players: this.names,
      ruleset: this.ruleset,
      seed: "SEED",
      setup: this.setup,
      result: this.isOver ? { scores: this.scores, winners: this.winners, truncated: Boolean(this.field("truncated")) } : null,
      events: this.events,
    };
    return JSON.stringify(document).replace('"seed":"SEED"', `"seed":${seed ? this.seed : null}`);
  }
}

/** What a move led to: the index of its event, -1 for the start, and the public state. */
class Moment {
  #engine;
  #bytes;

  constructor(engine, event, bytes) {
    this.#engine = engine;
    this.#bytes = bytes;
    this.event = event;
  }

  get state() {
    return Game.at(this.#engine, this.#bytes).publicState();
  }
}

function piece(number) {
  return [Math.floor(number / 3), (number % 3) + 1];
}

function pieces(counts) {
  return counts.flatMap((copies, number) => Array.from({ length: copies }, () => piece(number)));
}

function short([kind, size]) {
  return `${KINDS[kind]}${size}`;
}

function queue(places, dungeon) {
  const width = places[0].length / 6;
  return places
    .flatMap((all, seat) => all.slice(dungeon * width, (dungeon + 1) * width).map((place) => [place, seat]))
    .filter(([place]) => place)
    .sort(([a], [b]) => a - b)
    .map(([, seat]) => seat);
}

/** What chance did between two states that are one move apart. */
function chanceEvents(before, after) {
  const events = [];
  const was = (name) => before.field(name);
  const is = (name) => after.field(name);
  const shuffle = is("shuffles") > was("shuffles") ? [{ shuffle: true }] : [];
  if (is("offer_size") > was("offer_size")) {
    const pile = was("pile");
    const size = Math.min(was("pile_size"), is("offer_size"));
    const drawn = Array.from({ length: size }, (_, i) => short(piece(was("slot_card")[pile[(was("pile_top") + i) % pile.length]])));
    const rest = pieces([...is("offer")]).map(short);
    for (const known of drawn) rest.splice(rest.indexOf(known), 1);
    if (drawn.length) events.push({ draw: drawn });
    events.push(...shuffle);
    if (rest.length) events.push({ draw: rest });
  }
  is("wilds").forEach((count, player) => {
    if (count <= was("wilds")[player]) return;
    events.push(...(was("pile_size") === 0 ? [...shuffle, { wild: player }] : [{ wild: player }, ...shuffle]));
  });
  if (was("drawn_tokens")[0] === -1 && is("drawn_tokens")[0] !== -1) {
    const refill = is("refills") > was("refills") ? [{ refill: true }] : [];
    const drawn = { tokens: [...is("drawn_tokens")].map((number) => short(piece(number))) };
    events.push(...(was("bag_size") < is("drawn_tokens").length ? [...refill, drawn] : [drawn, ...refill]));
  }
  return events;
}

// --- The network

/** An entity network from a .safetensors file of the Python package, of whole or half precision. */
export class Network {
  #engine;
  #steps;

  constructor(engine, content) {
    this.#engine = engine;
    const { metadata, sizes, tensors } = readSafetensors(content);
    const { layout, network } = engine.description;
    if (metadata.layout !== layout) {
      throw new InvalidModel(`the network has the layout ${metadata.layout}, but this version of montecristo-env has ${layout}`);
    }
    if (!Array.isArray(sizes) || sizes.length !== 3) throw new InvalidModel("this is not an entity network: it has no three sizes");
    if (!sizes.every((size) => Number.isInteger(size) && size > 0 && size <= network.most_units)) {
      throw new InvalidModel(`layers have 1 to ${network.most_units} units, but sizes are ${JSON.stringify(sizes)}`);
    }
    this.#steps = this.#arrange(engine, pack(tensors, sizes, engine.actions.length, network), sizes, network);
  }

  /** Puts the weights into memory, and prepares the calls of a forward pass. */
  #arrange(engine, weights, [pair, entity, hidden], network) {
    const room = (...shape) => [engine.keep(4 * shape.reduce((a, b) => a * b, 1)), ...shape];
    const held = Object.fromEntries(
      Object.entries(weights).map(([name, { shape, values }]) => {
        const array = room(...shape);
        new Float32Array(engine.wasm.memory.buffer, array[0], values.length).set(values);
        return [name, array];
      }),
    );
    const count = engine.actions.length;
    const [dungeons, kinds] = [network.dungeons[0], network.kinds[0]];
    const features = room(1, (dungeons + kinds) * entity + network.context);
    const [one, two, dense] = [room(1, hidden), room(1, hidden), room(1, held.last[2])];
    const [dungeonSums, kindSums] = [room(dungeons, pair), room(kinds, pair)];
    const [ofDungeons, ofKinds] = [room(dungeons, entity), room(kinds, entity)];
    const [dungeonScores, kindScores] = [room(dungeons, network.dungeon_actions), room(kinds, network.kind_actions)];
    const none = room(Math.max(entity, network.kind_actions, network.dungeon_actions));
    new Float32Array(engine.wasm.memory.buffer, none[0], none[1]).fill(0);
    this.seen = [engine.keep(engine.description.observation), 1, engine.description.observation];
    [this.logits, this.utilities, this.wins] = [room(1, count), room(1, 4), room(1, 4)];
    const { context, pairs, pairBias, dungeonPlace, kindPlace } = held;
    const layer = (x, weight, bias, cut, out) => engine.bind("dense_write_layer", x, weight, bias, cut, out, 0, x[1]);
    const sums = [dungeonSums, kindSums, features];
    return [
      engine.bind("entity_embed", this.seen, context, held.dungeons, held.kinds, pairs, pairBias, dungeonPlace, kindPlace, ...sums, 0, 1),
      layer(dungeonSums, held.dungeonPairs, none, false, ofDungeons),
      layer(kindSums, held.kindPairs, none, false, ofKinds),
      engine.bind("entity_activate", ofDungeons, ofKinds, features, 0, 1),
      layer(features, held.first, held.firstBias, true, one),
      layer(one, held.second, held.secondBias, true, two),
      layer(two, held.last, held.lastBias, false, dense),
      engine.bind("entity_add_context", features, dense, ofDungeons, ofKinds, 0, 1),
      layer(ofDungeons, held.dungeonHead, none, false, dungeonScores),
      layer(ofKinds, held.kindHead, none, false, kindScores),
      engine.bind(
        "entity_write_outputs",
        ...[this.seen, dense, dungeonScores, kindScores, held.dungeonHeadBias, held.kindHeadBias],
        ...[this.logits, this.utilities, this.wins, 0, 1],
      ),
    ];
  }

  /** Logits of all actions, and every player's share of the utility and of the win, the decider's first. */
  evaluate(game) {
    const engine = this.#engine;
    return engine.withRow(checkGame(game).bytes, (row) => {
      this.run(row);
      const read = ([at, , size]) => new Float32Array(engine.wasm.memory.buffer.slice(at, at + 4 * size));
      return { logits: read(this.logits), utilities: read(this.utilities), wins: read(this.wins) };
    });
  }

  /** Evaluates a row in the module's memory; what it writes stands at `logits`, `utilities` and `wins`. */
  run(row) {
    this.#engine.call("entity_observe_deciders", [row, 1], this.seen, 0, 1);
    for (const step of this.#steps) step();
  }
}

function readSafetensors(content) {
  if (!(content instanceof ArrayBuffer) && !(content instanceof Uint8Array)) {
    throw new InvalidArgument(`a network file is an ArrayBuffer or a Uint8Array, not ${shown(content)}`);
  }
  try {
    const bytes = Uint8Array.from(content instanceof ArrayBuffer ? new Uint8Array(content) : content);
    const size = Number(new DataView(bytes.buffer).getBigUint64(0, true));
    const start = 8 + size;
    const { __metadata__: metadata, ...entries } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
    const tensors = {};
    for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(entries)) {
      const data = bytes.slice(start + from, start + to).buffer;
      const values = { F32: () => new Float32Array(data), F16: () => fromHalf(new Uint16Array(data)) }[dtype]();
      if (values.length !== shape.reduce((product, length) => product * length, 1)) throw new Error(`${name} is not as long as its shape says`);
      tensors[name] = { shape, values };
    }
    return { metadata: metadata ?? {}, sizes: JSON.parse(metadata?.sizes ?? "null"), tensors };
  } catch (error) {
    throw new InvalidModel(`this is no network file: ${error.message}`);
  }
}

function fromHalf(halves) {
  return Float32Array.from(halves, (half) => {
    const exponent = (half >> 10) & 31;
    const part = half & 1023;
    const size = exponent ? 2 ** (exponent - 15) * (1 + part / 1024) : part * 2 ** -24;
    return half >> 15 ? -size : size;
  });
}

/** The weights as the kernels want them: (inputs, outputs), what has the same inputs side by side, scales inside. */
function pack(tensors, [pair, entity, hidden], actions, { context, dungeons, kinds, pairs, dungeon_actions: dungeonActions, kind_actions: kindActions, scale }) {
  const need = (name, ...shape) => {
    const found = tensors[name];
    if (!found) throw new InvalidModel(`the network lacks the weights ${name}`);
    if (String(found.shape) !== String(shape)) throw new InvalidModel(`the weights ${name} must have the shape ${shape}, but have ${found.shape}`);
    if (!found.values.every(Number.isFinite)) throw new InvalidModel(`the weights ${name} are not all finite`);
    return found.values;
  };
  /** Matrices side by side, transposed: pairs of a name and its outputs. Rows from `first` on are scaled. */
  const joined = (parts, inputs, scales = [], first = 0) => {
    const width = parts.reduce((sum, [, outputs]) => sum + outputs, 0);
    const values = new Float32Array(inputs * width);
    let column = 0;
    for (const [name, outputs] of parts) {
      const from = need(`${name}.weight`, outputs, inputs);
      for (let i = 0; i < inputs; i++) {
        for (let o = 0; o < outputs; o++) values[i * width + column + o] = from[o * inputs + i] * (scales[i - first] ?? 1);
      }
      column += outputs;
    }
    return { shape: [inputs, width], values };
  };
  const as = (name, ...shape) => ({ shape, values: need(name, ...shape) });
  const scaled = ([, width, start]) => scale.slice(start, start + width);
  const entities = (dungeons[0] + kinds[0]) * entity;
  const heads = [["policy", actions], ["value", 4], ["win", 4], ["to_dungeons", entity], ["to_kinds", entity]];
  const last = joined(heads, hidden);
  const lastBias = Float32Array.from(heads.flatMap(([name, outputs]) => [...need(`${name}.bias`, outputs)]));
  return {
    context: joined([["pair_context", pair], ["dungeon_context", entity], ["kind_context", entity]], context, scale.slice(0, context)),
    dungeons: joined([["pair_dungeon", pair], ["dungeon", entity]], dungeons[1], scaled(dungeons)),
    kinds: joined([["pair_kind", pair], ["kind", entity]], kinds[1], scaled(kinds)),
    pairs: joined([["pair", pair]], pairs[1], scaled(pairs)),
    pairBias: as("pair.bias", pair),
    dungeonPlace: as("dungeon_place", dungeons[0], entity),
    kindPlace: as("kind_place", kinds[0], entity),
    dungeonPairs: joined([["dungeon_pairs", entity]], pair),
    kindPairs: joined([["kind_pairs", entity]], pair),
    first: joined([["trunk.0", hidden]], entities + context, scale.slice(0, context), entities),
    firstBias: as("trunk.0.bias", hidden),
    second: joined([["trunk.1", hidden]], hidden),
    secondBias: as("trunk.1.bias", hidden),
    last,
    lastBias: { shape: [lastBias.length], values: lastBias },
    dungeonHead: joined([["of_dungeons", dungeonActions]], entity),
    dungeonHeadBias: as("of_dungeons.bias", dungeonActions),
    kindHead: joined([["of_kinds", kindActions]], entity),
    kindHeadBias: as("of_kinds.bias", kindActions),
  };
}

// --- Players

class Agent {
  constructor(engine, simulations, name) {
    this.engine = engine;
    this.simulations = simulations;
    this.name = name;
  }

  /** The code of a legal action. The game stays as it is, but for its stream of random bits. */
  act(game) {
    return this.choose(checkGame(game));
  }

  /** How likely each legal action is, by code, and what the decider may expect: -1 loses, 1 wins, null if unknown. */
  evaluate(game) {
    return this.think(checkGame(game));
  }

  think(game) {
    const chosen = this.act(game.copy());
    return { probabilities: new Map(game.legalActions().map((code) => [code, code === chosen ? 1 : 0])), value: null };
  }
}

class RandomAgent extends Agent {
  choose(game) {
    const legal = game.legalActions();
    return legal[Number(game.drawKey() % BigInt(legal.length))];
  }

  think(game) {
    const legal = game.legalActions();
    return { probabilities: new Map(legal.map((code) => [code, 1 / legal.length])), value: null };
  }
}

class GreedyAgent extends Agent {
  choose(game) {
    const { engine } = this;
    return engine.withRow(game.bytes, () => {
      engine.call("greedy_choose_actions", engine.state, [engine.found, 1], 0, 1);
      return Number(engine.readWord(engine.found));
    });
  }
}

/** The reward "win" of who may expect this share of the win. */
function asReward(share, players) {
  return (players * share - 1) / (players - 1);
}

/** Plays what the search finds (see `montecristo_agents.search`). A subclass has an `evaluator` and a `winWeight`. */
class SearchAgent extends Agent {
  choose(game) {
    return Number(this.search(game).action);
  }

  think(game) {
    const { policy, values } = this.search(game.copy());
    const first = this.engine.description.first[game.field("decision")];
    const probabilities = new Map(game.legalActions().map((code) => [code, policy[code - first]]));
    return { probabilities, value: asReward(values[game.field("current_player")], game.players) };
  }

  search(game) {
    const { engine, simulations } = this;
    const { state: layout, node_bytes: nodeBytes, most_choices: choices } = engine.description.search;
    const key = game.drawKey();
    return engine.withRow(game.bytes, () => {
      const nodes = 1 + (simulations + 1) * choices;
      const [root, leaf] = [[engine.keep(engine.rowBytes), 1], [engine.keep(engine.rowBytes), 1]];
      const search = [engine.keep(layout.bytes), 1];
      const tree = [engine.keep(nodes * nodeBytes), 1, nodes];
      const schedules = [engine.keep(MOST_CONSIDERED * simulations * WORD), MOST_CONSIDERED, simulations];
      const budgets = [engine.keep(MOST_CONSIDERED * WORD), MOST_CONSIDERED];
      const shares = [engine.keep(4 * 4), 1, 4];
      const { logits, evaluate } = this.evaluator(leaf, shares);
      const go = engine.bind("search_simulate_games", root, search, tree, leaf, schedules, false, 0, 1);
      const settings = [budgets, { float: 0 }, { float: this.winWeight }, false, 0, 1];
      const expand = engine.bind("search_expand_trees", root, search, tree, leaf, logits, shares, ...settings);
      const visits = new BigInt64Array(engine.wasm.memory.buffer, schedules[0], MOST_CONSIDERED * simulations);
      for (let moves = 1; moves <= MOST_CONSIDERED; moves++) {
        consideredVisits(moves, simulations).forEach((count, i) => (visits[(moves - 1) * simulations + i] = BigInt(count)));
      }
      new BigInt64Array(engine.wasm.memory.buffer, budgets[0], MOST_CONSIDERED).fill(BigInt(simulations));
      engine.memory.fill(0, shares[0], shares[0] + 4 * 4);
      engine.writeWord(engine.word, key);
      engine.call("search_start_searches", [engine.zero, 1], engine.state, [engine.word, 1], root, search, 0, 1);
      const [, doneAt] = layout.fields.done;
      while (!engine.memory[search[0] + doneAt]) {
        go();
        evaluate();
        expand();
      }
      const bytes = engine.memory.slice(search[0], search[0] + layout.bytes);
      return Object.fromEntries(["action", "policy", "values"].map((name) => [name, readField(bytes, layout, name)]));
    });
  }
}

class MctsAgent extends SearchAgent {
  constructor(engine, simulations = 800, name) {
    super(engine, simulations, name);
    this.winWeight = 1;
  }

  evaluator(leaf, shares) {
    const { engine } = this;
    const logits = [engine.keep(4 * engine.actions.length), 1, engine.actions.length];
    const room = [engine.keep(engine.rowBytes), 1];
    const { rounds } = engine.description.search;
    return { logits, evaluate: engine.bind("mcts_evaluate_by_rollout", leaf, true, rounds, room, logits, shares, 0, 1) };
  }
}

class AlphaZeroAgent extends SearchAgent {
  constructor(engine, simulations, name) {
    super(engine, simulations, name);
    this.winWeight = engine.description.search.win_weight;
  }

  choose(game) {
    if (this.simulations) return super.choose(game);
    const { logits } = this.engine.network.evaluate(game);
    return game.legalActions().reduce((best, code) => (logits[code] > logits[best] ? code : best));
  }

  /** What it may expect is what the network says without search. */
  think(game) {
    const { logits, wins } = this.engine.network.evaluate(game);
    const value = asReward(wins[0], game.players);
    if (this.simulations) return { ...super.think(game), value };
    const legal = game.legalActions();
    const highest = Math.max(...legal.map((code) => logits[code]));
    const weights = legal.map((code) => Math.exp(logits[code] - highest));
    const total = weights.reduce((a, b) => a + b, 0);
    return { probabilities: new Map(legal.map((code, i) => [code, weights[i] / total])), value };
  }

  evaluator(leaf, shares) {
    const { network } = this.engine;
    const bySeat = this.engine.bind("entity_by_seat", leaf, network.utilities, shares, 0, 1);
    const evaluate = () => {
      network.run(leaf[0]);
      bySeat();
    };
    return { logits: network.logits, evaluate };
  }
}

/** Sequential halving: how often a move must have been tried to be a candidate in each simulation. */
function consideredVisits(moves, simulations) {
  if (moves <= 1) return Array.from({ length: simulations }, (_, i) => i);
  const phases = Math.ceil(Math.log2(moves));
  const schedule = [];
  const visits = new Array(moves).fill(0);
  let left = moves;
  while (schedule.length < simulations) {
    for (let times = Math.max(1, Math.floor(simulations / (phases * left))); times; times--) {
      for (let i = 0; i < left; i++) schedule.push(visits[i]++);
    }
    left = Math.max(2, left >> 1);
  }
  return schedule.slice(0, simulations);
}

const AGENTS = { random: RandomAgent, greedy: GreedyAgent, mcts: MctsAgent, alphazero: AlphaZeroAgent };
