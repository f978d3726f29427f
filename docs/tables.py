"""The tables of the documentation, made from the code."""

from collections.abc import Sequence

from montecristo_env.core import actions, observation
from montecristo_env.core.constants import Decision

_QUESTIONS = {
    Decision.DEAL: "Deal a card of the offer to the next player (§4.1)",
    Decision.DISCARD: "Discard a card, being over the hand limit (§4.5)",
    Decision.PLACE: "Place an adventurer in a dungeon or a bonus zone, or stop (§5.1)",
    Decision.REINFORCE: "Place a reinforcement in a dungeon, or stop (§5.6)",
    Decision.PUT_TOKEN: "Put the next drawn token into a dungeon (§6.1)",
    Decision.TAKE: "Take a token of the dungeon, or stop (§8.3)",
    Decision.PAY: "Pay for the token with a card or a wild bag (§8.3)",
    Decision.REARRANGE: "Move a marble down or a market marker up, or nothing (§7.1)",
    Decision.RETURN_MARBLE: "Choose the lane for the used marble (§3.2)",
}


def observation_table() -> str:
    """The fields of an observation, in Markdown."""
    rows = [
        (
            field.group,
            f"{field.columns.start}-{field.columns.stop - 1}",
            f"`{name}`",
            str(field.shape),
            str(field.highest),
            f"{field.scale:.3g}",
            field.meaning,
        )
        for name, field in observation.FIELDS.items()
    ]
    return _table(("Group", "Columns", "Field", "Shape", "Highest", "Scale", "Meaning"), rows)


def group_table() -> str:
    """The groups of an observation, in Markdown."""
    rows = [
        (f"`{name}`", f"{group.slice.start}-{group.slice.stop - 1}", str((*group.axes, group.width)))
        for name, group in observation.GROUPS.items()
    ]
    return _table(("Group", "Index", "Shape"), rows)


def action_table() -> str:
    """The blocks of actions, in Markdown."""
    rows = []
    for decision, question in _QUESTIONS.items():
        block = actions.BLOCKS[decision.name.lower()]
        first, last = actions.decode(block[0]), actions.decode(block[-1])
        rows.append((f"{block[0]}-{block[-1]}", f"`{decision.name.lower()}`", question, f"`{first}` … `{last}`"))
    return _table(("Code", "Decision", "Question", "Notation"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )
