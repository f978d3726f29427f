"""Everything this package refuses, by name. All of them are `MonteCristoError`s, and so `ValueError`s."""


class MonteCristoError(ValueError):
    """Bad input. The message says what was wrong and what is allowed; nothing was changed."""


class IllegalAction(MonteCristoError):
    """An action that the rules do not allow at this moment; names game, action and the legal ones."""


class InvalidArgument(MonteCristoError):
    """An argument of the wrong shape, dtype or range."""


class InvalidPlayerCount(InvalidArgument):
    """A number of players other than 2, 3 or 4."""


class UnplayableRuleset(MonteCristoError):
    """A rule set with which the game cannot be played (§1.9)."""


class InvalidNotation(MonteCristoError):
    """A text that is not the notation of any action."""


class DamagedRecord(MonteCristoError):
    """A game record that cannot be read or does not replay; names the event."""
