"""The rules in at most 700 words, for whoever must learn the game from one prompt."""

from montecristo_env.core.constants import (
    ADVENTURERS,
    BONUS_POINTS,
    DISEMBARKING,
    HAND_LIMIT,
    LANE_COLOUR_ROOM,
    LANE_ROOM,
    LONGEST_MOVE,
    MAX_PLAYERS,
    MIN_PLAYERS,
    PLACEMENTS_ACTIVE,
    REINFORCEMENTS,
    STARTING_SUPPLY,
    TOKENS_DRAWN,
    TREASURE_PLACES,
)
from montecristo_env.errors import InvalidPlayerCount
from montecristo_env.ruleset import Ruleset, RulesetLike

MOST_WORDS = 700

_RULES = """\
You play a board game for {players} players, clockwise Red, Blue, Green, Yellow: collect treasure from six dungeons, \
A to F.

PIECES. Treasures and cards have a kind, G gold, R ruby, S sapphire, E emerald or D diamond, and a number from 1 to \
3. A treasure R3 is a ruby of value 3. A card R3 carries 3 bags for rubies. Cards with 1, 2, 3 bags bring \
{adventurers} adventurers. W is a wild bag: a face-down card that serves as one bag of any kind. Everybody owns \
{own} adventurers; {supply} begin in the supply, from which they are placed, the others in Marseille.

ROUND. A slide has four lanes of marbles in the players' colours: supply, adventurers, chest, rearrange. They are \
played in this order, round after round. The owner of a lane's lowest marble is the active player and does its \
action. Then they put that marble on top of another lane ("return LANE") that has room: {room} marbles, \
{colour_room} of a colour. So you plan who acts when. An empty lane is skipped.

SUPPLY LANE. One card per player is turned up. The active player keeps one ("deal CARD"), then gives one to each \
opponent, clockwise. A card moves its adventurers from its new owner's Marseille to their supply. More than {hand} \
cards, wild bags included: discard one ("discard CARD"){discard}.

ADVENTURERS LANE. The active player may place up to {active} adventurers, then each opponent one. Each goes to the \
end of a dungeon's queue ("enter A") or into a bonus zone ("visit ZONE"); at most one of them into a zone, and a \
zone has room for one adventurer of a colour. Zones: wild, take a wild bag; disembark, {disembark} adventurers from \
Marseille to your supply; points, score {bonus} points; reinforcement, place up to {reinforcements} more adventurers \
in dungeons ("reinforce A"). "stop placing" and "stop reinforcing" end it.

CHEST LANE. The active player draws {drawn} treasures and puts each into a different dungeon ("put A"). If a dungeon \
then has {full} treasures, a scoring round follows{chest_end}.

REARRANGE LANE. The active player may move one of their own marbles down in its lane, by up to {far} places ("marble \
LANE POSITION down STEPS", the lowest position is 0), or a kind up in the market by up to {far} spaces ("market R up \
1"), or nothing ("keep order"). Those that are passed move the other way.

SCORING ROUND. Dungeons are gathered from A to F, full or not. In each, players who have adventurers there get one \
turn, those with most first; between equals, the one nearer the front. In a turn you take as many treasures as you \
can pay for ("take R3"), or stop ("stop taking"). A treasure costs one of your adventurers in this queue, the \
foremost, who returns to Marseille, and as many bags of its kind as its value ("pay R2", "pay W"). Cards are spent \
whole; bags too many can pay for more treasures of that kind {spare}, then they are lost. After F, dungeons that \
still hold {full} treasures lose them, and adventurers in bonus zones return to Marseille; those in queues stay. \
Each treasure you took scores its value times the market price of its kind: from best to worst space {market}.

END. The game ends after a scoring round in which somebody has {target} points or more, or after {limit} rounds. \
Most points win; between equals, most adventurers in dungeons; if still equal, they share the win.

KNOWLEDGE. Only the order of pile and bag, and which cards the wild bags are, is hidden. {reshuffle} {refill}

Single legal moves are made for you. Answer with exactly one of the listed moves."""


def rules(ruleset: RulesetLike = None, num_players: int | None = None) -> str:
    """The rules of a game with these settings, in our own words.

    Args:
        ruleset: see `GameBatch`; numbers and variants in the text are those of the rule set.
        num_players: how many play; if None, the text says 2 to 4.
    """
    if num_players is not None and num_players not in range(MIN_PLAYERS, MAX_PLAYERS + 1):
        raise InvalidPlayerCount(f"{MIN_PLAYERS} to {MAX_PLAYERS} players can play, not {num_players!r}")
    chosen = Ruleset.of(ruleset)
    return _RULES.format(
        players=f"{MIN_PLAYERS} to {MAX_PLAYERS}" if num_players is None else num_players,
        adventurers=", ".join(map(str, chosen.card_adventurers)),
        own=ADVENTURERS,
        supply=STARTING_SUPPLY,
        room=LANE_ROOM,
        colour_room=LANE_COLOUR_ROOM,
        hand=HAND_LIMIT,
        discard=" once all cards are dealt" if chosen.discard == "after_deal" else " at once",
        active=PLACEMENTS_ACTIVE,
        disembark=DISEMBARKING,
        bonus=BONUS_POINTS,
        reinforcements=REINFORCEMENTS,
        drawn=TOKENS_DRAWN,
        full=TREASURE_PLACES,
        chest_end="; if none has and somebody has the target, the game ends" if chosen.game_end == "chest" else "",
        far=LONGEST_MOVE,
        spare="in this scoring round" if chosen.left_over_bags == "round" else "in this turn",
        market=", ".join(map(str, chosen.market)),
        target=chosen.target,
        limit=chosen.round_limit,
        reshuffle=(
            "When the pile's last card is drawn, the discards become the new pile."
            if chosen.reshuffle == "empty"
            else "When a card is needed and the pile is empty, the discards become the new pile."
        ),
        refill=(
            "Scored treasures return to the bag when it has too few to draw."
            if chosen.refill == "short"
            else "Scored treasures return to the bag when it has too few to draw, or when a draw empties it."
        ),
    )
