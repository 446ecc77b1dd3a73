#include "view/thin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { MIN_SPANS = 128, MAX_SPANS = 4096 }; /* spans of a link */

void pccl_thinned_free(pccl_thinned *thinned) {
  pccl_vec_free(&thinned->samples);
  free(thinned->first);
  thinned->first = NULL;
}

/* The link's mean rate in each of `spans` equal parts of the trace. */
static void average_spans(const polyccl_trace *trace, const polyccl_trace_link *link, double *mean, size_t spans) {
  double length = trace->duration / (double)spans;
  memset(mean, 0, spans * sizeof *mean);
  for (size_t i = link->sample; i < link->sample + link->samples; i++) {
    double from = fmax(0, trace->sample[i].time);
    double to = i + 1 < link->sample + link->samples ? trace->sample[i + 1].time : trace->duration;
    to = fmin(to, trace->duration);
    for (size_t k = (size_t)fmin(from / length, (double)spans); k < spans && (double)k * length < to; k++) {
      double part = fmin(to, (double)(k + 1) * length) - fmax(from, (double)k * length);
      mean[k] += trace->sample[i].rate * fmax(0, part) / length;
    }
  }
}

static bool thin_link(const polyccl_trace *trace, size_t index, double *mean, size_t spans, pccl_thinned *thinned) {
  const polyccl_trace_link *link = &trace->link[index];
  if (link->samples <= spans || !(trace->duration > 0)) {
    for (size_t i = 0; i < link->samples; i++) {
      if (!pccl_vec_push(&thinned->samples, trace->sample[link->sample + i])) {
        return false;
      }
    }
    return true;
  }
  average_spans(trace, link, mean, spans);
  for (size_t k = 0; k < spans; k++) {
    bool same = k > 0 && mean[k] == mean[k - 1];
    polyccl_trace_sample sample = {trace->duration * (double)k / (double)spans, mean[k], (int32_t)index};
    if (!same && !pccl_vec_push(&thinned->samples, sample)) {
      return false;
    }
  }
  return true;
}

polyccl_result pccl_thin_samples(const polyccl_trace *trace, size_t budget, pccl_thinned *thinned) {
  size_t busy = 0;
  for (size_t i = 0; i < trace->links; i++) {
    busy += trace->link[i].samples > 0;
  }
  size_t spans = trace->samples <= budget ? trace->samples : budget / busy;
  spans = trace->samples <= budget || spans < MAX_SPANS ? spans : MAX_SPANS;
  spans = spans > MIN_SPANS ? spans : MIN_SPANS;
  pccl_thinned made = {.first = pccl_array(trace->links + 1, sizeof *made.first)};
  double *mean = pccl_array(spans, sizeof *mean);
  bool done = made.first != NULL && mean != NULL;
  for (size_t i = 0; i < trace->links && done; i++) {
    made.first[i] = made.samples.len;
    done = thin_link(trace, i, mean, spans, &made);
  }
  free(mean);
  if (!done) {
    pccl_thinned_free(&made);
    return pccl_no_memory("a page");
  }
  made.first[trace->links] = made.samples.len;
  *thinned = made;
  return POLYCCL_SUCCESS;
}
