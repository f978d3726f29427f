"""The components of the game (§1): every number has a name, and what can be derived is derived."""

from enum import IntEnum

MIN_PLAYERS, MAX_PLAYERS = 2, 4
COLOURS = ("red", "blue", "green", "yellow")  # by seat, §1.1


class Kind(IntEnum):
    """The five kinds of treasure (§1.7)."""

    GOLD = 0
    RUBY = 1
    SAPPHIRE = 2
    EMERALD = 3
    DIAMOND = 4


class Lane(IntEnum):
    """The lanes of the action slide, left to right (§1.4)."""

    SUPPLY = 0
    ADVENTURERS = 1
    CHEST = 2
    REARRANGE = 3


class Zone(IntEnum):
    """The bonus zones (§1.3)."""

    WILD = 0
    DISEMBARK = 1
    POINTS = 2
    REINFORCEMENT = 3


class Decision(IntEnum):
    """What the current player is asked (§11.1); each kind has its own block of actions."""

    DEAL = 0
    DISCARD = 1
    PLACE = 2
    REINFORCE = 3
    PUT_TOKEN = 4
    TAKE = 5
    PAY = 6
    REARRANGE = 7
    RETURN_MARBLE = 8
    OVER = 9


KINDS = len(Kind)
LANES = len(Lane)
ZONES = len(Zone)
DECISIONS = len(Decision) - 1  # OVER is none
DUNGEONS = 6

ADVENTURERS = 9  # per player, §1.5
STARTING_SUPPLY = 2  # §2.5

SIZES = 3  # a card carries 1..3 bags, a token is worth 1..3
CARD_TYPES = KINDS * SIZES  # card (kind, bags) is number kind * SIZES + bags - 1
TOKEN_TYPES = KINDS * SIZES  # token (kind, value) likewise
WILD_BAG = CARD_TYPES  # the number of a wild bag where cards are numbered
CARDS = 30
TOKENS = 30
HAND_LIMIT = 7  # §4.5
MOST_CARDS_HELD = HAND_LIMIT + 1  # for a moment, until the discard

MARBLES = {2: 6, 3: 4, 4: 4}  # of each colour, §1.4
LANE_ROOM = 7  # §3.3
LANE_COLOUR_ROOM = 3

PLACEMENTS_ACTIVE = 3  # §5.1
PLACEMENTS_OTHERS = 1
DISEMBARKING = 3  # §5.4
BONUS_POINTS = 2  # §5.5
REINFORCEMENTS = 2  # §5.6

TOKENS_DRAWN = 3  # §6.1
TREASURE_PLACES = 4  # §1.2: a dungeon that holds this number starts a scoring round

LONGEST_MOVE = 2  # of a marble or a market marker, §7.1
BEST_MARKET_VALUE = 3  # §1.8

NONE = -1
HIDDEN_SLOTS = 32  # a power of two that holds all cards

# What a player can carry away in one scoring round: every bag of a full hand, at the best price.
MOST_POINTS_A_ROUND = HAND_LIMIT * SIZES * BEST_MARKET_VALUE
MOST_ROUNDS = MOST_TARGET = 10_000
