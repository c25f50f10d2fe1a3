/*
 * replay - runs a fuzz harness over the files of corpus folders, so that every
 * build checks what the fuzzers found. Used where libFuzzer is not linked in.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;

    if (f == NULL || fstat(fileno(f), &st) < 0) {
        perror(path);
        exit(1);
    }
    uint8_t *data = malloc((size_t)st.st_size + 1);
    size_t n = fread(data, 1, (size_t)st.st_size, f);
    fclose(f);
    LLVMFuzzerTestOneInput(data, n);
    free(data);
}

int main(int argc, char **argv)
{
    unsigned count = 0;

    for (int i = 1; i < argc; i++) {
        struct dirent **names;
        int n = scandir(argv[i], &names, NULL, alphasort);

        if (n < 0) {
            perror(argv[i]);
            return 1;
        }
        for (int j = 0; j < n; j++) {
            char path[4096];

            snprintf(path, sizeof path, "%s/%s", argv[i], names[j]->d_name);
            if (names[j]->d_name[0] != '.') {
                run_file(path);
                count++;
            }
            free(names[j]);
        }
        free(names);
    }
    printf("%u inputs\n", count);
    return count > 0 ? 0 : 1; /* an empty corpus is a mistake, not a pass */
}
