"""`python -m bayesdag`: the command, without installation."""

from bayesdag.cli import run

if __name__ == "__main__":
    run()
