"""What Oncue's figures come from: `make bench`, or `python -m benchmarks --json`."""
