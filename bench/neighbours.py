"""What a neighbour notices of a session that uses up everything, or sends raw frames to the gateway.

    neighbours.py [--rounds N] [--only WORD]

For each of tests/blackbox/hogs.py, N rounds (default 2): 30 cells of a neighbour while all is quiet, then cells and GET
/api/kernels beside the hog, and in turn the same in another instance of the server, which shares nothing with it but the
machine: what these need more is the machine's doing. Shown are medians and their ratios. Prints Markdown.

Started by bench/run.sh.
"""

import argparse
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("HOLDCELL_BIN", os.path.join(ROOT, "build/release/bin/holdcell"))
sys.path.insert(0, os.path.join(ROOT, "tests/blackbox"))
from hogs import CASES, measure, medians  # noqa: E402
from server import Server  # noqa: E402


def row(name, rounds, servers):
    took, samples = [], ([], [], [], [], [])
    CASES[name].live(servers[0])
    for _ in range(rounds):
        times, more = measure(CASES[name], servers)
        took += times
        for all_, some in zip(samples, more):
            all_ += some
    quiet, beside, elsewhere, status, status_elsewhere = medians(samples)
    deleted = max(t for _, t in took)
    print(f"| {name} | {quiet:.1f} ms | {beside:.1f} ms, ratio {beside / quiet:.2f} | {elsewhere:.1f} ms, ratio "
          f"{elsewhere / quiet:.2f} | {beside / elsewhere:.2f} | {status:.1f} ms | {status_elsewhere:.1f} ms | "
          f"{deleted:.1f} s |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="", help="hogs whose name has this word")
    options = parser.parse_args()
    print(f"Load before: {os.getloadavg()[0]:.1f}\n")
    print("| hog | cell, quiet | beside the hog | in another instance | beside : there | GET beside | GET there | longest DELETE |")
    print("|---|---|---|---|---|---|---|---|")
    servers = [Server("--cpus", "1", "--max-inodes", "200000"), Server()]
    try:
        for s in servers:
            s.start()
        for name in CASES:
            if options.only in name:
                row(name, options.rounds, servers)
    finally:
        for s in servers:
            if s.proc is not None:
                s.close()


if __name__ == "__main__":
    main()
