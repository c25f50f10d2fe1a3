"""JupyterLab in Chromium with its kernels in holdcell, as a person uses it."""

import json
import os
import signal

import nbformat
import pytest
from labpage import Notebook
from server import wait_for

NOTEBOOK_CARDS = '.jp-LauncherCard[data-category="Notebook"]'


@pytest.mark.both
def test_the_launcher_offers_the_kernels_with_their_logos(page, gateway):
    page.command("launcher:create")
    page.web.wait_for_selector(NOTEBOOK_CARDS)
    cards = page.web.locator(NOTEBOOK_CARDS)
    specs = gateway.request("GET", "/api/kernelspecs").json()["kernelspecs"]
    assert sorted(cards.evaluate_all("cards => cards.map(c => c.title)")) == sorted(
        s["spec"]["display_name"] for s in specs.values())
    page.until(f"() => [...document.querySelectorAll('{NOTEBOOK_CARDS} img')].some(i => i.complete && i.naturalWidth > 0)")
    assert cards.locator("img").count() == cards.count()
    page.shot("launcher")


def test_a_notebook_made_by_the_launcher_runs_what_is_typed(page, gateway):
    page.command("launcher:create")
    page.web.locator(f"{NOTEBOOK_CARDS}:visible").first.click()     # hidden launchers stay in the page
    page.web.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .cm-content")
    nb = Notebook(page)
    assert nb.kernel_id in [k["id"] for k in gateway.request("GET", "/api/kernels").json()]
    page.web.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .cm-content").first.click()
    page.web.keyboard.type("6 * 7")
    page.web.keyboard.press("Shift+Enter")
    output = page.web.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-OutputArea-executeResult")
    output.wait_for()
    assert output.inner_text().split()[-1] == "42"
    kernel = nb.kernel_id
    nb.close()
    wait_for(lambda: gateway.kernel(kernel) is None)


@pytest.mark.both
def test_the_framing_is_the_expected_one(nb, lab):
    nb.run("1")
    if lab.way == "direct":
        offered, answer = lab.split.upgrades[-1]
        assert offered and "v1.kernel.websocket.jupyter.org" in answer.lower().split("sec-websocket-protocol:")[1]
        assert nb.page.js("() => window.held.kernel()._ws.protocol") == "v1.kernel.websocket.jupyter.org"
    else:
        assert nb.page.js("() => window.held.kernel()._ws.protocol") == ""


def test_a_chart_is_a_picture_in_the_page(nb):
    cell = nb.run("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]); plt.title('holdcell')\nplt.show()")
    assert cell.error is None, cell.outputs
    picture = cell.shown("img")
    picture.wait_for()
    assert picture.count() == 1
    assert picture.evaluate("i => i.decode().then(() => i.naturalWidth)") > 300
    nb.page.shot("chart")


def test_a_data_frame_is_a_table(nb):
    cell = nb.run("import pandas as pd\npd.DataFrame({'city': ['Oslo', 'Rome'], 'rain': [7, 3]})")
    rows = cell.shown("table tr")
    rows.first.wait_for()
    assert [r.split() for r in rows.all_inner_texts()] == [["city", "rain"], ["0", "Oslo", "7"], ["1", "Rome", "3"]]
    nb.page.shot("table")


def test_a_traceback_is_shown_and_later_cells_are_not_run(nb):
    first = nb.start("import time\nprint('go', flush=True)\ntime.sleep(2)\n1 / 0")
    first.until_text("go")
    second = nb.start("print('never')")
    first.wait()
    assert first.error == "ZeroDivisionError"
    first.shown(".jp-OutputArea-output", has_text="division by zero").wait_for()
    assert nb.run("'alive'").result == "'alive'"
    assert second.stream() == ""


@pytest.mark.both
def test_input_is_answered_in_the_page(nb):
    cell = nb.start("name = input('Who? ')\nprint('Hello', name)")
    box = cell.shown("input.jp-Stdin-input")
    box.wait_for()
    assert cell.shown(".jp-Stdin-prompt").inner_text().strip() == "Who?"
    box.fill("Ada")
    box.press("Enter")
    cell.wait()
    assert "Hello Ada\n" in cell.stream()
    assert nb.run("name").result == "'Ada'"
    nb.page.shot("input")


def test_a_password_is_not_shown(nb):
    cell = nb.start("from getpass import getpass\nlen(getpass('Secret: '))")
    box = cell.shown("input.jp-Stdin-input")
    box.wait_for()
    assert box.get_attribute("type") == "password"
    box.fill("pässword")
    box.press("Enter")
    assert cell.wait().result == "8"
    assert "pässword" not in json.dumps(cell.outputs, ensure_ascii=False)


