"""What is assumed of the world: functions, noise, priors, and their energy."""
