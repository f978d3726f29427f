"""The game in words, for language models: positions, rules, legal moves, and a forgiving reader of answers.

Moves are written in the notation of game records (`montecristo_env.actions`). Nothing hidden (§10) is in any text, and
the same game gives the same text. On this stand the environments for TextArena, verifiers and OpenEnv, in modules of
this package, and the agent `llm:MODEL`.

```python
game = TextGame(num_players=3, seed=0)
while not game.over:
    answer = my_model(rules(num_players=3), game.prompt())
    game.play(answer)  # raises InvalidNotation or IllegalAction, which say what was wrong and what is legal
print(game.outcome, game.rewards)
```
"""

from montecristo_env.text.game import TextGame, prompt
from montecristo_env.text.moves import list_moves, parse_move
from montecristo_env.text.position import describe
from montecristo_env.text.rules import MOST_WORDS, rules

__all__ = ["MOST_WORDS", "TextGame", "describe", "list_moves", "parse_move", "prompt", "rules"]
