/** The game in a page: the rules, the players and the network, compiled from the kernels of the Python package. */

/** What is wrong has a name of its own and changes nothing. */
export class MonteCristoError extends Error {}
/** An argument that cannot be. */
export class InvalidArgument extends MonteCristoError {}
/** An action that is not legal now. */
export class IllegalAction extends MonteCristoError {}
/** A rule set that cannot be played. */
export class UnplayableRuleset extends MonteCristoError {}
/** A network file that is damaged, or made for something else. */
export class InvalidModel extends MonteCristoError {}

/** Loads the compiled module from an address, or from its content. */
export function load(source: string | URL | ArrayBuffer | Uint8Array): Promise<Engine>;

/** The settings of a game, as in Python's `Ruleset`. */
export interface Ruleset {
  deck: number[][];
  card_adventurers: number[];
  tokens: number[][];
  market: number[];
  target: number;
  round_limit: number;
  discard: "at_once" | "after_deal";
  refill: "empty" | "short";
  reshuffle: "needed" | "empty";
  left_over_bags: "dungeon" | "round";
  game_end: "scoring" | "chest";
}

/** A card (kind, bags) or a token (kind, value). */
export type Piece = [kind: number, size: number];

/** Everything public about a game, as Python's `GameBatch.public_state` gives it. */
export interface PublicState {
  round: number;
  cylinder: number;
  phase: string;
  active_player: number;
  current_player: number;
  lanes: number[][];
  market: number[];
  dungeons: { tokens: Piece[]; queue: number[] }[];
  zones: number[][];
  supply: number[];
  marseille: number[];
  hands: Piece[][];
  wilds: number[];
  scores: number[];
  offer: Piece[];
  recipient: number;
  drawn_tokens: Piece[];
  taking: Piece | null;
  left_over_bags: number[][];
  placements_left: number;
  zone_used: boolean;
  reinforcements_left: number;
  chest_dungeons: number[];
  gather_dungeon: number;
  gather_order: number[];
  gathered: Piece[][];
  pile_size: number;
  card_discard: Piece[];
  bag: Piece[];
  token_discard: Piece[];
  winners: number[];
}

/** An event of a game record. */
export type Event = Record<string, unknown>;

/** An action: its code, or its notation in records, such as "enter A". */
export type Action = number | string;

/** The compiled module. Make one for each thread. */
export class Engine {
  private constructor();
  /** The notation of every action, by code. */
  readonly actions: string[];
  /** Bytes of the row of a game. */
  readonly rowBytes: number;
  /** What agents called alphazero play by, once it is loaded. */
  readonly network?: Network;
  newGame(settings?: {
    /** 2 to 4, by default 2. */
    players?: number;
    /** Of the deal, as in `GameBatch(1, 2, seed=[7])`; a random one if there is none. */
    seed?: number | bigint;
    /** The settings that differ from the default. */
    ruleset?: Partial<Ruleset>;
    /** Of the players, for the record. */
    names?: string[];
  }): Game;
  /** A game of one's own in the position of a row; it has no record. */
  gameAt(bytes: Uint8Array): Game;
  /** The code of an action. */
  code(action: Action): number;
  /** Takes a .safetensors file of an entity network. */
  loadNetwork(content: ArrayBuffer | Uint8Array): Network;
  /** A player: "random", "greedy", "mcts:800", "alphazero", "alphazero:200". */
  agent(name: string): Agent;
}

/** One game, with its record. */
export class Game {
  private constructor();
  /** Its row; only `step` and `drawKey` change it. */
  readonly bytes: Uint8Array;
  readonly ruleset: Ruleset;
  readonly seed: bigint;
  readonly names: string[];
  readonly events: Event[];
  readonly players: number;
  /** Who must decide; -1 when the game is over. */
  readonly currentPlayer: number;
  readonly isOver: boolean;
  readonly phase: string;
  readonly scores: number[];
  readonly winners: number[];
  /** The codes of the legal actions. */
  legalActions(): number[];
  /** The notation of an action. */
  notation(code: Action): string;
  /** What a player sees, as counts; by default who decides. */
  observe(player?: number): Int8Array;
  /** 1 for every legal action. */
  actionMask(): Int8Array;
  /** All that a player could pay for a token of a kind. */
  countBags(player: number, kind: number): number;
  /** Makes an action, and the forced moves that follow. */
  step(action: Action): this;
  /** A game of one's own in the same position. */
  copy(): Game;
  /** A game of one's own whose hidden parts are redrawn, consistent with what all players know; a key gives all chance. */
  redrawn(key: bigint): Game;
  /** Whether an action would turn up something hidden before the next choice. */
  draws(action: Action): boolean;
  /** Random bits for a player, from the game's own stream, which moves on. */
  drawKey(): bigint;
  publicState(): PublicState;
  /** A field of the row, by its name in the Python package. */
  field(name: string): number | bigint | ArrayLike<number | bigint>;
  /** The game so far as JSON, which Python's `GameRecord.from_json` reads. */
  record(options?: { seed?: boolean }): string;
}

/** A player. */
export interface Agent {
  readonly name: string;
  /** The code of a legal action. */
  act(game: Game): number;
  /** How likely each legal action is, by code, and what the decider may expect: 1 wins, null if unknown. */
  evaluate(game: Game): { probabilities: Map<number, number>; value: number | null };
}

/** An entity network. */
export class Network {
  private constructor();
  /** Logits of all actions, and every player's share of the utility and of the win, the decider's first. */
  evaluate(game: Game): { logits: Float32Array; utilities: Float32Array; wins: Float32Array };
}
