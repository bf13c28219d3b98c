// Counts bits in seven ways, one after the other: registers and small tables, hardly any calls.
// The program that the literature injects faults into most often.
#include <stdint.h>
#include <stdio.h>

enum { NUMBERS = 1200000 };

static uint8_t byte_bits[256];
static const uint8_t nibble_bits[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

static int clear_lowest(uint32_t x) {
  int n = 0;
  for (; x; x &= x - 1)
    n++;
  return n;
}

static int shifted(uint32_t x) {
  int n = 0;
  for (int i = 0; x && i < 32; i++, x >>= 1)
    n += x & 1;
  return n;
}

static int in_parallel(uint32_t x) {
  x = (x & 0x55555555) + (x >> 1 & 0x55555555);
  x = (x & 0x33333333) + (x >> 2 & 0x33333333);
  x = (x & 0x0f0f0f0f) + (x >> 4 & 0x0f0f0f0f);
  x = (x & 0x00ff00ff) + (x >> 8 & 0x00ff00ff);
  return (x & 0xffff) + (x >> 16);
}

static int multiplied(uint32_t x) {
  x -= x >> 1 & 0x55555555;
  x = (x & 0x33333333) + (x >> 2 & 0x33333333);
  return ((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101u >> 24;
}

static int nibbles(uint32_t x) {
  int n = 0;
  for (; x; x >>= 4)
    n += nibble_bits[x & 15];
  return n;
}

static int nibbles_again(uint32_t x) { return x ? nibble_bits[x & 15] + nibbles_again(x >> 4) : 0; }

static int bytes(uint32_t x) {
  return byte_bits[x & 255] + byte_bits[x >> 8 & 255] + byte_bits[x >> 16 & 255] + byte_bits[x >> 24];
}

int main(void) {
  static const struct {
    const char *name;
    int (*count)(uint32_t);
  } ways[] = {{"clear_lowest", clear_lowest}, {"shifted", shifted},
              {"in_parallel", in_parallel},   {"multiplied", multiplied},
              {"nibbles", nibbles},           {"nibbles_again", nibbles_again},
              {"bytes", bytes}};
  for (int i = 0; i < 256; i++)
    byte_bits[i] = nibble_bits[i & 15] + nibble_bits[i >> 4];
  for (unsigned w = 0; w < sizeof ways / sizeof *ways; w++) {
    uint32_t x = 2026;
    uint64_t total = 0;
    for (int i = 0; i < NUMBERS; i++) {
      x = x * 1664525 + 1013904223;
      total += ways[w].count(x);
    }
    printf("%-13s %llu\n", ways[w].name, (unsigned long long)total);
    fflush(stdout);
  }
}
