"""Reads expected.txt: what becomes of each upstream test on holdcell."""

import collections

Entry = collections.namedtuple("Entry", "verdict id shows why line")


class Entries(list):
    def find(self, node):
        """The entry of a test: its own, or the first whose id ends with * and begins like it."""
        for e in self:
            if e.id == node:
                return e
        for e in self:
            if e.id.endswith("*") and node.startswith(e.id[:-1]):
                return e
        return None


def read_expected(path, suite):
    entries, section = Entries(), None
    with open(path) as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            if line.startswith("["):
                section = line.strip("[]")
                continue
            if section != suite:
                continue
            words = [w.strip() for w in line.split(" | ")]
            verdict, node = words[0], words[1]
            want = {"passed": 2, "n/a": 3, "differs": 4, "varies": 4}.get(verdict)
            if len(words) != want:
                raise ValueError(f"{path}:{number}: not a line of this file: {line}")
            shows = words[2] if want == 4 else ""
            entries.append(Entry(verdict, node, shows, words[-1] if want > 2 else "", number))
    return entries
