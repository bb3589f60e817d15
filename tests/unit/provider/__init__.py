"""The shop's client against servers that misbehave: a few lines of real socket each."""
