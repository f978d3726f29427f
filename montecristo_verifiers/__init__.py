"""The name under which verifiers finds the game: its loader takes top-level modules only."""

from montecristo_env.text.verifiers import ChatHarness, MonteCristoEnv, MonteCristoTaskset

__all__ = ["ChatHarness", "MonteCristoEnv", "MonteCristoTaskset"]
