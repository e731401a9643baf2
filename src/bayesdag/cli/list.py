"""Commands that list what there is: methods and data sets."""

from bayesdag.cli.app import app
from bayesdag.cli.options import AsJson
from bayesdag.cli.output import print_json, print_list, print_table


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods: what each one is."""
    from bayesdag import fitting

    print_list(fitting.list_methods(), ("method", "what it does"), as_json)


@app.command()
def datasets(as_json: AsJson = False) -> None:
    """List the data sets that come with their truth."""
    import pandas

    from bayesdag.datasets import catalogue

    rows = [entry._asdict() for entry in catalogue()]
    if as_json:
        print_json(rows)
        return
    print_table(pandas.DataFrame(rows))