def test_the_interrupt_button_ends_a_sleep_and_keeps_variables(nb):
    nb.run("x = 7")
    cell = nb.start("import time\nprint('go', flush=True)\ntime.sleep(600)")
    cell.until_text("go")
    nb.button("interrupt")
    cell.wait()
    assert cell.error == "KeyboardInterrupt"
    assert nb.run("x").result == "7"
    nb.page.shot("interrupt")


def test_the_restart_button_forgets_variables_and_keeps_the_kernel(nb):
    kernel = nb.kernel_id
    nb.run("x = 7")
    nb.button("restart")
    nb.page.accept()
    nb.ready()
    cell = nb.run("x")
    assert cell.error == "NameError" and cell.count == 1
    assert nb.kernel_id == kernel
    # stdin of the new process is connected as well
    cell = nb.start("input('again? ')")
    box = cell.shown("input.jp-Stdin-input")
    box.fill("yes")
    box.press("Enter")
    assert cell.wait().result == "'yes'"


def test_restart_while_a_cell_runs(nb):
    cell = nb.start("import time\nprint('go', flush=True)\ntime.sleep(600)")
    cell.until_text("go")
    nb.button("restart")
    nb.page.accept()
    nb.ready()
    assert nb.run("'fresh'").count == 1


def test_a_kernel_that_dies_is_told_and_comes_back(nb):
    kernel = nb.kernel_id
    nb.run("x = 7")
    nb.start("import os\nos._exit(3)")
    nb.page.web.locator(".jp-Dialog").wait_for()
    nb.page.shot("died")
    assert "restart" in nb.page.web.locator(".jp-Dialog").inner_text().lower()
    nb.page.accept()
    nb.page.until("() => window.held.statuses.includes('autorestarting')")
    nb.ready()
    assert nb.kernel_id == kernel
    assert nb.run("x").error == "NameError"


def test_five_thousand_lines_are_all_there(nb):
    cell = nb.run("for i in range(5000): print('line', i)")
    wanted = "".join(f"line {i}\n" for i in range(5000))
    assert cell.stream() == wanted
    shown = cell.shown(".jp-RenderedText pre")
    shown.first.wait_for()
    assert "\n".join(shown.all_text_contents()).split() == wanted.split()
    nb.page.shot("lines")


@pytest.mark.full          # JupyterLab draws the whole text again at each
def test_five_thousand_flushed_lines_are_all_there(nb):
    cell = nb.run("for i in range(5000): print('line', i, flush=True)")
    assert cell.stream() == "".join(f"line {i}\n" for i in range(5000))


def test_a_progress_bar_ends_as_one_bar(nb):
    cell = nb.run("from tqdm import tqdm\nimport time\nfor _ in tqdm(range(200)): time.sleep(0.005)")
    bars = cell.stream("stderr").split("\r")[-1]
    assert "200/200" in bars
    shown = cell.shown(".jp-RenderedText pre")
    shown.first.wait_for()
    text = "".join(shown.all_inner_texts())
    assert text.count("it/s") == 1 and "200/200" in text, text
    nb.page.shot("tqdm")


def test_updates_of_a_display_end_as_one_output(nb):
    cell = nb.run("from IPython.display import display, HTML, clear_output\n"
                  "h = display(HTML('<progress max=100 value=0>'), display_id=True)\n"
                  "for i in range(1, 101): h.update(HTML(f'<progress max=100 value={i}></progress>'))")
    bar = cell.shown("progress")
    bar.wait_for()
    assert bar.count() == 1 and bar.get_attribute("value") == "100"
    # an update from another cell reaches it too
    nb.run("h.update(HTML('<b class=done>done</b>'))")
    cell.shown("b.done").wait_for()
    cleared = nb.run("for i in range(50):\n    clear_output(wait=True)\n    print('turn', i)")
    assert cleared.stream() == "turn 49\n"


@pytest.mark.both
def test_a_slider_moves_both_ways(nb):
    cell = nb.run("import ipywidgets\ns = ipywidgets.IntSlider(value=41, min=0, max=100, description='n')\ns")
    handle = cell.shown(".noUi-handle")
    handle.wait_for()
    handle.focus()
    nb.web.keyboard.press("ArrowRight")
    readout = cell.shown(".widget-readout")
    nb.page.until("() => [...document.querySelectorAll('.widget-readout')].some(r => r.textContent === '42')")
    assert nb.run("s.value").result == "42"
    nb.run("s.value = 7")
    nb.page.until("() => [...document.querySelectorAll('.widget-readout')].some(r => r.textContent === '7')")
    assert readout.inner_text() == "7"
    nb.page.shot("slider")


