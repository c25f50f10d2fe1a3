# what: every C file is as clang-format makes it; scripts parse; wrong includes do not compile; the programs are hardened
# tier: quick
# timeout: 900
# beside: others
. "$(dirname "$0")/lib.sh"

files() { git ls-files -- "$@" 2>/dev/null | grep . || find . -path ./build -prune -o \( -name '*.[ch]' -o -name '*.sh' \) -print; }
passed=0 failed=0
check() { # check FILE COMMAND...
    local file=$1
    shift
    if "$@" "$file"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "not in order: $file"; fi
}
ours() { files "$@" | grep -v '^tests/attacks/\|^tests/conformance/'; }
while IFS= read -r file; do check "$file" bash -n; done < <(ours '*.sh' | grep '\.sh$')
# clang-format takes longer to start than to read a file: many files each. It names each line that is wrong.
mapfile -t sources < <(ours '*.c' '*.h' | grep '\.[ch]$')
out=$(printf '%s\0' "${sources[@]}" | xargs -0 -n 50 clang-format --dry-run --Werror 2>&1)
status=$?
echo "$out"
bad=$(sed -n 's/^\([^:]*\.[ch]\):[0-9]*:[0-9]*: error: .*/\1/p' <<<"$out" | sort -u | grep -c .)
if [ $status != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
passed=$((passed + ${#sources[@]} - bad)) failed=$((failed + bad))
python_files=$(git ls-files '*.py' 2>/dev/null | wc -l)
bad=$(git ls-files -z '*.py' 2>/dev/null | /usr/bin/python3 -c '
import ast, sys
for name in sys.stdin.read().split("\0")[:-1]:
    try:
        ast.parse(open(name, encoding="utf-8").read())
    except SyntaxError as error:
        print(f"not in order: {name}: {error}", file=sys.stderr)
        print(name)' | wc -l)
passed=$((passed + python_files - bad)) failed=$((failed + bad))
add_counts() { # add_counts COMMAND...
    local out
    out=$("$@" 2>&1)
    echo "$out"
    if [[ ${out##*$'\n'} =~ ^passed=([0-9]+)\ failed=([0-9]+)\ skipped=0$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    else
        failed=$((failed + 1))
    fi
}
# Or every build after another configuration, of which each run has several, begins from nothing.
commands() { cmake --preset asan -B "$SUITE_TMP/configured" >/dev/null && cat "$SUITE_TMP/configured/compile_commands.json"; }
first=$(commands | md5sum)
same_commands() { [ "$(commands | md5sum)" = "$first" ]; }
check CMakeLists.txt same_commands
add_counts /usr/bin/python3 tests/tools/check_doors.py build/release
add_counts /usr/bin/python3 tests/tools/check_hardening.py build/release
counts $passed $failed 0
