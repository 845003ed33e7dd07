"""Benchmarks beside other engines, the ledger of results, and plots of it. Standard library only."""
