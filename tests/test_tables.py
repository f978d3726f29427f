"""The tables in the documentation of the environment are those of the code."""

import tables

from montecristo_env import actions, montecristo_v0, observation


def test_page_has_the_observation_table() -> None:
    assert tables.observation_table() in str(montecristo_v0.__doc__)
    assert f"({observation.SIZE},)" in str(montecristo_v0.__doc__)


def test_page_has_the_action_table() -> None:
    assert tables.action_table() in str(montecristo_v0.__doc__)
    assert f"Discrete({actions.COUNT})" in str(montecristo_v0.__doc__)


def test_tables_have_every_field_and_every_block() -> None:
    assert tables.observation_table().count("\n") == len(observation.FIELDS) + 1
    assert tables.action_table().count("\n") == len(actions.BLOCKS) + 1
