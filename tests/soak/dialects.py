"""The same cells for the two kinds of kernels: (code, outputs in their order)."""


class Scripted:
    """tests/tools/scripted_kernel.c"""
    name = "scripted"

    def setup(self):
        return "result ready"

    def lines(self, tag, n, ms):
        return f"lines {n} {ms} {tag}", [f"{tag} {i}" for i in range(n)]

    def fill(self, count, size):
        return f"fill {count} {size}"

    def display(self, tag, n):
        code = [f"display {tag} {tag} 0"]
        for i in range(1, n):
            code += [f"update {tag} {tag} {i}", f"print {tag} line {i}"]
        return "\n".join(code), self.displayed(tag, n)

    @staticmethod
    def displayed(tag, n):
        out = [f"display_data {tag} {tag} 0"]
        for i in range(1, n):
            out += [f"update_display_data {tag} {tag} {i}", f"{tag} line {i}"]
        return out

    def ask(self, tag, value):
        return f"print {tag} before\ninput {tag}?\nprint {tag} after", [f"{tag} before", value, f"{tag} after"]

    def error(self, tag):
        return f"print {tag} 0\nerror Oops", [f"{tag} 0"]

    def sleep(self, tag, ms):
        return f"print {tag} 0\nsleep {ms}", [f"{tag} 0"]


class Python(Scripted):
    """ipykernel"""
    name = "python3"

    def setup(self):
        return ("import time\n"
                "class Oops(Exception): pass\n"
                "def soak(comm, opened):\n"
                "    comm.on_msg(lambda m: comm.send(m['content']['data'], buffers=m['buffers']))\n"
                "get_ipython().kernel.comm_manager.register_target('soak', soak)")

    def lines(self, tag, n, ms):
        pause = f"\n    time.sleep({ms / 1000})" if ms else ""
        return f"import time\nfor i in range({n}):\n    print('{tag}', i){pause}", [f"{tag} {i}" for i in range(n)]

    def fill(self, count, size):
        return f"for i in range({count}):\n    print('x' * {size}, flush=True)"

    def display(self, tag, n):
        code = (f"from IPython.display import display, update_display\n"
                f"display({{'text/plain': '{tag} 0'}}, raw=True, display_id='{tag}')\n"
                f"for i in range(1, {n}):\n"
                f"    update_display({{'text/plain': f'{tag} {{i}}'}}, raw=True, display_id='{tag}')\n"
                f"    print('{tag} line', i)")
        return code, self.displayed(tag, n)

    def ask(self, tag, value):
        return (f"print('{tag} before')\nprint(input('{tag}?'))\nprint('{tag} after')",
                [f"{tag} before", value, f"{tag} after"])

    def error(self, tag):
        return f"print('{tag} 0')\nclass Oops(Exception): pass\nraise Oops", [f"{tag} 0"]

    def sleep(self, tag, ms):
        return f"import time\nprint('{tag} 0', flush=True)\ntime.sleep({ms / 1000})", [f"{tag} 0"]
