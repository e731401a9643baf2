"""The paper's engines: the (W, p) space, chains over it, and their parts."""
