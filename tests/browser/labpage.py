"""Drives JupyterLab's page: what a person does by mouse and keys, and a look at its models."""

import os
import pathlib
import uuid

from server import DEADLINE

LIMIT = DEADLINE * 1000     # milliseconds, for anything that should take a second
SHOTS = pathlib.Path(os.environ.get("HOLDCELL_LOGS", pathlib.Path(__file__).resolve().parents[2] / "build/test-logs")) / "browser"

HELPERS = """
window.held = {
  panel: () => window.jupyterapp.shell.currentWidget,
  kernel: () => window.held.panel()?.sessionContext?.session?.kernel,
  cell: i => window.held.panel().content.widgets[i],
  statuses: [],
  watch: () => {
    const context = window.held.panel().sessionContext;
    context.statusChanged.connect((_, s) => window.held.statuses.push(s));
    context.connectionStatusChanged.connect((_, s) => window.held.statuses.push(s));
  },
};
"""


class Page:
    """One browser tab with JupyterLab in it."""

    def __init__(self, context, lab):
        self.lab = lab
        self.web = context.new_page()
        self.web.set_default_timeout(LIMIT)
        self.console, self.sockets = [], []
        self.web.on("console", lambda m: self.console.append(f"{m.type}: {m.text}"))
        self.web.on("pageerror", lambda e: self.console.append(f"uncaught: {e}"))
        self.web.add_init_script(HELPERS)

    def open(self, path=""):
        # A workspace of its own: none brings back the notebooks of a test before.
        where = f"/lab/workspaces/{uuid.uuid4().hex}" + (f"/tree/{path}" if path else "")
        self.web.goto(self.lab.url(where))
        self.web.wait_for_selector("#jp-top-panel")
        self.web.wait_for_function("() => window.jupyterapp !== undefined")
        self.js("() => window.jupyterapp.restored.then(() => true)")
        return self

    def js(self, function, *arguments):
        return self.web.evaluate(function, *arguments)

    def until(self, function, *arguments):
        """Waits for a JavaScript function to give something true."""
        return self.web.wait_for_function(function, arg=arguments[0] if arguments else None, timeout=LIMIT).json_value()

    def command(self, name, **arguments):
        self.js("([name, args]) => { window.jupyterapp.commands.execute(name, args); }", [name, arguments])

    def shot(self, name):
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.web.screenshot(path=SHOTS / f"{self.lab.way}-{name}.png")

    def accept(self):
        """Presses the dialog's accepting button."""
        self.web.locator(".jp-Dialog .jp-mod-accept").click()
        self.web.locator(".jp-Dialog").wait_for(state="detached")

    def close(self):
        self.web.close()


class Notebook:
    """The notebook in front."""

    def __init__(self, page):
        self.page, self.web = page, page.web
        self.ready()
        page.js("() => window.held.watch()")

    @classmethod
    def new(cls, page):
        before = page.js("() => window.held.panel()?.id")
        page.command("notebook:create-new", kernelName="python3")
        page.until("before => { const p = window.held.panel(); return p && p.id !== before && !!p.content?.widgets }", before)
        return cls(page)

    def ready(self):
        self.page.until("() => window.held.kernel()?.connectionStatus === 'connected' && window.held.kernel().status === 'idle'"
                        " && window.held.panel().content.widgets.length > 0")

    @property
    def kernel_id(self):
        return self.page.js("() => window.held.kernel().id")

    @property
    def path(self):
        return self.page.js("() => window.held.panel().context.path")

    def status(self):
        return self.page.js("() => window.held.kernel()?.status")

    def start(self, code):
        """Puts code into the last cell and presses Shift+Enter; returns the cell."""
        index = self.page.js("""code => {
            const content = window.held.panel().content;
            content.activeCellIndex = content.widgets.length - 1;
            content.activeCell.model.sharedModel.setSource(code);
            content.mode = 'edit';
            content.activeCell.editor.focus();
            return content.activeCellIndex; }""", code)
        self.web.keyboard.press("Shift+Enter")
        return Cell(self, index)

    def run(self, code):
        return self.start(code).wait()

    def button(self, label):
        """A button of the notebook's toolbar."""
        self.web.locator(f'.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Toolbar [data-jp-item-name="{label}"]').click()

    def save(self):
        self.web.keyboard.press("Control+s")
        self.page.until("() => window.held.panel().context.model.dirty === false")

    def close(self):
        self.page.js("""async () => {
            const panel = window.held.panel();
            panel.context.model.dirty = false;
            await panel.sessionContext.shutdown();
            panel.dispose(); }""")


class Cell:
    def __init__(self, notebook, index):
        self.notebook, self.page, self.index = notebook, notebook.page, index

    def wait(self):
        """Until its reply is here, and every output."""
        self.page.until("""i => { const m = window.held.cell(i).model;
            return m.executionState === 'idle' && m.executionCount !== null; }""", self.index)
        return self

    def until_text(self, text):
        self.page.until("""([i, text]) => JSON.stringify(window.held.cell(i).model.outputs.toJSON()).includes(text)""",
                        [self.index, text])
        return self

    @property
    def outputs(self):
        return self.page.js("i => window.held.cell(i).model.outputs.toJSON()", self.index)

    @property
    def count(self):
        return self.page.js("i => window.held.cell(i).model.executionCount", self.index)

    def stream(self, name="stdout"):
        return "".join("".join(o["text"]) for o in self.outputs if o["output_type"] == "stream" and o["name"] == name)

    @property
    def result(self):
        got = [o["data"]["text/plain"] for o in self.outputs if o["output_type"] == "execute_result"]
        return "".join(got[-1]) if got else None

    @property
    def error(self):
        got = [o["ename"] for o in self.outputs if o["output_type"] == "error"]
        return got[-1] if got else None

    def shown(self, selector, **more):
        """A locator below the cell's output area."""
        self.page.js("i => { window.held.panel().content.scrollToItem(i); }", self.index)
        return self.page.web.locator(
            f'.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook [data-windowed-list-index="{self.index}"] .jp-Cell-outputArea {selector}', **more)
