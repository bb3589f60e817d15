"""System checks of the sweeper: names and pairs of settings."""
