"""Columns that nothing in a table acts on, recognised by their names alone."""

import pytest

from bayesdag.data import Kind, root_names

ROOTS = [
    *("age", "Age", "AGE", "age_years", "Age (years)", "patient_age", "PatientAge", "age group"),
    *("log(age)", "age at baseline", "sex", "Sex_male", "gender", "race", "race/ethnicity"),
    *("year", "YEAR", "birth_year", "birthYear", "year of birth", "yob", "quarter", "month"),
    *("day_of_week", "Alter", "Geschlecht", "âge", "género", "età", "płeć", "idade", "ålder"),
]
OTHERS = [
    *("page", "agent", "wage", "dosage", "stage", "agency", "sexual_health", "sex_partners"),
    *("age_at_death", "age at onset", "mean_age", "gestational age", "bone_age", "age_squared"),
    *("race_time", "years_married", "yrs_married", "year_built", "graduation year"),
    *("birth_weight", "birth", "birth_rate", "time", "update", "white", "percent_female", "is"),
    *("agegroup_income", "yearly income", "", "…", "x0", "gender_gap", "old"),
]


@pytest.mark.parametrize("name", ROOTS)
def test_what_nothing_acts_on_is_recognised(name):
    assert root_names.assumed_roots([name], [Kind("continuous")]) == (name,)


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_are_left_to_the_data(name):
    assert root_names.assumed_roots([name], [Kind("continuous")]) == ()


def test_a_share_of_women_is_no_sex():
    female = Kind("binary", ("0", "1"))
    assert root_names.assumed_roots(["female", "is_male"], [female, female]) == (
        "female",
        "is_male",
    )
    assert root_names.assumed_roots(["female"], [Kind("continuous")]) == ()
