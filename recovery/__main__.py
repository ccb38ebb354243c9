"""The command `recover`."""


def main() -> None:
    """Runs the command line."""


if __name__ == "__main__":
    main()