def test_a_slider_is_heard_while_a_cell_awaits(nb):
    cell = nb.run("import asyncio, ipywidgets\ns = ipywidgets.IntSlider(value=41, min=0, max=100)\ns")
    handle = cell.shown(".noUi-handle")
    handle.wait_for()
    waiting = nb.start("print('go', flush=True)\nwhile s.value == 41: await asyncio.sleep(0.05)\ns.value")
    waiting.until_text("go")
    handle.focus()
    nb.web.keyboard.press("ArrowRight")
    assert waiting.wait().result == "42"


def test_bars_of_tqdm_as_widgets(nb):
    cell = nb.run("from tqdm.notebook import tqdm\nfor _ in tqdm(range(50), desc='work'): pass")
    bar = cell.shown(".widget-hprogress, .jupyter-widgets .progress, .progress-bar")
    bar.first.wait_for()
    nb.page.until("() => document.body.innerText.includes('50/50')")


def test_completion_and_help_work_in_the_page(nb):
    nb.run("import math")
    nb.page.js("""() => { const c = window.held.panel().content;
        c.activeCellIndex = c.widgets.length - 1; c.activeCell.model.sharedModel.setSource('');
        c.mode = 'edit'; c.activeCell.editor.focus(); }""")
    nb.web.keyboard.type("math.facto")
    nb.web.keyboard.press("Tab")
    nb.page.until("() => window.held.panel().content.activeCell.model.sharedModel.getSource() === 'math.factorial'"
                  " || !!document.querySelector('.jp-Completer:not(.lm-mod-hidden)')")
    nb.web.keyboard.press("Enter")
    nb.page.until("() => window.held.panel().content.activeCell.model.sharedModel.getSource().startsWith('math.factorial')")
    nb.web.keyboard.press("Shift+Tab")
    tip = nb.web.locator(".jp-Tooltip")
    tip.wait_for()
    assert "factorial" in tip.inner_text()
    nb.web.keyboard.press("Escape")


def test_the_notebook_is_saved_with_its_outputs(nb, lab):
    nb.run("print('kept')\n6 * 7")
    nb.save()
    saved = nbformat.read(lab.root / nb.path, as_version=4)
    nbformat.validate(saved)
    assert saved.metadata.kernelspec.name == "python3" and saved.metadata.language_info.name == "python"
    kinds = {o.output_type: o for o in saved.cells[0].outputs}
    assert kinds["stream"].text == "kept\n" and kinds["execute_result"].data["text/plain"] == "42"


def test_a_reload_of_the_page_finds_the_kernel_again(nb, page):
    kernel = nb.kernel_id
    nb.run("x = 7")
    nb.save()
    page.open(nb.path)
    page.until("() => !!window.held.panel()?.content?.widgets")
    again = Notebook(page)
    assert again.kernel_id == kernel
    assert again.run("x").result == "7"


@pytest.mark.both
def test_the_gateway_is_killed_and_the_page_comes_back_with_its_variables(nb, gateway, lab):
    kernel = nb.kernel_id
    nb.run("x = list(range(1000))")
    old = gateway.process("gateway")
    os.kill(old, signal.SIGKILL)
    if lab.way == "direct":
        nb.page.until("() => window.held.statuses.includes('connecting')")
    wait_for(lambda: gateway.process("gateway") not in (0, old) and gateway.answers())
    # JupyterLab's own server keeps the page's socket, mends the one behind it by itself after a second or
    # two, and drops what the page sends meanwhile.
    wait_for(lambda: gateway.kernel(kernel)["connections"] > 0)
    nb.ready()
    assert nb.run("sum(x)").result == "499500"
    assert nb.kernel_id == kernel
    nb.page.shot("gateway-back")


def test_a_cell_that_ran_while_the_gateway_was_killed_ends_and_says_what_is_missing(nb, gateway, lab):
    cell = nb.start("import time\nfor i in range(80):\n    print('line', i, flush=True)\n    time.sleep(0.1)\n'end'")
    cell.until_text("line 10")
    old = gateway.process("gateway")
    os.kill(old, signal.SIGKILL)
    cell.wait()
    assert gateway.process("gateway") != old
    assert cell.result == "'end'"
    lines = [int(line.split()[1]) for line in cell.stream().splitlines()]
    assert lines == sorted(set(lines)) and lines[:11] == list(range(11)) and lines[-1] == 79
    assert len(lines) == 80 or "output from meanwhile may be missing" in cell.stream("stderr")
    nb.page.shot("killed-in-a-cell")


def test_shutting_the_kernel_down_ends_the_session(nb, gateway):
    kernel = nb.kernel_id
    nb.page.command("kernelmenu:shutdown")
    nb.page.until("() => !window.held.panel().sessionContext.session")
    assert gateway.kernel(kernel) is None
