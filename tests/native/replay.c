/* Plays games at random with the compiled kernels, and prints a checksum of all that they write.

   Usage: replay ROWS GAMES ROW_BYTES OBSERVATION_BYTES MASK_BYTES PLAYERS, where ROWS is a file of new games. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef LIBRARY /* loaded, as Python does it */
#include <windows.h>
#else /* linked */
int64_t batch_sample_actions(const int64_t *), batch_step_games(const int64_t *);
#endif

static uint32_t checksum;

static void add(const unsigned char *bytes, int64_t size) { /* CRC-32, as Python's zlib has it */
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++) c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
            table[i] = c;
        }
    uint32_t c = ~checksum;
    for (int64_t i = 0; i < size; i++) c = table[(c ^ bytes[i]) & 255] ^ c >> 8;
    checksum = ~c;
}

static unsigned char *aligned(int64_t size) {
    return (unsigned char *)(((intptr_t)calloc(size + 64, 1) + 63) & ~(intptr_t)63);
}

#define AT(array) ((int64_t)(intptr_t)(array))

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    int64_t games = atol(argv[2]), row = atol(argv[3]), seen = atol(argv[4]), mask = atol(argv[5]), players = atol(argv[6]);
    unsigned char *states = aligned(games * row), *counts = aligned(games * seen), *masks = aligned(games * mask);
    unsigned char *status = aligned(games), *rewards = aligned(games * players * 4);
    int64_t *rows = (int64_t *)aligned(games * 8), *actions = (int64_t *)aligned(games * 8);
    FILE *file = fopen(argv[1], "rb");
    if (!file || fread(states, row, games, file) != (size_t)games) return 3;
    for (int64_t k = 0; k < games; k++) rows[k] = k;
#ifdef LIBRARY
    typedef int64_t (*entry)(const int64_t *);
    HMODULE library = LoadLibraryA(LIBRARY);
    if (!library) return 4;
    entry batch_sample_actions = (entry)(void *)GetProcAddress(library, "batch_sample_actions");
    entry batch_step_games = (entry)(void *)GetProcAddress(library, "batch_step_games");
    if (!batch_sample_actions || !batch_step_games) return 5;
#endif
    int64_t sample[] = {AT(states), games, AT(rows), games, AT(actions), games, 0, games};
    int64_t step[] = {AT(states), games, AT(rows), games, AT(actions), games, 0, /* checked */
                      AT(rewards), games, players, 0, AT(status), games, 0, /* autoreset */
                      AT(actions), games, AT(counts), games, seen, 0, 0, 0, AT(masks), games, mask, 0, games};
    batch_sample_actions(sample);
    for (int64_t over = 0; over < games;) {
        add((unsigned char *)actions, games * 8);
        if (batch_step_games(step) != -1) return 6;
        add(states, games * row), add(counts, games * seen), add(masks, games * mask), add(rewards, games * players * 4);
        over = 0;
        for (int64_t k = 0; k < games; k++) over += actions[k] < 0;
    }
    printf("%08x\n", checksum);
    return 0;
}
