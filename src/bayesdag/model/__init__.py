"""Model assumptions: functions, noise, priors, and their energy."""
