"""What the server takes, measured over time, and the question whether that is flat."""

import os
import statistics
import time

from server import cgroups_of, descendants_of, read, status_of


class Gauge:
    """Samples of the processes of one server."""

    def __init__(self, server):
        self.server, self.slot = server, server.slot()
        self.pids = {"supervisor": server.proc.pid, "launcher": server.process("launcher"),
                     "gateway": server.process("gateway")}
        self.rows = []              # (seconds, {name: value})
        self.began = time.monotonic()

    def sample(self):
        row = {}
        for name, pid in self.pids.items():
            status = status_of(pid)
            row[f"{name} rss KiB"] = int(status.get("VmRSS", "0 kB").split()[0])
            row[f"{name} threads"] = int(status.get("Threads", 0))
            try:
                row[f"{name} fds"] = len(os.listdir(f"/proc/{pid}/fd"))
            except OSError:
                row[f"{name} fds"] = 0
        row["launcher mounts"] = len(read(f"/proc/{self.pids['launcher']}/mountinfo").splitlines())
        row["processes"] = len(descendants_of(self.server.proc.pid))
        row["cgroups"] = len(cgroups_of(self.slot))
        row["files of the state"] = sum(len(f) + len(d) for _, d, f in os.walk(self.server.state))
        self.rows.append((time.monotonic() - self.began, row))
        return row

    def alive(self):
        """No process of the server was ever replaced."""
        return self.pids["launcher"] == self.server.process("launcher") and \
            self.pids["gateway"] == self.server.process("gateway")

    @staticmethod
    def allowed(name, early):
        """The most that the late median may be."""
        if name.endswith("rss KiB"):
            return early * 1.10 + 8 * 1024
        if name.endswith("threads"):
            return early
        return early * 1.10 + 12        # fds, processes, cgroups: who comes and goes is counted at random moments

    def drift(self, begin, end):
        """(table, breaches): medians of the third and the last quarter of the time between."""
        span = end - begin
        early, late = ([r for t, r in self.rows if begin + a * span <= t <= begin + b * span]
                       for a, b in ((0.3, 0.55), (0.75, 1.0)))
        table, breaches = [], []
        if not early or not late:
            return table, ["too few samples for a verdict"]
        for name in early[0]:
            a, b = (statistics.median(r[name] for r in rows) for rows in (early, late))
            table.append(f"{name:22} {self.rows[0][1][name]:>10} {a:>10.0f} {b:>10.0f} {self.rows[-1][1][name]:>10}")
            if b > self.allowed(name, a):
                breaches.append(f"{name} is not flat: {a:.0f}, later {b:.0f}")
        return table, breaches
