"""What the words on the page mean, for a reader who has never met them."""

TERMS: dict[str, str] = {
    "adjustment set": "Columns to hold fixed in a regression so that it gives a causal effect.",
    "arrow, edge": (
        "A direct influence: cause → effect, not through any other measured column. Its "
        "probability is the share of plausible graphs that have it."
    ),
    "chain": (
        "One independent run of the sampler. Several of them that agree are the evidence that "
        "each has found the whole posterior and not a corner of it."
    ),
    "compelled": (
        "A direction that every graph with the same independences shares. What is not compelled "
        "is free: data without interventions and without assumptions on noise cannot decide it."
    ),
    "credible band": (
        "Where the function lies with the stated probability, point by point, among the draws "
        "that have the edge."
    ),
    "directed path": "A chain of arrows cause → … → effect: an influence, direct or not.",
    "draw": "One graph with its functions, taken from the posterior in proportion to belief.",
    "effect": (
        "How much the mean of the outcome changes when the cause is set from one value to "
        "another by an intervention, everything else following as it will."
    ),
    "effective draws (ESS)": (
        "How many independent draws would be worth as much as the correlated ones that are "
        "there; a probability near one half is known to about 0.5 / √ESS."
    ),
    "equivalence class": (
        "Graphs that imply the same independences. Observation alone cannot tell them apart."
    ),
    "entropy": "How undecided something is, in nats; 0 when it is certain.",
    "evidence": "Log likelihood, in nats, that would be lost without the cause; approximate.",
    "HDI": (
        "Highest-density interval: the shortest interval that holds the stated probability, "
        "95 % here."
    ),
    "heteroscedastic": "With a scatter that depends on the causes.",
    "intervention": "Setting a variable by hand, instead of watching what value it takes.",
    "log joint": (
        "The logarithm of the probability of data and graph together, up to a constant: how "
        "good a draw is."
    ),
    "Markov blanket": (
        "The parents of a variable, its children and their other parents: given these, nothing "
        "else in the table says anything about it."
    ),
    "Monte-Carlo error": (
        "How much a number would change if the sampler ran again; more draws make it smaller."
    ),
    "nats": (
        "Units of information with natural logarithms; 0.69 nats are one bit, one yes-or-no answer."
    ),
    "partial residuals": (
        "Measured rows with the influence of the other parents taken off, so that they can be "
        "compared with the function of one cause."
    ),
    "posterior": "What is plausible after the data were seen: graphs with their probabilities.",
    "predictive check": (
        "Whether the model could have produced the rows it was fitted to; a misfit means that "
        "its arrows rest on a wrong assumption."
    ),
    "prior": "What is taken to be plausible before the data are seen.",
    "R-hat": (
        "Compares the spread between chains with that within them; 1 when they agree, above "
        "about 1.05 they have not mixed."
    ),
    "rank plot": (
        "All draws of a number are ranked together; if the chains agree, the ranks of each of "
        "them are spread evenly."
    ),
    "residual": "What is left of a value when its predicted mean is taken off.",
    "set cell": "A value that an experimenter chose; it says nothing of its own causes.",
    "skewness": "How lopsided values are: 0 when symmetric.",
    "temperature": "1 is the posterior; above 1 the data count less than they should.",
    "weight": "How much a draw counts.",
}


def as_markdown() -> str:
    """The glossary as a page of the documentation."""
    terms = sorted(TERMS.items(), key=lambda item: item[0].lower())
    parts = [f"{term}\n: {meaning}" for term, meaning in terms]
    return "\n\n".join(["# Glossary", "What the words in reports and pages mean.", *parts]) + "\n"
