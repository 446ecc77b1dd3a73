/* usage: work_climb ROUNDS|SECONDSs [SEED [FOLDER]]
 * Climbs to the inputs that make a stage work most for its size: changes the worst input of each stage, keeps what is
 * worse. Prints the share of its allowance that each stage took (work.h) and exits 1 where one took more than all of
 * it; the worst inputs are kept in FOLDER, where one is given, and looked at first the next time. */
#include "work.h"

#include "base/map.h"

enum { MOST_BYTES = WORK_HEAD + 8 * WORK_RECORD };

typedef struct input {
  uint8_t data[MOST_BYTES];
  size_t size;
  double share;
  work w;
} input;

static uint64_t state;

static unsigned draw(unsigned below) {
  state = pccl_mix64(state);
  return (unsigned)(state >> 33) % below;
}

static void invent(input *in) {
  in->size = WORK_HEAD + (1 + draw(4)) * WORK_RECORD;
  for (size_t i = 0; i < in->size; i++) {
    in->data[i] = (uint8_t)(draw(3) == 0 ? draw(3) : draw(256));
  }
}

static void change(input *in, const input *other) {
  for (unsigned times = 1 + draw(4); times > 0; times--) {
    size_t at = draw((unsigned)in->size), record = WORK_HEAD + draw((unsigned)(in->size / WORK_RECORD)) * WORK_RECORD;
    switch (draw(6)) {
      case 0: in->data[at] = (uint8_t)draw(256); break;
      case 1: in->data[at] = (uint8_t)(in->data[at] + draw(9) - 4); break;
      case 2: in->data[at] = (uint8_t)draw(3); break;
      case 3:
        if (in->size + WORK_RECORD <= MOST_BYTES) {
          memcpy(in->data + in->size, in->data + record, WORK_RECORD);
          in->size += WORK_RECORD;
        }
        break;
      case 4: in->size -= in->size > WORK_HEAD + WORK_RECORD ? WORK_RECORD : 0; break;
      default:
        if (record + WORK_RECORD <= in->size && record + WORK_RECORD <= other->size) {
          memcpy(in->data + record, other->data + record, WORK_RECORD);
        }
    }
  }
}

static void keep_worse(const input *in, const work *w, input *worst) {
  for (int stage = 0; stage < WORK_STAGES; stage++) {
    double share = work_share(w, stage);
    if (share > worst[stage].share) {
      worst[stage] = *in;
      worst[stage].share = share;
      worst[stage].w = *w;
    }
  }
}

static void read_kept(const char *folder, const polyccl_topology *topology, input *worst) {
  for (int stage = 0; stage < WORK_STAGES; stage++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, work_stage_of[stage].name);
    FILE *file = fopen(path, "rb");
    if (file != NULL) {
      input in = {.size = 0};
      in.size = fread(in.data, 1, sizeof in.data, file);
      fclose(file);
      work w = work_of(in.data, in.size, topology);
      keep_worse(&in, &w, worst);
    }
  }
}

static int report(const input *worst, const char *folder) {
  int status = 0;
  for (int stage = 0; stage < WORK_STAGES; stage++) {
    const input *in = &worst[stage];
    if (in->share > 0) {
      printf("%-12s %6.1f %% of its allowance: %.0f for %.0f units\n", work_stage_of[stage].name, 100 * in->share,
             in->w.done[stage], in->w.units[stage]);
      status = in->share > 1 ? 1 : status;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : "", work_stage_of[stage].name);
    FILE *file = folder != NULL && in->share > 0 ? fopen(path, "wb") : NULL;
    if (file != NULL) {
      fwrite(in->data, 1, in->size, file);
      fclose(file);
    }
  }
  return status;
}

int main(int argc, char **argv) {
  const char *amount = argc > 1 ? argv[1] : "200", *folder = argc > 3 ? argv[3] : NULL;
  char *unit;
  unsigned long limit = strtoul(amount, &unit, 10);
  time_t end = *unit == 's' ? time(NULL) + (time_t)limit : 0;
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  static input worst[WORK_STAGES];
  polyccl_topology *topology = work_topology();
  if (folder != NULL) {
    read_kept(folder, topology, worst);
  }
  for (unsigned long round = 0; end > 0 ? time(NULL) < end : round < limit; round++) {
    input in = {.size = 0};
    const input *base = &worst[draw(WORK_STAGES)];
    if (base->size == 0 || draw(8) == 0) {
      invent(&in);
    } else {
      in = *base;
      const input *other = &worst[draw(WORK_STAGES)];
      change(&in, other->size > 0 ? other : base);
    }
    work w = work_of(in.data, in.size, topology);
    keep_worse(&in, &w, worst);
  }
  polyccl_topology_destroy(topology);
  return report(worst, folder);
}
