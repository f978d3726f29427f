r"""# The Secret of Monte Cristo

| Import               | `from montecristo_env import montecristo_v0`                |
|----------------------|-------------------------------------------------------------|
| By name              | `pettingzoo.make("aec", "montecristo/montecristo-v0")`      |
| Actions              | Discrete                                                    |
| Parallel API         | No                                                          |
| Manual control       | No                                                          |
| Agents               | `agents = ['player_0', 'player_1', ...]`                    |
| Number of agents     | 2 to 4                                                      |
| Action shape         | `Discrete(146)`                                             |
| Action values        | 0 to 145                                                    |
| Observation shape    | (723,)                                                      |
| Observation values   | [0, 1], or counts with `obs_dtype="int8"`                   |

A game of majorities for two to four players. Adventurers queue for treasures in six dungeons; marbles on a slide decide
who carries out which of four actions next, and every used marble is put where it will count again. The rules are in
`docs/rules.md`; clause numbers (§) refer to them.

### Observation space

A dictionary with `'observation'` and `'action_mask'`. The observation is a vector that contains everything public that
bears on the future, from the agent's own seat: seat 0 of every field is the observer, then clockwise; absent seats are
zero. Every entry is divided by its highest value. `montecristo_env.observation.view(observation, "hands")` picks a field.

| Index   | Field                 | Shape     | Highest | Meaning                                                                  |
| ------- | --------------------- | --------- | ------- | ------------------------------------------------------------------------ |
| 0-89    | `dungeon_tokens`      | (6, 5, 3) | 4       | tokens in each dungeon by kind and value                                 |
| 90-104  | `unseen_cards`        | (5, 3)    | 30      | cards in the pile and among the wild bags                                |
| 105-119 | `card_discard`        | (5, 3)    | 30      | discarded cards                                                          |
| 120-120 | `pile_size`           | (1,)      | 30      | cards in the pile                                                        |
| 121-135 | `bag`                 | (5, 3)    | 30      | tokens in the bag                                                        |
| 136-150 | `token_discard`       | (5, 3)    | 30      | discarded tokens                                                         |
| 151-165 | `offer`               | (5, 3)    | 4       | Supply: cards drawn and not yet dealt                                    |
| 166-166 | `placements_left`     | (1,)      | 3       | Adventurers: placements still open to the player placing                 |
| 167-167 | `zone_used`           | (1,)      | 1       | Adventurers: he has used his bonus zone                                  |
| 168-168 | `reinforcements_left` | (1,)      | 2       | Adventurers: reinforcements still open to him                            |
| 169-174 | `chest_dungeons`      | (6,)      | 1       | Treasure chest: dungeons already used                                    |
| 175-179 | `left_over_bags`      | (5,)      | 2       | Scoring: bags paid in this turn and not used up, by kind                 |
| 180-183 | `supply`              | (4,)      | 9       | adventurers in the personal supply                                       |
| 184-187 | `marseille`           | (4,)      | 9       | adventurers in the general supply                                        |
| 188-203 | `zones`               | (4, 4)    | 1       | 1 where the player has an adventurer in the bonus zone                   |
| 204-227 | `crew`                | (4, 6)    | 9       | adventurers in each dungeon                                              |
| 228-443 | `places`              | (4, 6, 9) | 36      | their places in the queue, foremost first, counted from 1; 0 for none    |
| 444-503 | `hands`               | (4, 5, 3) | 8       | face-up cards by kind and bags                                           |
| 504-507 | `wilds`               | (4,)      | 8       | wild bags held                                                           |
| 508-511 | `seated`              | (4,)      | 1       | 1 for every seat in the game                                             |
| 512-515 | `scores`              | (4,)      | 127     | points, modulo 128                                                       |
| 516-519 | `scores_laps`         | (4,)      | 127     | points divided by 128 (0 with the default target)                        |
| 520-523 | `gathered_points`     | (4,)      | 63      | points that the tokens gathered in this round will score                 |
| 524-527 | `deciding`            | (4,)      | 1       | who must decide; all 0 when the game is over                             |
| 528-531 | `active`              | (4,)      | 1       | the active player, owner of the marble in use                            |
| 532-540 | `decision`            | (9,)      | 1       | the kind of decision, in the order of the blocks of actions              |
| 541-544 | `cylinder`            | (4,)      | 1       | the current lane                                                         |
| 545-545 | `rounds_left`         | (1,)      | 127     | rounds after this one until the limit, modulo 128                        |
| 546-546 | `rounds_left_laps`    | (1,)      | 127     | the same divided by 128 (0 with the default limit)                       |
| 547-658 | `marbles`             | (4, 4, 7) | 1       | 1 where the player has a marble: lane and position, bottom first         |
| 659-683 | `market`              | (5, 5)    | 1       | market space of each kind, best first                                    |
| 684-688 | `market_values`       | (5,)      | 3       | what the market gives for each kind                                      |
| 689-692 | `recipient`           | (4,)      | 1       | Supply: who gets the next card                                           |
| 693-707 | `drawn_tokens`        | (3, 5)    | 3       | Treasure chest: tokens to place, in order: the value at the kind         |
| 708-713 | `gather_dungeon`      | (6,)      | 1       | Scoring: the dungeon                                                     |
| 714-717 | `gather_order`        | (4,)      | 4       | Scoring: 1 for the player whose turn it is, 2 for the next …; 0 for none |
| 718-722 | `taking`              | (5,)      | 3       | Scoring: the token being paid for: the value at the kind                 |

All players know the same (§10.2); `state()` is the game as seat 0 sees it.

#### Legal actions mask

`observation['action_mask']`, and `info['action_mask']`: 1 for every legal action of the agent whose turn it is, all 0 for
the others. An illegal action ends the game with a reward of -1 for the agent and 0 for the others. In `raw_env` it raises
`IllegalAction` instead and changes nothing.

### Action space

One kind of decision, one block of actions. A decision with a single legal action is made by the environment, so the same
agent may decide several times in a row, or out of turn. `montecristo_env.actions.decode(action)` names an action, and
`str()` of that is its notation.

| Code    | Decision        | Question                                                         | Notation                                |
| ------- | --------------- | ---------------------------------------------------------------- | --------------------------------------- |
| 0-14    | `deal`          | Deal a card of the offer to the next player (§4.1)               | `deal G1` … `deal D3`                   |
| 15-30   | `discard`       | Discard a card, being over the hand limit (§4.5)                 | `discard G1` … `discard W`              |
| 31-41   | `place`         | Place an adventurer in a dungeon or a bonus zone, or stop (§5.1) | `enter A` … `stop placing`              |
| 42-48   | `reinforce`     | Place a reinforcement in a dungeon, or stop (§5.6)               | `reinforce A` … `stop reinforcing`      |
| 49-54   | `put_token`     | Put the next drawn token into a dungeon (§6.1)                   | `put A` … `put F`                       |
| 55-70   | `take`          | Take a token of the dungeon, or stop (§8.3)                      | `take G1` … `stop taking`               |
| 71-86   | `pay`           | Pay for the token with a card or a wild bag (§8.3)               | `pay G1` … `pay W`                      |
| 87-141  | `rearrange`     | Move a marble down or a market marker up, or nothing (§7.1)      | `marble supply 1 down 1` … `keep order` |
| 142-145 | `return_marble` | Choose the lane for the used marble (§3.2)                       | `return supply` … `return rearrange`    |

### Rewards

Zero until the end of the game, then, with `w` winners among `n` players:

| `reward`          | Winner                                       | Loser                                      |
|-------------------|----------------------------------------------|--------------------------------------------|
| `"win"` (default) | (n/w - 1)/(n - 1), so +1 for a sole winner   | -1/(n - 1)                                 |
| `"rank"`          | +1 for the first                             | linear down to -1 for the last, ties share |
| `"margin"`        | (own score - mean of the others) / target    | the same                                   |

The game terminates when a scoring round leaves somebody with 40 points or more (§9.1), and is truncated after 100 rounds
(§9.4); both are settings of the `ruleset`.

### Arguments

```python
montecristo_v0.env(num_players=2, render_mode=None, ruleset=None, reward="win", obs_dtype="float32")
```

`num_players`: 2, 3 or 4. `render_mode`: None, `"human"`, `"rgb_array"` or `"ansi"`. `ruleset`: a
`montecristo_env.Ruleset`. `reward`: `"win"`, `"rank"` or `"margin"`. `obs_dtype`: `"float32"` or `"int8"`.

Environments can be copied in the middle of a game: `copy.deepcopy`, `pickle`, `clone()`, `get_state()`, `set_state()`.

### Version history

* v0: the first version
"""

from montecristo_env.aec import env, raw_env

__all__ = ["env", "raw_env"]
