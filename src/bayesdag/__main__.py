"""`python -m bayesdag`: the command, without installation."""

from bayesdag.cli import main

if __name__ == "__main__":
    main()
