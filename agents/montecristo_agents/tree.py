"""The tree of a search, which stands for what has been decided and not for what chance has brought (an open loop).

Every simulation plays one game from the root down, with hidden parts and chance of its own. So the same node is reached
in different positions, which allow different moves: each move counts how often it was there to be chosen.
A value is given to every player, and whoever decides looks at their own (max^n).
"""

from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from montecristo_env.core.actions import FIRST
from montecristo_env.core.chance import resample_hidden
from montecristo_env.core.constants import HIDDEN_SLOTS, MAX_PLAYERS, NONE, TOKEN_TYPES, TOKENS
from montecristo_env.core.jit import Array, copy_bytes, kernel
from montecristo_env.core.layout import STATE, Row
from montecristo_env.core.legal import NOTHING, bit

NODE = np.dtype(
    [
        ("move", np.int32),  # what led here: see `move_of`
        ("parent", np.int32),
        ("first_child", np.int32),  # NONE without children
        ("next_sibling", np.int32),  # NONE for the last
        ("visits", np.int32),
        ("available", np.int32),  # visits of the parent in which this move was legal
        ("total", np.float64),  # sum of the values for the player who made the move
        ("prior", np.float64),  # how good the move seemed before it was tried, from 0 to 1
    ]
)
Trees: TypeAlias = Annotated[NDArray[np.void], Array(NODE, 2)]
ROOT = 0
_ROW_BYTES = STATE.itemsize


@kernel
def canonicalize_hidden(s: Row) -> None:
    """Makes everything hidden the same in all rows that are alike for the players, so that no trace of it is left.

    Which cards are hidden in each shuffle and which tokens are in the bag is public (§10.1): they stay, in one order.
    """
    s.seed = s.cards_key = s.tokens_key = s.play_key = np.uint64(0)
    s.scratch[:] = 0
    for i in range(TOKENS):
        s.bag_order[i] = 0
    drawn = 0
    for token in range(TOKEN_TYPES):
        for _ in range(s.bag[token]):
            s.bag_order[drawn] = token
            drawn += 1
    for slot in range(HIDDEN_SLOTS):
        if s.slot_shuffle[slot] == NONE:  # what was in it before
            s.slot_card[slot] = 0
    for last in range(HIDDEN_SLOTS - 1, 0, -1):
        for slot in range(last):
            alike = s.slot_shuffle[slot] == s.slot_shuffle[last]
            if alike and s.slot_card[slot] > s.slot_card[last]:
                s.slot_card[slot], s.slot_card[last] = s.slot_card[last], s.slot_card[slot]


@kernel
def determinize(root: Row, key: np.uint64, s: Row) -> None:
    """Makes of `s` a game that the players could be in, as far as they know: what is hidden is redrawn."""
    copy_bytes(s.bytes, 0, root.bytes, 0, _ROW_BYTES)
    resample_hidden(s, key)


@kernel
def move_of(s: Row, choice: int) -> int:
    """The number of a move: an action and who takes it."""
    return (int(FIRST[s.decision]) + choice) * MAX_PLAYERS + int(s.current_player)


@kernel
def player_of(move: int) -> int:
    """Who makes a move."""
    return int(move) % MAX_PLAYERS


@kernel
def action_of(move: int) -> int:
    """The code of the action of a move."""
    return int(move) // MAX_PLAYERS


@kernel
def choice_of(s: Row, move: int) -> int:
    """The place of a move in the block of the decision at hand, or NONE if it is not legal in this position."""
    action = action_of(move)
    if player_of(move) != s.current_player or not FIRST[s.decision] <= action < FIRST[s.decision + 1]:
        return NONE
    choice = action - int(FIRST[s.decision])
    return NONE if s.legal & bit(choice) == NOTHING else choice


@kernel
def init_tree(tree: np.ndarray) -> int:
    """Begins a new tree; the number of its nodes."""
    write_node(tree[ROOT], NONE, NONE, 1.0)
    return 1


@kernel
def write_node(node: Row, parent: int, move: int, prior: float) -> None:
    """A node without visits."""
    node.move = move
    node.parent = parent
    node.first_child = node.next_sibling = NONE
    node.visits = 0
    node.available = 1
    node.total = 0.0
    node.prior = prior


@kernel
def add_child(tree: np.ndarray, size: int, parent: int, move: int, prior: float) -> None:
    """A move that the tree of this size did not have yet gets the next node."""
    write_node(tree[size], parent, move, prior)
    tree[size].next_sibling = tree[parent].first_child
    tree[parent].first_child = size


@kernel
def expand(tree: np.ndarray, size: int, node: int, s: Row, priors: np.ndarray) -> int:
    """A child for every legal choice that has none, as likely as `priors` say; the new size of the tree."""
    missing, _ = unexpanded_moves(tree, node, s)
    for choice in range(priors.size):
        if missing & bit(choice) != NOTHING:
            add_child(tree, size, node, move_of(s, choice), priors[choice])
            size += 1
    return size


@kernel
def unexpanded_moves(tree: np.ndarray, node: int, s: Row) -> tuple[np.uint64, float]:
    """The legal choices that have no child, and the mean value of those that have been tried."""
    missing = s.legal
    total, visits = 0.0, 0
    child = int(tree[node].first_child)
    while child != NONE:
        move = tree[child]
        choice = choice_of(s, move.move)
        if choice != NONE:
            missing &= ~bit(choice)
            total += move.total
            visits += int(move.visits)
        child = int(move.next_sibling)
    return missing, total / max(visits, 1)


@kernel
def select_child(tree: np.ndarray, node: int, s: Row, c_puct: float) -> int:
    """The child with the best value and the most likely to be better still; NONE if a legal move has no child yet."""
    missing, mean = unexpanded_moves(tree, node, s)  # the mean is the value of untried ones
    best, highest = NONE, 0.0
    if missing != NOTHING:
        return best
    child = int(tree[node].first_child)
    while child != NONE:
        move = tree[child]
        if choice_of(s, move.move) != NONE:
            move.available += 1
            visits = int(move.visits)
            value = move.total / visits if visits > 0 else mean
            bound = value + c_puct * move.prior * np.sqrt(int(move.available)) / (1 + visits)
            if best == NONE or bound > highest:
                best, highest = child, bound
        child = int(move.next_sibling)
    return best


@kernel
def backup(tree: np.ndarray, leaf: int, values: np.ndarray) -> None:
    """Adds the values of a simulation to every move that led to its leaf."""
    node = leaf
    while node != ROOT:
        tree[node].visits += 1
        tree[node].total += values[player_of(tree[node].move)]
        node = int(tree[node].parent)
    tree[ROOT].visits += 1
