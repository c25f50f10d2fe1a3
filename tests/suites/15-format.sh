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
while IFS= read -r file; do
    case $file in
    *.[ch]) check "$file" clang-format --dry-run --Werror ;;
    *.sh) check "$file" bash -n ;;
    esac
done < <(files '*.c' '*.h' '*.sh' | grep -v '^tests/attacks/\|^tests/conformance/')
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
add_counts /usr/bin/python3 tests/tools/check_doors.py build/release
add_counts /usr/bin/python3 tests/tools/check_hardening.py build/release
counts $passed $failed 0
