"""Parts of the scores of tables that hold levels, counts and measurements together."""
