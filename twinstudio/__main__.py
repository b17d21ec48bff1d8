"""``python -m twinstudio`` is the same as the ``twinstudio`` command."""

from twinstudio.cli.main import main

if __name__ == "__main__":
    main()
