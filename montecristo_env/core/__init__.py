"""The rules of the game, compiled. Knows nothing of PettingZoo, Gymnasium or torch."""
