// build: -pthread -O2
// varies
// loses
// Proves: marked loads and stores (geryon.h) are repeated where nothing else orders them. The words are mixed by plain accesses alone,
// and what they hold chooses the next ones; nobody compares them.
#include "../../include/geryon.h"
#include "racey.h"

static uint64_t racey_body(int who) {
  uint64_t sig = who + 1, seed = who + 7;
  for (int i = 0; i < racey_steps; i++) {
    uint64_t a = geryon_load64(&racey_cell[(who * 7 + sig) % RACEY_CELLS]);
    uint64_t *b = &racey_cell[a % RACEY_CELLS];
    uint64_t mixed = guest_mix(geryon_load64(b) ^ a, sig + who);
    geryon_store64(b, mixed);
    sig = guest_mix(sig, mixed);
    racey_pause(&seed, i);
  }
  return sig;
}

int main(int argc, char **argv) {
  // Of all sizes, by one thread.
  uint8_t byte = 1;
  uint16_t two = 2;
  uint32_t four = 4;
  void *pointer = NULL;
  geryon_store8(&byte, 0xfe);
  geryon_store16(&two, 0xfedc);
  geryon_store32(&four, 0xfedcba98);
  geryon_store_pointer(&pointer, &four);
  CHECK(geryon_load8(&byte) == 0xfe && geryon_load16(&two) == 0xfedc && geryon_load32(&four) == 0xfedcba98);
  CHECK(geryon_load_pointer(&pointer) == &four);
  racey_run(argc, argv, "racey_marked");
}
