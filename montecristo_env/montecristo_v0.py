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
| Observation shape    | (799,)                                                      |
| Observation values   | scaled, mostly in [0, 4], or counts with `obs_dtype="int8"` |

A game of majorities for two to four players. Adventurers queue for treasures in six dungeons. Marbles on a slide decide
who takes which of four actions next; every used marble returns to a lane that its owner chooses. The rules are in
`docs/rules.md`; clause numbers (§) refer to them.

### Observation space

A dictionary with `'observation'` and `'action_mask'`. The observation is a vector of everything public that affects the
future, relative to the agent: player 0 of every field is the observer, the others follow clockwise; absent players are
zero. Every entry is a count, multiplied by the scale of its field. The vector has five groups of rows with the same layout:
`montecristo_env.observation.entities(observation)` gives them, and `view(observation, "hands")` picks a field.

| Group      | Index   | Shape     |
| ---------- | ------- | --------- |
| `global`   | 0-18    | (19,)     |
| `players`  | 19-190  | (4, 43)   |
| `kinds`    | 191-420 | (5, 46)   |
| `dungeons` | 421-714 | (6, 49)   |
| `pairs`    | 715-804 | (6, 5, 3) |

| Group    | Columns | Field                 | Shape     | Highest | Scale  | Meaning                                                                                         |
| -------- | ------- | --------------------- | --------- | ------- | ------ | ----------------------------------------------------------------------------------------------- |
| global   | 0-8     | `decision`            | (9,)      | 1       | 2      | the kind of decision, in the order of the blocks of actions                                     |
| global   | 9-12    | `cylinder`            | (4,)      | 1       | 2      | the current lane                                                                                |
| global   | 13-13   | `rounds_left`         | (1,)      | 127     | 0.0156 | rounds after this one until the limit, at most 127                                              |
| global   | 14-14   | `pile_size`           | (1,)      | 30      | 0.125  | cards in the pile                                                                               |
| global   | 15-15   | `nearly_full`         | (1,)      | 6       | 1      | dungeons that lack one token                                                                    |
| global   | 16-16   | `placements_left`     | (1,)      | 3       | 1      | Adventurers: placements still open to the player placing                                        |
| global   | 17-17   | `zone_used`           | (1,)      | 1       | 2      | Adventurers: they have used their bonus zone                                                    |
| global   | 18-18   | `reinforcements_left` | (1,)      | 2       | 2      | Adventurers: reinforcements still open to them                                                  |
| players  | 0-0     | `present`             | (4,)      | 1       | 1      | 1 for every player of the game                                                                  |
| players  | 1-1     | `deciding`            | (4,)      | 1       | 1      | who must decide; all 0 when the game is over                                                    |
| players  | 2-2     | `active`              | (4,)      | 1       | 2      | the active player, owner of the marble in use                                                   |
| players  | 3-3     | `recipient`           | (4,)      | 1       | 2      | Supply: who gets the next card                                                                  |
| players  | 4-4     | `gather_order`        | (4,)      | 4       | 1      | Scoring: 4 for the player whose turn it is, 3 for the next …; 0 for none                        |
| players  | 5-5     | `scores`              | (4,)      | 127     | 0.0833 | points, at most 127                                                                             |
| players  | 6-6     | `gathered_points`     | (4,)      | 63      | 0.25   | points that the tokens gathered in this round will score                                        |
| players  | 7-7     | `supply`              | (4,)      | 9       | 0.5    | adventurers in the personal supply                                                              |
| players  | 8-8     | `marseille`           | (4,)      | 9       | 0.5    | adventurers in the general supply                                                               |
| players  | 9-9     | `hand_size`           | (4,)      | 8       | 0.5    | cards held, wild bags included                                                                  |
| players  | 10-10   | `wilds`               | (4,)      | 8       | 2      | wild bags held                                                                                  |
| players  | 11-14   | `zones`               | (4, 4)    | 1       | 2      | 1 where the player has an adventurer in the bonus zone                                          |
| players  | 15-42   | `marbles`             | (4, 4, 7) | 1       | 3      | 1 where the player has a marble: lane and position, bottom first                                |
| kinds    | 0-11    | `hands`               | (5, 4, 3) | 8       | 2      | face-up cards of each player by bags                                                            |
| kinds    | 12-14   | `unseen_cards`        | (5, 3)    | 30      | 1      | cards in the pile and among the wild bags, by bags                                              |
| kinds    | 15-17   | `card_discard`        | (5, 3)    | 30      | 1      | discarded cards, by bags                                                                        |
| kinds    | 18-20   | `offer`               | (5, 3)    | 4       | 4      | Supply: cards drawn and not yet dealt, by bags                                                  |
| kinds    | 21-23   | `bag`                 | (5, 3)    | 30      | 1      | tokens in the bag, by value                                                                     |
| kinds    | 24-26   | `token_discard`       | (5, 3)    | 30      | 1      | discarded tokens, by value                                                                      |
| kinds    | 27-30   | `bags`                | (5, 4)    | 24      | 0.5    | bags on the face-up cards of each player                                                        |
| kinds    | 31-34   | `left_over_bags`      | (5, 4)    | 2       | 2      | Scoring: bags paid and not used up, by player                                                   |
| kinds    | 35-37   | `drawn_tokens`        | (5, 3)    | 3       | 2      | Treasure chest: values of the tokens to place, in order                                         |
| kinds    | 38-38   | `taking`              | (5,)      | 3       | 2      | Scoring: value of the token being paid for                                                      |
| kinds    | 39-39   | `owed`                | (5,)      | 3       | 2      | Scoring: bags still to be paid for it                                                           |
| kinds    | 40-40   | `market_values`       | (5,)      | 3       | 1      | what the market gives for the kind                                                              |
| kinds    | 41-45   | `market`              | (5, 5)    | 1       | 2      | the market space of the kind, best first                                                        |
| dungeons | 0-35    | `queue_positions`     | (6, 4, 9) | 36      | 0.5    | positions of each player's adventurers in the queue, foremost first, counted from 1; 0 for none |
| dungeons | 36-39   | `adventurers`         | (6, 4)    | 9       | 1      | adventurers of each player                                                                      |
| dungeons | 40-43   | `within_reach`        | (6, 4)    | 36      | 0.25   | points for the tokens that each player's bags and wild bags can pay, each on its own            |
| dungeons | 44-44   | `tokens`              | (6,)      | 4       | 1      | tokens in the dungeon                                                                           |
| dungeons | 45-45   | `chest_dungeons`      | (6,)      | 1       | 4      | Treasure chest: 1 where this chest has put a token                                              |
| dungeons | 46-46   | `gather_dungeon`      | (6,)      | 1       | 4      | Scoring: 1 for the dungeon where tokens are gathered                                            |
| dungeons | 47-47   | `to_gather`           | (6,)      | 1       | 2      | Scoring: 1 for this dungeon and those after it                                                  |
| pairs    | 0-2     | `dungeon_tokens`      | (6, 5, 3) | 4       | 3      | tokens of the kind in the dungeon, by value                                                     |

All players know the same (§10.2); `state()` is the game as seat 0 sees it.

#### Legal actions mask

`observation['action_mask']`, and `info['action_mask']`: 1 for every legal action of the agent whose turn it is, all 0 for
the others. An illegal action ends the game with a reward of -1 for the agent and 0 for the others. In `raw_env` it raises
`IllegalAction` instead and changes nothing.

### Action space

Every kind of decision has its own block of actions. The environment makes decisions that have a single legal action, so
the same agent may decide several times in a row, or out of turn. `montecristo_env.actions.decode(action)` names an action, and
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
