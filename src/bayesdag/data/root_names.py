"""Columns whose names say that nothing in a table acts on them: age, sex, year of birth.

A person who sees such a name would not ask the data. A name counts where one of its words says
so and all its other words merely qualify it: `patient_age`, `Age (years)` and `birthYear` are
such names; `page`, `sexual_health`, `age_at_death` and `race_time` are not.
"""

import re
import unicodedata
from collections.abc import Sequence

from bayesdag.data.kinds import Kind


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# In English, Dutch, French, German, Italian, Polish, Portuguese, Spanish and Swedish, and without
# accents.
_AGE = _words("age alder alter edad eta idade leeftijd wiek")
_SEX = _words("gender genero geschlacht geschlecht geslacht kon plec sesso sex sexe sexo")
_ORIGIN = _words("ethnic ethnicity etnia race raca raza")
_BIRTH = _words(
    "birthdate birthday birthplace birthyear dob geboortejaar geburtsdatum geburtsjahr jahrgang yob"
)
_CALENDAR = _words(
    "ano anno annee date datum dayofweek decade dow fecha jaar jahr maand mes mese mois monat "
    "month quarter quartal rok season week weekday year"
)
# Words that qualify one of those above and leave it what it is.
_OF_ANY = _words("a an at baseline code coded in is of the var z std scaled log self reported")
_OF_AGE = _words(
    "band baseline bin binned bracket cat category class enrollment enrolment entry group grp "
    "groups interview days months years year yrs yr y old range ans jahre jahren anos anni jaar"
)
_OF_PEOPLE = _words("client individual participant patient person respondent student subject user")
_OF_SEX = _words("assigned biological birth f female m male man men woman women")
_OF_ORIGIN = _words("asian black hispanic latina latino native other white group category")
_OF_CALENDAR = _words("calendar day month number num survey year interview hour")
_WITH_BIRTH = _words("country cohort date day decade month place season year")
_QUALIFIERS = (
    (_AGE, _OF_AGE | _OF_PEOPLE),
    (_SEX, _OF_SEX | _OF_PEOPLE),
    (_ORIGIN, _OF_ORIGIN | _OF_PEOPLE | _ORIGIN),
    (_BIRTH, _OF_PEOPLE),
    (_CALENDAR, _OF_CALENDAR | _CALENDAR),
    (_words("birth"), _WITH_BIRTH | _OF_PEOPLE),
)
# What says it on its own, or with "is", in a column of two levels: elsewhere it may be a share.
_OF_TWO_LEVELS = _words("female femme frau hombre homme male mann mujer")
_ALONE = _words("birth")  # says nothing without a word beside it


def assumed_roots(names: Sequence[str], kinds: Sequence[Kind]) -> tuple[str, ...]:
    """The columns that are taken to have no causes in the table, by their names.

    >>> from bayesdag.data.kinds import CONTINUOUS
    >>> assumed_roots(("Age (years)", "page", "sexual_health", "birthYear"), [CONTINUOUS] * 4)
    ('Age (years)', 'birthYear')
    """
    pairs = zip(names, kinds, strict=True)
    return tuple(name for name, kind in pairs if _says_root(name, kind.name == "binary"))


def is_calendar(name: str) -> bool:
    """Whether a column is called so that it says when a row was measured."""
    words = _words_in(name) - _OF_ANY
    return bool(words & _CALENDAR) and words <= _CALENDAR | _OF_CALENDAR


def _says_root(name: str, of_two_levels: bool) -> bool:
    words = _words_in(name) - _OF_ANY
    if not words or words <= _ALONE:
        return False
    if of_two_levels and len(words) == 1 and words <= _OF_TWO_LEVELS:
        return True
    return any(words & saying and words <= saying | beside for saying, beside in _QUALIFIERS)


def _words_in(name: str) -> frozenset[str]:
    """Words of a name in small letters without accents; camelCase counts as two."""
    plain = unicodedata.normalize("NFKD", name)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    plain = plain.replace("ł", "l").replace("Ł", "L")
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain).lower()
    return frozenset(re.findall(r"[^\W_]+", parts))
